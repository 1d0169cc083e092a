"""The drifting landscapes of `moving`, `convex` and Rosenbrock: hand-computed values, drift laws, optimum, gradient.

Statistical tests have a false-alarm rate of at most 1e-6 each, before the seed was fixed.
"""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from trimtab.problems import Absolute, Corner, LogCosh, Maximum, Quadratic, Rosenbrock, Sines, Walk, check_problem, make

ALL = [Quadratic, Absolute, LogCosh, Maximum, Sines, Rosenbrock]
RARE = 1e-7  # on each side


def point(*x: float) -> np.ndarray:
    return np.array([[x]], dtype=float)


def assert_chi_square(numbers: np.ndarray, std: float) -> None:
    """Independent N(0, std²)."""
    low, high = stats.chi2.ppf([RARE, 1 - RARE], numbers.size)
    assert low < np.sum((numbers / std) ** 2) < high


# --- by hand


def test_quadratic_has_curvatures_from_one_down_to_one_over_the_condition():
    problem = Quadratic(dim=3, condition=100.0, drift="none", offset=0.0)
    np.testing.assert_allclose(problem.curvatures, [1.0, 0.1, 0.01])
    world = problem.world(0, 1)
    assert world.cost(0, point(1, 2, 10)) == pytest.approx(0.5 * (1 + 0.4 + 1))
    np.testing.assert_allclose(world.gradient(0, point(1, 2, 10)), point(1, 0.2, 0.1))


def test_absolute_is_the_scaled_l1_norm():
    world = Absolute(dim=4, scale=3.0, drift="none", offset=0.0).world(0, 1)
    assert world.cost(0, point(1, -2, 0, 0.5)) == pytest.approx(1.5 * 3.5)
    np.testing.assert_allclose(world.gradient(0, point(1, -2, 0, 0.5)), point(1.5, -1.5, 0, 1.5))


def test_logcosh_is_a_parabola_near_and_a_cone_far():
    problem = LogCosh(dim=1, scale=2.0, width=0.5, drift="none", offset=0.0)
    world = problem.world(0, 1)
    assert world.cost(0, point(1.0)) == pytest.approx(2.0 * 0.5 * math.log(math.cosh(2.0)))
    assert world.cost(0, point(1e-4)) == pytest.approx(0.5 * problem.smoothness * 1e-8, rel=1e-6)
    assert world.cost(0, point(1e6)) == pytest.approx(2.0 * (1e6 - 0.5 * math.log(2)), rel=1e-12)


def test_maximum_is_the_scaled_largest_coordinate():
    world = Maximum(dim=3, scale=3.0, drift="none", offset=0.0).world(0, 1)
    assert world.cost(0, point(1, -2, 0.5)) == pytest.approx(6.0)
    np.testing.assert_allclose(world.gradient(0, point(1, -2, 0.5)), point(0, -3, 0))


def test_smoothing_scales_the_gradient_of_sines():
    problem = Sines(dim=4, scale=2.0, width=0.5, drift="none", offset=0.0)
    world = problem.world(0, 1)
    assert world.cost(0, point(0.5, 0, np.pi, 0)) == pytest.approx(0.5 * (1 - math.cos(1.0)))
    np.testing.assert_allclose(world.gradient(0, point(0.5, 0, 0, 0)), point(math.sin(1.0), 0, 0, 0))
    assert problem.smoothness == 2.0
    u = np.random.default_rng(0).standard_normal((1, 400_000, 4))
    smoothed = (world.cost(0, point(0.5, 0.2, -0.1, 0) + 0.3 * u)[0, :, None] * u[0] / 0.3).mean(0)
    exact = math.exp(-(0.3**2) / (2 * 0.5**2)) * world.gradient(0, point(0.5, 0.2, -0.1, 0))[0, 0]
    np.testing.assert_allclose(smoothed, exact, atol=0.02)


def test_rosenbrock_by_hand():
    world = Rosenbrock(dim=3, drift="none", offset=0.0).world(0, 1)
    assert world.cost(0, point(0, 0, 0)) == pytest.approx(2.0)
    assert world.cost(0, point(2, 1, 0)) == pytest.approx(100 * 9 + 1 + 100 * 1 + 0)
    np.testing.assert_allclose(world.gradient(0, point(0, 0, 0)), point(-2, -2, 0))


