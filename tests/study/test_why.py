"""`Study.explain`: a belief that listens to the history of a study, or the study's own."""

import json
import math
import random

import pytest

import trimtab as tt
from trimtab.live import Study
from trimtab.study import listening

from ..factories import KNOBS, ONE_KNOB, cost, run

TWO = [
    {"name": "gain", "low": 0, "high": 10, "start": 2},
    {"name": "level", "low": -5, "high": 5, "start": 0, "unit": "m"},
]


def noisy(seed=0, maximise=False):
    draw = random.Random(seed)
    sign = -1 if maximise else 1
    return lambda x: sign * ((x["gain"] - 6) ** 2 / 4 + (x["level"] - 1) ** 2 / 40) + draw.gauss(0, 0.05)


def opened(method=None, knobs=TWO, **more):
    return Study.open(":memory:", "a", knobs, method, seed=3, **{"baseline": 0, **more})


@pytest.mark.parametrize("knobs", [TWO, KNOBS])
@pytest.mark.parametrize("name", ["auto", "residual", "hlf_szo"])
def test_it_equals_a_tuner_that_listened_all_along(name, knobs):
    steps = {} if name == "auto" else {"step": 1e-3}
    method = getattr(tt, name)(radius=0.05, **steps)
    tuner = tt.Tuner(knobs=[tt.Knob(**knob) for knob in knobs], method=method, seed=3, explain=True)
    with opened(method, knobs) as study:
        measure = cost if knobs is KNOBS else noisy()
        for n in range(130):  # beyond the first snapshot
            trial, same = study.ask(), tuner.ask()
            assert trial.knobs == same.knobs
            value = None if n % 17 == 5 else measure(trial.knobs)
            study.tell(trial, value)
            tuner.tell(same, value)
            if n == 79:
                at_eighty = tuner.belief
        found = study.explain()
        assert found.belief == tuner.belief
        assert (found.listened, found.since, found.method) == (130, 0, name.replace("_", "-"))
        assert study.explain(round=80).belief == at_eighty
        assert str(study.explain()) == str(found)


def test_a_belief_explains_itself():
    with opened(tt.belief(radius=0.05)) as study:
        run(study, 60, noisy())
        at_sixty = study.explain()
        assert (at_sixty.listened, at_sixty.since) == (None, None)
        assert "its own belief" in str(at_sixty)
        run(study, 60, noisy(1))
        assert study.explain(round=60) == at_sixty
        assert study.explain() != at_sixty


@pytest.mark.parametrize("method", [tt.auto(radius=0.05), tt.belief(radius=0.05)], ids=str)
@pytest.mark.parametrize("maximise", [False, True])
def test_which_knob_matters_and_why_it_moved(method, maximise):
    with opened(method, maximise=maximise) as study:
        run(study, 100, noisy(0, maximise))
        found = study.explain()
        assert found.effects[0].name == "gain"
        assert found.effects[0].share > 0.5
        assert found.effects[0].step == pytest.approx(0.5)
        assert math.fsum(effect.share for effect in found.effects) == pytest.approx(1)
        before, trial = study.state.centre, study.ask()
        study.tell(trial, noisy(2, maximise)(trial.knobs))
        found, coming = study.explain(), study.ask()
        gain = found.belief.knobs[0]
        assert gain.low <= 6 <= gain.high
        assert found.move.round == trial.round
        assert found.move.expected[0] < found.move.expected[1]
        assert found.move.knobs["gain"] == pytest.approx((10 * before[0], 10 * study.state.centre[0]))
        assert "probable optimum" in found.move.reason
        assert (found.probe.knobs, found.probe.round, found.probe.kind) == (coming.knobs, coming.round, "probe")


def test_slopes_on_the_way_have_the_sign_of_the_effect():
    """Raising the knob lowers the value all along, so that the belief follows its slope."""
    with opened(tt.belief(radius=0.02), ONE_KNOB) as study:
        run(study, 10, lambda x: -3 * x["x"])
        (effect,) = study.explain().effects
        assert effect.low < 0
        assert effect.high < 0
        assert effect.change == pytest.approx(-3 * 0.02, rel=0.05)


