"""The gest-api generator in the hosts that take it: Xopt, blop, libEnsemble, Badger."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from gest_api.vocs import VOCS

from trimtab.adapters.gest import Generator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the hosts warn of each other

VARIABLES = {"x": [-1.0, 1.0], "y": [0.0, 2.0]}


def vocs(**more):
    return VOCS(variables=VARIABLES, objectives={"f": "MINIMIZE"}, **more)


def measure(point):
    return {"f": (point["x"] - 0.5) ** 2 + (point["y"] - 1.4) ** 2}


def near(setting):
    return abs(setting["x"] - 0.5) < 0.15 and abs(setting["y"] - 1.4) < 0.15


class TestXopt:
    def make(self, **options):
        from xopt import Evaluator, Xopt

        generator = Generator(vocs(), start={"x": 0.0, "y": 1.0}, seed=3, **options)
        return Xopt(generator=generator, evaluator=Evaluator(function=measure))

    def test_registered_by_name(self):
        from xopt.generators import get_generator, list_available_generators

        assert get_generator("trimtab") is Generator
        assert "trimtab" in list_available_generators()

    def test_made_from_yaml_by_its_name(self):
        from xopt import Xopt

        text = """
            evaluator: {function: math.fsum}
            generator:
              name: trimtab
              radius: 0.1
              start: {x: 0.25, y: 1.0}
              vocs:
                variables: {x: [-1.0, 1.0], y: [0.0, 2.0]}
                objectives: {f: MINIMIZE}
        """
        host = Xopt.from_yaml(textwrap.dedent(text))
        assert isinstance(host.generator, Generator)
        assert host.generator.setting == {"x": 0.25, "y": 1.0}
        assert host.generator.radius == 0.1

    def test_steps_follow_the_generator_alone(self):
        host, alone = self.make(), self.make().generator
        for _ in range(60):
            host.step()
            (point,) = alone.suggest(1)
            alone.ingest([{**point, **measure(point)}])
        assert host.generator.tuner.to_json() == alone.tuner.to_json()
        assert len(host.data) == 60
        assert near(host.generator.setting)

    @pytest.mark.parametrize("rounds", [0, 1, 17])
    def test_yaml_dump_and_restart_give_the_next_points_bit_equal(self, rounds, tmp_path):
        from xopt import Xopt

        through, before = self.make(), self.make()
        for _ in range(rounds):
            through.step()
            before.step()
        before.dump(str(tmp_path / "saved.yml"))
        after = Xopt.from_file(str(tmp_path / "saved.yml"))
        for _ in range(12):
            through.step()
            after.step()
        for name in (*VARIABLES, "f"):  # of the points before, Xopt's table itself keeps fifteen digits
            new, same = (host.data[name].iloc[rounds:] for host in (after, through))
            assert [v.hex() for v in new] == [v.hex() for v in same]
            assert len(new) == 12
        assert after.generator.tuner.to_json() == through.generator.tuner.to_json()

    def test_a_run_from_random_points_starts_where_the_last_one_was(self):
        host = self.make()
        fresh = Generator(vocs(), seed=3)
        host.generator = fresh
        host.random_evaluate(3)
        last = host.data.iloc[-1]
        assert fresh.setting == pytest.approx({"x": last["x"], "y": last["y"]})
        host.step()
        assert fresh.tuner.round == 1


class TestBlop:
    def test_is_an_optimizer_and_aware_of_faults(self):
        from blop.protocols import Optimizer, TrialFaultAware

        generator = Generator(vocs(), seed=0)
        assert isinstance(generator, Optimizer)
        assert isinstance(generator, TrialFaultAware)

    def problem(self, generator, fail_at=()):
        from blop.protocols import OptimizationProblem
        from bluesky import RunEngine
        from ophyd.sim import SynAxis, SynSignal

        motors = {name: SynAxis(name=name) for name in VARIABLES}
        readings, count = [], iter(range(10**6))

        def reading():
            return measure({name: motor.position for name, motor in motors.items()})["f"]

        def evaluate(uid, suggestions):
            if next(count) in fail_at:
                raise RuntimeError("no beam")
            return [{"_id": s["_id"], "f": reading()} for s in suggestions]

        sensor = SynSignal(name="f", func=reading)
        engine = RunEngine({})
        engine.subscribe(lambda name, document: readings.append((name, document)))
        actuators = list(motors.values())
        problem = OptimizationProblem(
            optimizer=generator, actuators=actuators, sensors=[sensor], evaluation_function=evaluate
        )
        return engine, problem, readings

    def test_optimize_runs(self):
        from blop.plans import optimize

        generator = Generator(vocs(), start={"x": 0.0, "y": 1.0}, seed=3)
        engine, problem, documents = self.problem(generator)
        engine(optimize(problem, iterations=50))
        assert generator.tuner.round == 50
        assert near(generator.setting)
        assert [name for name, _ in documents].count("stop") == 51  # the run of blop's, and one for each acquisition
        ((id, point, outcome),) = generator.get_best_points()
        assert (id, point) == (49, generator.setting)
        assert list(outcome) == ["f"]

    def test_a_failed_acquisition_costs_its_round_only(self):
        from blop.plans import optimize

        generator = Generator(vocs(), start={"x": 0.0, "y": 1.0}, seed=3)
        engine, problem, _ = self.problem(generator, fail_at={4})
        with pytest.raises(RuntimeError, match="no beam"):
            engine(optimize(problem, iterations=10))
        assert (generator.tuner.round, generator.tuner.skipped) == (5, 1)
        engine(optimize(problem, iterations=10))
        assert generator.tuner.round == 15


ENSEMBLE = """
import json, os, sys
from gest_api.vocs import VOCS
from libensemble import Ensemble
from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs
from trimtab.adapters.gest import Generator

