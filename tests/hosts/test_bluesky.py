"""The plan for Bluesky: with simulated devices, and through EPICS with an IOC in a process of its own."""

import json
import math
import os
import runpy
import subprocess
import sys
from pathlib import Path

import event_model
import numpy as np
import pytest
from bluesky import RunEngine, preprocessors
from bluesky import plan_stubs as stubs
from bluesky.simulators import summarize_plan
from bluesky.utils import FailedStatus, RunEngineInterrupted
from ophyd import Device
from ophyd.sim import SynAxis, SynSignal
from ophyd.status import Status

import trimtab as tt
from trimtab.adapters.bluesky import tune

ROOT = Path(__file__).parents[2]
KNOBS = [{"name": "h", "low": -1, "high": 1, "start": 0.0}, {"name": "v", "low": -2, "high": 2, "start": 0.5}]


class Bench:
    """Two motors and a detector, an engine, and the documents it gave, each validated."""

    def __init__(self, measure=None):
        self.motors = {"h": SynAxis(name="motor_h"), "v": SynAxis(name="motor_v")}
        self.positions, self.documents = [], []
        self.detector = SynSignal(name="loss", func=measure or self.loss)
        self.engine = RunEngine({})
        self.engine.subscribe(self.collect)

    def loss(self):
        self.positions.append((self.motors["h"].position, self.motors["v"].position))
        return (self.positions[-1][0] - 0.5) ** 2 + (self.positions[-1][1] + 0.8) ** 2

    def collect(self, name, document):
        event_model.schema_validators[event_model.DocumentNames[name]].validate(document)
        self.documents.append((name, document))

    def events(self):
        return [document["data"] for name, document in self.documents if name == "event"]

    def tune(self, tuner, rounds, **more):
        return self.engine(tune([self.detector], "loss", tuner, self.motors, rounds, **more))


def test_tunes_and_leaves_the_devices_at_the_centre():
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=0)
    bench.tune(tuner, 150)
    assert tuner.round == len(bench.events()) == 150
    assert abs(tuner.setting["h"] - 0.5) < 0.1
    assert abs(tuner.setting["v"] + 0.8) < 0.2
    assert {name: motor.position for name, motor in bench.motors.items()} == tuner.setting


def test_documents_tell_query_centre_and_what_was_done():
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=0)
    twin = tt.Tuner(knobs=KNOBS, seed=0)
    bench.tune(tuner, 20, md={"operator": "night shift"})
    start, stop = bench.documents[0][1], bench.documents[-1][1]
    assert (start["plan_name"], start["operator"], stop["exit_status"]) == ("tune", "night shift", "success")
    assert start["trimtab"]["seed"] == 0
    json.dumps(start["trimtab"])
    for number, event in enumerate(bench.events()):
        trial = twin.ask()
        assert (event["motor_h"], event["motor_v"]) == (trial.knobs["h"], trial.knobs["v"])
        assert (event["trimtab_h"], event["trimtab_v"]) == (twin.setting["h"], twin.setting["v"])
        assert event["trimtab_round"] == number
        twin.tell(trial, event["loss"])
    assert twin.to_json() == tuner.to_json()


def test_one_reading_per_round_and_every_setting_within_limits():
    rng = np.random.default_rng(0)
    bench = Bench()
    bench.detector = SynSignal(name="loss", func=lambda: bench.loss() * 0 + rng.normal() * 1e6)
    bench.positions.clear()  # a simulated signal measures when it is made
    bench.tune(tt.Tuner(knobs=KNOBS, seed=1), 100)
    assert len(bench.positions) == 100
    h, v = np.transpose(bench.positions)
    assert h.min() >= -1
    assert h.max() <= 1
    assert v.min() >= -2
    assert v.max() <= 2


def test_resumes_from_the_file_with_the_same_queries(tmp_path):
    through, parts = Bench(), Bench()
    through.tune(tt.Tuner(knobs=KNOBS, seed=3), 40)
    parts.tune(tt.Tuner(knobs=KNOBS, seed=3), 17, save=tmp_path / "tuner.json")
    parts.tune(tt.Tuner.load(tmp_path / "tuner.json"), 23)
    assert [(e["motor_h"], e["motor_v"]) for e in parts.events()] == [
        (e["motor_h"], e["motor_v"]) for e in through.events()
    ]


@pytest.mark.parametrize("value", [math.nan, None])
def test_a_reading_without_a_value_moves_nothing(value):
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=0)
    bench.detector = SynSignal(name="loss", func=lambda: math.nan if value is None else value)
    bench.tune(tuner, 5)
    assert (tuner.round, tuner.skipped) == (5, 5)
    assert tuner.setting == {"h": 0.0, "v": 0.5}


class Moody(Device):
    """A detector whose every third measurement fails."""

    count = 0

    def trigger(self):
        self.count += 1
        status = Status()
        if self.count % 3 == 0:
            status.set_exception(RuntimeError("no beam"))
        else:
            status.set_finished()
        return status

    def read(self):
        return {"loss": {"value": 1.0, "timestamp": 0.0}}

    def describe(self):
        return {"loss": {"source": "moody", "dtype": "number", "shape": []}}


def test_a_detector_that_fails_costs_its_round_only():
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=0)
    bench.detector = Moody(name="moody")
    bench.tune(tuner, 9)
    assert (tuner.round, tuner.skipped, len(bench.events())) == (9, 3, 6)


