"""Changes to a running study keep the learnt state, take effect in the next probes, and can be undone."""

import json
import math
import os
import signal

import numpy as np
import pytest

import trimtab as tt
from trimtab.core import ask
from trimtab.live import Study, read_config
from trimtab.store.backends.sqlite import SqliteDatabase
from trimtab.study import core_calls

from .. import factories

KNOBS = [
    {"name": "x", "low": 0.0, "high": 10.0, "start": 2.0},
    {"name": "y", "low": 1.0, "high": 1000.0, "start": 10.0, "scale": "log"},
    {"name": "n", "low": 0, "high": 50, "start": 10, "type": "integer"},
]
BEST = {"x": 6.0, "y": 100.0, "n": 30}


def cost(knobs):
    return (knobs["x"] - 6) ** 2 + math.log(knobs["y"] / 100) ** 2 + ((knobs["n"] - 30) / 10) ** 2


def run(study, rounds):
    return [cost(trial.knobs) for trial in factories.run(study, rounds, cost)]


def learnt(rounds=60, **options):
    study = Study.open(":memory:", "a", KNOBS, seed=1, baseline=0, **options)
    run(study, rounds)
    return study


def wide(study):
    """Return δ_t/δ of the next trial."""
    return study.setup.rule.width(study.state.memory, study.state.round)


def exact(study):
    return core_calls.pack(study.setup, study.state)


def physical(study):
    """Return the slope per unit of each knob, or per e-fold on a log scale."""
    units = [10.0, math.log(1000), 50.0]
    for knob, unit in zip(study.knobs.all, units, strict=True):
        low, high = study.knobs.ranges.get(knob.name, (knob.low, knob.high))
        assert unit == pytest.approx(math.log(high / low) if knob.scale == "log" else high - low)
    sides = [study.knobs.side(knob) for knob in study.knobs.all]
    return study.state.slope.fade * study.state.slope.slope * sides / units


@pytest.mark.parametrize(
    "changes",
    [
        {"knobs.x.high": 20.0},
        {"knobs.x.low": -3.5, "knobs.x.high": 8.5},
        {"knobs.y.high": 3000.0},
        {"knobs.y.low": 3.0, "knobs.n.high": 70},
    ],
)
def test_a_changed_limit_affects_only_itself(changes):
    """Far from the limit, the path equals that of an unchanged study, except for queries that would repeat."""
    with learnt() as study, learnt() as other:
        before, slope = study.knobs.values(study.state.centre), physical(study)
        assert study.set(changes) == {name: (_field(other, name), value) for name, value in changes.items()}
        assert study.knobs.values(study.state.centre) == pytest.approx(before, rel=1e-12)
        assert physical(study) == pytest.approx(slope, rel=1e-12)
        assert study.state.slope.bent == other.state.slope.bent
        for _ in range(3):
            assert list(study.ask().knobs.values()) == pytest.approx(list(other.ask().knobs.values()), rel=1e-12)
            run(study, 1)
            run(other, 1)


def _field(study, name):
    _, knob, field = name.split(".")
    return next(getattr(k, field) for k in study.knobs.all if k.name == knob)


def test_a_changed_limit_bounds_the_queries():
    with learnt() as study:
        for limits in ({"low": 4.0, "high": 5.0}, {"low": -2.0, "high": 5.5}, {"low": -4.0, "high": 12.0}):
            study.set({f"knobs.x.{name}": value for name, value in limits.items()})
            asked = [study.centre["x"]]
            for _ in range(60):
                asked.append(study.ask().knobs["x"])
                run(study, 1)
            assert limits["low"] <= min(asked)
            assert max(asked) <= limits["high"]
            assert study.centre["x"] == pytest.approx(min(6.0, limits["high"]), abs=0.3)  # the best that is allowed
            assert study.start["x"] == pytest.approx(max(2.0, limits["low"]))


def direction(study):
    """Return u of the next probe, along x, y and n."""
    return np.abs(study.setup.frame.direction(study.state.key, study.round))


@pytest.mark.parametrize("radius", [0.005, 0.02, 0.1])
def test_a_changed_radius(radius):
    """The next probe has `radius` times the learnt width, from the same centre."""
    with learnt() as study:
        before, width, slope = study.knobs.values(study.state.centre), wide(study), physical(study)
        study.set({"radius": radius})
        assert study.knobs.values(study.state.centre) == before
        assert np.array_equal(physical(study), slope)
        assert abs(study.ask().knobs["x"] - before[0]) == pytest.approx(10 * radius * width * direction(study)[0])


