"""An optimum that goes on steadily: by hand, and what following it saves."""

import math

import numpy as np
import pytest

import trimtab as tt
from trimtab.steps import following
from trimtab.steps.following import Following

PROBE = 1.0


def bound(d=2):
    return following.bind(tt.Setup(tt.auto(radius=1.0), (d,)).frame)


def weighed(memory, surprise, bend=0.5, share=1.0):
    """After a value at a probe along the first axis."""
    return bound()[0](memory, np.array([2.0, 0.0]), 0.5, surprise, bend, share, PROBE)


def test_a_value_says_which_of_two_centres_was_nearer():
    """z = ½·0.4: log odds ← 0.995·1 + (ω − ½)·z² − z·e, with ω ∝ ½ − ½·1/√5 − 0.15."""
    memory = Following(np.array([0.1, 0.0]), np.array([0.4, 0.3]), 1.0)
    belief = max(0.5 - 0.5 / math.sqrt(5.0) - 0.15, 0.0) / 0.85
    after, _ = weighed(memory, surprise=-2.0)
    assert after.odds == pytest.approx(0.995 + (belief - 0.5) * 0.04 + 0.4)
    assert weighed(memory, surprise=2.0)[0].odds == pytest.approx(0.995 + (belief - 0.5) * 0.04 - 0.4)
    assert weighed(memory, surprise=-1e9)[0].odds == pytest.approx(0.995 + 2.0)  # no value says more


def test_the_carried_centre_is_ahead_by_what_probes_have_not_corrected():
    """λ ← λ − 0.58·h·û⟨û, λ⟩ + v."""
    memory = Following(np.array([0.1, 0.0]), np.array([0.4, 0.3]), 0.0)
    after, _ = weighed(memory, surprise=0.0, share=0.5)
    np.testing.assert_allclose(after.lead, [0.4 - 0.29 * 0.4 + 0.1, 0.3])
    far, _ = weighed(memory._replace(lead=np.array([0.0, 300.0])), surprise=0.0)
    assert np.linalg.norm(far.lead) == pytest.approx(1.5)  # probes, at most


def test_the_centre_is_carried_as_far_as_that_is_believed():
    """ω·v + Δω·λ, and 0.2 of a probe at most; not at all where it is doubted, as at first."""
    memory = Following(np.array([0.1, 0.0]), np.zeros(2), 6.0)
    after, carried = weighed(memory, surprise=0.0)
    before, belief = (
        (0.5 + 0.5 * off / math.sqrt(4.0 + off * off) - 0.15) / 0.85 for off in (6.0 - 2.0, 6.0 * 0.995 - 2.0)
    )
    np.testing.assert_allclose(carried, belief * memory.velocity + (belief - before) * after.lead)
    _, hasty = weighed(memory._replace(velocity=np.array([3.0, 4.0])), surprise=0.0)
    assert np.linalg.norm(hasty) == pytest.approx(0.2)
    assert weighed(memory._replace(odds=0.0), surprise=0.0)[1] is None


def test_the_velocity_is_the_mean_of_the_moves():
    """v ← v + 0.1·0.58·h/d·(m − v)."""
    memory = Following(np.array([0.1, 0.0]), np.zeros(2), 0.0)
    after = bound()[1](memory, np.array([1.1, 2.0]), 0.5)
    np.testing.assert_allclose(after.velocity, [0.1 + 0.1 * 0.58 * 0.5 / 2, 0.1 * 0.58 * 0.5])


def paid(speed, lanes=40, d=3, rounds=400):
    """The median of what the centre pays, while the optimum goes along a line; and the odds at the end."""
    rng = np.random.default_rng(2)
    tuner, best = tt.Tuner(np.zeros((lanes, d)), tt.auto(radius=0.1), seed=1), np.zeros((lanes, d))
    cost = np.zeros(lanes)
    for _ in range(rounds):
        trial = tuner.ask()
        cost += np.square(tuner.centre - best).sum(1)
        tuner.tell(trial, np.square(trial.x - best).sum(1) + 0.01 * rng.standard_normal(lanes))
        best = best + speed
    return float(np.median(cost)), float(np.median(tuner.state.pace.following.odds))


def test_it_pays_to_follow_a_line(monkeypatch):
    """A quarter at least, of 400 rounds; it is seldom believed in where nothing moves."""
    following_it, odds = paid(0.02)
    _, at_rest = paid(0.0)
    monkeypatch.setattr(following, "DOUBTED", -1e9)  # never believed in
    without, _ = paid(0.02)
    assert following_it < 0.75 * without
    assert odds > 2.0 > at_rest
