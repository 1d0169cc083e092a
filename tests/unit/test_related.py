"""Hand-computed values of the related methods: each is one file, and this is all that was added for it."""

import numpy as np
import pytest

import trimtab as tt

RADIUS, STEP = 0.5, 0.1


def moves(method, values, seed=3):
    """The moves that these values cause from the origin, the directions and the queries."""
    tuner = tt.Tuner(np.zeros(2), method, seed=seed)
    steps, queries, directions = [], [], []
    for value in values:
        before, trial = tuner.centre, tuner.ask()
        queries.append(trial.x.copy())
        directions.append((trial.x - before) / RADIUS)
        tuner.tell(trial, value)
        steps.append(tuner.centre - before)
    return steps, directions, queries


def test_momentum_keeps_a_share_of_the_move_before():
    steps, u, _ = moves(tt.hlf_szo(radius=RADIUS, step=STEP, beta=0.5, alpha=0.8), [3.0, 5.0, 1.0])
    z1 = 5.0 - 3.0  # z_t = β z_{t−1} + y_t − y_{t−1}
    z2 = 0.5 * z1 + 1.0 - 5.0
    np.testing.assert_array_equal(steps[0], 0.0)
    np.testing.assert_allclose(steps[1], -STEP * z1 * u[1] / RADIUS)
    np.testing.assert_allclose(steps[2], -STEP * z2 * u[2] / RADIUS + 0.8 * steps[1])  # the heavy ball


def test_momentum_behind_residual_feedback_without_memory_is_residual_feedback():
    plain = tt.Method(estimator=tt.Momentum(tt.Residual(), alpha=0.0), radius=RADIUS, step=STEP)
    ours, *_ = moves(plain, [3.0, 5.0, 1.0, 2.0])
    theirs, *_ = moves(tt.residual(radius=RADIUS, step=STEP), [3.0, 5.0, 1.0, 2.0])
    np.testing.assert_allclose(ours, theirs)


def test_least_squares_is_residual_feedback_until_the_window_is_full():
    steps, u, _ = moves(tt.reszo(radius=RADIUS, step=STEP, m=4), [3.0, 5.0, 1.0])
    np.testing.assert_allclose(steps[1], -STEP * 2.0 * u[1] / RADIUS)
    np.testing.assert_allclose(steps[2], -STEP * -4.0 * u[2] / RADIUS)


def test_least_squares_finds_the_slope_of_a_plane():
    tuner = tt.Tuner(np.zeros(2), tt.reszo(radius=RADIUS, step=STEP, m=4), seed=1)
    for _ in range(6):
        before, trial = tuner.centre, tuner.ask()
        tuner.tell(trial, float(7.0 + trial.x @ [3.0, -2.0]))
    np.testing.assert_allclose(tuner.centre - before, -STEP * np.array([3.0, -2.0]))


def test_least_squares_by_hand_through_three_points():
    """m = 3, d = 2: two rises along two steps determine g."""
    steps, _, p = moves(tt.reszo(radius=RADIUS, step=STEP, m=3), [3.0, 5.0, 1.0])
    g = np.linalg.solve(np.array([p[0] - p[2], p[1] - p[2]]), [3.0 - 1.0, 5.0 - 1.0])
    np.testing.assert_allclose(steps[2], -STEP * g)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="alpha=1"):
        tt.Momentum(alpha=1)
    with pytest.raises(ValueError, match="m=1 must be a whole number, at least 2"):
        tt.LeastSquares(1)
    with pytest.raises(ValueError, match="count=1 must be a whole number, at least 2"):
        tt.Hedged(count=1)


def test_hedge_is_the_mean_of_experts_that_are_kept_one_by_one():
    """Three experts by hand: x_i ← x_i − η·r_i·ĝ, p_i ∝ exp(−ε·Σ ⟨ĝ, x_i − x⟩), and the centre is Σ p_i·x_i."""
    values = [3.0, 5.0, 1.0, 2.0, 4.0]
    steps, u, _ = moves(tt.pbgd(radius=RADIUS, step=STEP, count=3), values)
    sizes, experts, losses, seen = np.array([0.5, 1.0, 2.0]), np.zeros((3, 2)), np.zeros(3), 0.0
    weights, centre, total = np.ones(3) / 3, np.zeros(2), np.zeros(2)
    for value, direction, step in zip(values, u, steps, strict=True):
        g = value * direction / RADIUS
        losses += (experts - centre) @ g  # ℓ_t(x_i) = ⟨ĝ_t, x_i − x_t⟩
        seen += (STEP * (sizes[-1] - sizes[0]) * (g @ total)) ** 2  # the squared range of the losses
        total = total + g
        experts = experts - STEP * sizes[:, None] * g
        if seen:
            weights = np.exp(-np.sqrt(np.log(3) / seen) * losses)
            weights /= weights.sum()
        np.testing.assert_allclose(step, weights @ experts - centre, rtol=1e-9, atol=1e-12)
        centre = weights @ experts


def test_hedge_leans_to_long_steps_on_a_slope_and_to_short_ones_where_it_turns_back():
    size = []
    for sign in (1.0, -1.0):
        method = tt.pbgd(radius=RADIUS, step=STEP, count=3, base=tt.Residual())
        tuner = tt.Tuner(np.zeros(1), method, seed=3)
        tuner.tell(tuner.ask(), 0.0)
        y = 0.0
        for t in range(40):
            before, trial = tuner.centre, tuner.ask()
            u = float((trial.x - before)[0]) / RADIUS
            y += (sign**t) * RADIUS * np.sign(u) / max(abs(u), 0.1)  # ĝ = ±1, or turning back every round
            tuner.tell(trial, y)
        size.append(float(tuner.state.slope.gained))
    assert size[0] > 0 > size[1]