def test_the_walk_is_half_x_squared_plus_a_level_that_is_the_same_everywhere():
    world = Walk().world(5, 4)
    x = np.array([[[0.0], [3.0]]] * 4)
    for t in (0, 1, 10):
        costs = world.cost(t, x)
        np.testing.assert_allclose(costs[:, 1] - costs[:, 0], 4.5)
        np.testing.assert_allclose(costs[:, 0], world.optimum(t))
    assert not world.optimum(0).any()


def test_the_walk_takes_any_dimension():
    assert Walk(dim=3).world(0, 1).cost(0, point(1, 2, 2)) == 4.5
    np.testing.assert_allclose(np.abs(Walk(distance=2.0).start(0, 5)), 2.0)


# --- drift


def test_no_drift_does_not_move():
    world = Quadratic(drift="none", offset=0.0).world(0, 2)
    assert not world.optimiser(50).any()
    assert not world.optimum(50).any()


def test_line_goes_straight_at_its_speed():
    world = Quadratic(drift="line", speed=0.3).world(0, 3)
    way = world.optimiser(10)
    np.testing.assert_allclose(np.linalg.norm(way, axis=1), 3.0)
    np.testing.assert_allclose(world.optimiser(20), 2 * way)


def test_jumps_are_periodic_and_as_long_as_the_line():
    world = Quadratic(drift="jumps", speed=0.3, every=10).world(0, 3)
    assert not world.optimiser(9).any()
    np.testing.assert_allclose(np.linalg.norm(world.optimiser(10), axis=1), 3.0)
    np.testing.assert_array_equal(world.optimiser(10), world.optimiser(19))
    np.testing.assert_allclose(np.linalg.norm(world.optimiser(20) - world.optimiser(19), axis=1), 3.0)


def test_ramps_move_and_pause_in_turns():
    world = Quadratic(drift="ramps", speed=0.3, every=10).world(0, 3)
    first = world.optimiser(10)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 3.0)
    np.testing.assert_allclose(world.optimiser(5), 0.5 * first)
    np.testing.assert_array_equal(world.optimiser(20), first)
    second = world.optimiser(30) - first
    np.testing.assert_allclose(np.linalg.norm(second, axis=1), 3.0)
    assert np.all((first * second).sum(1) < 0.99 * 9.0)  # another direction


def test_a_circle_closes_at_its_speed():
    world = Quadratic(drift="circle", speed=0.3, every=1000).world(0, 3)
    np.testing.assert_allclose(world.optimiser(1000), 0.0, atol=1e-12)
    way = np.linalg.norm(world.optimiser(101) - world.optimiser(100), axis=1)
    np.testing.assert_allclose(way, 0.3, rtol=1e-5)
    diameter = np.linalg.norm(world.optimiser(500), axis=1)
    np.testing.assert_allclose(diameter, 0.3 * 1000 / np.pi)


def test_a_telegraph_switches_between_two_places():
    trials, every = 400, 20
    world = Quadratic(dim=2, drift="telegraph", speed=0.1, every=every).world(0, trials)
    places = np.stack([world.optimiser(t) for t in range(200)])
    lengths = np.linalg.norm(places, axis=-1)
    assert set(lengths.round(9).ravel()) == {0.0, 2.0}
    switches = int((np.diff(lengths, axis=0) != 0).sum())
    low, high = stats.binom.ppf([RARE, 1 - RARE], trials * 199, 1 / every)
    assert low < switches < high


def test_a_trend_raises_the_level():
    world = Quadratic(drift="none", offset=0.0, trend=0.5).world(0, 2)
    np.testing.assert_allclose(world.optimum(10), 5.0)


def test_student_noise_has_two_degrees_of_freedom():
    world = Quadratic(noise=0.1, noise_law="student").world(0, 4000)
    x = world.optimiser(3)[:, None]
    drawn = (world.measure(3, x) - world.cost(3, x))[:, 0] / 0.1
    assert stats.kstest(drawn, stats.t(2).cdf).pvalue > 1e-6


def test_relative_noise_grows_with_the_excess():
    world = Quadratic(dim=2, condition=1.0, noise=0.1, noise_law="relative").world(0, 3)
    best = world.optimiser(3)[:, None]
    np.testing.assert_array_equal(world.measure(3, best), world.cost(3, best))
    x = best + np.array([[[2.0, 0.0], [4.0, 0.0]]])  # excess 2 and 8
    noise = world.measure(3, x) - world.cost(3, x)
    np.testing.assert_allclose(noise[:, 1], 4 * noise[:, 0])
    np.testing.assert_allclose(noise[:, 0], 0.2 * world.noise(3, 0))