def test_a_changed_radius_of_one_knob():
    with learnt() as study:
        before, slope = study.knobs.values(study.state.centre), physical(study)
        width = wide(study) * direction(study)
        study.set({"knobs.x.radius": 0.01, "knobs.y.radius": 0.1})
        assert study.knobs.values(study.state.centre) == pytest.approx(before, rel=1e-12)
        assert physical(study) == pytest.approx(slope, rel=1e-12)
        asked = study.ask().knobs
        assert abs(asked["x"] - before[0]) == pytest.approx(10 * 0.01 * width[0])
        assert abs(math.log(asked["y"] / before[1])) == pytest.approx(math.log(1000) * 0.1 * width[1])
        study.set({"radius": 0.02})  # of the other knobs
        asked, centre = study.ask().knobs, study.knobs.values(study.state.centre)
        assert centre == pytest.approx(before, rel=1e-12)
        assert abs(asked["x"] - before[0]) == pytest.approx(10 * 0.01 * width[0])
        study.set({"knobs.x.radius": None, "knobs.y.radius": None})
        assert abs(study.ask().knobs["x"] - before[0]) == pytest.approx(10 * 0.02 * width[0])


def test_widest_and_narrowest_take_effect_immediately():
    with learnt() as study:
        width = study.state.pace.width
        study.set({"widest": 1.0, "narrowest": 1.0})
        assert width != 1.0
        for _ in range(10):
            assert ask(study.setup, study.state).look.width == 1.0
            run(study, 1)
    with learnt(method=tt.residual(radius=0.05, step=1e-4)) as study:
        with pytest.raises(ValueError, match='widest applies only to method = "auto"'):
            study.set({"widest": 1.0})
        study.set({"radius": 0.1})
        assert abs(study.ask().knobs["x"] - study.centre["x"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "changes", [{"knobs.x.high": 20.0}, {"radius": 0.04}, {"knobs.x.radius": 0.04}, {"knobs.x.low": -5.0}]
)
def test_tracking_continues_without_learning_again(changes):
    """At the optimum, the forty rounds after the change cost as much as those before it."""
    with learnt(150) as study:
        before = run(study, 40)
        study.set(changes)
        after = run(study, 40)
        assert np.mean(after) < 1.5 * np.mean(before) + 0.02
        assert max(after) < 3 * max(before) + 0.05


def test_learning_again_would_be_detected():
    """The test above can fail: with nothing learnt, the first rounds probe at the initial width."""
    with learnt(150) as study:
        before = run(study, 40)
        assert cost(study.centre) < 0.02
        state = core_calls.restart(study.setup, study.state, study.state.centre)
        study._position = study._position._replace(state=state)
        study._open = None
        assert max(run(study, 40)) > 3 * max(before) + 0.05


def test_a_changed_largest_move():
    with learnt() as study:
        study.set({"guard.largest_move": 0.001})
        assert study.setup.longest == pytest.approx(0.001)
        study.set({"radius": 0.1, "knobs.x.radius": 0.2})  # independent of the probes
        assert study.setup.longest == pytest.approx(0.0005)  # x moves by twice the share of its range
        study.set({"guard.largest_move": None})
        assert study.setup.method.max_move is None


def test_run_settings_do_not_affect_the_tuner():
    with learnt(5) as study:
        trial, before = study.ask(), exact(study)
        study.set({"pause": 5, "timeout": 2.5, "keep": 2000, "guard.failures": 3, "guard.quiet_hours": ["22:00-06:00"]})
        assert (study.settings["pause"], study.settings["keep"], study.settings["guard.stop_above"]) == (5, 2000, None)
        assert exact(study) == before
        study.tell(trial, 1.0)  # it is still open
        with pytest.raises(ValueError, match=r"guard.failures=0 is not a valid number of rounds"):
            study.set({"guard.failures": 0, "pause": 1})
        with pytest.raises(ValueError, match="keep=3 is not a valid number of rounds"):
            study.set({"keep": 3})
        assert study.settings["pause"] == 5


def test_every_change_is_an_event_with_who_what_and_why():
    with learnt(3) as study:
        study.set({"radius": 0.02, "guard.failures": 4}, who="anna", why="it rattles")
        assert study.set({"radius": 0.02}) == {}
        *_, last = study.events()
        assert (last.kind, last.round) == ("set", 3)
        assert last.note == "radius 0.05 → 0.02, guard.failures none → 4 (anna: it rattles)"
        assert study.news() == [f"set: {last.note}"]
        assert study.news() == []


@pytest.mark.parametrize(
    "changes",
    [{"knobs.x.high": 4.0}, {"radius": 0.3}, {"knobs.y.radius": 0.017}, {"widest": 2.0}, {"pause": 3}, {"keep": 5000}],
)
def test_an_immediate_undo_is_exact(changes):
    with learnt() as study, learnt() as other:
        study.set(changes)
        study.undo()
        assert exact(study) == exact(other)
        assert (study.knobs, study.settings["pause"], study.settings["keep"]) == (other.knobs, 0, 100_000)
        assert [run(study, 1) for _ in range(30)] == [run(other, 1) for _ in range(30)]
        with pytest.raises(ValueError, match="has no change to undo: give a round"):
            study.undo()


def test_a_later_undo_keeps_the_learnt_state():
    with learnt() as study:
        study.set({"knobs.x.high": 9.0, "knobs.y.radius": 0.01}, why="first")
        run(study, 10)
        study.set({"radius": 0.02, "pause": 2}, why="second")
        run(study, 10)
        centre, slope = study.knobs.values(study.state.centre), physical(study)
        study.undo()
        assert (study.setup.method.radius, study.settings["pause"], study.knobs.all[0].high) == (0.05, 0, 9.0)
        study.undo()
        assert study.knobs.all == tt.Knobs.of(KNOBS).all
        assert not study.knobs.ranges
        assert study.knobs.values(study.state.centre) == pytest.approx(centre)
        assert physical(study) == pytest.approx(slope)
        assert study.round == 80
        assert [event.kind for event in study.events()].count("undo") == 2
        note = list(study.events())[-1].note
        assert note.startswith("knobs.x.high 9.0 → 10.0, knobs.y.radius 0.01 → none (undoes the change of event 61")


def test_undo_to_a_round_keeps_later_changes():
    """A limit that was lowered for safety stays lowered."""
    with learnt() as study:
        study.set({"knobs.x.high": 5.0, "knobs.y.radius": 0.02})
        run(study, 20)
        study.undo(30)
        assert study.round == 30
        assert study.knobs.all[0].high == 5.0
        with learnt(30) as other:
            wanted = other.knobs.values(other.state.centre)
            wanted[0] = min(wanted[0], 5.0)
            assert study.knobs.values(study.state.centre) == pytest.approx(wanted, rel=1e-12)
            other.set({"knobs.x.high": 5.0, "knobs.y.radius": 0.02})
            assert exact(other) == exact(study)
        study.reset()
        assert study.centre == study.start == pytest.approx({"x": 2.0, "y": 10.0, "n": 10})


def test_changes_survive_reopening_and_export(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        run(study, 30)
        study.set({"knobs.x.high": 25.0, "knobs.x.radius": 0.1, "guard.failures": 2})
        run(study, 30)
        study.set({"knobs.x.low": -20.0, "knobs.n.high": 90})
        run(study, 150)
        there, text = exact(study), study.export()
    with Study.open(tmp_path / "t.db", "a", KNOBS) as study:  # the original definition is not a change
        assert exact(study) == there
        assert study.knobs.all[0].high == 25.0
        assert study.settings["guard.failures"] == 2
        assert study.news() == [
            "knobs.x.low stays -20.0, as it was last changed; Study.open says 0.0",
            "knobs.x.high stays 25.0, as it was last changed; Study.open says 10.0",
            "knobs.x.radius stays 0.1, as it was last changed; Study.open says None",
            "knobs.n.high stays 90, as it was last changed; Study.open says 50",
        ]
    Study.import_text(tmp_path / "u.db", text)
    with Study.open(tmp_path / "u.db", "a") as moved, Study.open(tmp_path / "t.db", "a") as study:
        assert [run(study, 1) for _ in range(5)] == [run(moved, 1) for _ in range(5)]
        moved.undo()
        moved.undo()
        assert moved.knobs.all == tt.Knobs.of(KNOBS).all


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"knobs.z.high": 3},
            r"there is no knob 'z' \(only x, y, n\), and none can be added .*: trimtab init --from a",
        ),
        (
            {"knobs.x.type": "integer"},
            "of a knob only low and high and radius can change once the study has begun; .*--from a",
        ),
        ({"knobs.x.scale": "log"}, "of a knob only low and high and radius can change"),
        ({"goal": "maximise"}, "goal cannot change once the study has begun; .*: trimtab init --from a"),
        ({"seed": 3}, "seed cannot change once the study has begun"),
        ({"method": "residual"}, "method cannot change once the study has begun"),
        ({"command": "echo"}, "command is read from study.toml at the start of a run: change it there"),
        ({"radios": 0.1}, "unknown field radios: did you mean .radius.?"),
        ({"colour": 0.1}, "unknown field colour: choose from radius, .*guard.failures"),
        ({"guard.falures": 3}, "unknown field guard.falures: did you mean .guard.failures.?"),
        ({"comand": "echo"}, "unknown field comand: did you mean .command.?"),
        ({"knobs.x.hihg": 3}, "unknown field knobs.x.hihg: did you mean .high.?"),
        ({"timeout": "10 lightyears"}, "timeout='10 lightyears' is out of range: give seconds, or text such as"),
        ({"radius": 0.7}, "radius=0.7 must be a finite number"),
        ({"radius": "wide"}, "radius='wide' must be a finite number"),
        ({"knobs.x.high": "far"}, "knob 'x': high='far' is not a finite number"),
        ({"knobs.x.low": 12.0}, "knob 'x': low=12.0 is not below high=10.0"),
        ({"knobs.y.low": 0.0}, "knob 'y': low=0.0 is not above zero"),
        ({"knobs.n.high": 30.5}, "knob 'n': high=30.5 is not a whole number"),
        (
            {"knobs.x.low": 4.0, "knobs.x.high": 4.0},
            "would hold it fixed, but the number of moving knobs cannot change",
        ),
        ({"widest": 0.5}, "widest=0.5 must be a finite number >= 1"),
        ({"pause": -1}, "pause=-1 is out of range"),
        ({"pause": 10**400}, "is out of range: give seconds"),
        ({"guard.quiet_hours": ["22:00Z-06:00Z"]}, "has a time zone"),
        ({"knobs.x.low": None}, "knob 'x': low=None is not a finite number"),
    ],
)
def test_an_impossible_change_is_refused_without_effect(changes, why):
    with learnt(5) as study:
        before = exact(study)
        with pytest.raises(ValueError, match=why) as error:
            study.set({"guard.failures": 9, **changes})
        for internals in ("Method(", "Knob(", "Adaptive(", "Plane(", "array("):
            assert internals not in str(error.value)
        assert (exact(study), study.seq, study.settings["guard.failures"]) == (before, 5, None)