class Stuck(SynAxis):
    """A motor that fails at its fifth move, and then works again."""

    moves = 0

    def set(self, value):
        self.moves += 1
        if self.moves == 5:
            status = Status()
            status.set_exception(RuntimeError("stuck"))
            return status
        return super().set(value)


def test_a_movable_that_fails_ends_the_plan_at_the_centre():
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=0)
    bench.motors["v"] = Stuck(name="motor_v")
    with pytest.raises(FailedStatus):
        bench.tune(tuner, 20)
    assert tuner.round == 4
    assert {name: motor.position for name, motor in bench.motors.items()} == tuner.setting
    assert bench.documents[-1][1]["exit_status"] == "fail"


def interrupted(plan, triggers):
    """The plan, with a pause after so many measurements, before the last is read."""
    seen = []

    def pausing(msg):
        if msg.command == "trigger" and msg.obj.name == "loss":
            seen.append(msg)
            if len(seen) == triggers:
                return None, stubs.pause()
        return None, None

    return preprocessors.plan_mutator(plan, pausing)


def test_pause_and_resume_measures_the_round_again_at_the_same_setting():
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=3)
    bench.positions.clear()  # a simulated signal measures when it is made
    with pytest.raises(RunEngineInterrupted):
        bench.engine(interrupted(tune([bench.detector], "loss", tuner, bench.motors, 12), 7))
    bench.engine.resume()
    assert tuner.round == len(bench.events()) == 12
    assert len(bench.positions) == 13
    assert bench.positions[6] == bench.positions[7]
    calm = Bench()
    calm.tune(tt.Tuner(knobs=KNOBS, seed=3), 12)
    assert [e["motor_h"] for e in bench.events()] == [e["motor_h"] for e in calm.events()]


def test_abort_leaves_the_devices_at_the_centre():
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=3)
    with pytest.raises(RunEngineInterrupted):
        bench.engine(interrupted(tune([bench.detector], "loss", tuner, bench.motors, 20), 7))
    bench.engine.abort()
    assert tuner.round == 6
    assert bench.documents[-1][1]["exit_status"] == "abort"
    assert {name: motor.position for name, motor in bench.motors.items()} == tuner.setting


def test_a_plan_that_is_only_inspected_teaches_nothing(capsys):
    bench, tuner = Bench(), tt.Tuner(knobs=KNOBS, seed=0)
    summarize_plan(tune([bench.detector], "loss", tuner, bench.motors, 3))
    assert tuner.round == 0
    assert capsys.readouterr().out.count("Read") == 3


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rounds": 0}, "rounds=0"),
        ({"movables": {"h": None}}, r"movables=\['h'\]"),
        ({"tuner": tt.Tuner([0.5], bounds=[(0, 1)])}, "knobs"),
        ({"tuner": tt.Tuner(knobs=KNOBS, max_pending=2)}, "one trial at a time"),
        ({"field": "gain"}, "no detector has the field 'gain'"),
    ],
)
def test_errors_say_what_to_do(change, match):
    bench = Bench()
    given = {"field": "loss", "tuner": tt.Tuner(knobs=KNOBS, seed=0), "movables": bench.motors, "rounds": 3}
    with pytest.raises(ValueError, match=match):
        bench.engine(tune([bench.detector], **(given | change)))


def test_the_page(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = example("bluesky")
    assert abs(names["tuner"].setting["h"] - 0.5) < 0.1
    assert tt.Tuner.load(tmp_path / "tuner.json").to_json() == names["tuner"].to_json()


EPICS = """
import json, runpy, sys
example = runpy.run_path(sys.argv[1])
documents, tuner, left = example["run"](400)
events = [document["data"] for name, document in documents if name == "event"]
print(json.dumps({
    "names": [name for name, _ in documents], "events": events, "left": left, "setting": tuner.setting,
    "rounds": tuner.round,
}))
"""


def test_a_drifting_magnet_pair_behind_a_real_ioc(tmp_path):
    # In a process of its own: Channel Access keeps threads and ports until the process ends.
    script = tmp_path / "follow.py"
    script.write_text(EPICS)
    magnets = ROOT / "examples" / "epics_magnets.py"
    # runpy leaves __file__ as the example's own path, which is what its IOC is started from
    result = subprocess.run(
        [sys.executable, script, magnets], capture_output=True, text=True, timeout=300, env=os.environ
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout.splitlines()[-1])
    assert told["names"] == ["start", "descriptor", *["event"] * 400, "stop"]
    assert told["rounds"] == 400
    assert told["left"] == pytest.approx(told["setting"], abs=1e-9)
    example = runpy.run_path(str(magnets))
    currents = np.array([[event["H"], event["V"]] for event in told["events"]])
    excess = example["loss"](np.arange(400), currents) - example["FLOOR"]
    alone = example["loss"](np.arange(400), [0.0, 0.0]) - example["FLOOR"]
    assert np.abs(currents).max() <= example["LIMIT"]
    assert excess[50:].mean() < 0.2 * alone[50:].mean()
    measured = np.array([event["monitor_loss"] for event in told["events"]])
    noise = measured - excess - example["FLOOR"]  # each reading belongs to its own setting and its own time
    assert np.abs(noise).max() < 6 * example["NOISE"]
