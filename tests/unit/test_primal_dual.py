"""Primal-dual residual feedback: hand-computed values, what is told, and the long run."""

import math
import pickle

import numpy as np
import pytest

import trimtab as tt
from trimtab.problems import make

RADIUS, STEP, DUAL = 0.5, 0.1, 0.2
METHOD = tt.primal_dual(radius=RADIUS, step=STEP, dual_step=DUAL)


def moves(method, told, **options):
    """The moves that these values and limits cause from the origin, and the directions."""
    tuner = tt.Tuner(np.zeros(2), method, seed=3, **options)
    steps, directions = [], []
    for value, *limits in told:
        before, trial = tuner.centre, tuner.ask()
        directions.append((trial.x - before) / RADIUS)
        tuner.tell(trial, value, limits=limits)
        steps.append(tuner.centre - before)
    return steps, directions, tuner


def test_the_residual_of_the_lagrangian_by_hand():
    steps, u, tuner = moves(METHOD, [(3.0, 1.0), (5.0, 2.0), (1.0, -4.0)])
    np.testing.assert_array_equal(steps[0], 0.0)  # the first value only anchors; λ_1 = α·1
    a1 = (5.0 + 0.2 * 2.0) - (3.0 + 0.2 * 1.0)  # both rounds by λ_1
    np.testing.assert_allclose(steps[1], -STEP * a1 * u[1] / RADIUS)
    price = 0.2 + DUAL * 2.0
    a2 = (1.0 + price * -4.0) - (5.0 + price * 2.0)
    np.testing.assert_allclose(steps[2], -STEP * a2 * u[2] / RADIUS)
    assert tuner.state.slope.prices == (0.0,)  # 0.6 − 0.2·4 < 0
    assert tuner.last_value == 1.0


def test_prices_fade():
    method = tt.primal_dual(radius=RADIUS, step=STEP, dual_step=DUAL, decay=0.5)
    *_, tuner = moves(method, [(0.0, 1.0), (0.0, 2.0)])
    assert tuner.state.slope.prices[0] == pytest.approx(0.2 * (1 - 0.2 * 0.5) + 0.2 * 2.0)


def test_every_limit_has_its_price():
    method = tt.primal_dual(radius=RADIUS, step=STEP, limits=2, dual_step=DUAL)
    steps, u, tuner = moves(method, [(3.0, 1.0, -1.0), (5.0, 2.0, 4.0), (5.0, 2.0, 5.0)])
    np.testing.assert_allclose(steps[1], -STEP * (2.0 + 0.2 * 1.0) * u[1] / RADIUS)  # λ = (0.2, 0)
    np.testing.assert_allclose(steps[2], -STEP * (0.8 * 1.0) * u[2] / RADIUS)  # λ = (0.6, 0.8)
    assert tuner.state.slope.prices == pytest.approx((1.0, 1.8))


def test_without_an_excess_it_is_residual_feedback():
    ours, *_ = moves(METHOD, [(3.0, -1.0), (5.0, -3.0), (1.0, -2.0)])
    plain = tt.Tuner(np.zeros(2), tt.residual(radius=RADIUS, step=STEP), seed=3)
    for value in (3.0, 5.0, 1.0):
        plain.tell(plain.ask(), value)
    np.testing.assert_allclose(np.sum(ours, axis=0), plain.centre)


def test_maximise_turns_the_value_and_never_the_limits():
    down, _, tuner = moves(METHOD, [(3.0, 1.0), (5.0, 2.0), (1.0, 4.0)])
    up, _, twin = moves(METHOD, [(-3.0, 1.0), (-5.0, 2.0), (-1.0, 4.0)], maximise=True)
    np.testing.assert_array_equal(down, up)
    assert tuner.state.slope == twin.state.slope
    assert twin.last_value == -1.0


