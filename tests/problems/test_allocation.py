"""Resource allocation: kernels against the paper term by term, the adjoint, the drift, the offline optimum."""

import numpy as np
import pytest

pytest.importorskip("numba")
import numba

from trimtab.problems import allocation, check_problem, make
from trimtab.problems.allocation import Allocation, PerAgentAllocation
from trimtab.problems.kernels import allocation as kernels
from trimtab.randomness import NOISE, Keyed

# Statistical tests compare means with a normal law: |z| > 5.6 happens by chance in 2e-8 of all cases, and no test looks
# at more than twenty of them. Seeds are fixed, so what passes once passes always.
Z = 5.6

TINY = {"rows": 2, "columns": 2, "horizon": 8, "stock": 0.3, "draws": 4, "offline_draws": 8, "offline_steps": 60}


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIMTAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def points(problem, trials, k, scale=0.2, seed=1):
    return scale * np.random.default_rng(seed).standard_normal((trials, k, problem.dim))


def slow_rollout(problem, theta, demand, zeta):
    """Σ_i Σ_{k=0}^{H} γᵏ r_i(k) of one episode, as the paper writes it; demand is (H, agents)."""
    n = problem.agents
    neighbours = [problem.neighbours(i) for i in range(n)]
    centres = [np.array([m, d]) for m in problem.centres for d in problem.centres]
    parameters = iter(theta.reshape(-1, len(centres)))
    theta = [{j: next(parameters) for j in neighbours[i]} for i in range(n)]
    m = np.full(n, problem.stock)
    total = 0.0
    for k in range(problem.horizon):
        total += problem.gamma**k * sum(zeta[i] * m[i] ** 2 for i in range(n) if m[i] < 0)
        a = np.zeros((n, n))
        for i in range(n):
            features = [np.sum((np.array([m[i], demand[k, i]]) - c) ** 2) for c in centres]
            z = {j: np.dot(features, theta[i][j]) for j in neighbours[i]}
            for j in neighbours[i]:
                a[i, j] = np.exp(z[j]) / sum(np.exp(score) for score in z.values())
        m = np.array(
            [
                m[i]
                - sum(a[i, j] * m[i] for j in neighbours[i])
                + sum(a[j, i] * m[j] for j in neighbours[i])
                - demand[k, i]
                for i in range(n)
            ]
        )
    return total + problem.gamma**problem.horizon * sum(zeta[i] * m[i] ** 2 for i in range(n) if m[i] < 0)


def test_the_grid_has_64_actions():
    problem = Allocation()
    assert problem.actions == 64
    assert problem.dim == 576
    assert problem.neighbours(0) == (0, 4, 1)
    assert problem.neighbours(5) == (5, 1, 9, 4, 6)
    assert sum(len(problem.neighbours(i)) for i in range(16)) == 48 + 16
    assert all(i in problem.neighbours(j) for i in range(16) for j in problem.neighbours(i))
    assert [problem.coordinates(i) for i in (0, 15)] == [slice(0, 27), slice(549, 576)]


@pytest.mark.parametrize("cls", [Allocation, PerAgentAllocation])
def test_measurement_is_one_rollout_of_the_papers_dynamics(cls):
    problem = cls()
    world = problem.world(seed=3, trials=2, first=5)
    x = points(problem, 2, 2)
    values = world.measure(4, x, draw=2)
    zeta = world.zeta(4)
    for i, rng in enumerate(Keyed(3, NOISE).generators(4 | 2 << 40, 5, 2)):
        demand = world.demand[i] + problem.noise * rng.standard_normal((30, 16))
        for j in range(2):
            assert values[i, j] == pytest.approx(slow_rollout(problem, x[i, j], demand, zeta[i]), rel=1e-10)


