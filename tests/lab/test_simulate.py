"""The laboratory: same numbers in any company, divergence, variances, static regret, tuning."""

import numpy as np
import pytest

import trimtab as tt
from trimtab import lab
from trimtab.lab import step_search
from trimtab.problems import from_function, make

METHODS = {
    "residual": tt.residual(radius=0.05, step=0.03),
    "one-point": tt.one_point(radius=0.05, step=0.001),
    "two-point": tt.two_point(radius=0.05, step=0.05),
    "modified": tt.modified_two_point(radius=0.05, step=0.05),
    "auto": tt.auto(radius=0.05),
    "still": tt.methods["still"](),
}
ARRAYS = ("cost", "incurred", "optimum", "distance", "gradient", "final", "diverged_at", "variance", "common_variance")


def equal(a, b, rows=slice(None)):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name)[rows], getattr(b, name), err_msg=name)


@pytest.mark.parametrize("id", ["quadratic-v1", "lqr-v1", "lqr-noisy-v1"])
def test_a_method_is_the_same_alone_and_beside_others(id):
    options = {"rounds": 12, "trials": 5, "seed": 4, "gradients": True, "variance_at": [3, 9], "resamples": 4}
    together = lab.simulate(id, METHODS, **options)
    for name, method in METHODS.items():
        alone = lab.run(id, method, name=name, **options)
        for array in ARRAYS:
            np.testing.assert_allclose(
                getattr(alone, array), getattr(together[name], array), rtol=1e-9, atol=1e-12, err_msg=f"{name}: {array}"
            )


@pytest.mark.parametrize("id", ["quadratic-v1", "lqr-v1"])
def test_trials_can_be_split(id):
    options = {"rounds": 10, "seed": 4, "variance_at": [4], "resamples": 3}
    whole = lab.run(id, METHODS["residual"], trials=6, **options)
    for first, trials in ((0, 2), (2, 4)):
        part = lab.run(id, METHODS["residual"], trials=trials, first=first, **options)
        equal(whole, part, slice(first, first + trials))


def test_the_lab_plays_what_the_tuner_asks():
    problem = make("quadratic-v1")
    record = lab.run(problem, METHODS["residual"], rounds=8, trials=3, seed=2)
    world, x0 = problem.world(2, 3), problem.start(2, 3)
    for k in range(3):
        tuner = tt.Tuner(x0[k], METHODS["residual"], seed=2, lane=k)
        for t in range(8):
            trial = tuner.ask()
            everyone = np.tile(trial.x, (3, 1))[:, None]
            centre = np.tile(tuner.centre, (3, 1))[:, None]
            assert record.cost[k, t] == pytest.approx(world.cost(t, centre)[k, 0], rel=1e-12)
            assert record.incurred[k, t] == pytest.approx(world.cost(t, everyone)[k, 0], rel=1e-12)
            tuner.tell(trial, float(world.measure(t, everyone)[k, 0]))
        np.testing.assert_allclose(record.final[k], tuner.centre, rtol=1e-12)


def test_all_methods_meet_the_same_drift():
    records = lab.simulate("lqr-v1", METHODS, rounds=10, trials=4, seed=1)
    for record in records.values():
        np.testing.assert_array_equal(record.optimum, records["residual"].optimum)
        np.testing.assert_array_equal(record.cost[:, 0], records["residual"].cost[:, 0])


def test_diverged_trials_rank_last_and_stay_finite_elsewhere():
    record = lab.run("lqr-v1", tt.one_point(radius=0.05, step=0.1), rounds=30, trials=20, seed=0)
    out = record.diverged
    assert out.any()
    for k in np.flatnonzero(out):
        assert np.isinf(record.cost[k, record.diverged_at[k] :]).all()
        assert np.isfinite(record.cost[k, : record.diverged_at[k]]).all()
    assert np.isfinite(record.cost[~out]).all()
    assert record.summary()["diverged"] == out.sum()


def test_lanes_that_diverge_do_not_disturb_their_neighbours():
    wild = {"tame": METHODS["residual"], "wild": tt.one_point(radius=0.05, step=1e3)}
    both = lab.simulate("lqr-v1", wild, rounds=20, trials=5, seed=0)
    alone = lab.run("lqr-v1", METHODS["residual"], rounds=20, trials=5, seed=0)
    assert both["wild"].diverged.all()
    np.testing.assert_allclose(both["tame"].cost, alone.cost, rtol=1e-12)


def test_the_resampled_variance_is_that_of_the_estimator():
    """On f = ⟨b, x⟩, static: residual ĝ = u·(⟨b, u⟩ − ⟨b, v⟩), u, v ~ N(0, I): trace of the covariance = (2d + 1)‖b‖².

    E‖ĝ‖² = E‖u‖²⟨b,u⟩² + d‖b‖² = (d + 2)‖b‖² + d‖b‖², less ‖E ĝ‖² = ‖b‖². Symmetric two-point: (d + 1)‖b‖².
    """
    b = np.array([1.0, -2.0, 0.5])
    problem = from_function(lambda t, x: x @ b, x0=np.zeros(3), rounds=4, radius=0.1, vectorised=True)
    expected = {"residual": 7 * b @ b, "two-point": 4 * b @ b}
    some = {"rounds": 4, "trials": 40, "variance_at": [2], "resamples": 2000}
    for name, value in expected.items():
        record = lab.run(problem, METHODS[name], common=np.ones((40, 3)), **some)
        for samples in (record.variance[:, 0], record.common_variance[:, 0]):
            assert abs(samples.mean() - value) < 6 * samples.std() / np.sqrt(40)