def test_the_estimate_is_unbiased_for_the_slope_of_the_lagrangian():
    """f = ⟨a, x⟩, g = ⟨b, x⟩ + 5: after g ≈ 5, λ = α·g, and E Δx = −η·(a + E[λ]·b). Six standard errors."""
    lanes, a, b = 40_000, np.array([1.0, -2.0]), np.array([0.5, 3.0])
    tuner = tt.Tuner(np.zeros((lanes, 2)), tt.primal_dual(radius=0.1, step=0.01, dual_step=0.2), seed=0)
    for _ in range(2):
        trial = tuner.ask()
        prices = tuner.state.slope.prices[0]
        tuner.tell(trial, trial.x @ a, limits=(trial.x @ b + 5.0)[:, None])
    expected = -0.01 * (a + prices[:, None] * b)
    error = tuner.centre - expected
    assert np.all(np.abs(error.mean(0)) < 6 * error.std(0) / math.sqrt(lanes))
    assert np.all(6 * error.std(0) / math.sqrt(lanes) < 0.2 * np.abs(expected.mean(0)))


# What is told -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "value", "limits", "words"),
    [
        (tt.residual(radius=0.1, step=0.1), 1.0, [2.0], r"limits=\[2.0\] do not apply to .*limits=1\)"),
        (METHOD, 1.0, None, r"shape \(\), but \(2,\) is needed: .*followed by those of 1 limits, tell\("),
        (METHOD, 1.0, [1.0, 2.0], r"shape \(3,\), but \(2,\) is needed"),
        (METHOD, 1.0, 2.0, r"value=1.0 and limits=2.0 do not match: tell one number, and a list of 1"),
        (METHOD, "seven", [1.0], "do not match"),
        (METHOD, 10**400, [1.0], "do not match"),
        (METHOD, 1.0, [math.inf], "infinite: skip the trial"),
    ],
)
def test_bad_limits_are_named_and_leave_the_state(method, value, limits, words):
    tuner = tt.Tuner(np.zeros(2), method, seed=0)
    before = tuner.state
    with pytest.raises(ValueError, match=words):
        tuner.tell(tuner.ask(), value, limits=limits)
    assert tuner.state is before


def test_bad_prices_are_named():
    with pytest.raises(
        ValueError, match=r"limits=0 must be a whole number, at least 1 and below 1048576: without any, use tt.residual"
    ):
        tt.Lagrangian(0)
    with pytest.raises(ValueError, match="dual_step=0 must be a finite number > 0"):
        tt.primal_dual(radius=0.1, step=0.1, dual_step=0)
    with pytest.raises(ValueError, match=r"decay=200 must be .* <= 100, so that a price decays without oscillating"):
        tt.primal_dual(radius=0.1, step=0.1, decay=200)


def test_a_missing_limit_is_a_failed_measurement():
    tuner = tt.Tuner(np.zeros(2), METHOD, seed=0)
    tuner.tell(tuner.ask(), 1.0, limits=[1.0])
    before = tuner.state
    tuner.tell(tuner.ask(), 1.0, limits=[math.nan])
    tuner.tell(tuner.ask(), None, limits=[1.0])
    assert tuner.state == before._replace(round=3, skipped=2)


def test_lanes_fail_one_by_one():
    tuner = tt.Tuner(np.zeros((3, 2)), METHOD, seed=0)
    tuner.tell(0, [1.0, 2.0, 3.0], limits=[[1.0], [1.0], [1.0]])
    tuner.tell(1, np.ma.array([2.0, 9e9, 3.0], mask=[False, True, False]), limits=[[2.0], [2.0], [math.nan]])
    np.testing.assert_array_equal(tuner.skipped, [0, 1, 1])
    np.testing.assert_allclose(tuner.state.slope.prices[0], [0.2 + 0.4, 0.2, 0.2])
    assert np.all(tuner.centre[0] != 0.0)
    np.testing.assert_array_equal(tuner.centre[1:], 0.0)


@pytest.mark.parametrize("shape", [(2,), (3, 2)])
def test_prices_are_saved_exactly(shape, tmp_path):
    tuner = tt.Tuner(np.zeros(shape), tt.primal_dual(radius=0.1, step=0.01, limits=2), seed=0)

    def tell(tuner):
        trial = tuner.ask()
        tuner.tell(trial, (trial.x**2).sum(-1), limits=trial.x + 1 / 3)

    for _ in range(7):
        tell(tuner)
    tuner.save(tmp_path / "t.npz")
    for twin in (
        tt.Tuner.from_json(tuner.to_json()),
        tt.Tuner.load(tmp_path / "t.npz"),
        pickle.loads(pickle.dumps(tuner)),
    ):
        assert twin.to_json() == tuner.to_json()
        tell(twin)
        assert twin.round == 8