def test_cost_is_the_mean_over_the_same_noise_paths():
    problem = Allocation(rows=2, columns=3, draws=4)
    world = problem.world(seed=0, trials=2)
    x = points(problem, 2, 2)
    paths = world._paths(allocation.ONCE + 1, 4)
    np.testing.assert_allclose(paths[:, :2] + paths[:, 2:], 2 * np.repeat(world.demand[:, None], 2, 1), atol=1e-14)
    for i, j in np.ndindex(2, 2):
        rollouts = [slow_rollout(problem, x[i, j], path, world.zeta(7)[i]) for path in paths[i]]
        assert world.cost(7, x)[i, j] == pytest.approx(np.mean(rollouts), rel=1e-10)


def test_demand_is_a_sine_with_constants_of_the_trial():
    world = Allocation(horizon=50, network=None).world(seed=0, trials=40)
    assert np.abs(world.demand).max() <= 1.5
    amplitudes = np.abs(world.demand).max(1)
    assert 0.4 < amplitudes.min() < 0.7
    assert 1.3 < amplitudes.max() <= 1.5
    # d(k+1) + d(k−1) = 2 cos(ω) d(k) for every sine
    cosine = (world.demand[:, 2:] + world.demand[:, :-2]) / (2 * world.demand[:, 1:-1])
    np.testing.assert_allclose(
        np.arccos(np.median(cosine, 1)).clip(0.2, 1.0), np.arccos(np.median(cosine, 1)), atol=1e-9
    )
    first = world.demand[:, 0] / amplitudes  # sin(φ), φ uniform: about 0 in the mean, with variance 1/2
    assert abs(first.mean()) / np.sqrt(0.5 / first.size) < Z


def test_network_fixes_the_demand_for_all_trials_and_seeds():
    one, other = (Allocation(network=3).world(seed=seed, trials=3, first=2) for seed in (0, 1))
    np.testing.assert_array_equal(one.demand[0], one.demand[2])
    np.testing.assert_array_equal(one.demand, other.demand)
    x = np.zeros((3, 1, 576))
    assert len(np.unique(one.measure(0, x))) == 3
    assert not np.array_equal(Allocation(network=4).world(0, 1).demand, one.demand[:1])


def test_resources_are_conserved_without_demand():
    problem = Allocation()
    rng = np.random.default_rng(0)
    scores = kernels.per_edge(points(problem, 1, 1, scale=1.0).reshape(1, 1, 64, 9), problem._basis)[0, 0]
    stocks, following, shares = rng.standard_normal(16), np.empty(16), np.empty(64)
    allocate = kernels._allocate  # only compiled code can call it

    @numba.njit
    def call(*arguments):
        allocate(*arguments)

    call(scores, np.zeros(16), problem._firsts, problem._heads, stocks, following, shares)
    assert following.sum() == pytest.approx(stocks.sum(), rel=1e-13)
    np.testing.assert_allclose(np.add.reduceat(shares, problem._firsts[:-1]), 1.0, rtol=1e-14)
    assert not np.allclose(following, stocks)


def test_by_hand():
    # One agent that owes 1 and keeps it: Σ_{k=0}^{3} (1/2)ᵏ = 1.875. Two that share evenly owe the same for ever.
    quiet = {"stock": -1.0, "amplitude": (0.0, 0.0), "noise": 0.0, "horizon": 3, "gamma": 0.5}
    for rows in (1, 2):
        world = Allocation(rows=rows, columns=1, **quiet).world(seed=0, trials=1)
        assert world.cost(0, np.zeros((1, 1, world.problem.dim)))[0, 0] == pytest.approx(1.875 * rows)
    # Agents with large stocks who share evenly never fall short.
    rich = Allocation(stock=1e3).world(seed=0, trials=1)
    assert rich.cost(0, np.zeros((1, 1, 576)))[0, 0] == 0.0


@pytest.mark.parametrize("cls", [Allocation, PerAgentAllocation])
def test_gradient_is_the_limit_of_differences(cls):
    problem = cls(draws=4)
    world, x = problem.world(seed=1, trials=2), points(problem, 2, 1, scale=0.1)
    gradient = world.gradient(9, x)
    coordinates = np.random.default_rng(0).choice(576, 60, replace=False)
    steps = 1e-6 * np.eye(576)[coordinates]
    difference = (world.cost(9, x + steps) - world.cost(9, x - steps)) / 2e-6
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(gradient[:, 0, coordinates], difference, rtol=1e-5, atol=1e-7 * scale)
    assert scale > 0.1