def test_rounds_without_a_value_and_the_reference():
    with opened(baseline=20) as study:
        run(study, 60, noisy())
        while study.ask().kind == "baseline":
            study.tell(study.ask(), 1.0)
        study.skip(study.ask(), "no power")
        found = study.explain()
        assert found.move.value is None
        assert not found.move.knobs
        assert "no value" in found.move.reason
        while study.ask().kind != "baseline":
            study.tell(study.ask(), 1.0)
        found = study.explain()
        assert found.probe.kind == "baseline"
        assert found.probe.knobs == study.ask().knobs
        assert found.move.kind == "tell"


def test_a_surprise_is_named():
    with opened(tt.belief(radius=0.05)) as study:
        run(study, 60, noisy())
        study.tell(study.ask(), 500.0)
        found = study.explain()
        assert "above the expected" in found.move.reason
        assert any("outlier" in sentence for sentence in found.unsure)


def test_it_goes_on_after_changed_settings_and_begins_anew_after_a_reset():
    with opened() as study:
        run(study, 50, noisy())
        study.set({"radius": 0.03, "knobs.gain.high": 8})
        found = study.explain()
        assert (found.listened, found.since, found.belief.values) == (50, 0, 50)
        assert found.belief.knobs[0].high <= 8
        run(study, 50, noisy(1))
        found = study.explain()
        assert found.listened == 100
        assert found.belief.knobs[0].low <= 6 <= found.belief.knobs[0].high
        study.reset()
        with pytest.raises(ValueError, match="cannot be explained yet: it has no values"):
            study.explain()
        run(study, 30, noisy(2))
        found = study.explain()
        assert (found.listened, found.since) == (30, 100)
        study.undo(110)
        with pytest.raises(ValueError, match="it has no values"):
            study.explain()
        run(study, 3, noisy(3))
        found = study.explain()
        assert (found.listened, found.since, found.round) == (3, 110, 113)


def test_the_last_event_may_be_a_return():
    with opened(tt.belief(radius=0.05)) as study:
        run(study, 40, noisy())
        study.undo(30)
        found = study.explain()
        assert found.round == 30
        assert found.move.kind == "undo"
        assert "from round 40" in found.move.reason
        assert found.belief == study.explain(round=30).belief


def test_long_histories_are_cut_and_thinned_ones_have_a_start(monkeypatch):
    with opened() as study:
        run(study, 320, noisy())
        whole = study.explain()
        monkeypatch.setattr(listening, "HEARD", 150)
        shares = []
        part = study.explain(report=shares.append)
        assert (part.listened, part.since) == (220, 100)
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert part == study.explain()
        assert part.belief != whole.belief
    monkeypatch.undo()
    with opened(tt.residual(radius=0.05, step=1e-4), ONE_KNOB, keep=1000) as study:
        run(study, 1300, lambda x: (x["x"] - 0.3) ** 2)
        found = study.explain()
        assert 1000 <= found.listened < 1300
        assert found.since == 1300 - found.listened
        with pytest.raises(ValueError, match="round 50 of study 'a' has not been run, or is no longer kept"):
            study.explain(round=50)


def test_json():
    with opened(knobs=[*TWO, {"name": "codec", "choices": ["a", "b"], "start": "a"}]) as study:
        run(study, 5, noisy())
        document = json.loads(json.dumps(study.explain().to_dict(), allow_nan=False))
        assert document["belief"]["phase"]
        assert document["probe"]["knobs"]["codec"] in ("a", "b")
        assert [effect["name"] for effect in document["effects"] if "=" in effect["name"]] == ["codec=a", "codec=b"]
        assert all(isinstance(effect["shown"], bool) for effect in document["effects"])