def test_forgetting_keeps_the_prices():
    *_, tuner = moves(METHOD, [(3.0, 1.0), (5.0, 2.0)])
    before, prices = tuner.centre, tuner.state.slope
    tuner.forget()
    assert tuner.state.slope == prices
    tuner.tell(tuner.ask(), 900.0, limits=[3.0])
    np.testing.assert_array_equal(tuner.centre, before)


def test_it_is_not_scale_free_beside_limits():
    assert tt.residual(radius=0.1, step=tt.Normalised()).scale_free
    assert not tt.primal_dual(radius=0.1, step=tt.Normalised()).scale_free


# The long run -------------------------------------------------------------------------------------------------------


def played(problem, method, rounds, trials=20, seed=1):
    """Per round and trial: the limit at what was played, regret at the centre; and the tuner."""
    world = problem.world(seed, trials)
    tuner = tt.Tuner(problem.start(seed, trials), method, seed=seed)
    excess, regret = [], []
    for t in range(rounds):
        trial = tuner.ask()
        query, centre = trial.x[:, None], tuner.centre[:, None]
        limits = world.limits(t, query)[:, 0]
        excess.append(limits[:, 0])
        regret.append(world.regret(t, centre)[:, 0])
        tuner.tell(trial, world.measure(t, query)[:, 0], **({"limits": limits} if method.told > 1 else {}))
    return np.array(excess), np.array(regret), tuner, world


def test_the_violation_vanishes_and_the_cost_is_the_least_that_is_allowed():
    problem = make("constrained-v1", dim=4, drift="none", offset=0.0, sway=0.0)
    method = tt.primal_dual(radius=0.1, step=0.01, dual_step=0.01)
    excess, regret, tuner, world = played(problem, method, 4000)
    prices = tuner.state.slope.prices[0]
    for rounds in (250, 1000, 4000):  # (1/T)·Σg ≤ λ_max/(α·T): falls as 1/T
        assert excess[:rounds].mean(0).max() < 150 / rounds
    assert np.all(excess.mean(0) <= prices / (0.01 * 4000) + 1e-12)
    assert np.abs(excess[-1000:].mean(0)).max() < 0.02
    assert np.abs(regret[-1000:].mean(0)).max() < 0.05 * np.median(world.optimum(0))
    assert np.median(prices / world.price(0)) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("curvature", "settles"), [(1.0, True), (0.0, False)])
def test_it_settles_where_the_cost_is_curved_and_swings_where_all_is_linear(curvature, settles):
    """What the docstring says it cannot do: f = −x, g = x − 1/2 has the saddle point, and goes round it."""
    method = tt.primal_dual(radius=0.05, step=0.02, dual_step=0.02)
    tuner = tt.Tuner(np.full((8, 1), 0.2), method, domain=tt.Box(0.0, 1.0), seed=0)
    centres = []
    for _ in range(3000):
        trial = tuner.ask()
        x = trial.x[:, 0]
        tuner.tell(trial, curvature * (x - 1) ** 2 - (1 - curvature) * x, limits=trial.x - 0.5)
        centres.append(tuner.centre[:, 0])
    swing = np.ptp(centres[-1000:], axis=0)
    assert np.all(swing < 0.05) if settles else np.all(swing > 0.5)


def test_it_follows_a_limit_that_moves_and_what_ignores_it_does_not():
    problem = make("constrained-v1", dim=4, period=2000)
    method = tt.primal_dual(radius=0.1, step=0.02, dual_step=0.02)
    excess, regret, tuner, _ = played(problem, method, 4000)
    assert np.all(excess.mean(0) <= tuner.state.slope.prices[0] / (0.02 * 4000) + 1e-12)
    assert excess.mean(0).max() < 0.03
    assert abs(np.median(regret[1000:])) < 0.1
    free, *_ = played(problem, tt.residual(radius=0.1, step=0.02), 2000)
    assert free[-1000:].mean() > 0.7  # the free optimum is 1 − 0.3·2/π beyond the limit in that half of the period
