"""The LQR problems: kernels against the formulas written out, optima against optimisers, laws against statistics."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

pytest.importorskip("numba")
import numba

from trimtab.problems import check_problem, make
from trimtab.problems.kernels.lqr import lqr_values
from trimtab.problems.lqr import LQR, NoisyLQR, ZeroMeanLQR
from trimtab.randomness import NOISE, Keyed

# Statistical tests compare means with a normal law: |z| > 5.6 happens by chance in 2e-8 of all cases, and no test looks
# at more than twenty of them. Seeds are fixed, so what passes once passes always.
Z = 5.6

SMALL = LQR(n_x=3, n_u=2, horizon=7, Q=[[2, 1, 0], [1, 2, 0], [0, 0, 1]], R=[[1, 0.5], [0.5, 2]], initial_std=0.3)


def points(problem, trials, k, scale=0.2, seed=1):
    return scale * np.random.default_rng(seed).standard_normal((trials, k, problem.dim))


def matrix(weight, size):
    return np.asarray(weight) if np.ndim(weight) == 2 else weight * np.eye(size)


def slow_value(problem, a, b, gain):
    """E Σ γᵏ (xᵀQx + uᵀRu), by the second moments of x_0, x_1, …, x_{H−1}."""
    q, r = matrix(problem.Q, problem.n_x), matrix(problem.R, problem.n_u)
    moment = np.eye(problem.n_x) if problem.redraw else np.ones((problem.n_x, problem.n_x))
    total = 0.0
    for k in range(problem.horizon):
        total += problem.gamma**k * (np.trace(q @ moment) + np.trace(r @ gain @ moment @ gain.T))
        moment = (a + b @ gain) @ moment @ (a + b @ gain).T + problem.sigma_w**2 * np.eye(problem.n_x)
    return total


def slow_rollout(problem, a, b, gain, x, w):
    """x_{k+1} = A x_k + B u_k + w_k, u_k = K x_k."""
    q, r = matrix(problem.Q, problem.n_x), matrix(problem.R, problem.n_u)
    total = 0.0
    for k in range(problem.horizon):
        u = gain @ x
        total += problem.gamma**k * (x @ q @ x + u @ r @ u)
        x = a @ x + b @ u + w[k]
    return total


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 50])
@pytest.mark.parametrize("sigma_w", [0.0, 0.3])
@pytest.mark.parametrize("redraw", [True, False])
def test_cost_is_the_expected_cost(horizon, sigma_w, redraw):
    problem = LQR(
        n_x=3, n_u=2, horizon=horizon, Q=SMALL.Q, R=SMALL.R, gamma=0.9, sigma_w=sigma_w, redraw=redraw, initial_std=0.3
    )
    world = problem.world(seed=3, trials=2, first=5)
    x = points(problem, 2, 3)
    a, b = world.system(4)
    expected = [[slow_value(problem, a[i], b[i], x[i, j].reshape(2, 3)) for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(world.cost(4, x), expected, rtol=1e-13)


@pytest.mark.parametrize("redraw", [True, False])
def test_measurement_is_one_rollout(redraw):
    problem = NoisyLQR(n_x=3, n_u=2, horizon=7, Q=SMALL.Q, R=SMALL.R, redraw=redraw)
    world = problem.world(seed=3, trials=2, first=5)
    x = points(problem, 2, 3)
    a, b = world.system(4)
    values = world.measure(4, x, draw=2)
    for i, rng in enumerate(Keyed(3, NOISE).generators(4 | 2 << 40, 5, 2)):
        w = problem.sigma_w * rng.standard_normal((7, 3))
        start = rng.standard_normal(3) if redraw else np.ones(3)
        for j in range(3):
            assert values[i, j] == pytest.approx(slow_rollout(problem, a[i], b[i], x[i, j].reshape(2, 3), start, w))


def test_measurement_of_the_exact_problems_is_the_cost():
    for problem in (LQR(), ZeroMeanLQR(), LQR(sigma_w=0.1)):
        world, x = problem.world(seed=0, trials=2), points(problem, 2, 2)
        np.testing.assert_array_equal(world.measure(3, x, draw=7), world.cost(3, x))


@pytest.mark.parametrize("redraw", [True, False])
def test_cost_is_the_mean_of_measurements(redraw):
    problem = NoisyLQR(n_x=3, n_u=2, horizon=10, sigma_w=0.3, redraw=redraw)
    world, x = problem.world(seed=0, trials=4), points(problem, 4, 2)
    values = np.stack([world.measure(9, x, draw) for draw in range(4000)])
    z = (values.mean(0) - world.cost(9, x)) / (values.std(0) / np.sqrt(len(values)))
    assert np.abs(z).max() < Z


@pytest.mark.parametrize("problem", [SMALL, LQR(), NoisyLQR(), LQR(horizon=1), LQR(sigma_w=0.5, horizon=2)])
def test_gradient_is_the_limit_of_differences(problem):
    world, x = problem.world(seed=2, trials=2), points(problem, 2, 2)
    steps = 1e-5 * np.eye(problem.dim)
    for i, j in np.ndindex(2, 2):
        beside = np.tile(x[:, j : j + 1], (1, problem.dim, 1))
        difference = (world.cost(20, beside + steps)[i] - world.cost(20, beside - steps)[i]) / 2e-5
        np.testing.assert_allclose(world.gradient(20, x)[i, j], difference, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("id", ["lqr-v1", "lqr-noisy-v1", "lqr-zero-mean-v1"])
def test_optimum_against_an_optimiser_and_the_riccati_equation(id):
    problem = make(id)
    world = problem.world(seed=0, trials=2)
    for t in (0, 35):
        a, b = world.system(t)
        for i in range(2):

            def value_and_slope(gain, t=t, i=i):
                x = np.tile(gain, (2, 1, 1))
                return world.cost(t, x)[i, 0], world.gradient(t, x)[i, 0]

            found = minimize(value_and_slope, np.zeros(36), jac=True, method="BFGS", options={"gtol": 1e-9})
            assert world.optimum(t)[i] == pytest.approx(found.fun, rel=1e-12)
            scaled_a, scaled_b = np.sqrt(0.5) * a[i], np.sqrt(0.5) * b[i]
            p = solve_discrete_are(scaled_a, scaled_b, np.eye(6), np.eye(6))
            gain = -np.linalg.solve(np.eye(6) + scaled_b.T @ p @ scaled_b, scaled_b.T @ p @ scaled_a)
            np.testing.assert_allclose(world.optimiser(t)[i], gain.ravel(), atol=1e-11)
        best = world.optimiser(t)[:, None]
        np.testing.assert_array_equal(world.cost(t, best)[:, 0], world.optimum(t))
        assert np.abs(world.gradient(t, best)).max() < 1e-10


def test_optimum_is_unknown_where_the_riccati_gain_is_not_optimal():
    short = LQR(horizon=3, gamma=1.0, initial_std=0.5).world(seed=0, trials=3)
    assert np.isnan(short.optimum(0)).all()
    assert np.isnan(short.optimiser(0)).all()
    hopeless = LQR(n_x=1, n_u=1, gamma=1.0, initial_std=0.0, drift=2.0, drift_range=(1, 1), Q=0.0).world(0, 1)
    assert hopeless.optimum(1) == pytest.approx(0.0)  # unstable, but nothing is at stake


def test_drift_matches_the_paper():
    world = LQR().world(seed=0, trials=50)
    first = np.concatenate(world.system(0), axis=2)
    assert abs(first.mean()) / (0.1 / np.sqrt(first.size)) < Z
    assert abs((first**2).mean() / 0.01 - 1) / np.sqrt(2 / first.size) < Z
    steps = np.stack([np.concatenate(world.system(t + 1), 2) - np.concatenate(world.system(t), 2) for t in range(20)])
    unit = steps / 0.01
    assert unit.min() >= -1e-12
    assert unit.max() <= 1 + 1e-12
    assert abs(unit.mean() - 1 / 2) / np.sqrt(1 / 12 / unit.size) < Z
    assert abs((unit**2).mean() - 1 / 3) / np.sqrt(4 / 45 / unit.size) < Z
    deviation = unit - unit.mean()
    assert abs((deviation[1:] * deviation[:-1]).mean()) / (1 / 12 / np.sqrt(deviation[1:].size)) < Z


def test_drift_without_mean():
    world = ZeroMeanLQR().world(seed=0, trials=50)
    unit = (world.system(1)[0] - world.system(0)[0]) / 0.01
    assert np.abs(unit).max() <= 1 + 1e-12
    assert abs(unit.mean()) / np.sqrt(1 / 3 / unit.size) < Z
    assert unit.min() < -0.9


def test_first_gain():
    assert not LQR().start(seed=0, trials=3).any()
    gains = ZeroMeanLQR().start(seed=0, trials=100)
    assert gains.shape == (100, 36)
    assert abs((gains**2).mean() / 0.25 - 1) / np.sqrt(2 / gains.size) < Z
    np.testing.assert_array_equal(gains[7:9], ZeroMeanLQR().start(seed=0, trials=2, first=7))


@pytest.mark.parametrize("id", ["lqr-v1", "lqr-zero-mean-v1", "lqr-noisy-v1"])
def test_any_order_and_any_split_give_the_same_numbers(id):
    problem = make(id)
    x = points(problem, 6, 2)

    def answers(world, t, x):
        return world.cost(t, x), world.measure(t, x, 3), world.optimum(t), world.optimiser(t), world.gradient(t, x)

    together = {t: answers(problem.world(seed=5, trials=6), t, x) for t in (0, 1, 7, 30)}
    world = problem.world(seed=5, trials=2, first=3)
    for t in (7, 30, 1, 0, 30, 7):
        for whole, part in zip(together[t], answers(world, t, x[3:5]), strict=True):
            np.testing.assert_array_equal(whole[3:5], part)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
def test_the_number_of_threads_changes_nothing():
    problem = NoisyLQR()
    x = points(problem, 300, 2)  # enough for several threads to be used
    before = numba.get_num_threads()
    results = []
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        world = problem.world(seed=0, trials=300)
        results.append((world.cost(5, x), world.measure(5, x), world.optimum(5), world.gradient(5, x)))
        assert numba.get_num_threads() == threads
    numba.set_num_threads(before)
    for one, many in zip(*results, strict=True):
        np.testing.assert_array_equal(one, many)


def test_the_uncontrolled_system_explodes_near_round_49():
    problem = LQR()
    world = problem.world(seed=0, trials=60)
    nothing = np.zeros((60, 1, 36))
    radius = np.array([np.abs(np.linalg.eigvals(world.system(t)[0])).max(-1) for t in range(70)]) * np.sqrt(0.5)
    crossing = (radius > 1).argmax(0)
    assert 46 <= np.median(crossing) <= 52
    assert crossing.min() >= 40
    assert crossing.max() <= 62
    assert np.median(world.cost(40, nothing)) < 12
    assert 1e8 < np.median(world.cost(60, nothing)) < 1e13
    assert np.all(world.optimum(60) < 8)  # with control it stays cheap


def test_overflow_is_infinite_and_silent():
    problem = NoisyLQR()
    x = np.array([0.0, 1e3, 1e6, 1e200, np.inf, np.nan])[None, :, None] * np.ones(36)
    for world in (problem.world(seed=0, trials=1), LQR().world(seed=0, trials=1)):
        for values in (world.cost(0, x), world.measure(0, x)):
            assert np.isfinite(values[0, :2]).all()
            assert values[0, 1] > 1e200
            assert np.isposinf(values[0, 2:]).all()
        gradient = world.gradient(0, x)
        assert np.isfinite(gradient[0, :2]).all()
        assert np.isnan(gradient[0, 3:]).all()


@pytest.mark.parametrize("id", ["lqr-v1", "lqr-zero-mean-v1", "lqr-noisy-v1"])
def test_contract(id):
    problem = make(id, n_x=3, n_u=2, horizon=20)
    assert problem.id == id
    assert problem.dim == 6
    check_problem(problem)


def test_reference_values():
    assert make("lqr-v1").dim == 36
    assert (make("lqr-v1").rounds, make("lqr-v1").radius) == (50, 0.05)
    assert (make("lqr-zero-mean-v1").rounds, make("lqr-zero-mean-v1").radius) == (500, 0.1)
    assert (make("lqr-noisy-v1").rounds, make("lqr-noisy-v1").sigma_w) == (40, 0.1)
    assert LQR(Q=np.eye(6)) == LQR(Q=np.eye(6).tolist())
    assert len({LQR(Q=np.eye(6)), LQR(), LQR()}) == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_x": 0}, "n_x=0 must be a whole number"),
        ({"gamma": 1.5}, r"gamma=1.5 must be a finite number > 0 and <= 1"),
        ({"sigma_w": -1}, "sigma_w=-1 must be a finite number"),
        ({"drift_range": (1, 0)}, r"drift_range=\(1, 0\) is not an interval"),
        ({"R": 0.0}, "R=0.0 has the eigenvalue 0: make it positive definite"),
        ({"Q": -1.0}, "Q=-1.0 has the eigenvalue -1: make it positive semidefinite"),
        ({"Q": [[1, 2], [3, 4]]}, "symmetric matrix of 6 rows"),
        ({"Q": "much"}, "Q='much' is not a valid weight"),
    ],
)
def test_errors_name_the_value_and_the_remedy(parameters, message):
    with pytest.raises(ValueError, match=message):
        LQR(**parameters)


def test_points_of_another_shape_are_refused():
    world = LQR().world(seed=0, trials=2)
    for shape in ((2, 36), (3, 1, 36), (2, 1, 35)):
        with pytest.raises(ValueError, match=r"give \(trials, k, d\) = \(2, k, 36\)"):
            world.cost(0, np.zeros(shape))
    for problem in (LQR(), NoisyLQR()):
        with pytest.raises(ValueError, match="before the first"):
            problem.world(seed=0, trials=2).measure(-1, np.zeros((2, 1, 36)))


def test_a_kernel_gives_the_same_numbers_on_one_thread_and_on_several():
    rng = np.random.default_rng(0)
    a, b, gains = (0.2 * rng.standard_normal(shape) for shape in ((3, 6, 6), (3, 6, 6), (3, 40, 6, 6)))
    law = (a, b, gains, np.eye(6), np.eye(6), np.eye(6), 0.5, 0.01, 50)
    assert (lqr_values.alone(*law) == lqr_values.shared(*law)).all()
