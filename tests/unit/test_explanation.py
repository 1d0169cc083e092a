"""`tuner.belief`: intervals against sampling, units against each other, and the words."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import trimtab as tt
from trimtab.recipes.belief import account, bank
from trimtab.recipes.belief.account import LEVELS, student
from trimtab.recipes.belief.bank import Bank
from trimtab.recipes.belief.model import Constants


def taught(rounds=200, *, noise=0.02, wobble=0.0, low=0.0, high=1.0, seed=0, **more):
    """A tuner of two bounded coordinates and the values of a bowl at (.6, .3) of the ranges."""
    rng, range_ = np.random.default_rng(3), high - low
    tuner = tt.Tuner([low + 0.4 * range_] * 2, tt.belief(radius=0.05), bounds=[(low, high)] * 2, seed=seed, **more)
    sign = -1.0 if tuner.setup.maximise else 1.0
    for t in range(rounds):
        trial = tuner.ask()
        share = (trial.x - low) / range_ - wobble * math.sin(t / 30)
        tuner.tell(trial, sign * (5.0 + 4 * ((share - [0.6, 0.3]) ** 2).sum() + noise * rng.normal()))
    return tuner


@pytest.mark.parametrize("dof", [1.0, 3.0, 10.0, 50.0])
def test_the_distribution_of_students_t(dof):
    x = np.linspace(-8, 8, 201)
    np.testing.assert_allclose(student(x, np.array(dof)), stats.t(dof).cdf(x), atol=0.012 if dof < 10 else 0.001)


def test_intervals_are_those_of_samples_from_the_bank():
    """Slopes widened as stated, and the optimum −g/h with the stated doubt in the curvature, from a million draws."""
    tuner = taught()
    model, memory, rng = Bank.of(2, Constants()), tuner.state.memory, np.random.default_rng(0)
    found = account.account(model, memory.value, memory.course, np.ones(1), np.zeros((1, 2)))
    filter = bank.let_pass(model, memory.value, np.ones(1), memory.course.common, memory.course.width)
    columns, share = model.columns, filter.weights()[0]
    wider, n = 1 + share[:2].sum(), 10**6
    rows = []
    for k, count in enumerate(rng.multinomial(n, share)):
        scale = np.sqrt(filter.noise()[0, k] * filter.dof[0, k] / rng.chisquare(filter.dof[0, k], count))
        index = [columns.slope.start, columns.common, columns.own.start]
        root = np.linalg.cholesky(filter.cov[0, k][np.ix_(index, index)])
        g, h, e = root @ rng.normal(size=(3, count)) * scale
        m = filter.mean[0, k, index]
        bend = (m[1] + m[2]) * (1 + account.UNEVEN * rng.normal(size=count)) + h + e
        rows.append(np.stack([m[0] + wider * g, bend]))
    g, bend = np.concatenate(rows, axis=1)
    unit, ends = filter.unit[0], np.array(LEVELS)
    slope = np.array([found.slope.low[0, 0], found.slope.high[0, 0]])
    np.testing.assert_allclose(stats.percentileofscore(g * unit, slope) / 100, ends, atol=0.006)
    for end, p in zip((found.optimum.low[0, 0], found.optimum.high[0, 0]), ends, strict=True):
        assert abs(np.mean(g + bend * end > 0) - p) < 0.006


def test_other_units_give_the_same_belief_in_those_units():
    one, other = taught().belief, taught(low=-100.0, high=300.0).belief
    for a, b in zip(one.knobs, other.knobs, strict=True):
        for field in ("centre", "optimum", "low", "high"):
            assert getattr(b, field) == pytest.approx(-100 + 400 * getattr(a, field), rel=1e-6)
        for field in ("slope", "slope_low", "slope_high"):
            assert getattr(b, field) == pytest.approx(getattr(a, field) / 400, rel=1e-5, abs=1e-9)
        assert b.probe == pytest.approx(400 * a.probe)
        assert b.curvature == pytest.approx(a.curvature / 160_000, rel=0.1)
    assert other.noise == pytest.approx(one.noise)
    assert one.next_low < one.next_value < one.next_high


def test_maximising_mirrors_the_value():
    down, up = taught().belief, taught(maximise=True).belief
    assert up.level == pytest.approx(-down.level)
    assert (up.next_low, up.next_high) == pytest.approx((-down.next_high, -down.next_low))
    for a, b in zip(down.knobs, up.knobs, strict=True):
        assert b.optimum == pytest.approx(a.optimum)
        assert (b.slope_low, b.slope_high) == pytest.approx((-a.slope_high, -a.slope_low))
        assert b.curvature == -a.curvature


def test_the_truth_of_a_bowl_is_found():
    belief = taught().belief
    assert [knob.name for knob in belief.knobs] == ["x[0]", "x[1]"]
    for knob, optimum in zip(belief.knobs, (0.6, 0.3), strict=True):
        assert knob.low < optimum < knob.high
        assert abs(knob.optimum - optimum) < 0.03
        assert knob.slope_low < 8 * (knob.centre - optimum) < knob.slope_high
        assert 4 <= knob.curvature <= 16
    assert 0.01 < belief.noise < 0.04
    assert abs(belief.level - 5) < 0.05
    assert belief.phase == "tracking"
    assert not belief.learning


def test_a_logarithmic_knob_has_slopes_per_unit():
    knobs = [tt.Knob("workers", 1, 100, 4, scale="log")]
    tuner = tt.Tuner(knobs=knobs, method=tt.belief(radius=0.05), seed=0)
    for _ in range(12):  # on the way, where there is a slope
        trial = tuner.ask()
        tuner.tell(trial, (math.log(trial.knobs["workers"]) - math.log(20)) ** 2)
    belief = tuner.belief.knobs[0]
    true = 2 * (math.log(belief.centre) - math.log(20)) / belief.centre
    assert belief.slope_low <= true <= belief.slope_high
    assert belief.low <= 20 <= belief.high <= 100


def test_choices_and_fixed_knobs():
    fixed, codec = tt.Knob("fixed", 3, 3, 3), tt.Knob("codec", choices=["<gzip>", "zstd"], start="zstd")
    tuner = tt.Tuner(knobs=[fixed, codec, tt.Knob("valve", 0, 9, 2, unit="%")], method=tt.belief(radius=0.05), seed=0)
    for n in range(30):
        tuner.tell(tuner.ask(), float(n % 3))
    belief = tuner.belief
    assert [(knob.name, knob.unit) for knob in belief.knobs] == [
        *(("codec=<gzip>", "weight"), ("codec=zstd", "weight"), ("valve", "%"))
    ]
    assert "codec=&lt;gzip&gt;" in belief._repr_html_()
    assert "valve [%]" in repr(belief)


def test_phases():
    tuner = tt.Tuner([0.5, 0.5], tt.belief(radius=0.05), bounds=[(0, 1)] * 2, seed=0)
    assert tuner.belief.phase == "waiting"
    assert tuner.belief.to_dict()["level"] is None
    for t in range(60):
        trial = tuner.ask()
        tuner.tell(trial, float(((trial.x - 0.6) ** 2).sum()) + 0.001 * (t % 3))
        if t == 3:
            assert tuner.belief.phase == "opening"
            assert tuner.belief.learning
    tuner.tell(tuner.ask(), 1e6)
    assert tuner.belief.phase == "doubting"
    steep = tt.Tuner([0.0, 0.0], tt.belief(radius=0.001), seed=0)
    for _ in range(10):
        trial = steep.ask()
        steep.tell(trial, float(((trial.x - 1.0) ** 2).sum()))
    assert steep.belief.phase == "approaching"
    noise = tt.Tuner([0.0, 0.0], tt.belief(radius=0.001), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(12):
        noise.tell(noise.ask(), rng.normal())
    assert noise.belief.phase == "searching"
    assert noise.belief.knobs[0].optimum is None


def test_at_a_wall_there_is_nothing_to_approach():
    """The optimum is far outside: once the centre is in the corner, it has arrived."""
    tuner = tt.Tuner([0.5, 0.5], tt.belief(radius=0.02), bounds=[(0, 1)] * 2, seed=0)
    phases = []
    for _ in range(80):
        trial = tuner.ask()
        tuner.tell(trial, float(((trial.x - 3.0) ** 2).sum()))
        phases.append(tuner.belief.phase)
    assert "approaching" in phases
    assert phases[-1] == "tracking"
    np.testing.assert_allclose(tuner.centre, 1.0)


def test_the_words_and_the_json():
    belief = taught().belief
    told = belief.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert sum(window["share"] for window in told["windows"]) == pytest.approx(1)
    assert len(told["windows"]) == 6
    text = str(belief)
    for word in ("tracking", "x[0]", "noise", "drift", "curvature", "probes", "90 %"):
        assert word in text
    wide = tt.Tuner(np.zeros(20), tt.belief(radius=0.1), seed=0)
    assert "20 in all" in str(wide.belief)


def test_asking_for_the_belief_changes_nothing():
    asked, alone = taught(50), taught(50)
    before = asked.belief
    assert asked.to_json() == alone.to_json()
    assert tt.Tuner.from_json(asked.to_json()).belief == before
    asked.forget()
    assert asked.belief.to_dict()["next_value"] is None


def test_a_tuner_with_contexts_or_open_trials_has_a_belief():
    tuner = tt.Tuner([0.5], bounds=[(0, 1)], context=["load"], max_pending=3, seed=0)
    for t in range(40):
        trial = tuner.ask(context={"load": t % 5})
        tuner.tell(trial, (trial.x[0] - 0.4) ** 2)
    tuner.ask(2)
    assert abs(tuner.belief.knobs[0].optimum - 0.4) < 0.1
    assert tuner.belief.round == 42


@pytest.mark.parametrize(
    ("x", "method", "why"), [([0.5], tt.auto(radius=0.1), "keeps no belief"), ([[0.5]], tt.belief(radius=0.1), "lanes")]
)
def test_other_tuners_say_why_they_have_none(x, method, why):
    with pytest.raises(AttributeError, match=why):
        _ = tt.Tuner(x, method, seed=0).belief