def test_only_192_of_the_576_coordinates_matter():
    problem = Allocation(draws=2)
    world, x = problem.world(seed=0, trials=1), points(problem, 1, 1)
    common = np.zeros((64, 9))
    common[:3] = np.random.default_rng(2).standard_normal(9)  # the same on all three actions of the first agent
    null = np.linalg.svd(problem._basis.T)[2][4:]  # combinations of features that vanish everywhere
    other = np.random.default_rng(3).standard_normal((64, 5)) @ null
    np.testing.assert_allclose(world.cost(0, x + common.ravel()), world.cost(0, x), rtol=1e-9)
    np.testing.assert_allclose(world.cost(0, x + other.ravel()), world.cost(0, x), rtol=1e-9)
    assert np.linalg.matrix_rank(problem._basis) == 4


def test_zeta_walks_within_its_range():
    world = Allocation().world(seed=0, trials=30)
    path = np.array([world.zeta(t) for t in range(400)])
    assert np.ptp(path, axis=2).max() == 0.0
    zeta = path[:, :, 0]
    assert np.all(zeta[0] == 1.0)
    assert zeta.min() >= 0.5
    assert zeta.max() <= 1.5
    assert zeta.min() < 0.51
    assert zeta.max() > 1.49
    inside = np.diff(zeta, axis=0)[(zeta[:-1] > 0.6) & (zeta[:-1] < 1.4)] / 0.1  # no wall within reach
    assert np.abs(inside).max() <= 1 + 1e-12
    assert abs(inside.mean()) / np.sqrt(1 / 3 / inside.size) < Z
    assert abs((inside**2).mean() - 1 / 3) / np.sqrt(4 / 45 / inside.size) < Z


def test_zetas_of_agents_walk_independently():
    zeta = PerAgentAllocation().world(seed=0, trials=2).zeta(50)
    assert len(np.unique(zeta)) == 32