def test_a_misspelt_knob_is_suggested():
    knobs = [{"name": "valve", "low": 0, "high": 1, "start": 0.5}]
    said = r"^knobs\.vlave\.high: there is no knob 'vlave': did you mean .valve.\?$"
    with Study.open(":memory:", "a", knobs, seed=0) as study, pytest.raises(ValueError, match=said):
        study.set({"knobs.vlave.high": 3})


def test_a_duration_may_have_a_unit():
    with Study.open(":memory:", "a", KNOBS, seed=0, settings={"timeout": "2m"}) as study:
        assert study.settings["timeout"] == 120
        assert study.set({"timeout": "1h", "pause": "500ms"}) == {"timeout": (120.0, 3600.0), "pause": (0.0, 0.5)}
        assert study.set({"timeout": "60m"}) == {}
        assert study.settings["pause"] == 0.5


def test_none_restores_a_default():
    given = {
        "guard.quiet_hours": ["22:00-06:00"],
        "guard.approval": True,
        "guard.failures": 3,
        "guard.leave_at": "start",
        "pause": 0.5,
        "timeout": 5,
        "keep": 2000,
        "baseline.every": 10,
        "radius": 0.1,
        "narrowest": 0.5,
        "widest": 2.0,
        "knobs.x.radius": 0.1,
    }
    with Study.open(":memory:", "a", KNOBS, seed=1) as study:
        usual = study.fields()
        study.set(given)
        assert study.fields() == {**usual, **given}
        study.set(dict.fromkeys(given))
        assert study.fields() == usual


