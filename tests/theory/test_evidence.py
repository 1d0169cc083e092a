"""Constants estimated from data against those known by construction, and the diagnosis."""

import numpy as np
import pytest

import trimtab as tt
from trimtab import theory
from trimtab.lab import Record, run, tune
from trimtab.problems import from_function, make


def gaussian(radius, step):
    return tt.Method(estimator=tt.Residual(), directions=tt.Gaussian(), radius=radius, step=step)


def measured(id, method=None, rounds=200, trials=40, seed=5, **parameters):
    method = method or gaussian(0.1, 0.002)
    return run(make(id, **parameters), method, rounds=rounds, trials=trials, seed=seed, evidence=True)


@pytest.mark.parametrize("id", ["absolute-v1", "maximum-v1", "logcosh-v1", "sines-v1"])
def test_constants_that_are_known(id):
    problem = make(id, dim=4, drift="line", speed=0.05, offset=0.1, scale=2.0, noise=0.3)
    record = run(problem, gaussian(0.1, 0.002), rounds=300, trials=60, seed=5, evidence=True)
    found = theory.measure(record)
    assert found.lipschitz.low <= 2.0 * (1 + 1e-9)
    assert found.lipschitz.low <= found.lipschitz.value <= found.lipschitz.high
    if id != "sines-v1":  # which are steep only between hollows
        assert found.lipschitz.low > 1.5
    if np.isfinite(problem.smoothness):
        assert 0.5 * problem.smoothness < found.smoothness.low <= problem.smoothness * (1 + 1e-9)
    assert found.variation.low <= problem.variation
    assert found.variation.high >= np.hypot(0.1, np.sqrt(2) * 0.3)
    assert found.squared.value == pytest.approx(300 * found.variation.value**2, rel=0.2)
    assert found.accumulated.low <= found.accumulated.high
    alpha = theory.contraction(dim=4, lipschitz=found.lipschitz.value, step=0.002, radius=0.1)
    assert found.contraction.value == pytest.approx(alpha)


def test_the_intervals_cover_known_constants():
    """V_f is known exactly if only the level moves; a 95 % interval misses it in about 1 of 20 runs."""
    misses = 0
    for seed in range(60):
        found = theory.measure(measured("walk-v1", rounds=12, trials=40, seed=seed, std=0.7))
        misses += not found.squared.low <= 11 * 0.7**2 <= found.squared.high
        assert found.variation.high > 0.7  # the largest of ten pieces
    assert misses <= 10


def test_w_t_is_the_total_rise_of_the_level():
    """c_t moves on a line away from a fixed point: W_T is the rise of f there."""
    record = run(
        make("absolute-v1", dim=1, drift="line", speed=0.1, offset=0.0, distance=0.0),
        gaussian(0.01, 1e-9), rounds=101, trials=8, seed=1, evidence=True,
    )  # fmt: skip
    assert theory.measure(record).accumulated.value == pytest.approx(100 * 0.1, rel=0.05)


def test_evidence_survives_a_file(tmp_path):
    record = measured("absolute-v1", rounds=20, trials=3)
    record.save(tmp_path / "run")
    again = Record.load(tmp_path / "run")
    assert theory.measure(again) == theory.measure(record)
    assert theory.diagnose(again) == theory.diagnose(record)


def test_a_run_that_follows_its_plan_satisfies_the_assumptions():
    problem = make("absolute-v1", dim=4, drift="none", offset=0.1)
    plan = theory.convex_lipschitz(dim=4, horizon=400, lipschitz=1.0, distance=1.0)
    found = theory.diagnose(run(problem, plan.method(), rounds=400, trials=40, seed=5, evidence=True))
    held = ("bounded", "Lipschitz", "convex", "bounded variation", "contraction", "second moment", "unbiased")
    assert {name: found.verdicts[name] for name in held} == dict.fromkeys(held, "holds")
    assert found.verdicts["vanishing variation"] == "fails"
    assert "t^1.0" in found["vanishing variation"].text


def test_the_tuned_step_of_the_papers_experiment_violates_the_contraction():
    step = tune("lqr-v1", "residual", rounds=40, trials=10).step
    record = run("lqr-v1", gaussian(0.05, step), rounds=40, trials=20, seed=1, evidence=True)
    finding = theory.diagnose(record)["contraction"]
    assert finding.verdict == "fails"
    assert "no theorem covers this run" in finding.text


def test_nonconvex_and_growing_problems_are_noticed():
    # distance 3: between the hollows, where an egg box curves downwards
    found = theory.diagnose(measured("sines-v1", dim=2, distance=3.0))
    assert found.verdicts["convex"] == "fails"
    f = from_function(lambda t, x: np.sum(np.abs(x)) * 1.1**t, x0=[1.0, 1.0])
    found = theory.diagnose(run(f, gaussian(0.01, 1e-9), rounds=80, trials=4, seed=0, evidence=True))
    assert found.verdicts["Lipschitz"] == "fails"
    assert found.verdicts["bounded variation"] == "fails"
    assert found.verdicts["unbiased"] == "not seen"  # no gradient is known
    found = theory.diagnose(measured("quadratic-v1", gaussian(0.1, 2.0), rounds=100))
    assert found.verdicts["bounded"] == "fails"
    assert "diverged" in found["bounded"].text


def test_a_run_without_alpha_is_not_judged():
    found = theory.diagnose(measured("quadratic-v1", tt.auto(radius=0.1)))
    assert found.verdicts["contraction"] == found.verdicts["second moment"] == "not seen"
    assert "contraction" in str(found)
    assert "not seen" in str(found)


def test_a_record_without_evidence_says_what_to_do():
    record = run("quadratic-v1", gaussian(0.1, 0.01), rounds=10, trials=2)
    for function in (theory.measure, theory.diagnose):
        with pytest.raises(ValueError, match="run it again with trimtab"):
            function(record)


@pytest.mark.parametrize("drift", [0.0, 0.3])
def test_slope_and_drift_from_the_values_of_a_real_run(drift):
    """A tuner at rest on a plane of slope 1.5 whose level wanders."""
    rng = np.random.default_rng(3)
    tuner = tt.Tuner(np.zeros(5), gaussian(0.2, 1e-12), seed=4)
    queries, values, level = [], [], 0.0
    for _ in range(20_000):
        trial = tuner.ask()
        level += drift * rng.standard_normal()
        values.append(float(1.5 * trial.x[2] + level))
        queries.append(trial.x)
        tuner.tell(trial, values[-1])
    found = theory.estimate(queries, values, radius=0.2)
    assert found["slope"].value == pytest.approx(1.5, rel=0.15)
    assert found["variation"].value == pytest.approx(drift, abs=0.06)
    with pytest.raises(ValueError, match="at least 100 rounds"):
        theory.estimate(queries[:50], values[:50], radius=0.2)
    with pytest.raises(ValueError, match=r"radius=0\.0 must be a finite number > 0"):
        theory.estimate(queries, values, radius=0.0)
    gaps = np.where(np.arange(len(values)) < 99, values, np.nan)
    with pytest.raises(ValueError, match=f"only 99 of {len(values)} rounds have finite queries and values"):
        theory.estimate(queries, gaps, radius=0.2)