@pytest.mark.parametrize("gap", [0.1, 0.0, -0.2])
def test_walls_keep_the_optimum_within_the_gap(gap):
    problem = Corner(dim=3, walls=2, gap=gap, speed=0.1)
    world = problem.world(0, 5)
    for t in (0, 7, 200):
        free, best = world.middle(t), world.optimiser(t)
        assert np.all((free[:, :2] >= min(gap, 0.0)) & (free[:, :2] <= max(gap, 0.0)))
        np.testing.assert_array_equal(best, np.clip(free, 0.0, 2.0))
    np.testing.assert_allclose(world.middle(0)[:, 2], 1.0)
    if gap > 0:
        assert world.middle(200)[:, 0].std() > 0.01


@pytest.mark.parametrize(
    "parameters",
    [
        *({"drift": drift} for drift in ("ramps", "circle", "telegraph")),
        *({"noise": 0.1, "noise_law": law} for law in ("student", "relative")),
        {"trend": 0.1},
    ],
    ids=str,
)
def test_every_law_satisfies_the_contract(parameters):
    check_problem(Quadratic(**parameters))
    check_problem(Corner(walls=1, gap=0.1, **parameters))


def test_jumps_go_in_all_directions():
    dim, trials = 3, 2000
    jumps = Quadratic(dim=dim, drift="jumps", speed=1.0, every=1).world(1, trials).optimiser(1)
    # each mean of 2000 coordinates of variance 1/3 is normal within 1e-3 of its tail; 5.5 sigma
    assert np.all(np.abs(jumps.mean(0)) < 5.5 / math.sqrt(dim * trials))


def test_walk_steps_are_normal_with_the_speed_as_their_rms_length():
    dim, trials, speed = 5, 200, 0.2
    world = Quadratic(dim=dim, drift="walk", speed=speed).world(2, trials)
    steps = np.stack([world.optimiser(t) - world.optimiser(t - 1) for t in range(1, 11)])
    assert_chi_square(steps, speed / math.sqrt(dim))
    assert stats.kstest(steps.ravel() * math.sqrt(dim) / speed, "norm").pvalue > 5e-7


def test_levels_walk_and_their_second_moment_grows_with_time():
    trials = 2000
    world = Walk(std=0.5).world(3, trials)
    before = world.optimum(29)
    after = world.optimum(30)
    assert_chi_square(after - before, 0.5)
    assert_chi_square(after, 0.5 * math.sqrt(30))
    assert abs(np.mean((after - before) * before)) < 7 * 0.5 * 0.5 * math.sqrt(29 / trials)


def test_one_point_estimates_grow_like_t_but_residuals_do_not():
    """Section 3: at a fixed x, E g² is about t/δ² for one-point, and stays near 1/δ² for residual feedback."""
    trials, delta, t = 2000, 0.1, 100
    world = Walk().world(4, trials)
    u = np.random.default_rng(0).standard_normal((2, trials, 1, 1))
    earlier, now = world.cost(t - 1, delta * u[0])[:, 0], world.cost(t, delta * u[1])[:, 0]
    one_point = np.mean((u[1, :, 0, 0] * now / delta) ** 2)
    residual = np.mean((u[1, :, 0, 0] * (now - earlier) / delta) ** 2)
    # mean squares of 2000 products of two normals: relative deviation √(8/2000) = 6 %; a factor 1.6 is 6 sigma or more
    assert t / 1.6 < one_point * delta**2 < t * 1.6
    assert 1 / 1.6 < residual * delta**2 < 1.6


def test_noise_is_normal_around_the_cost():
    trials = 3000
    world = Quadratic(dim=2, noise=0.3).world(6, trials)
    x = np.ones((trials, 2, 2))
    noise = world.measure(7, x) - world.cost(7, x)
    np.testing.assert_allclose(noise[:, 0], noise[:, 1])
    assert_chi_square(noise[:, 0], 0.3)
    other = world.measure(7, x, draw=1) - world.cost(7, x)
    assert abs(np.corrcoef(noise[:, 0], other[:, 0])[0, 1]) < 5.5 / math.sqrt(trials)


