"""The theorems in simulation: on problems that satisfy their assumptions by construction, the mean regret over lanes
stays below the bound at several horizons and dimensions, and grows with the horizon as promised, or more slowly.

Growth is measured at d = 2: the steps of the theorems need about 64·d² rounds to cover the distance to the optimum, and
until then any regret grows like T.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import trimtab as tt
from trimtab import theory
from trimtab.lab import run
from trimtab.problems import Absolute, make

LANES, SEED = 24, 11
LONG = pytest.mark.long  # the same theorem on one more problem, dimension or offset
HORIZONS = (300, 900, 2700)


def exponent(horizons, regrets):
    return np.polyfit(np.log(horizons), np.log(regrets), 1)[0]


def upper(values):
    """The mean over lanes plus two standard errors."""
    return values.mean() + 2 * values.std() / math.sqrt(len(values))


def plan_for(problem, horizon, distance, **more):
    if math.isfinite(problem.smoothness):
        return theory.convex_smooth(
            dim=problem.dim, horizon=horizon, lipschitz=problem.lipschitz, smoothness=problem.smoothness,
            distance=distance, **more,
        )  # fmt: skip
    return theory.convex_lipschitz(
        dim=problem.dim, horizon=horizon, lipschitz=problem.lipschitz, distance=distance, **more
    )


@pytest.mark.parametrize(
    ("id", "promise", "known"),
    [
        ("absolute-v1", 3 / 4, True),
        pytest.param("absolute-v1", 3 / 4, False, marks=LONG),
        pytest.param("maximum-v1", 3 / 4, True, marks=LONG),
        pytest.param("maximum-v1", 3 / 4, False, marks=LONG),
        pytest.param("logcosh-v1", 2 / 3, True, marks=LONG),
        ("logcosh-v1", 2 / 3, False),
    ],
)
def test_convex_regret_stays_below_the_bound_and_grows_as_promised(id, promise, known):
    """The level wanders (V_f = 0.2 for certain), the optimum stays: R is the distance at the start."""
    problem = make(id, dim=2, drift="none", offset=0.2, scale=1.5, distance=1.2, rotate=True)
    regrets = []
    for horizon in HORIZONS:
        plan = plan_for(problem, horizon, 1.2 if known else None)
        regret = run(problem, plan.method(), rounds=horizon, trials=LANES, seed=SEED).regret()[:, -1]
        for tight in (False, True):
            assert upper(regret) < plan.bound(variation=problem.variation, distance=1.2, tight=tight).total
        regrets.append(regret.mean())
    assert exponent(HORIZONS, regrets) < promise + 0.05


@pytest.mark.parametrize("id", ["absolute-v1", "maximum-v1", "logcosh-v1"])
@pytest.mark.parametrize("dim", [1, *(pytest.param(dim, marks=LONG) for dim in (8, 30))])
def test_convex_bounds_in_other_dimensions(id, dim):
    problem = make(id, dim=dim, drift="none", offset=0.3, scale=0.7)
    for horizon in (200, 1200):
        more = {"exponent": 1.0} if id == "absolute-v1" else {}  # Remark 3.3: for L₀ < 1
        plan = plan_for(problem, horizon, 1.0, **more)
        record = run(problem, plan.method(), rounds=horizon, trials=LANES, seed=SEED)
        assert upper(record.regret()[:, -1]) < plan.bound(variation=problem.variation, tight=True).total


@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=LONG), 0.3])
def test_an_optimum_that_moves_and_noise(noise):
    """Jumps of 0.05 every 50 rounds: the best fixed point is no farther than the start plus the way that it went.

    With noise, V_{f,ξ} takes the place of V_f (Section 5).
    """
    setting = "stochastic" if noise else "deterministic"
    for horizon in (150, 450):
        problem = make("logcosh-v1", dim=4, drift="jumps", every=50, speed=0.001, offset=0.05, noise=noise)
        way = 1.0 + 0.05 * horizon / 50
        plan = plan_for(problem, horizon, way, setting=setting)
        record = run(problem, plan.method(), rounds=horizon, trials=16, seed=SEED, static=True, evidence=True)
        assert upper(record.regret("static")[:, -1]) < plan.bound(variation=problem.variation, tight=True).total
        seen = theory.measure(record)
        assert seen.variation.low <= problem.variation
        assert seen.lipschitz.low <= problem.lipschitz
        assert seen.smoothness.low <= problem.smoothness


@pytest.mark.parametrize(
    ("kind", "offset"),
    [
        pytest.param("lipschitz", 0.0, marks=LONG),
        ("lipschitz", 0.05),
        ("smooth", 0.0),
        pytest.param("smooth", 0.05, marks=LONG),
    ],
)
def test_nonconvex_slopes_stay_below_the_bound_and_grow_as_promised(kind, offset):
    """On an egg box ∇f_δ = exp(−δ²/2w²)·∇f exactly; the level is a martingale, so that W_T = 0 and W̃_T = T·offset²."""
    sums = []
    for horizon in HORIZONS:
        problem = make("sines-v1", dim=2, drift="none", offset=offset, scale=1.3, distance=1.5)
        some = {"dim": 2, "horizon": horizon, "lipschitz": 1.3}
        if kind == "smooth":
            plan = theory.nonconvex_smooth(**some, smoothness=problem.smoothness)
        else:
            plan = theory.nonconvex_lipschitz(**some, accuracy=1.5)
        record = run(problem, plan.method(), rounds=horizon, trials=LANES, seed=SEED, gradients=True)
        lowered = math.exp(-(plan.radius**2) / 2)
        squares = record.regret("gradient")[:, -1] * (lowered**2 if kind == "lipschitz" else 1.0)
        gap = lowered * record.cost[:, 0].mean()
        assert upper(squares) < plan.bound(gap=gap, squared=horizon * offset**2, tight=True).total
        sums.append(squares.mean())
    if kind == "smooth" and offset:  # W̃_T grows like T
        assert "guarantees nothing" in " ".join(plan.assumptions)
    else:
        assert exponent(HORIZONS, sums) < 1 / 2 + 0.05


@dataclass(frozen=True, kw_only=True)
class Fenced(Absolute):
    """The same function, which must not be measured outside a ball that is not about its optimum."""

    @property
    def domain(self):
        return tt.Ball(1.5, centre=np.full(self.dim, 0.3))

    def start(self, seed, trials, first=0):
        return np.tile(self.domain.centre, (trials, 1))


@pytest.mark.parametrize("dim", [2, pytest.param(3, marks=LONG)])
def test_feasible_queries_stay_below_their_bound_and_inside(dim):
    regrets = []
    for horizon in HORIZONS:
        problem = Fenced(dim=dim, drift="none", offset=0.2)
        plan = theory.convex_lipschitz_feasible(
            dim=dim, horizon=horizon, lipschitz=1.0, inner_radius=1.5, outer_radius=1.5
        )
        record = run(problem, plan.method(), rounds=horizon, trials=LANES, seed=SEED)
        assert upper(record.regret()[:, -1]) < plan.bound(variation=0.2, tight=True).total
        regrets.append(record.regret()[:, -1].mean())
    assert exponent(HORIZONS, regrets) < 3 / 4 + 0.05
    tuner = tt.Tuner(problem.start(0, 1)[0], plan.method(), domain=problem.domain, seed=SEED)
    world = problem.world(SEED, 1)
    for t in range(500):
        trial = tuner.ask()
        assert problem.domain.contains(trial.x, tolerance=0.0)
        tuner.tell(trial, float(world.measure(t, trial.x[None, None])[0, 0]))


@pytest.mark.parametrize(("dim", "offset"), [(2, 0.0), pytest.param(10, 0.0, marks=LONG), (10, 0.2)])
def test_ball_smoothing_is_sharper_and_holds(dim, offset):
    """Regret, evaluated cost and the second moment of every round stay below bounds that are linear in d."""
    for horizon in (200, 1200):
        problem = make("absolute-v1", dim=dim, drift="none", offset=offset)
        some = {"dim": dim, "horizon": horizon, "lipschitz": 1.0, "distance": 1.0}
        plan = theory.convex_lipschitz_ball(**some, variation=offset)
        assert plan.contraction <= 0.5 + 1e-12
        record = run(problem, plan.method(), rounds=horizon, trials=48, seed=SEED, evidence=True)
        bound = plan.bound(variation=offset)
        assert (
            upper(record.regret()[:, -1]) < bound.total < theory.convex_lipschitz(**some).bound(variation=offset).total
        )
        assert upper(record.regret(of="played")[:, -1]) < plan.bound(variation=offset, played=True).total
        moment = record.evidence["moment"].mean(0)
        some = {"dim": dim, "lipschitz": 1.0, "radius": plan.radius, "law": "ball"}
        added = theory.perturbation(**some, variation=offset)
        assert (moment[1:] <= 1.2 * (plan.contraction * moment[:-1] + added)).all()  # 1.2: means over 48 lanes


def test_an_adversary_that_knows_the_last_direction_breaks_the_second_moment_of_ball_smoothing():
    """f_t(p) = y_{t−1} + L₀‖p − p_{t−1}‖ is convex, L₀-Lipschitz, fixed before u_t is drawn, and V_f = 0. Its estimates
    have E‖ĝ‖² = d²L₀²·E‖p_t − p_{t−1}‖²/δ², about 2d²L₀², where the bound for law="ball" is linear in d."""
    some = {"dim": 100, "horizon": 200, "lipschitz": 1.0}
    plan = theory.convex_lipschitz_ball(**some, distance=1.0)
    tuner = tt.Tuner(np.zeros(100), plan.method(), seed=SEED)
    squares, value, last = [], 0.0, None
    for _ in range(200):
        trial = tuner.ask()
        change = 0.0 if last is None else float(np.linalg.norm(trial.x - last))
        value, last = value + change, trial.x
        squares.append((100 * change / plan.radius) ** 2)
        tuner.tell(trial, value)
    known = {"dim": 100, "lipschitz": 1.0, "step": plan.step, "radius": plan.radius, "variation": 0.0}
    assert np.mean(squares[1:]) > 10 * theory.second_moment(**known, law="ball")
    assert np.mean(squares[1:]) < theory.second_moment(**{**known, "step": plan.step / 2}, law="sphere")
    with pytest.raises(ValueError, match="does not depend on the last direction, and an adversary knows it"):
        theory.convex_lipschitz_ball(**some, setting="adversarial")


def test_the_evaluated_cost_adds_the_smoothing_gap_once_more():
    """E f(x + δu) = f_δ(x): T·L₀δ√d more for Lipschitz f, T·L₁δ²d for smooth ones."""
    plan = theory.convex_lipschitz(dim=9, horizon=400, lipschitz=2.0, distance=1.0)
    extra = plan.bound(variation=0.1, played=True).total - plan.bound(variation=0.1).total
    assert extra == pytest.approx(400 * 2.0 * plan.radius * 3.0)
    smooth = theory.convex_smooth(dim=9, horizon=400, lipschitz=2.0, smoothness=1.5, distance=1.0)
    terms = smooth.bound(variation=0.1, played=True).terms
    assert terms["playing"] == pytest.approx(400 * 1.5 * smooth.radius**2 * 9)
    slopes = theory.nonconvex_smooth(dim=9, horizon=400, lipschitz=2.0, smoothness=1.5)
    with pytest.raises(ValueError, match="which have no evaluated cost"):
        slopes.bound(gap=1.0, variation=0.1, played=True)


@pytest.mark.parametrize(
    ("id", "boldness", "offset", "slack"),
    [
        ("absolute-v1", 1.0, 0.2, 400.0),
        ("absolute-v1", 8.0, 0.2, 400.0),
        ("logcosh-v1", 1.0, 20.0, 3.0),
        pytest.param("logcosh-v1", 1.0, 0.2, 400.0, marks=LONG),
        pytest.param("logcosh-v1", 8.0, 0.2, 400.0, marks=LONG),
        pytest.param("absolute-v1", 1.0, 20.0, 3.0, marks=LONG),
    ],
)
def test_the_second_moment_along_the_run(id, boldness, offset, slack):
    """E‖ĝ_t‖² ≤ α·E‖ĝ_{t−1}‖² + D in every round, and below the closed form; also at 8 times the step, while α < 1.

    16(d+4)² is far above what a smooth slope gives; where drift dominates, the bound is within a factor of 3.
    """
    problem = make(id, dim=5, drift="walk", speed=0.1, offset=offset, scale=2.0)
    plan = plan_for(problem, 300, 1.0)
    method = tt.Method(estimator=tt.Residual(), directions=tt.Gaussian(), radius=plan.radius, step=boldness * plan.step)
    record = run(problem, method, rounds=300, trials=256, seed=SEED, evidence=True)
    some = {"dim": 5, "lipschitz": 2.0, "radius": plan.radius}
    alpha = theory.contraction(**some, step=boldness * plan.step)
    assert alpha < 1
    added = theory.perturbation(**some, variation=problem.variation)
    moment = record.evidence["moment"].mean(0)
    assert moment[0] == 0  # the first measurement only anchors
    assert (moment[1:] <= alpha * moment[:-1] + added).all()
    limit = theory.second_moment(**some, step=boldness * plan.step, variation=problem.variation)
    assert moment.max() < limit < slack * moment[1:].mean()
    assert theory.diagnose(record)["second moment"].verdict == "holds"


def test_an_adversary_that_does_not_see_the_direction_is_covered():
    """Appendix I with f_t chosen before u_t is drawn."""
    regrets = []
    for horizon in HORIZONS:
        problem = make("adversary-v1", dim=2, order="before", power=0.5)
        plan = plan_for(problem, horizon, 1.0, setting="adversarial")
        record = run(problem, plan.method(), rounds=horizon, trials=LANES, seed=SEED, evidence=True)
        assert upper(record.regret()[:, -1]) < plan.bound(variation=0.5, tight=True).total
        regrets.append(record.regret()[:, -1].mean())
        bias = record.evidence["lean"][:, 1:].mean(1)
        assert abs(bias.mean()) < 4 * bias.std() / math.sqrt(LANES)
    assert exponent(HORIZONS, regrets) < 2 / 3 + 0.05


def test_an_adversary_that_sees_the_direction_is_not_covered():
    """… and after: the bias is −√(2/π)·V_f/δ along the slope, the regret outgrows T, and the diagnosis says why."""
    regrets = []
    for horizon in HORIZONS:
        problem = make("adversary-v1", dim=2, order="after", power=0.5)
        plan = plan_for(problem, horizon, 1.0, setting="adversarial")
        record = run(problem, plan.method(), rounds=horizon, trials=LANES, seed=SEED, evidence=True)
        expected = -math.sqrt(2 / math.pi) * 0.5 / plan.radius
        assert record.evidence["lean"][:, 1:].mean() == pytest.approx(expected, rel=0.1)
        regrets.append(record.regret()[:, -1].mean())
    assert exponent(HORIZONS, regrets) > 1.0
    assert theory.diagnose(record)["unbiased"].verdict == "fails"