def test_a_common_zeta_only_scales():
    world = Allocation(**TINY).world(seed=0, trials=2)
    x = points(world.problem, 2, 2)
    zeta = world.zeta(30)[:, :1]
    np.testing.assert_allclose(world.cost(30, x), zeta * world.cost(0, x), rtol=1e-13)
    np.testing.assert_allclose(world.gradient(30, x), zeta[:, None] * world.gradient(0, x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(world.optimum(30), zeta[:, 0] * world.optimum(0), rtol=1e-13)


def test_cost_is_the_mean_of_measurements():
    problem = Allocation(rows=2, columns=2, draws=4000, stock=0.3)
    world, x = problem.world(seed=0, trials=3), points(problem, 3, 2)
    values = np.stack([world.measure(0, x, draw) for draw in range(2000)])
    paths = world._rollouts(x, world._common, world.zeta(0))
    pairs = (paths[..., :2000] + paths[..., 2000:]) / 2
    spread = np.sqrt(values.var(0) / 2000 + pairs.var(-1) / 2000)
    assert np.abs((values.mean(0) - world.cost(0, x)) / spread).max() < Z


def test_the_default_number_of_paths_is_close_to_the_expectation():
    rough, fine = Allocation().world(seed=0, trials=6), Allocation(draws=600).world(seed=0, trials=6)
    x = np.zeros((6, 1, 576))
    np.testing.assert_allclose(rough.cost(0, x), fine.cost(0, x), rtol=0.05)


@pytest.mark.parametrize("cls", [Allocation, PerAgentAllocation])
def test_any_order_and_any_split_give_the_same_numbers(cls):
    problem = cls(**TINY)
    x = points(problem, 4, 2)

    def answers(world, t, x):
        return world.cost(t, x), world.measure(t, x, 3), world.optimum(t), world.gradient(t, x)

    together = {t: answers(problem.world(seed=5, trials=4), t, x) for t in (0, 1, 30)}
    world = problem.world(seed=5, trials=2, first=1)
    for t in (30, 1, 0, 30):
        for whole, part in zip(together[t], answers(world, t, x[1:3]), strict=True):
            np.testing.assert_array_equal(whole[1:3], part)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
def test_the_number_of_threads_changes_nothing():
    problem = Allocation()
    x = points(problem, 60, 2)  # enough for several threads to be used
    before = numba.get_num_threads()
    results = []
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        world = problem.world(seed=0, trials=60)
        results.append((world.cost(5, x), world.measure(5, x), world.gradient(5, x)))
        assert numba.get_num_threads() == threads
    numba.set_num_threads(before)
    for one, many in zip(*results, strict=True):
        np.testing.assert_array_equal(one, many)


def test_large_parameters_saturate_and_only_overflow_fails():
    problem = Allocation(draws=2)
    world = problem.world(seed=0, trials=1)
    x = points(problem, 1, 5, scale=1.0) * np.array([1.0, 1e4, 1e8, 1e8, 1e8])[:, None]
    x[0, 3, 5] = np.nan
    x[0, 4, 5] = np.inf
    for values in (world.cost(0, x), world.measure(0, x)):
        assert np.isfinite(values[0, :3]).all()
        assert np.isposinf(values[0, 3:]).all()
    assert np.isfinite(world.gradient(0, x)[0, :2]).all()


def test_reference_levels():
    """Uniform policy and offline optimum: about 3 and 0 if each trial draws its demand, 18 and 5 in network 12."""
    world = Allocation(network=None, draws=2).world(seed=0, trials=60)
    uniform = world.cost(0, np.zeros((60, 1, 576)))[:, 0]
    assert 1 < np.median(uniform) < 6
    assert uniform.min() < 1
    assert uniform.max() > 8
    hard = Allocation(offline_draws=16, offline_steps=120).world(seed=0, trials=1)
    assert 15 < hard.cost(0, np.zeros((1, 1, 576)))[0, 0] < 22
    assert 4 < hard.optimum(0)[0] < 7


def test_offline_optimum_is_a_minimum_of_its_own_paths():
    problem = Allocation(**TINY | {"offline_steps": 400})
    world = problem.world(seed=0, trials=2)
    best = world.offline()
    uniform = np.zeros((2, 1, problem.dim))
    assert np.all(world.optimum(0) < world.cost(0, uniform)[:, 0])
    assert np.all(world.regret(0, points(problem, 2, 50)) > 0)
    ones, paths = np.ones((2, 4)), world._paths(allocation.ONCE + 2, problem.offline_draws)
    start, end = (np.abs(world._adjoint(x, paths, ones)[1]).max() for x in (uniform, best[:, None]))
    assert end < 0.01 * start
    np.testing.assert_array_equal(world.cost(0, best[:, None])[:, 0], world.optimum(0))
    assert world.optimiser(0) is None


def test_one_network_has_one_offline_policy(cache_folder):
    world = Allocation(**TINY).world(seed=3, trials=3, first=4)
    np.testing.assert_array_equal(world.offline(), Allocation(**TINY).world(seed=0, trials=3).offline())
    assert len(list(cache_folder.rglob("*.npy"))) == 1


def test_the_optimum_is_unknown_with_a_zeta_per_agent():
    assert np.isnan(PerAgentAllocation().world(seed=0, trials=3).optimum(2)).all()


def test_offline_optimum_is_cached_on_disk(cache_folder, monkeypatch):
    problem = Allocation(**TINY | {"network": None})
    first = problem.world(seed=0, trials=2).offline()
    files = sorted(cache_folder.rglob("*"))
    assert len([file for file in files if file.suffix == ".npy"]) == 2
    search = allocation.AllocationWorld._search
    searches = []
    monkeypatch.setattr(
        allocation.AllocationWorld, "_search", lambda world: searches.append(world.first) or search(world)
    )
    again = Allocation(**TINY | {"network": None}, rounds=10, radius=0.5).world(seed=0, trials=2).offline()
    np.testing.assert_array_equal(again, first)
    assert searches == []
    for change in ({"horizon": 9}, {"noise": 0.2}, {"network": 0}):
        Allocation(**TINY | {"network": None} | change).world(seed=0, trials=1).offline()
    problem.world(seed=1, trials=1).offline()
    problem.world(seed=0, trials=1, first=7).offline()
    assert searches == [0, 0, 0, 0, 7]
    monkeypatch.setattr(allocation, "_code", lambda: "another version")
    problem.world(seed=0, trials=1).offline()
    assert len(searches) == 6
    assert not list(cache_folder.rglob("tmp*"))


@pytest.mark.parametrize("content", [b"", b"not an array", b"\x93NUMPY\x01\x00"])
def test_a_damaged_cache_is_rewritten(cache_folder, content):
    problem = Allocation(**TINY)
    first = problem.world(seed=0, trials=1).offline()
    (file,) = cache_folder.rglob("*.npy")
    file.write_bytes(content)
    np.testing.assert_array_equal(problem.world(seed=0, trials=1).offline(), first)
    np.testing.assert_array_equal(np.load(file), first[0])


def test_a_read_only_cache_is_not_needed(cache_folder):
    cache_folder.write_text("a file where the folder should be")
    world = Allocation(**TINY).world(seed=0, trials=1)
    assert np.isfinite(world.optimum(0)).all()


def test_a_home_directory_is_not_needed(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(allocation, "cache_folder", homeless)
    assert np.isfinite(Allocation(**TINY).world(seed=0, trials=1).optimum(0)).all()


def test_the_location_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("TRIMTAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert allocation.cache_folder() == tmp_path / "trimtab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert allocation.cache_folder() == tmp_path / ".cache" / "trimtab"


@pytest.mark.parametrize("id", ["allocation-v1", "allocation-per-agent-v1"])
def test_contract(id):
    problem = make(id, **TINY)
    assert problem.id == id
    check_problem(problem)
    assert (make(id).rounds, make(id).radius, make(id).dim) == (4000, 0.03, 576)
    assert not problem.start(0, 2).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rows": 0}, "rows=0 must be a whole number"),
        ({"draws": 3}, "draws=3 is odd.*give an even number"),
        ({"gamma": 0.0}, "gamma=0.0 must be a finite number > 0 and <= 1"),
        ({"gamma": 2}, "gamma=2 must be a finite number > 0 and <= 1"),
        ({"amplitude": (1, 0)}, r"amplitude=\(1, 0\) is not an interval"),
        ({"zeta_range": (-0.5, 1.5)}, "must contain the initial value, 1, and no negative number"),
        ({"zeta_step": 3.0}, "zeta_step=3.0 jumps across"),
        ({"centres": ()}, "must be a list of finite numbers, at least one"),
        ({"network": -1}, "network=-1 must be a whole number"),
    ],
)
def test_errors_name_the_value_and_the_remedy(parameters, message):
    with pytest.raises(ValueError, match=message):
        Allocation(**parameters)


def test_points_of_another_shape_are_refused():
    world = Allocation().world(seed=0, trials=2)
    for shape in ((2, 576), (3, 1, 576), (2, 1, 575)):
        with pytest.raises(ValueError, match=r"give \(trials, k, d\) = \(2, k, 576\)"):
            world.cost(0, np.zeros(shape))
    with pytest.raises(ValueError, match="before the first"):
        world.measure(-1, np.zeros((2, 1, 576)))


def test_a_torus_also_has_64_actions_without_keeping():
    problem = Allocation(torus=True)
    assert (problem.actions, problem.dim) == (64, 576)
    assert all(len(set(problem.neighbours(i))) == 4 and i not in problem.neighbours(i) for i in range(16))
    assert problem.neighbours(0) == (12, 4, 3, 1)
    # Everything sent arrives: at θ = 0, without demand, every agent gets four quarters and keeps its stock.
    quiet = Allocation(torus=True, amplitude=(0.0, 0.0), noise=0.0, network=0)
    assert quiet.world(0, 1).cost(0, np.zeros((1, 1, 576)))[0, 0] == 0.0