@pytest.mark.parametrize("cls", [Absolute, LogCosh])
@pytest.mark.parametrize("drift", ["none", "walk", "line", "jumps"])
def test_the_variation_bounds_the_change_of_a_measurement(cls, drift):
    trials = 400
    problem = cls(dim=3, scale=2.0, drift=drift, speed=0.05, every=4, offset=0.1, noise=0.05, rotate=True)
    world = problem.world(7, trials)
    x = 3.0 * np.random.default_rng(0).standard_normal((trials, 5, 3))
    for t in (1, 3, 4):
        change = world.measure(t, x) - world.measure(t - 1, x)
        # a mean of squares over 400 trials stays below its expectation's bound times chi²'s upper quantile
        assert np.mean(change**2, axis=0).max() < problem.variation**2 * stats.chi2.isf(1e-8, trials) / trials


def test_variation_by_hand():
    assert Walk(std=0.5).variation == 0.5
    assert Quadratic().variation == math.inf
    assert Quadratic(drift="none", offset=3.0, noise=math.sqrt(8)).variation == pytest.approx(5.0)
    assert Absolute(scale=2.0, speed=0.5, offset=0.0).variation == 1.0
    assert Absolute(scale=2.0, drift="jumps", speed=0.5, every=10, offset=0.0).variation == 10.0


@pytest.mark.parametrize("cls", [Absolute, LogCosh])
def test_the_lipschitz_constant_holds_and_is_reached(cls):
    problem = cls(dim=4, scale=2.0, rotate=True)
    world = problem.world(8, 3)
    x, y = np.random.default_rng(1).standard_normal((2, 3, 500, 4))
    gap = np.abs(world.cost(5, x) - world.cost(5, y)) / np.linalg.norm(x - y, axis=-1)
    assert gap.max() <= problem.lipschitz + 1e-9
    far = np.linalg.norm(world.gradient(5, 1e3 * x), axis=-1)
    assert far.max() == pytest.approx(problem.lipschitz)


# --- start, rotation, optimum, gradient


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("rotate", [False, True])
def test_the_start_has_the_given_distance_from_the_optimum(cls, rotate):
    problem = cls(distance=0.7, rotate=rotate)
    away = problem.start(0, 4) - problem.world(0, 4).optimiser(0)
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), 0.7)


def test_rotations_are_orthogonal_and_differ_by_trial():
    world = Quadratic(dim=6, rotate=True).world(0, 3)
    turn = world._turn
    assert turn is not None
    np.testing.assert_allclose(turn @ turn.swapaxes(1, 2), np.tile(np.eye(6), (3, 1, 1)), atol=1e-14)
    assert np.abs(turn[0] - turn[1]).max() > 0.1


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("rotate", [False, True])
def test_the_optimum_agrees_with_a_numerical_optimiser(cls, rotate):
    world = cls(dim=3, rotate=rotate).world(9, 1)
    t, best, at = 20, world.optimum(20)[0], world.optimiser(20)[0]
    assert world.cost(t, at[None, None])[0, 0] == pytest.approx(best, abs=1e-12)
    x = at + 0.2
    for _ in range(
        10 if cls in (Absolute, Maximum) else 1
    ):  # at kinks the simplex collapses, and has to be set up again
        method = "Nelder-Mead" if cls in (Absolute, Maximum) else "BFGS"
        found = optimize.minimize(lambda x: world.cost(t, x[None, None])[0, 0], x, method=method, tol=1e-10)
        x = found.x
    assert found.fun == pytest.approx(best, abs=1e-6)
    assert found.fun >= best - 1e-12
    np.testing.assert_allclose(found.x, at, atol=1e-3)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("rotate", [False, True])
def test_the_gradient_agrees_with_differences(cls, rotate):
    world = cls(dim=3, rotate=rotate).world(10, 2)
    x = np.random.default_rng(2).standard_normal((2, 5, 3))
    h = 1e-6
    differences = np.stack([world.cost(3, x + h * e) - world.cost(3, x - h * e) for e in np.eye(3)], axis=-1) / (2 * h)
    np.testing.assert_allclose(world.gradient(3, x), differences, rtol=1e-5, atol=1e-6)


def test_the_best_point_of_a_corner_is_the_best_of_its_box():
    problem = make("corner-v1", dim=3, speed=0.1, drift="line")
    world, rng = problem.world(seed=1, trials=4), np.random.default_rng(0)
    for t in (0, 30, 200):
        points = rng.uniform(0, problem.size, (4, 500, 3))
        assert np.all(world.cost(t, points) >= world.optimum(t)[:, None])
        assert np.all(problem.domain.contains(world.optimiser(t)))
    with pytest.raises(ValueError, match="the optimum would be unknown"):
        make("corner-v1", rotate=True)
