"""Pricing: shares, profit, the optimum within bounds, drift."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from trimtab.problems import Pricing


def test_shares_and_profit_by_hand(monkeypatch):
    """Utilities 1 and 0: shares e/(1 + e + 1) and 1/(2 + e); margins 2 and 3."""
    problem = Pricing(dim=2, customers=100)
    world = problem.world(0, 1)
    prices = problem.unit_costs + np.array([2.0, 3.0])
    monkeypatch.setattr(world, "willingness", lambda t: prices[None] + np.array([1.5, 0.0]))  # s = (1.5, 2.5)
    e = math.e
    np.testing.assert_allclose(world.shares(0, prices[None, None]), [[[e / (2 + e), 1 / (2 + e)]]])
    assert world.cost(0, prices[None, None])[0, 0] == pytest.approx(-100 * (2 * e + 3) / (2 + e))


def test_a_cheaper_product_takes_customers_from_the_others():
    problem = Pricing()
    world = problem.world(0, 4)
    prices = problem.start(0, 4)[:, None]
    cheaper = prices - np.array([1.0, 0.0, 0.0])
    change = world.shares(5, cheaper) - world.shares(5, prices)
    assert np.all(change[..., 0] > 0)
    assert np.all(change[..., 1:] < 0)


def test_one_product_within_bounds_has_the_closed_form_of_lambert():
    """max (p − c)·share: p − c = s(1 + W(exp((a − c)/s − 1))), profit s·W."""
    problem = Pricing(dim=1)
    world = problem.world(1, 5)
    a, c, s = world.willingness(40)[:, 0], problem.unit_costs[0], world.patience(40)[:, 0]
    w = special.lambertw(np.exp((a - c) / s - 1)).real
    np.testing.assert_allclose(world.optimiser(40)[:, 0], c + s * (1 + w), rtol=1e-12)
    np.testing.assert_allclose(world.optimum(40), -problem.customers * s * w, rtol=1e-12)


@pytest.mark.parametrize(("dim", "season"), [(1, 1.0), (3, 1.0), (3, 12.0), (8, 5.0)])
def test_the_optimum_is_global_within_the_bounds(dim, season):
    """Against L-BFGS-B from many starts; the large seasons press prices against both bounds."""
    problem = Pricing(dim=dim, season=season)
    bounds = np.stack([problem.unit_costs, 2 * problem.unit_costs], axis=1)
    rng = np.random.default_rng(0)
    for trial in range(2):
        world = problem.world(2, 1, trial)
        for t in (0, 125):

            def cost(x, t=t, world=world):
                return world.cost(t, x[None, None])[0, 0], world.gradient(t, x[None, None])[0, 0]

            starts = rng.uniform(*bounds.T, (4, dim))
            found = min(optimize.minimize(cost, x, jac=True, method="L-BFGS-B", bounds=bounds).fun for x in starts)
            best = world.optimum(t)[0]
            assert best <= found + 1e-9 * abs(found)
            assert best == pytest.approx(found, rel=1e-5)
            assert problem.domain.contains(world.optimiser(t)[0])


def test_some_bounds_are_active_in_these_tests():
    problem = Pricing(dim=3, season=12.0)
    worlds = problem.world(2, 3)
    best = np.stack([worlds.optimiser(t) for t in (0, 125)])
    assert np.any(best == 2 * problem.unit_costs)


def test_the_gradient_agrees_with_differences():
    problem = Pricing(dim=4)
    world = problem.world(3, 2)
    x = np.random.default_rng(1).uniform(problem.unit_costs, 2 * problem.unit_costs, (2, 5, 4))
    h = 1e-5
    differences = np.stack([world.cost(9, x + h * e) - world.cost(9, x - h * e) for e in np.eye(4)], axis=-1) / (2 * h)
    np.testing.assert_allclose(world.gradient(9, x), differences, rtol=1e-6, atol=1e-5)


def test_absurd_prices_are_finite():
    world = Pricing().world(0, 1)
    for price in (-1e6, 1e6):
        assert np.isfinite(world.cost(0, np.full((1, 1, 3), price))).all()


def test_willingness_follows_the_season_periodically():
    world = Pricing(drift=0.0, season=2.0, period=40.0).world(4, 3)
    np.testing.assert_allclose(world.willingness(40), world.willingness(0))
    year = np.stack([world.willingness(t) for t in range(40)])
    np.testing.assert_allclose(np.ptp(year, axis=0), 4.0, atol=0.05)


def test_willingness_walks_within_its_band():
    problem = Pricing(season=0.0, drift=0.05, band=0.5, patience_drift=0.0)
    world = problem.world(5, 200)
    start = world.willingness(0)
    steps = world.willingness(1) - start
    low, high = stats.chi2.ppf([2.5e-7, 1 - 2.5e-7], steps.size)  # false alarm 5e-7
    assert low < np.sum((steps / 0.05) ** 2) < high
    far = np.abs(world.willingness(300) - start)
    assert 0.4 < far.max() <= 0.5 + 1e-9


def test_patience_walks_in_proportion():
    world = Pricing(patience_drift=0.02).world(5, 200)
    np.testing.assert_allclose(world.patience(0), np.tile([1.5, 2.0, 2.5], (200, 1)))
    steps = np.log(world.patience(1) / world.patience(0))
    low, high = stats.chi2.ppf([2.5e-7, 1 - 2.5e-7], steps.size)  # false alarm 5e-7
    assert low < np.sum((steps / 0.02) ** 2) < high
    far = np.abs(np.log(world.patience(400) / world.patience(0)))
    assert 0.35 < far.max() <= 0.4 + 1e-9


def test_the_start_leaves_room_for_profit():
    problem = Pricing()
    world = problem.world(6, 20)
    earned, possible = -world.cost(0, problem.start(6, 20)[:, None])[:, 0], -world.optimum(0)
    assert np.all((earned > 0) & (earned < 0.8 * possible))