def test_rounds_out_of_range():
    with learnt(3) as study:
        for round, reason in ((10**20, "has not been run"), (-(10**20), "is no longer kept")):
            with pytest.raises(ValueError, match=reason):
                study.undo(round)
        assert len(list(study.events(after=-(10**20)))) == 4


def test_grids_choices_and_switches():
    knobs = [
        {"name": "grid", "low": 0.0, "high": 2.0, "step": 0.5, "start": 1.5},
        {"name": "codec", "choices": ["a", "b"], "start": "b"},
        {"name": "cache", "type": "bool", "start": True},
    ]
    with Study.open(":memory:", "a", knobs, tt.auto(radius=0.2), seed=1) as study:
        for n in range(20):
            study.tell(study.ask(), float(n % 3))
        weights = study.knobs.shares(study.state.centre)
        study.set({"knobs.codec.radius": 0.4, "knobs.cache.radius": 0.1, "knobs.grid.high": 1.0})
        found = study.knobs.shares(study.state.centre)
        assert found[1] == pytest.approx(weights[1])
        assert found[2] == pytest.approx(weights[2])
        assert study.start == {"grid": 1.0, "codec": "b", "cache": True}
        for n in range(20):
            assert study.ask().knobs["grid"] in (0.0, 0.5, 1.0)
            study.tell(study.ask(), float(n % 3))
        with pytest.raises(ValueError, match=r"knob 'grid': high=0.7 is not a whole number of steps"):
            study.set({"knobs.grid.high": 0.7})
        study.set({"knobs.grid.low": 0.25, "knobs.grid.high": 1.25})
        assert study.start["grid"] == 1.25
        study.set({"knobs.grid.low": 0.0, "knobs.grid.high": 2.0})
        assert study.start["grid"] == 1.5  # the original start
        with pytest.raises(ValueError, match="of a knob only radius can change once the study has begun"):
            study.set({"knobs.cache.high": False})


