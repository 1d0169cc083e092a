"""Limits in the laboratory: told to the methods that ask for them, and their long-run violation on record."""

import warnings

import numpy as np
import pytest

import trimtab as tt
from trimtab.lab import Record, run, simulate
from trimtab.problems import make

METHOD = tt.primal_dual(radius=0.05, step=0.02, dual_step=0.02)
PROBLEM = make("constrained-v1", dim=2, drift="none", noise=0.0)


def test_what_is_told_is_what_the_core_is_told():
    """One trial of the laboratory against a tuner by hand."""
    record = run(PROBLEM, METHOD, rounds=40, trials=1, seed=5)
    world, x0 = PROBLEM.world(5, 1), PROBLEM.start(5, 1)
    tuner = tt.Tuner(x0, METHOD, domain=PROBLEM.domain, seed=5)
    for t in range(40):
        trial = tuner.ask()
        x = trial.x[:, None]
        limits = world.limits(t, x)[:, 0]
        assert record.excess[0, t] == pytest.approx(limits[0])
        tuner.tell(trial, world.cost(t, x)[:, 0], limits=limits)
    np.testing.assert_allclose(record.final, tuner.centre, rtol=1e-9)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_the_long_run_violation_goes_to_zero(seed):
    """The mean of g is at most λ/(α·T), with λ bounded: eight times the rounds, an eighth of it or so."""
    records = simulate(
        PROBLEM,
        {"primal-dual": METHOD, "residual": tt.residual(radius=0.05, step=0.02)},
        rounds=4000,
        trials=16,
        seed=seed,
    )
    violation = records["primal-dual"].violation()
    worst = [violation[:, rounds - 1].max() for rounds in (500, 1000, 2000, 4000)]  # whole periods of its sway
    assert worst[0] > 0.05
    assert worst == sorted(worst, reverse=True)
    assert worst[-1] < min(worst[0] / 5, 0.012)
    ignorant = records["residual"]
    assert ignorant.excess.shape == (16, 4000, 1)
    assert np.median(ignorant.violation()[:, -1]) > 0.5  # it goes to the free optimum, `depth` beyond the limit
    summary = records["primal-dual"].summary()
    assert summary["violation"]["median"] == pytest.approx(float(np.median(violation[:, -1])))


def test_the_belief_keeps_the_limits_of_a_problem():
    """Beyond in 1 % of the queries once a start that may be beyond is left: with the limit's sway, within 2 %."""
    methods = {"belief": tt.belief(radius=0.1), "primal-dual": METHOD}
    problem = make("constrained-v1", dim=2, drift="none", noise=0.1)
    records = simulate(problem, methods, rounds=300, trials=12, variance_at=[10], evidence=True)
    share = {name: (record.excess[:, 50:, 0] > 0).mean() for name, record in records.items()}
    assert share["belief"] <= 0.02
    assert share["primal-dual"] > 0.1
    assert np.median(records["belief"].violation()[:, -1]) == 0.0


def test_the_belief_in_the_laboratory_is_a_tuner_with_limits():
    method = tt.belief(radius=0.1)
    record = run(PROBLEM, method, rounds=40, trials=2, seed=5)
    world, x0 = PROBLEM.world(5, 2), PROBLEM.start(5, 2)
    tuner = tt.Tuner(x0, method, domain=PROBLEM.domain, seed=5, limits={"g0": {"max": 0.0}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tt.AdviceWarning)
        for t in range(40):
            trial = tuner.ask()
            x = trial.x[:, None]
            tuner.tell(trial, world.cost(t, x)[:, 0], limits={"g0": world.limits(t, x)[:, 0, 0]})
    np.testing.assert_array_equal(record.final, tuner.centre)


def test_it_is_saved_and_selected(tmp_path):
    record = run(PROBLEM, METHOD, rounds=20, trials=3, variance_at=[10], evidence=True)
    record.save(tmp_path / "r")
    again = Record.load(tmp_path / "r")
    np.testing.assert_array_equal(again.excess, record.excess)
    np.testing.assert_array_equal(again.select(slice(1, 2)).excess, record.excess[1:2])
    assert np.isfinite(record.variance).all()
    assert np.isfinite(record.evidence["moment"]).all()


def test_without_limits():
    record = run("quadratic-v1", tt.residual(radius=0.05, step=0.03), rounds=5, trials=2)
    assert record.excess.shape == (2, 5, 0)
    assert not record.violation().any()
    assert "violation" not in record.summary()
    with pytest.raises(ValueError, match=r"PD takes 1 limits, but quadratic-v1 has 0: use a method without any"):
        run("quadratic-v1", METHOD, name="PD", rounds=5)
    with pytest.raises(
        ValueError, match=r"takes 2 limits, but constrained-v1 has 1: use tt\.primal_dual\(\.\.\., limits=1\)"
    ):
        run(PROBLEM, tt.primal_dual(radius=0.05, step=0.02, limits=2), rounds=5)
