"""Limits on other measured numbers: reading, telling, storing, replaying, and keeping them in the long run."""

import json
import math
from pathlib import Path

import pytest

import trimtab as tt
from trimtab.live import Study, read_config
from trimtab.spec.constraints import Limits
from trimtab.study.verify import check_study
from trimtab.tune.parse_value import read_values

from ..program import run

KNOBS = [{"name": "heat", "low": 0.0, "high": 10.0, "start": 1.0}]
LIMITS = {"temperature": {"max": 40.0, "scale": 50.0}}
METHOD = tt.primal_dual(radius=0.05, step=0.02, dual_step=0.02, limits=1)


def told(study, rounds):
    """The optimum is at 9, the limit at 4; the temperature is ten times the heat."""
    for _ in range(rounds):
        trial = study.ask()
        heat = trial.knobs["heat"]
        study.tell(trial, (heat / 10 - 0.9) ** 2, limits={"temperature": 10 * heat})


def test_the_limit_holds_in_the_long_run(tmp_path):
    violations = []
    with Study.open(tmp_path / "t.db", "a", KNOBS, METHOD, seed=0, limits=LIMITS, baseline=0) as study:
        study._store._db.execute("PRAGMA synchronous=OFF")  # for speed
        for _ in range(4):
            told(study, 1500)
            (about,) = study.limits.describe()
            violations.append(about["violation"])
        assert study.centre["heat"] == pytest.approx(4.0, abs=0.5)
        assert about["mean_excess"] == pytest.approx(sum(e.limits[0] - 40 for e in study.events() if e.limits) / 6000)
    assert max(violations) < 2.0
    assert violations[-1] < 0.3


def corners(study, rounds):
    """Four knobs that all heat: a step that suits one knob ends far above the limit."""
    for _ in range(rounds):
        trial = study.ask()
        heats = trial.knobs.values()
        study.tell(trial, sum((heat / 10 - 0.9) ** 2 for heat in heats), limits={"temperature": 20 + 6 * sum(heats)})


@pytest.mark.filterwarnings("always::trimtab.AdviceWarning")
def test_a_limit_exceeded_in_most_rounds_is_a_warning(tmp_path, caplog):
    knobs = [{**KNOBS[0], "name": name} for name in "abcd"]
    limits = {"temperature": {"max": 70, "scale": 10}}
    said = "temperature was above its limit of 70 in "
    with Study.open(tmp_path / "trimtab.db", "oven", knobs, METHOD, seed=0, limits=limits, baseline=0) as study:
        with pytest.warns(tt.AdviceWarning) as warned:
            corners(study, 300)
        finding = study.findings()["limits"]
    assert finding.value > 0.7
    assert finding.advice.startswith(said)
    assert sum(said in str(one.message) for one in warned) == 1
    (line,) = [one for one in caplog.records if one.levelname == "WARNING" and "its limit" in one.getMessage()]
    assert "study oven" in line.getMessage()
    shown, listed = run("show", "oven", cwd=tmp_path).stdout, run("list", cwd=tmp_path).stdout
    assert "its limit of 70" in " ".join(shown.split())
    assert "advice on limits" in listed.replace("contraction, ", "")
    (about,) = json.loads(run("list", "--json", cwd=tmp_path).stdout)
    assert "limits" in about["advice"]


@pytest.mark.parametrize(("beyond", "said"), [(5, False), (6, False), (8, True), (10, True)])
def test_advice_on_a_limit_needs_most_of_the_last_rounds(beyond, said):
    """At a limit, half of the probes exceed it; here `beyond` of ten do, for min and max alike."""
    for side, sign in (("max", 1), ("min", -1)):
        limits = {"temperature": {side: 40.0}}
        with Study.open(":memory:", "a", KNOBS, METHOD, seed=0, limits=limits, baseline=0) as study:
            heard = []
            for n in range(100):
                number = 40 + sign if n % 10 < beyond else 40
                study.tell(study.ask(), 0.5 * (n % 3), limits={"temperature": number})
                heard.append(study.findings()["limits"].advice is not None)
            assert not any(heard[:19])
            assert all(heard[60:]) if said else not any(heard[60:])
            assert study.limits.from_dict(json.loads(json.dumps(study.limits.to_dict()))) == study.limits


