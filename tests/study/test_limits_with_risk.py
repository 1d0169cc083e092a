"""Limits with a risk in a study: kept by the belief, told in part, replayed, undone and exported exactly."""

import json
import math
import random

import pytest

import trimtab as tt
from trimtab.live import Store, Study, read_config
from trimtab.spec.constraints import Limits
from trimtab.store.shared_store import SharedStore
from trimtab.study import create
from trimtab.study.unlocked import UnlockedStudy, load
from trimtab.study.verify import check_study

from ..program import run as run_program

HEAT = {"name": "heat", "low": 0.0, "high": 10.0, "start": 1.0}
FANS = {"name": "fans", "low": 0, "high": 4, "start": 3, "type": "integer"}
LIMITS = {"temperature": {"max": 40.0}, "value": {"max": 2.0, "risk": 0.05}}
PRICED = tt.primal_dual(radius=0.05, step=0.01, limits=1)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "t.db"


def opened(file, knobs=(HEAT, FANS), limits=LIMITS, **more):
    return Study.open(file, "a", knobs, seed=1, limits=limits, **more)


def told(knobs, k):
    """A cost that falls with the heat, and its temperature: 40 is reached before the best heat."""
    noise = random.Random(k).gauss(0, 0.3)
    return (knobs["heat"] / 10 - 0.9) ** 2, 12 * knobs["heat"] - 4 * knobs.get("fans", 0) + noise


def run(study, rounds, first=0, context=None):
    for k in range(first, first + rounds):
        trial = study.ask(context)
        value, number = told(trial.knobs, k)
        if k % 11 == 7:
            value = None
        study.tell(trial, value, limits=None if k % 4 == 3 else {"temperature": number})


def text_of(study):
    return study._position.snapshot(0)._replace(seq=0)


def wrong(file):
    with Store(file) as store:
        return store.check() + [why for saved in store.all().values() for why in check_study(store, saved)]


@pytest.mark.parametrize("method", [None, tt.auto(radius=0.05), tt.belief(radius=0.05)])
def test_a_study_keeps_a_limit_without_a_step(method):
    with opened(":memory:", [HEAT], {"temperature": {"max": 40.0}}, method=method, baseline=0) as study:
        assert isinstance(study.setup.method, type(tt.belief(radius=0.05)))
        for k in range(300):
            trial = study.ask()
            assert 12 * trial.knobs["heat"] < 41.5
            value, number = told(trial.knobs, k)
            study.tell(trial, value, limits={"temperature": number})
        assert study.centre["heat"] == pytest.approx(40 / 12, abs=0.4)
        (limit,) = study.summary()["limits"]
        assert limit["measured"] == 300
        assert limit["exceeded"] <= 15
        assert -0.5 < limit["margin"] < 6


def test_a_study_equals_a_tuner(file):
    tuner = tt.Tuner(knobs=[HEAT, FANS], seed=1, limits=LIMITS)
    with opened(file, baseline=0) as study:
        for k in range(120):
            trial, there = study.ask(), tuner.ask()
            assert trial.knobs == there.knobs
            value, number = told(trial.knobs, k)
            value = None if k % 11 == 7 else value
            limits = {"temperature": None if k % 4 == 3 else number}
            study.tell(trial, value, limits=limits)
            tuner.tell(there, value, limits=limits)
        assert study.state.centre.tolist() == tuner.state.centre.tolist()


def test_a_study_continues_exactly_after_it_was_opened_again(file, tmp_path):
    with opened(file) as study:
        run(study, 70)
        trial = study.ask()
    with opened(file) as study:
        assert study.ask() == trial
        run(study, 40, 70)
        after = text_of(study)
    with opened(tmp_path / "other.db") as study:
        run(study, 110)
        assert text_of(study) == after
    assert wrong(file) == []


def test_an_undo_is_exact(file):
    with opened(file, baseline=0) as study:
        states = []
        for k in range(60):
            states.append(text_of(study).state)
            run(study, 1, k)
        for round in (55, 31, 3):
            study.undo(round)
            assert text_of(study).state == states[round]
        run(study, 5, 3)
    assert wrong(file) == []


def test_an_exported_study_is_the_same_elsewhere(file, tmp_path):
    with opened(file) as study:
        run(study, 45)
        text, before = study.export(), text_of(study)
    Study.import_text(tmp_path / "other.db", text)
    with opened(tmp_path / "other.db") as study:
        assert text_of(study) == before
        run(study, 5, 45)
        frame = study.to_frame().limit_temperature
        assert 20 < frame.notna().sum() < 50
    assert wrong(tmp_path / "other.db") == []