TOML = """
name = "a"
command = ["echo", "{x}"]
radius = 0.05
seed = 1
[knobs.x]
low = 0
high = 10
start = 5
[guard]
failures = 5
"""


def test_a_changed_start_is_ignored_with_a_message(tmp_path):
    def opened(*change):
        (tmp_path / "study.toml").write_text(TOML.replace(*change) if change else TOML)
        return read_config(tmp_path / "study.toml").open()

    opened().close()
    with opened("start = 5", "start = 3") as study:
        assert study.start == {"x": 5.0}
        assert study.news() == [
            "knobs.x.start is 5, but study.toml says 3: the start of a knob cannot change once the study"
            " has begun; restore it, or write a new study that starts at the present centre: trimtab init --from a"
        ]
    with opened("low = 0\nhigh = 10\nstart = 5", "low = 6\nhigh = 10\nstart = 6") as study:  # nearest to the original
        assert study.start == {"x": 6.0}
        assert [text.partition(" (")[0] for text in study.news()] == ["set: knobs.x.low 0 → 6"]
    with opened() as study:
        assert [text.partition(" (")[0] for text in study.news()] == ["set: knobs.x.low 6 → 0"]


def test_changes_in_the_file_are_applied_and_those_made_meanwhile_stay(tmp_path):
    def opened(*change):
        (tmp_path / "study.toml").write_text(TOML.replace(*change) if change else TOML)
        return read_config(tmp_path / "study.toml").open()

    with opened() as study:
        study.tell(study.ask(), 1.0)
        study.set({"radius": 0.02, "guard.failures": 3}, who="anna")
    with opened() as study:
        assert (study.setup.method.radius, study.settings["guard.failures"]) == (0.02, 3)
        assert "radius stays 0.02, as it was last changed; study.toml says 0.05" in study.news()
    with opened("high = 10", "high = 12\nradius = 0.1") as study:
        assert (study.setup.method.radius, study.knobs.all[0].high, study.knobs.all[0].radius) == (0.02, 12, 0.1)
        assert list(study.events())[-1].note.startswith("knobs.x.high 10 → 12, knobs.x.radius none → 0.1 (")
        assert list(study.events())[-1].note.endswith(": study.toml)")
        seq = study.seq
    with opened("high = 10", "high = 12\nradius = 0.1") as study:
        assert study.seq == seq
        study.undo()
    with opened("high = 10", "high = 12\nradius = 0.1") as study:
        assert study.knobs.all[0].high == 10  # changed by a person after the file
    with opened("radius = 0.05", "radius = 0.02\nwidest = 2\npause = 3\nkeep = 4000") as study:
        assert study.setup.method.step.widest == 2
        assert (study.settings["pause"], study.settings["keep"]) == (3, 4000)
        study.set({"radius": 0.03})
    with opened("radius = 0.05", "radius = 0.02\nwidest = 2\npause = 3\nkeep = 4000") as study:
        assert study.setup.method.radius == 0.03  # the file said 0.02 before that
    with opened("failures = 5", "largest_move = 0.01") as study:
        assert study.setup.longest == pytest.approx(0.01)
        assert study.settings["guard.failures"] is None
    with pytest.raises(
        ValueError, match=r"goal is to minimise, but its definition says maximise.*trimtab init --from a"
    ):
        opened("seed = 1", 'goal = "maximise"')
    with pytest.raises(ValueError, match="knob 'y' is not one of its knobs"):
        opened("[knobs.x]", "[knobs.y]\nlow = 0\nhigh = 1\nstart = 0\n[knobs.x]")