def test_a_study_with_limits_equals_a_tuner_and_resumes(tmp_path):
    tuner = tt.Tuner(knobs=KNOBS, method=METHOD, seed=4)
    with Study.open(tmp_path / "t.db", "a", KNOBS, METHOD, seed=4, limits=LIMITS, baseline=7) as study:
        for _ in range(3):
            told(study, 40)
    for event in path(tmp_path / "t.db"):
        if event.kind == "tell":
            trial = tuner.ask()
            assert trial.knobs["heat"] == event.query[0]
            tuner.tell(trial, event.value, limits=[(event.limits[0] - 40) / 50])
    with Study.open(tmp_path / "t.db", "a") as study:
        assert study.state.centre.tolist() == tuner.state.centre.tolist()
        assert study.state.slope.prices == tuner.state.slope.prices
        kinds = {event.kind: event.limits for event in study.events()}
        assert kinds["baseline"] == [10.0]
        assert kinds["start"] is None
        position, text = study._position, study.export()
        there = study.round
        told(study, 20)
        study.undo(there)
        assert study._position.limits == position.limits
        assert check_study(study._store, study._saved) == []
    Study.import_text(tmp_path / "u.db", text)
    with Study.open(tmp_path / "u.db", "a") as moved:
        assert moved.limits == position.limits
        told(moved, 3)
        assert moved.to_frame().limit_temperature.notna().sum() == 123


def path(where):
    with Study.open_unlocked(where, "a") as study:
        return list(study.events())


def test_invalid_tells_change_nothing(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, METHOD, seed=1, limits=LIMITS) as study:
        for limits, error, why in [
            (None, ValueError, "temperature is missing: this study has limits on temperature; tell"),
            ({}, ValueError, "temperature is missing"),
            ({"temperature": "hot"}, TypeError, "limit temperature='hot' is not a number"),
            ({"temperature": True}, TypeError, "is not a number"),
            ({"temperature": math.inf}, ValueError, "infinite"),
            ({"temperature": 3, "pressure": 2}, ValueError, "no limit on 'pressure'"),
        ]:
            with pytest.raises(error, match=why):
                study.tell(study.ask(), 1.0, limits=limits)
        assert study.seq == 0
        study.tell(study.ask(), 1.0, limits={"temperature": math.nan})  # not measured, so the round has no value
        study.skip(study.ask())
        assert [event.kind for event in study.events()] == ["start", "skip", "skip"]
    with (
        Study.open(tmp_path / "t.db", "b", KNOBS, seed=1) as study,
        pytest.raises(ValueError, match="this study has no limits"),
    ):
        study.tell(study.ask(), 1.0, limits={"temperature": 3})


def test_bounds_can_change_and_names_cannot(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, METHOD, seed=1, limits=LIMITS, baseline=0) as study:
        told(study, 10)
    with Study.open(tmp_path / "t.db", "a", KNOBS, limits={"temperature": {"max": 30, "scale": 50}}) as study:
        assert study.limits.all[0].bound == 30
        assert study.limits.told == 0
        told(study, 5)
        study.undo(2)
        assert study.limits.all[0].bound == 30
    with pytest.raises(ValueError, match=r"its limits are temperature max, but its definition says pressure max"):
        Study.open(tmp_path / "t.db", "a", KNOBS, limits={"pressure": {"max": 30}})
    with pytest.raises(ValueError, match=r"limits.temperature.scale applies only to primal_dual, which needs a step"):
        Study.open(tmp_path / "t.db", "b", KNOBS, limits=LIMITS)
    with pytest.raises(ValueError, match="give limits="):
        Study.open(tmp_path / "t.db", "b", KNOBS, METHOD)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (3, "limits=3 must be a table"),
        ({"a": 3}, "limits.a=3 has neither max nor min: write a = {max = 80}"),
        ({"a": {"scale": 3}}, "has neither max nor min"),
        ({"a": {"max": 3, "most": 1}}, "unknown field limits.a.most: choose from max, min, scale"),
        ({"a": {"max": "x"}}, "limits.a.max='x' must be a finite number"),
        ({"a": {"max": 1, "scale": 0}}, "limits.a.scale=0 must be a finite number > 0"),
        ({"a": {"max": 1, "min": 2}}, "limits.a: min=2 must be below max=1"),
    ],
)
def test_invalid_limits_are_refused(given, why):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Limits.of(given)
    assert why in str(error.value)