def test_events_have_the_numbers_that_were_measured():
    with opened(":memory:", limits={"temperature": {"max": 40}, "load": {"max": 9}}, baseline=0) as study:
        study.tell(study.ask(), 1.0, limits={"load": 3})
        study.tell(study.ask(), None, limits={"temperature": 20.0})
        study.tell(study.ask(), 1.0)
        study.skip(study.ask())
        events = list(study.events())[1:]
        assert [(event.kind, event.limits) for event in events] == [
            ("tell", [None, 3.0]),
            ("skip", [20.0, None]),
            ("tell", None),
            ("skip", None),
        ]
        assert study.describe(events[0])["limits"] == {"temperature": None, "load": 3.0}
        assert study.limits.last == (20.0, 3.0)
        assert study.limits.counts == ((1, 0), (1, 0))


def test_invalid_tells_change_nothing():
    with opened(":memory:") as study:
        for limits, error, why in [
            ({"temprature": 3}, ValueError, "did you mean 'temperature'"),
            ({"temperature": "hot"}, TypeError, "limit temperature='hot' is not a number"),
            ({"temperature": math.inf}, ValueError, "infinite"),
            ({"value": 1.0}, ValueError, "is one of the value itself"),
        ]:
            with pytest.raises(error, match=why):
                study.tell(study.ask(), 1.0, limits=limits)
        assert study.seq == 0


def test_bounds_and_risks_change_while_it_runs(file):
    with opened(file) as study:
        run(study, 80)
        centre = study.centre["heat"]
    lower = {"temperature": {"max": 20, "risk": 0.02}, "value": {"max": 2.0, "risk": 0.05}}
    with opened(file, limits=lower) as study:
        assert study.setup.limits == tuple(Limits.with_risk(lower).declared)
        assert list(study.events())[-1].note == "limits: temperature max 20 (risk 0.02), value max 2 (risk 0.05)"
        run(study, 80, 80)
        assert study.centre["heat"] < centre - 0.5
        with pytest.raises(ValueError, match=r"this study has limits|no limit|was not declared"):
            study.tell(study.ask(), 1.0, limits={"pressure": 1})
    with pytest.raises(ValueError, match="its limits are temperature max, value max, but its definition says pressure"):
        opened(file, limits={"pressure": {"max": 1}})
    assert wrong(file) == []


def test_a_study_begun_with_prices_keeps_them(file):
    priced = {"temperature": {"max": 40.0, "scale": 10}}
    with Study.open(file, "a", [HEAT], PRICED, seed=1, limits=priced) as study:
        run(study, 3)
    with Study.open(file, "a", [HEAT], limits={"temperature": {"max": 35.0}}) as study:
        assert (study.limits.has_risk, study.limits.all[0].bound) == (False, 35.0)
        assert study.setup.limits == ()
    with pytest.raises(ValueError, match="its method is primal-dual"):
        Study.open(file, "a", [HEAT], tt.auto(radius=0.05), limits={"temperature": {"max": 35.0}})


@pytest.mark.parametrize(
    ("limits", "method", "why"),
    [
        ({"t": {"max": 1, "scale": 2}}, None, r"limits.t.scale applies only to primal_dual"),
        ({"t": {"max": 1, "rsk": 2}}, None, "did you mean 'risk'"),
        ({"t": {"max": 1, "risk": 0.9}}, None, "risk=0.9"),
        ({"t": {"max": 1, "risk": 0.01}}, PRICED, "limits.t.risk needs the method belief"),
        (3, None, "limits=3 must be a table"),
        ({"t": {"max": 1}}, tt.residual(radius=0.05, step=0.1), "leave out the method"),
    ],
)
def test_limits_that_do_not_fit_are_refused(limits, method, why):
    with pytest.raises(ValueError, match=why):
        Study.open(":memory:", "a", [HEAT], method, limits=limits)


def test_limits_and_a_context_together(file):
    with opened(file, context=["load"]) as study:
        run(study, 40, context={"load": 0.5})
        after = text_of(study)
    with opened(file) as study:
        assert text_of(study) == after
        run(study, 3, 40, context={"load": 0.7})
    assert wrong(file) == []


@pytest.mark.parametrize("pending", [1, 3])
def test_a_service_learns_late_values_and_settings_that_were_applied(file, pending):
    with SharedStore(file) as store:
        given = (tt.Knobs.of([HEAT, FANS]), None, False, 7, {}, 0, Limits.with_risk(LIMITS))
        create.create(store, "a", *given, None, pending)

        def change(act):
            (known,) = load(store, ["a"])
            study = UnlockedStudy(store, known)
            act(study)
            assert study.stored()

        for k in range(12):
            if pending > 1:
                change(lambda study: study.hand_out())
                change(lambda study: study.hand_out())

            def tell(study, k=k):
                trial = study.pending[-1] if pending > 1 else study.ask()
                value, number = told(trial.knobs, k)
                limits = {"temperature": None if k % 3 == 1 else number}
                if k % 4 == 2:
                    study.tell_at(trial._replace(knobs={"heat": 1.25, "fans": 3}), value, None, limits)
                else:
                    study.tell(trial, value, limits=limits)

            change(tell)
            if pending > 1:
                change(lambda study: study.tell(study.pending[0], 1.0))
    with Study.open(file, "a") as study:
        assert study.limits.counts[0] == (8, 0)
    assert wrong(file) == []