@pytest.mark.parametrize("statements", range(1, 8))
def test_a_kill_during_a_change_leaves_the_old_or_the_new_setting(tmp_path, statements):
    """Killed after this many statements of the transaction; the last ones are the commit and those after it."""
    where = tmp_path / "t.db"
    with Study.open(where, "a", KNOBS, seed=1, baseline=0) as study:
        run(study, 30)
        old = exact(study)
    with learnt(30) as other:
        other.set({"radius": 0.02, "knobs.x.high": 5.0, "pause": 4})
        new = exact(other)
    child = os.fork()
    if child == 0:
        execute, count = SqliteDatabase.execute, 0

        def executing(self, sql, *values):
            nonlocal count
            found = execute(self, sql, *values)
            count += 1
            if count == statements:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        study = Study.open(where, "a")
        SqliteDatabase.execute = executing
        study.set({"radius": 0.02, "knobs.x.high": 5.0, "pause": 4})
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with Study.open(where, "a") as study:
        done = study.seq == 31
        assert exact(study) == (new if done else old)
        assert study.settings["pause"] == (4 if done else 0)
        assert (study.knobs.all[0].high == 5.0) == done
        assert done == (statements > 3)  # BEGIN, the event, the snapshot, COMMIT
        run(study, 3)


def test_another_process_requests_a_change(tmp_path):
    where = tmp_path / "t.db"
    with Study.open(where, "a", KNOBS, seed=1) as study:
        run(study, 5)
        trial = study.ask()
        with Study.open_unlocked(where, "a", mode="write") as other:
            assert other.set({"radius": 0.02}, who="anna", why="so") == {"radius": (0.05, 0.02)}
            with pytest.raises(ValueError, match="unknown field radios"):
                other.set({"radios": 0.02})
            assert other.asked()
            other.set({"guard.failures": 2}, who="ben")
            study.tell(trial, 1.0)  # the open trial is not disturbed
            assert study.setup.method.radius == 0.05
            study.ask()
            assert (study.setup.method.radius, study.settings["guard.failures"]) == (0.02, 2)
            assert not other.asked()
            assert [event.note for event in study.events()][-2:] == [
                "radius 0.05 → 0.02 (anna: so)",
                "guard.failures none → 2 (ben)",
            ]
            other.set({"radius": 0.01})
    with Study.open(where, "a") as study:  # no longer held by another process
        assert study.setup.method.radius == 0.01


def test_changes_in_memory():
    with Study.open(":memory:", "a", KNOBS, seed=1) as study:
        run(study, 3)
        assert study.summary()["rounds"] == 3
        assert json.loads(study.export())["name"] == "a"
        assert study.center == study.centre
    assert not Study.exists(":memory:", "a")
    with Study.open(":memory:", "a", KNOBS, seed=1, maximize=True) as study:
        assert study.setup.maximise