def test_refused():
    sixty_one = [{"name": f"x{n}", "low": 0, "high": 1, "start": 0.5} for n in range(61)]
    with (
        opened(knobs=sixty_one) as study,
        pytest.raises(ValueError, match="has 61 knobs, and a belief explains at most"),
    ):
        study.explain()
    with opened() as study:
        with pytest.raises(ValueError, match="cannot be explained yet: it has no values"):
            study.explain()
        run(study, 2, lambda x: 1.0)
        with pytest.raises(ValueError, match="no two of its values differ"):
            study.explain()
        run(study, 20, noisy())
        for round in (23, -1, 10**30):
            with pytest.raises(ValueError, match="the next round is 22"):
                study.explain(round)
    limited = tt.primal_dual(radius=0.05, step=1e-3, limits=1)
    with (
        opened(limited, ONE_KNOB, limits={"heat": {"max": 1}}) as study,
        pytest.raises(ValueError, match="several numbers a round"),
    ):
        study.explain()


def test_a_context_and_read_only(tmp_path):
    with Study.open(tmp_path / "t.db", "a", TWO, seed=3, context=["load"]) as study:
        for n in range(30):
            trial = study.ask(context={"load": n % 3})
            study.tell(trial, noisy(n)(trial.knobs) + n % 3)
        found = study.explain()
    with Study.open_unlocked(tmp_path / "t.db", "a") as study:
        assert study.explain() == found
        assert study.explain(round=20).round == 20


def test_limits_that_the_belief_keeps():
    with opened(tt.belief(radius=0.05), ONE_KNOB, limits={"heat": {"max": 80}}) as study:
        for n in range(60):
            trial = study.ask()
            heat = 60 + 30 * trial.knobs["x"]
            study.tell(trial, None if n == 59 else -trial.knobs["x"], limits={"heat": heat})
        found = study.explain()
        assert found.belief.limits[0].high <= 80
        assert "heat" in str(found)
        assert found.probe.knobs == study.ask().knobs
        assert "had no value" in found.move.reason


@pytest.mark.parametrize("maximise", [False, True])
def test_the_effect_of_a_step_is_the_difference_it_makes(maximise):
    """Steps up and down, also of a knob at the end of its range, and on a logarithmic scale."""
    knobs = [
        {"name": "gain", "low": 0, "high": 10, "start": 5},
        {"name": "n", "type": "integer", "low": 0, "high": 20, "start": 17},
        {"name": "size", "low": 1, "high": 256, "start": 60, "scale": "log"},
        {"name": "on", "type": "bool", "start": True},
        {"name": "codec", "choices": ["a", "b", "c"], "start": "a"},
    ]
    codecs = {"a": 1.0, "b": 0.4, "c": 0.1}

    def value(x):
        found = (x["gain"] - 6) ** 2 / 4 + (x["n"] - 25) ** 2 / 20 + math.log(x["size"] / 64) ** 2
        found += codecs[x["codec"]] - 0.5 * x["on"]
        return -found if maximise else found

    with opened(tt.auto(radius=0.1), knobs, maximise=maximise) as study:
        run(study, 300, value)
        effects = {effect.name: effect for effect in study.explain().effects}
    sign = -1 if maximise else 1
    centre = {**{name: effects[name].centre for name in ("gain", "n", "size")}, "on": True, "codec": "a"}
    true = {"on": -0.5 * sign, **{f"codec={name}": (each - 0.5) * sign for name, each in codecs.items()}}
    for name in ("gain", "n", "size"):
        true[name] = value({**centre, name: centre[name] + effects[name].step}) - value(centre)
    assert true.keys() == effects.keys()
    for name, effect in effects.items():
        assert effect.low <= effect.change <= effect.high
        room = 0.5 * (effect.high - effect.low)
        assert effect.low - room <= true[name] <= effect.high + room, (effect, true[name])
    assert effects["n"].step == -1
    assert effects["n"].change == pytest.approx(true["n"], rel=0.2)