STUDY = """
name = "oven"
command = ["sh", "-c", {script}]
seed = 1
{more}
[limits]
temperature = {{max = 40, risk = 0.02}}
[knobs.heat]
type = "integer"
low = 0
high = 100
start = 10
"""
OVEN = """
test $((TRIMTAB_ROUND % 4)) != 3 || { echo '{"value": 3}'; exit; }
test $TRIMTAB_ROUND != 8 || { echo "temperature=$KNOB_HEAT"; exit; }
echo "{\\"value\\": $(( (KNOB_HEAT - 90) * (KNOB_HEAT - 90) ))e-4, \\"temperature\\": $KNOB_HEAT}"
"""


def test_a_study_file_needs_no_step(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.format(script=json.dumps(OVEN), more=""))
    config = read_config(tmp_path / "study.toml")
    assert config.build_method().takes_limits
    for words in (["tune", "study.toml", "--rounds", "40"], ["tune", "study.toml", "--rounds", "5"]):
        done = run_program(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    with Study.open_unlocked(tmp_path / "trimtab.db", "oven") as study:
        events = {event.round: event for event in study.events() if event.kind in ("tell", "skip")}
        assert (events[3].kind, events[3].limits) == ("tell", None)
        assert (events[8].kind, events[8].value, len(events[8].limits)) == ("skip", None, 1)
        assert study.limits.declared == (tt.Limit("temperature", max=40.0, risk=0.02),)
    assert wrong(tmp_path / "trimtab.db") == []
    done = run_program("init", "--from", "oven", "next.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_config(tmp_path / "next.toml").limited.declared == (tt.Limit("temperature", max=40.0, risk=0.02),)


@pytest.mark.parametrize(("more", "method"), [("", "belief"), ('method = "auto"', "belief")])
def test_the_method_of_limits_in_a_file(tmp_path, more, method):
    (tmp_path / "study.toml").write_text(STUDY.format(script='"true"', more=more))
    assert read_config(tmp_path / "study.toml").method == method
    (tmp_path / "study.toml").write_text(STUDY.format(script='"true"', more="step = 0.1").replace("risk", "scale"))
    assert read_config(tmp_path / "study.toml").method == "primal-dual"


@pytest.mark.parametrize(("maximise", "at"), [(False, 55.0), (True, 55.0)])
def test_a_start_beyond_a_limit_is_advice_in_one_line(maximise, at):
    with opened(":memory:", [HEAT], {"temperature": {"max": 40}}, maximise=maximise, baseline=0) as study:
        with pytest.warns(tt.AdviceWarning, match="The start exceeds a limit, max 40: temperature is 55"):
            study.tell(study.ask(), 1.0, limits={"temperature": at})
        (advice,) = study.new_advice()
        assert "\n" not in advice
        assert study.describe_limits()[0]["margin"] < 0
        study.tell(study.ask(), 1.0, limits={"temperature": 20.0})
        assert study.findings()["limits"].advice is None


def test_a_start_within_its_limits_gives_no_advice():
    with opened(":memory:", [HEAT], {"temperature": {"max": 40}}, baseline=0) as study:
        for k in range(60):
            trial = study.ask()
            value, number = told(trial.knobs, k)
            study.tell(trial, value, limits={"temperature": number})
            assert study.findings()["limits"].advice is None


def test_a_limit_that_is_never_measured_is_advice():
    with opened(":memory:", [HEAT], {"temperature": {"max": 40}, "value": {"max": 5}}, baseline=0) as study:
        for _ in range(9):
            study.tell(study.ask(), 1.0)
        with pytest.warns(tt.AdviceWarning, match="No number of temperature came with 10 values"):
            study.tell(study.ask(), 1.0)
        study.tell(study.ask(), 1.0, limits={"temperature": 20.0})
        assert study.findings()["limits"].advice is None


def test_what_is_shown_of_a_limit(tmp_path):
    with Study.open(tmp_path / "trimtab.db", "a", [HEAT], limits={"temperature": {"max": 40}}, seed=1) as study:
        run(study, 200)
        (limit,) = study.describe_limits()
        low, high = limit["share_low"], limit["share_high"]
        assert low <= limit["exceeded"] / limit["measured"] <= high < 0.1
        assert limit["measured"] == sum(e.limits is not None for e in study.events() if e.kind in ("tell", "skip"))
        (stored,) = study.summary()["limits"]
        assert stored["margin"] == limit["margin"]
    shown = " ".join(run_program("show", cwd=tmp_path).stdout.split())
    assert f"{limit['exceeded']} of {limit['measured']} measured beyond (95 %: " in shown
    assert "promised at most 1 %" in shown
    assert "max 40: margin " in shown
