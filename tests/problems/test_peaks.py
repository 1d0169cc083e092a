"""Moving peaks: hand-computed values, reflection, drift, optimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.problems import Path, Peaks
from trimtab.problems.base import reflect
from trimtab.problems.landscapes import HEIGHTS, WIDTHS, PeaksWorld


def two_peaks() -> PeaksWorld:
    world = Peaks(dim=2, peaks=2).world(0, 1)
    tops = np.array([[[10.0, 10.0], [40.0, 50.0]]])
    state = (tops, np.array([[50.0, 60.0]]), np.array([[1.0, 2.0]]), np.zeros((1, 2, 2)))
    world._path = Path(state, lambda t, s: s)
    return world


def test_cost_by_hand():
    """At (10, 10): cone 1 gives 50, cone 2 gives 60 − 2·50 = −40. At (13, 14): 50 − 5 = 45. At (40, 50): 60."""
    x = np.array([[[10.0, 10.0], [13.0, 14.0], [40.0, 50.0]]])
    np.testing.assert_allclose(two_peaks().cost(0, x), [[-50.0, -45.0, -60.0]])
    assert two_peaks().optimum(0) == -60.0
    np.testing.assert_array_equal(two_peaks().optimiser(0), [[40.0, 50.0]])


def test_gradient_by_hand():
    x = np.array([[[13.0, 14.0], [43.0, 54.0], [40.0, 50.0]]])
    np.testing.assert_allclose(two_peaks().gradient(0, x), [[[0.6, 0.8], [1.2, 1.6], [0.0, 0.0]]])


def test_peaks_are_constant_between_changes():
    world = Peaks(every=10).world(0, 2)
    x = np.full((2, 1, 5), 30.0)
    np.testing.assert_array_equal(world.cost(9, x), world.cost(0, x))
    assert np.all(world.cost(10, x) != world.cost(9, x))


def test_tops_move_by_the_shift_and_stay_in_the_box_with_heights_and_widths_in_range():
    problem = Peaks(dim=3, peaks=8, every=1, shift=7.0, height_step=20.0, width_step=5.0)
    world = problem.world(1, 4)
    for t in range(1, 60):
        tops, heights, widths, moves = world._path(t)
        before = world._path(t - 1)[0]
        unbounced = np.all((before + moves > 0) & (before + moves < 100), axis=-1)
        length = np.linalg.norm(tops - before, axis=-1)
        np.testing.assert_allclose(length[unbounced & np.isclose(length, 7.0)], 7.0)
        assert np.mean(np.isclose(length, 7.0)) > 0.5
        assert length.max() <= 7.0 + 1e-9
        assert tops.min() >= 0
        assert tops.max() <= 100
        assert HEIGHTS[0] <= heights.min() <= heights.max() <= HEIGHTS[1]
        assert WIDTHS[0] <= widths.min() <= widths.max() <= WIDTHS[1]


def test_full_correlation_keeps_the_direction_until_a_wall_turns_it():
    world = Peaks(dim=2, peaks=5, every=1, shift=0.01, correlation=1.0).world(2, 3)
    first = world._path(1)[0] - world._path(0)[0]
    np.testing.assert_allclose(world._path(50)[0] - world._path(49)[0], first, atol=1e-9)
    near_the_wall = Peaks(dim=1, peaks=1, every=1, size=1.0, shift=0.3, correlation=1.0).world(0, 20)
    tops = np.stack([near_the_wall._path(t)[0].ravel() for t in range(40)])
    assert tops.min() >= 0
    assert tops.max() <= 1
    assert np.all(np.ptp(tops, axis=0) > 0.6)


def test_the_optimum_agrees_with_a_search_of_the_box():
    world = Peaks(dim=2, peaks=6, every=1).world(3, 1)
    step = 0.25
    grid = np.stack(np.meshgrid(*[np.arange(0, 100 + step, step)] * 2), axis=-1).reshape(1, -1, 2)
    costs = world.cost(25, grid)[0]
    best, at = world.optimum(25)[0], world.optimiser(25)[0]
    nearest = step / np.sqrt(2)
    assert best <= costs.min() <= best + WIDTHS[1] * nearest
    assert np.linalg.norm(grid[0, costs.argmin()] - at) <= WIDTHS[1] / WIDTHS[0] * nearest


def test_lipschitz():
    problem = Peaks(dim=3)
    world = problem.world(4, 2)
    x, y = np.random.default_rng(0).uniform(0, 100, (2, 2, 500, 3))
    gap = np.abs(world.cost(0, x) - world.cost(0, y)) / np.linalg.norm(x - y, axis=-1)
    assert gap.max() <= problem.lipschitz


@given(st.floats(-1e3, 1e3), st.floats(-5, 5), st.floats(0.1, 9))
def test_reflections_stay_inside_and_do_not_move_points_inside(x, low, span):
    high = low + span
    folded = float(reflect(np.array(x), low, high))
    assert low - 1e-9 <= folded <= high + 1e-9
    if low <= x <= high:
        assert folded == x
    if high < x <= high + span:
        assert folded == pytest.approx(2 * high - x, abs=1e-9)