def test_without_an_optimiser_there_is_no_common_point():
    problem = from_function(lambda t, x: x[..., 0], x0=np.zeros(2), rounds=4, radius=0.1, vectorised=True)
    record = lab.run(problem, METHODS["residual"], rounds=4, trials=3, variance_at=[2])
    assert np.isnan(record.common_variance).all()
    assert (record.variance > 0).all()
    assert "common_variance" not in record.summary()


def test_noise_counts_in_the_variance():
    quiet, noisy = (
        lab.run(make("quadratic-v1", noise=s), METHODS["residual"], rounds=4, trials=20, variance_at=[2], resamples=32)
        for s in (0.0, 1.0)
    )
    d = make("quadratic-v1").dim
    extra = np.median(noisy.variance) - np.median(quiet.variance)
    assert extra == pytest.approx(2 * d / 0.05**2, rel=0.3)  # E‖u‖²·2σ²/δ²


def test_static_regret_is_against_the_best_fixed_point():
    problem = make("quadratic-v1")
    record = lab.run(problem, METHODS["residual"], rounds=40, trials=4, seed=1, static=True)
    world = problem.world(1, 4)
    point = lab.hindsight(problem, rounds=40, trials=4, seed=1)
    slope = np.sum([world.gradient(t, point[:, None])[:, 0] for t in range(40)], axis=0)
    np.testing.assert_allclose(slope, 0.0, atol=1e-3)
    total = record.fixed.sum(1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = point + 0.1 * rng.standard_normal(point.shape)
        assert np.all(np.sum([world.cost(t, other[:, None])[:, 0] for t in range(40)], axis=0) >= total - 1e-9)
    assert np.all(record.regret("static")[:, -1] <= record.regret()[:, -1] + 1e-9)


def test_two_noise_conventions():
    problem = make("quadratic-v1", noise=0.5)
    spread = {}
    for noise in ("independent", "common"):
        record = lab.run(problem, METHODS["two-point"], rounds=5, trials=30, noise=noise, variance_at=[3], resamples=16)
        spread[noise] = np.median(record.variance)
    assert spread["independent"] > 20 * spread["common"]
    with pytest.raises(ValueError, match="noise='loud' is unknown: choose 'independent' or 'common'"):
        lab.run(problem, METHODS["two-point"], rounds=5, trials=3, noise="loud")


@pytest.mark.parametrize("id", ["quadratic-v1", "lqr-noisy-v1"])
def test_what_is_played_is_recorded_without_noise(id):
    problem = make(id) if id == "lqr-noisy-v1" else make(id, noise=0.5)
    method = tt.residual(radius=0.05, step=1e-3)
    record = lab.run(problem, method, rounds=6, trials=3, seed=2)
    world, x0 = problem.world(2, 3), problem.start(2, 3)
    for k in range(3):
        tuner = tt.Tuner(x0[k], method, seed=2, lane=k)
        for t in range(6):
            trial = tuner.ask()
            everyone = np.tile(trial.x, (3, 1))[:, None]
            assert record.played[k, t] == pytest.approx(world.cost(t, everyone)[k, 0], rel=1e-9)
            assert record.incurred[k, t] == pytest.approx(world.measure(t, everyone)[k, 0], rel=1e-9)
            tuner.tell(trial, record.incurred[k, t])
    assert not np.allclose(record.played, record.incurred)
    np.testing.assert_allclose(record.regret(of="played"), np.cumsum(record.played - record.optimum, axis=1))


def test_doing_nothing_stays_at_the_start():
    record = lab.run("quadratic-v1", METHODS["still"], rounds=5, trials=3, seed=1)
    np.testing.assert_array_equal(record.final, make("quadratic-v1").start(1, 3))
    np.testing.assert_array_equal(record.cost, record.incurred)


def test_tuning_finds_a_good_step_on_other_trials(monkeypatch):
    seeds = []
    simulate = step_search.simulate
    monkeypatch.setattr(step_search, "simulate", lambda *a, **k: seeds.append(k["seed"]) or simulate(*a, **k))
    tuned = lab.tune("quadratic-v1", "residual", rounds=80, trials=8, seed=5)
    assert 5 not in seeds
    best = min(tuned.table, key=lambda row: (row["diverged"], float(row["median"])))
    assert best["step"] == tuned.step
    assert not tuned.at_edge
    chosen, small, large = (
        np.median(lab.run("quadratic-v1", tt.residual(radius=0.05, step=s), rounds=80, trials=20, seed=5).score())
        for s in (tuned.step, tuned.step / 100, tuned.step * 30)
    )
    assert chosen < small
    assert chosen < large


def test_fewer_diverged_trials_win_over_a_better_median():
    tuned = lab.tune("lqr-v1", "one-point", rounds=50, trials=12)
    fewest = min(row["diverged"] for row in tuned.table)
    assert next(row for row in tuned.table if row["step"] == tuned.step)["diverged"] == fewest


def test_an_edge_of_the_grid_is_told():
    assert lab.tune("quadratic-v1", "residual", steps=(1e-8, 1e-7), refine=False, rounds=30, trials=4).at_edge


def test_methods_without_a_step_need_no_tuning():
    assert lab.tune("quadratic-v1", "auto").step is None
    still = lab.tune("quadratic-v1", "still")
    assert still.step is None
    assert still.method == tt.methods["still"](radius=make("quadratic-v1").radius)
    with pytest.raises(ValueError, match=r"there is no method 'magic': choose from auto, .*residual"):
        lab.tune("quadratic-v1", "magic")


def test_an_adversary_meets_each_method_alone():
    methods = {name: METHODS[name] for name in ("residual", "one-point")}
    together = lab.simulate("adversary-v1", methods, rounds=15, trials=3, seed=1)
    for name, method in methods.items():
        alone = lab.run("adversary-v1", method, rounds=15, trials=3, seed=1)
        np.testing.assert_array_equal(together[name].cost, alone.cost)