def test_limits_on_both_sides_of_a_number():
    limits = Limits.of({"a": {"max": 5, "min": 1, "scale": 2}, "b": {"min": 3}})
    assert limits.names == ["a", "b"]
    assert limits.excesses([7.0, 1.0]) == [1.0, -3.0, 2.0]
    after = limits.after([7.0, 1.0]).after([5.0, 3.0])
    assert after.means == (1.0, -5.0, 1.0)
    assert [one["violation"] for one in after.describe()] == [1.0, 0.0, 1.0]
    assert Limits.from_dict(json.loads(json.dumps(after.to_dict()))) == after


def test_reading_numbers_from_output():
    assert read_values("temperature=3 value=2", None, ["temperature"]) == (2.0, None, {"temperature": 3.0})
    assert read_values('{"v": {"p": 1}, "t": 3}', "v.p", ["t"]) == (1.0, None, {"t": 3.0})
    assert read_values("7.5", None, []) == (7.5, None, {})
    assert read_values('{"temperature": 3}', None, ["temperature"])[1].startswith("no number under 'value'")
    for printed in ('{"value": 1}', '{"value": 1, "t": "hot"}', '{"value": 1, "t": null}'):
        value, why, limits = read_values(printed, None, ["t"])
        assert value is None
        assert why.startswith("the limit \"t\": no number under 't'")
        assert limits == {}


STUDY = """
name = "oven"
command = ["sh", "-c", {script}]
seed = 1
step = 0.02
[limits]
temperature = {{max = 40, scale = 50}}
[knobs.heat]
type = "integer"
low = 0
high = 100
start = 10
"""
OVEN = """
test $TRIMTAB_ROUND != 3 || { echo '{"value": 3}'; exit; }
echo "{\\"value\\": $(( (KNOB_HEAT - 90) * (KNOB_HEAT - 90) ))e-4, \\"temperature\\": $KNOB_HEAT}"
"""


def test_the_program(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.format(script=json.dumps(OVEN)))
    config = read_config(tmp_path / "study.toml")
    assert config.method == "primal-dual"
    assert config.build_method() == METHOD
    for words in (["tune", "study.toml", "--rounds", "60"], ["show"], ["show", "--json"], ["show", "--csv"]):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        if words[0] == "tune":
            assert "the limit \"temperature\": no number under 'temperature'" in done.stdout
            assert "  temperature " in done.stdout
        elif words == ["show"]:
            assert "limit: temperature " in done.stdout
            assert "max 40; long-run violation " in done.stdout
        elif words[-1] == "--json":
            about = json.loads(done.stdout)
            assert about["limits"][0]["bound"] == 40
            assert all(set(e["limits"]) == {"temperature"} for e in about["events"] if e["kind"] == "tell")
        else:
            head, *rows = done.stdout.splitlines()
            assert head.endswith("centre_heat,limit_temperature,note")
            assert rows[1].split(",")[5] == rows[1].split(",")[7].removesuffix(".0")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("step = 0.02", ""), "limits.temperature.scale applies only to primal_dual, which needs a step"),
        (("step = 0.02", 'method = "primal-dual"'), 'method = "primal-dual" needs a step'),
        (("step = 0.02", 'method = "belief"\ndual_step = 1'), "applies only to"),
        (("scale = 50", "risk = 0.1"), "limits.temperature.risk needs the method belief, without a step"),
        (("step = 0.02", 'step = 0.1\nmethod = "residual"'), "method='residual' does not support limits"),
        (("max = 40", "most = 40"), "has neither max nor min"),
        (("step = 0.02", "step = 0.02\ndual_step = 0"), "dual_step=0 is out of range"),
        (
            ("[limits]\ntemperature = {max = 40, scale = 50}", 'method = "residual"\ndual_step = 1'),
            "dual_step applies only to a study with [limits]",
        ),
    ],
)
def test_errors_in_the_file(tmp_path, change, why):
    (tmp_path / "study.toml").write_text(STUDY.format(script='"true"').replace(*change))
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read_config(tmp_path / "study.toml")
    assert why in str(error.value)


def test_in_memory():
    with Study.open(":memory:", "a", KNOBS, METHOD, seed=1, limits=LIMITS) as study:
        told(study, 50)
        text = study.export()
        assert len(list(study.events())) == 51
        study.undo(10)
        assert study.round == 10
        assert check_study(study._store, study._saved) == []
    assert not Study.exists(":memory:", "a")  # another one
    assert Study.import_text(":memory:", text) == "a"
    assert not Path(":memory:").exists()
