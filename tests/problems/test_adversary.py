"""Appendix I: an adversary with the power V_f that chooses before or after u_t is drawn."""

import math

import numpy as np
import pytest

import trimtab as tt
from trimtab.core import ask, init, tell
from trimtab.problems import Adversary
from trimtab.setup import Setup


def offsets_after_one_round(order: str, trials: int, *, delta: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """u_1 and b_1 − b_0, with the agent at (1, 0, 0)."""
    problem = Adversary(dim=3, order=order, power=0.05)
    world = problem.world(0, trials)
    centre = np.tile([1.0, 0.0, 0.0], (trials, 1, 1))
    u = np.random.default_rng(0).standard_normal((2, trials, 1, 3))
    for t in range(2):
        world.play(t, centre, centre + delta * u[t])
    return u[1, :, 0], world.optimum(1) - world.optimum(0)


def test_cost_by_hand():
    world = Adversary(dim=2, scale=2.0).world(0, 1)
    x = np.array([[[0.0, 0.0], [math.sqrt(3), 0.0], [2.0, 2.0]]])
    np.testing.assert_allclose(world.cost(0, x), [[0.0, 2.0, 4.0]])
    np.testing.assert_allclose(world.gradient(0, x)[0, 2], [4 / 3, 4 / 3])


def test_every_change_has_exactly_the_allowed_size():
    for order in ("before", "after"):
        problem = Adversary(order=order, power=0.3)
        world = problem.world(0, 4)
        rng = np.random.default_rng(1)
        x = rng.standard_normal((4, 1, 10))
        for t in range(20):
            world.play(t, x, x + 0.1 * rng.standard_normal(x.shape))
            if t:
                change = world.cost(t, x) - world.cost(t - 1, x)
                np.testing.assert_allclose(np.abs(change), problem.variation, rtol=1e-12)
        assert not world.optimum(0).any()


def test_before_does_not_depend_on_the_query_of_the_round():
    rng = np.random.default_rng(2)
    centre = np.tile(rng.standard_normal((1, 1, 10)), (64, 1, 1))
    world = Adversary(order="before").world(0, 64)
    world.play(0, centre, centre + 0.1)
    world.play(1, centre, centre + rng.standard_normal(centre.shape))
    assert len(np.unique(world.optimum(1))) == 1


def test_before_adds_to_the_difference_it_expects():
    """The last query lay uphill, so the next value will be lower: the function falls too; downhill, it rises."""
    world = Adversary(dim=1, order="before", power=0.5).world(0, 2)
    centre = np.array([[[2.0]], [[2.0]]])
    world.play(0, centre, centre + np.array([[[1.0]], [[-1.0]]]))
    world.play(1, centre, centre)
    np.testing.assert_allclose(world.optimum(1), [-0.5, 0.5])


def test_before_leaves_the_estimate_unbiased():
    """E[±V_f·u/δ] = 0; each coordinate's mean has the deviation (V_f/δ)/√n: 5.5 sigma, false alarm 4e-8 each."""
    trials, delta = 40_000, 0.1
    u, change = offsets_after_one_round("before", trials)
    bias = np.mean(u * change[:, None] / delta, axis=0)
    assert np.all(np.abs(bias) < 5.5 * 0.5 / math.sqrt(trials))


def test_after_biases_the_estimate_away_from_the_optimum():
    """E[±V_f·u/δ] = −√(2/π)·(V_f/δ)·x/‖x‖; |N(0,1)| has the deviation √(1 − 2/π) = 0.60: 5.5 sigma."""
    trials, delta = 40_000, 0.1
    u, change = offsets_after_one_round("after", trials)
    bias = np.mean(u * change[:, None] / delta, axis=0)
    np.testing.assert_allclose(bias, [-math.sqrt(2 / math.pi) * 0.5, 0, 0], atol=5.5 * 0.5 / math.sqrt(trials))


def test_residual_feedback_tolerates_before_but_not_after():
    ends = {}
    for order in ("before", "after"):
        problem = Adversary(order=order)
        trials = 32
        setup = Setup(tt.residual(radius=problem.radius, step=0.01), (trials, problem.dim))
        state = init(setup, problem.start(3, trials), seed=3)
        world = problem.world(3, trials)
        late = []
        for t in range(1000):
            query = ask(setup, state).x[:, None]
            world.play(t, np.array(state.centre)[:, None], query)
            if t >= 800:
                late.append(world.regret(t, np.array(state.centre)[:, None]))
            state = tell(setup, state, world.measure(t, query)[:, 0])
        ends[order] = np.median(np.mean(late, axis=0))
    assert ends["after"] > 5 * ends["before"]
    # where the slope r/√(1+r²) balances √(2/π)·V_f/δ = 0.4: √(1+r²) − 1 = 1/√(1 − 0.16) − 1 = 0.09, and some variance
    assert 0.06 < ends["after"] < 0.25


def test_all_points_of_a_trial_have_the_same_objective():
    world = Adversary(dim=1, order="after", power=1.0).world(0, 2)
    centre = np.ones((2, 1, 1))
    for t in range(2):
        world.play(t, centre, centre + np.array([[[0.1]], [[-0.1]]]))
    np.testing.assert_allclose(world.optimum(1), [-1.0, 1.0])
    x = np.array([[[0.0], [1.0]], [[0.0], [1.0]]])
    np.testing.assert_allclose(world.regret(1, x), [[0.0, math.sqrt(2) - 1]] * 2)


@pytest.mark.parametrize("order", ["before", "after"])
def test_the_last_round_may_be_played_again_and_so_may_the_first(order):
    rng = np.random.default_rng(4)
    centre, query = rng.standard_normal((2, 6, 2, 1, 3))
    world, again = Adversary(dim=3, order=order).world(0, 2), Adversary(dim=3, order=order).world(0, 2)
    for t in range(6):
        world.play(t, centre[t], query[t])
        again.play(t, centre[t], query[t])
        again.play(t, centre[t], query[t])
        np.testing.assert_array_equal(world.optimum(t), again.optimum(t))
    before = world.optimum(5)
    with pytest.raises(ValueError, match="round 6 has not been played yet"):
        world.optimum(6)
    for t in range(6):
        world.play(t, centre[t], query[t])
    np.testing.assert_array_equal(world.optimum(5), before)


def test_misuse_raises_errors():
    world = Adversary(dim=1).world(0, 1)
    x = np.ones((1, 1, 1))
    with pytest.raises(ValueError, match="round 1 cannot be played: the next round is 0; play rounds in order"):
        world.play(1, x, x)
    world.play(0, x, x)
    with pytest.raises(ValueError, match=r"query has the shape \(1, 2, 1\), not \(1, 1, 1\).*its own world"):
        world.play(1, x, np.ones((1, 2, 1)))


def test_nothing_changes_once_the_budget_is_spent():
    """V_f = 0.5 and W̃_T = 1: four rounds of 0.25 each."""
    world = Adversary(dim=2, order="after", power=0.5, budget=1.0).world(seed=0, trials=1)
    centre, query = np.array([[[3.0, 0.0]]]), np.array([[[3.1, 0.2]]])
    for round in range(8):
        world.play(round, centre, query)
    np.testing.assert_allclose([world.optimum(t)[0] for t in range(8)], [0, -0.5, -1, -1.5, -2, -2, -2, -2])
    with pytest.raises(ValueError, match="budget=-1 must be a number >= 0"):
        Adversary(budget=-1)
