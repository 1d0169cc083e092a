"""An optimum that goes on steadily: by hand, and what following it saves."""

import math
from dataclasses import replace

import numpy as np
import pytest

import trimtab as tt
from trimtab.tracker import following
from trimtab.tracker.following import Following

PROBE = 1.0


def bound(d=2):
    return following.bind(tt.Setup(tt.auto(radius=1.0), (d,)).frame)


def weighed(memory, surprise, bend=0.5, share=1.0):
    """After a value at a probe along the first axis."""
    return bound()[0](memory, np.array([2.0, 0.0]), 0.5, surprise, bend, share, PROBE)


def going(odds, velocity=(0.1, 0.0), ahead=4.0):
    """Some belief, as it follows from the odds."""
    off = odds - 2.0
    belief = max(0.5 + 0.5 * off / math.sqrt(4.0 + off * off) - 0.15, 0.0) / 0.85
    return Following(np.array(velocity), float(np.linalg.norm(velocity)), ahead, 0.0, odds, belief)


def test_a_value_says_which_of_two_centres_was_nearer():
    """z = ½·4·0.1: log odds ← 0.995·1 + (ω − ½)·z² − z·e."""
    memory = going(1.0)
    after, _ = weighed(memory, surprise=-2.0)
    assert after.odds == pytest.approx(0.995 + (memory.belief - 0.5) * 0.04 + 0.4)
    assert after.belief == pytest.approx(going(after.odds).belief)
    assert weighed(memory, surprise=2.0)[0].odds == pytest.approx(0.995 + (memory.belief - 0.5) * 0.04 - 0.4)
    assert weighed(memory, surprise=-1e9)[0].odds == pytest.approx(0.995 + 2.0)  # no value says more


def test_the_carried_centre_is_ahead_by_what_probes_have_not_corrected():
    """a ← (1 − 0.58·h/d)·a + 1, and a·‖v‖ is 1.5 probes at most."""
    memory = going(0.0)
    assert weighed(memory, surprise=0.0, share=0.5)[0].ahead == pytest.approx(4.0 * (1 - 0.58 * 0.5 / 2) + 1.0)
    assert weighed(memory._replace(ahead=3000.0), surprise=0.0)[0].ahead == pytest.approx(1.5 / 0.1)
    assert weighed(memory, surprise=0.0, share=0.5)[0].shares == 0.5


def test_the_centre_is_carried_as_far_as_that_is_believed():
    """(ω + Δω·a)·v, and 0.2 of a probe at most; not at all where it is doubted, as at first."""
    memory = going(6.0)
    after, carried = weighed(memory, surprise=0.0)
    assert carried == pytest.approx(after.belief + (after.belief - memory.belief) * after.ahead)
    assert weighed(going(6.0, (3.0, 4.0)), surprise=0.0)[1] == pytest.approx(0.2 / 5.0)
    assert weighed(going(0.0), surprise=0.0)[1] == 0.0


def test_the_velocity_is_a_mean_of_how_far_the_course_goes():
    """v ← v + 0.1·0.58·Σh/d·(c − v), with c the way that the course goes in a round."""
    memory = going(1.0)._replace(shares=4.0)
    after = bound()[1](memory, True, 0.5, np.array([2.2, 4.0]))
    new = 0.1 * 0.58 * 4.0 / 2
    np.testing.assert_allclose(after.velocity, [0.1 + new * (1.1 - 0.1), new * 2.0])
    assert after.speed == pytest.approx(np.linalg.norm(after.velocity))
    assert after.shares == 0.0
    swift = bound()[1](memory._replace(shares=1e9), True, 0.5, np.array([2.2, 4.0]))
    np.testing.assert_allclose(swift.velocity, [1.1, 2.0])  # never beyond


def paid(speed, lanes=200, d=3, rounds=400):
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


@pytest.mark.parametrize("lanes", [(), (3,)])
def test_what_is_carried_counts_in_the_longest_move(lanes):
    """max_move probes, the step and what the centre is carried by together."""
    d, radius, most = 3, 0.1, 0.02
    method = replace(tt.auto(radius=radius), max_move=most)
    tuner, best = tt.Tuner(np.zeros((*lanes, d)), method, seed=1), np.zeros(d)
    longest, believed = most * radius * math.sqrt(d), 0
    for t in range(600):
        before, trial = tuner.centre, tuner.ask()
        tuner.tell(trial, np.square(trial.x - best).sum(-1) + 1e-3 * math.sin(t * t))
        move = np.linalg.norm(tuner.centre - before, axis=-1)
        assert np.all(move <= longest * (1 + 1e-12))
        believed += np.any((tuner.state.pace.following.belief > 0) & (move > 0.999 * longest))
        best = best + 0.8 * longest / math.sqrt(d)
    assert believed > 100