def simulate(point):
    return {"f": (point["x"] - 0.5) ** 2 + (point["y"] - 1.4) ** 2, "pid": float(os.getpid())}

if __name__ == "__main__":
    comms, workers = sys.argv[1], int(sys.argv[2])
    vocs = VOCS(variables={"x": [-1.0, 1.0], "y": [0.0, 2.0]}, objectives={"f": "MINIMIZE"}, observables=["pid"])
    generator = Generator(vocs, start={"x": 0.0, "y": 1.0}, seed=4, max_pending=workers)
    ensemble = Ensemble(
        libE_specs=LibeSpecs(comms=comms, nworkers=workers, gen_on_manager=True, disable_log_files=True,
                             save_H_and_persis_on_abort=False),
        gen_specs=GenSpecs(generator=generator, batch_size=workers, initial_batch_size=workers, vocs=vocs),
        sim_specs=SimSpecs(simulator=simulate, vocs=vocs),
        alloc_specs=AllocSpecs(alloc_f=only_persistent_gens),
        exit_criteria=ExitCriteria(sim_max=80),
    )
    history, _, flag = ensemble.run()
    done = history[history["sim_ended"]]
    print(json.dumps({
        "flag": flag, "x": done["x"].tolist(), "y": done["y"].tolist(), "f": done["f"].tolist(),
        "ids": done["_id"].tolist(), "pids": sorted(set(done["pid"].tolist())), "own": os.getpid(),
        "round": generator.tuner.round, "setting": generator.setting,
    }))
"""


class TestLibEnsemble:
    @pytest.mark.parametrize(("comms", "workers"), [("local", 1), ("local", 3), ("threads", 1), ("threads", 3)])
    def test_follows_with_processes_and_threads(self, comms, workers, tmp_path):
        (tmp_path / "ensemble.py").write_text(ENSEMBLE)
        result = subprocess.run(
            [sys.executable, "ensemble.py", comms, str(workers)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert result.returncode == 0, result.stderr
        told = json.loads(result.stdout.splitlines()[-1])
        assert told["flag"] == 0
        assert len(told["f"]) >= 80
        assert len(set(told["ids"])) == len(told["ids"])
        assert (told["own"] in told["pids"]) == (comms == "threads")
        x, y = np.array(told["x"]), np.array(told["y"])
        assert np.abs(x).max() <= 1
        assert y.min() >= 0
        assert y.max() <= 2
        late = np.array(told["f"])[-20:]
        assert np.median(late) < 0.1 * told["f"][0]  # of seeds, one in eighty starts badly in threes
        if workers == 1:  # in order: as if it were alone
            alone = Generator(vocs(), start={"x": 0.0, "y": 1.0}, seed=4)
            for at in zip(x, y, strict=True):
                (point,) = alone.suggest(1)
                assert (point["x"], point["y"]) == at
                alone.ingest([{**point, **measure(point)}])


BADGER = """
import sys
from pathlib import Path
from badger.settings import init_settings
settings = init_settings()
root = Path(sys.argv[1]) / "plugins"
Path(settings.config_path).parent.mkdir(parents=True, exist_ok=True)
for kind in ("environments", "interfaces"):
    (root / kind).mkdir(parents=True)
settings.write_value("BADGER_PLUGIN_ROOT", str(root))
import trimtab.adapters.gest
from badger.factory import get_generator, list_generators, load_badger_docs
print("found:", "trimtab" in list_generators())
print("defaults:", sorted(get_generator("trimtab")))
"""


def test_badger_finds_it_once_it_is_imported(tmp_path):
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"), "QT_QPA_PLATFORM": "offscreen"}
    result = subprocess.run(
        [sys.executable, "-c", BADGER, tmp_path], env=os.environ | home, capture_output=True, text=True, timeout=240
    )
    assert result.returncode == 0, result.stderr
    assert "found: True" in result.stdout
    defaults = result.stdout.partition("defaults: ")[2]
    assert "radius" in defaults
    assert "max_pending" in defaults
