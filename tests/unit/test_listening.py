"""A belief beside a method: it has no say, learns the same, and is saved with it."""

import math

import numpy as np
import pytest

import trimtab as tt
from trimtab.checks import check_tuner
from trimtab.recipes.belief import Belief

METHODS = {
    "auto": lambda: tt.auto(radius=0.05),
    "residual": lambda: tt.residual(radius=0.05, step=1e-3),
    "hlf-szo": lambda: tt.hlf_szo(radius=0.05, step=1e-3),
    "reszo": lambda: tt.reszo(radius=0.05, step=1e-3),
}


def value(x, t, rng):
    found = 5.0 + 4 * ((x - [0.6, 0.3]) ** 2).sum() + 0.01 * rng.normal()
    return None if t % 11 == 7 else found


def run(tuner, rounds, first=0, late=0):
    """Go on, with values that come `late` trials later, and some that fail."""
    queries, waiting = [], []
    for _t in range(first, first + rounds):
        waiting.append(tuner.ask())
        queries.append(waiting[-1].x)
        if len(waiting) > late:
            trial = waiting.pop(0)
            tuner.tell(trial, value(trial.x, trial.id, np.random.default_rng(trial.id)))
    for trial in waiting:
        tuner.skip(trial)
    return np.array(queries)


def start(name="auto", **more):
    return tt.Tuner([0.4, 0.4], METHODS[name](), bounds=[(0, 1)] * 2, seed=1, **more)


@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("name", METHODS)
def test_the_path_is_that_of_the_method_alone(name, late):
    tuner = start(name, explain=True, max_pending=1 + late)
    np.testing.assert_array_equal(run(tuner, 150, late=late), run(start(name, max_pending=1 + late), 150, late=late))
    assert tuner.belief.values == sum(t % 11 != 7 for t in range(150 - late))
    assert np.isfinite(tuner.belief.level)


@pytest.mark.parametrize("late", [0, 3])
def test_it_finds_the_optimum_and_the_noise(late):
    tuner = start(explain=True, max_pending=1 + late)
    run(tuner, 300, late=late)
    for knob, optimum in zip(tuner.belief.knobs, (0.6, 0.3), strict=True):
        assert knob.low < optimum < knob.high
        assert knob.high - knob.low < 0.5
    assert 0.005 < tuner.belief.noise < 0.02
    assert "auto" in tuner.belief.reason


def test_it_sees_moves_of_the_centre_exactly():
    """Without noise or drift the prediction of the next value stays true, however far the method jumps."""
    tuner = tt.Tuner([0.0, 0.0], tt.auto(radius=0.1), seed=0, explain=True)
    for _ in range(80):
        trial = tuner.ask()
        tuner.tell(trial, float(((trial.x - 1.0) ** 2).sum()))
    x, belief = tuner.ask().x, tuner.belief
    assert belief.next_value == pytest.approx(float(((x - 1.0) ** 2).sum()), abs=1e-3)


def test_it_begins_anew_where_the_method_is_lost():
    """A step that is too large, so that the centre runs away."""
    tuner = tt.Tuner([0.0, 0.0], tt.residual(radius=0.1, step=0.3), seed=0, explain=True)
    for _ in range(80):
        trial = tuner.ask()
        tuner.tell(trial, float(((trial.x - 1.0) ** 2).sum()))
    assert np.abs(tuner.centre).max() > 1e6
    assert tuner.belief.values < 10


def test_saved_in_mid_run_it_goes_on_alike(tmp_path):
    one, late = start(explain=True, max_pending=4), 3
    run(one, 60, late=late)
    text = one.to_json()
    one.save(tmp_path / "tuner")
    for other in (tt.Tuner.from_json(text), tt.Tuner.load(tmp_path / "tuner")):
        assert other.belief == one.belief
    other = tt.Tuner.from_json(text)
    np.testing.assert_array_equal(run(one, 60, 60), run(other, 60, 60))
    assert other.belief == one.belief


def test_it_is_a_tuner_like_any_other():
    check_tuner(lambda x0, seed: tt.Tuner(x0, tt.auto(radius=0.1), seed=seed, explain=True))


def test_named_knobs_and_choices():
    knobs = [tt.Knob("workers", 1, 64, 8, type="int", scale="log"), tt.Knob("codec", choices=["a", "b"], start="a")]
    tuner = tt.Tuner(knobs=knobs, seed=0, explain=True)
    for _ in range(60):
        trial = tuner.ask()
        tuner.tell(trial, (math.log(trial.knobs["workers"] / 20)) ** 2 + (trial.knobs["codec"] == "a"))
    assert [knob.name for knob in tuner.belief.knobs] == ["workers", "codec=a", "codec=b"]
    assert "method='auto'" in repr(tuner)


def test_the_belief_needs_no_other_beside_it():
    tuner = tt.Tuner([0.5], tt.belief(radius=0.1), seed=0, explain=True)
    assert isinstance(tuner.setup.method, Belief)


@pytest.mark.parametrize(
    ("x", "method", "why"),
    [
        ([[0.5], [0.5]], tt.auto(radius=0.1), "lanes"),
        ([0.5], tt.two_point(radius=0.1, step=0.1), "one value a round"),
        ([0.5], tt.primal_dual(radius=0.1, step=0.1, limits=1), "one value a round"),
        (np.zeros(61), tt.auto(radius=0.1), "at most 60"),
    ],
)
def test_refused(x, method, why):
    with pytest.raises(ValueError, match=why):
        tt.Tuner(x, method, seed=0, explain=True)


def test_a_changed_radius_is_that_of_the_method():
    both = tt.Tuner([0.5], tt.auto(radius=0.1), seed=0, explain=True).setup.method
    assert both.changed(radius=0.2, widest=2.0).method == tt.auto(radius=0.2, widest=2.0)
    assert both.changed(radius=0.2).radius == 0.2
