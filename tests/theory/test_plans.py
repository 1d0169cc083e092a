"""Parameters and terms against independently written formulas of the paper."""

import math
from math import sqrt

import numpy as np
import pytest

import trimtab as tt
from trimtab import theory

CASES = [(1, 50, 0.5, 0.7), (7, 400, 2.0, 3.0), (36, 10_000, 1.0, 1.0), (576, 4000, 12.0, 20.0)]  # d, T, L₀, R


@pytest.mark.filterwarnings("ignore:.*needs a horizon of at least")
@pytest.mark.parametrize(("d", "T", "L0", "R"), CASES)
@pytest.mark.parametrize("q", [0.0, 1.0, -0.5])
def test_convex_lipschitz(d, T, L0, R, q):
    plan = theory.convex_lipschitz(dim=d, horizon=T, lipschitz=L0, distance=R, exponent=q)
    assert plan.step == pytest.approx(R**1.5 / (2 * sqrt(2) * L0 * sqrt(d) * T**0.75))
    assert plan.radius == pytest.approx(sqrt(R) * L0**-q * T**-0.25)
    assert plan.contraction == pytest.approx(L0 ** (2 * q) * R**2 / (2 * T))
    assert plan.contraction == pytest.approx(4 * d * L0**2 * plan.step**2 / plan.radius**2)
    assert plan.holds == (plan.contraction <= 0.5)
    assert plan.least_horizon == math.ceil(max(1, L0 ** (2 * q) * R**2))
    if not plan.holds:
        return
    m0, V = 3.0, 0.3
    bound = plan.bound(variation=V, first_moment=m0)
    assert bound.terms == pytest.approx(
        {
            "distance": sqrt(2) * L0 * sqrt(d * R) * T**0.75,
            "first round": m0 * R**1.5 / (2 * sqrt(2 * d) * L0 * T**0.75),
            "probing": 8 * sqrt(2) * (d + 4) ** 2 / sqrt(d) * L0 * R**1.5 * T**0.25,
            "smoothing": 2 * L0 ** (1 - q) * sqrt(d * R) * T**0.75,
            "drift": sqrt(2 * d * R) * L0 ** (2 * q - 1) * V**2 * T**0.75,
        }
    )
    assert bound.total == pytest.approx(sum(bound.terms.values()))
    assert bound.per_step == pytest.approx(bound.total / T)


@pytest.mark.parametrize(("d", "T", "L0", "R"), CASES)
def test_convex_lipschitz_without_the_distance(d, T, L0, R):
    plan = theory.convex_lipschitz(dim=d, horizon=T, lipschitz=L0)
    assert plan.step == pytest.approx(1 / (2 * sqrt(2) * L0 * sqrt(d) * T**0.75))
    assert plan.radius == pytest.approx(T**-0.25)
    assert plan.contraction == pytest.approx(1 / (2 * T))
    with pytest.raises(ValueError, match="distance=R"):
        plan.bound(variation=0.1)
    terms = plan.bound(variation=0.1, distance=R, first_moment=2.0).terms
    assert terms == pytest.approx(
        {
            "distance": sqrt(2) * L0 * sqrt(d) * R**2 * T**0.75,
            "first round": 2.0 / (2 * sqrt(2 * d) * L0 * T**0.75),
            "probing": 8 * sqrt(2) * (d + 4) ** 2 / sqrt(d) * L0 * T**0.25,
            "smoothing": 2 * sqrt(d) * L0 * T**0.75,
            "drift": sqrt(2 * d) * 0.1**2 / L0 * T**0.75,
        }
    )


@pytest.mark.parametrize(("d", "T", "L0", "R"), CASES)
@pytest.mark.parametrize("known", [True, False])
def test_convex_smooth(d, T, L0, R, known):
    L1, V, m0 = 1.7, 0.2, 5.0
    r = R if known else 1.0
    plan = theory.convex_smooth(dim=d, horizon=T, lipschitz=L0, smoothness=L1, distance=R if known else None)
    assert plan.step == pytest.approx(r ** (4 / 3) / (2 * sqrt(2) * L0 * d ** (2 / 3) * T ** (2 / 3)))
    assert plan.radius == pytest.approx(r ** (1 / 3) * d ** (-1 / 6) * T ** (-1 / 6))
    assert plan.contraction == pytest.approx(r**2 / (2 * T))
    terms = plan.bound(variation=V, distance=R, first_moment=m0).terms
    size = d ** (2 / 3) * T ** (2 / 3)
    assert terms == pytest.approx(
        {
            "distance": sqrt(2) * L0 * size * (R ** (2 / 3) if known else R**2),
            "first round": m0 * r ** (4 / 3) / (2 * sqrt(2) * L0 * size),
            "probing": 8 * sqrt(2) * L0 * (d + 4) ** 2 / d ** (2 / 3) * r ** (4 / 3) * T ** (1 / 3),
            "smoothing": 2 * L1 * size * r ** (2 / 3),
            "drift": sqrt(2) / L0 * size * r ** (2 / 3) * V**2,
        }
    )


@pytest.mark.parametrize(("d", "T", "L0", "e"), CASES)
def test_nonconvex_lipschitz_with_the_paper_corrected(d, T, L0, e):
    plan = theory.nonconvex_lipschitz(dim=d, horizon=T, lipschitz=L0, accuracy=e)
    assert plan.step == pytest.approx(e**1.5 / (2 * sqrt(2) * L0**2 * d**1.5 * sqrt(T)))
    assert plan.radius == pytest.approx(e / (sqrt(d) * L0))
    assert plan.contraction == pytest.approx(e / (2 * d * T))
    assert plan.least_horizon == max(1, math.ceil(e / d))
    gap, W, W2, m0 = 2.0, 0.5, 0.7, 4.0
    bound = plan.bound(gap=gap, accumulated=W, squared=W2, first_moment=m0)
    rate = 2 * sqrt(2) * L0**2 * d**1.5 * e**-1.5 * sqrt(T)
    assert bound.terms == pytest.approx(
        {
            "gap": rate * gap,
            "accumulated variation": rate * W,
            "first round": sqrt(e) * m0 / (2 * sqrt(2 * d * T)),
            "probing": 4 * sqrt(2) * L0**2 * sqrt(e) * (d + 4) ** 2 / sqrt(d) * sqrt(T),  # the paper: L₀
            "drift": L0**2 / sqrt(2) * d**1.5 * W2 / (e**1.5 * sqrt(T)),
        }
    )
    assert plan.bound(gap=gap, variation=0.1).terms["drift"] == pytest.approx(
        plan.bound(gap=gap, squared=T * 0.1**2).terms["drift"]
    )


@pytest.mark.parametrize(("d", "T", "L0", "L1"), CASES)
def test_nonconvex_smooth(d, T, L0, L1):
    plan = theory.nonconvex_smooth(dim=d, horizon=T, lipschitz=L0, smoothness=L1)
    assert plan.step == pytest.approx(1 / (2 * sqrt(2) * L0 * d ** (4 / 3) * sqrt(T)))
    assert plan.radius == pytest.approx(d ** (-5 / 6) * T**-0.25)
    assert plan.contraction == pytest.approx(1 / (2 * sqrt(T)))
    gap, W, W2, m0 = 2.0, 0.5, 0.7, 4.0
    terms = plan.bound(gap=gap, accumulated=W, squared=W2, first_moment=m0).terms
    assert terms == pytest.approx(
        {
            "gap": 4 * sqrt(2) * L0 * gap * d ** (4 / 3) * sqrt(T),
            "accumulated variation": 4 * sqrt(2) * L0 * W * d ** (4 / 3) * sqrt(T),
            "first round": L1 * m0 / (sqrt(2) * L0 * d ** (4 / 3) * sqrt(T)),
            "probing": 8 * sqrt(2) * L1 * L0 * (d + 4) ** 2 / d ** (4 / 3) * sqrt(T),
            "drift": sqrt(2) * L1 / L0 * d ** (4 / 3) * W2,
            "smoothing": 2 * L1**2 * (d + 3) ** 3 / d ** (5 / 3) * sqrt(T),
        }
    )


@pytest.mark.parametrize(("d", "T", "L0", "R"), [(1, 50, 0.5, 0.7), (3, 4000, 2.0, 3.0), (10, 300_000, 1.0, 1.0)])
@pytest.mark.parametrize("q", [0.0, 0.3])
def test_feasible_queries(d, T, L0, R, q):
    r = 0.8 * R
    plan = theory.convex_lipschitz_feasible(dim=d, horizon=T, lipschitz=L0, inner_radius=r, outer_radius=R, exponent=q)
    assert plan.step == pytest.approx(R**1.5 / (2 * sqrt(2) * L0 * sqrt(d) * T**0.75))
    assert plan.radius == pytest.approx(sqrt(R * d) * L0**-q * T**-0.25)
    assert plan.shrinkage == pytest.approx(plan.radius / r)
    assert plan.contraction == pytest.approx(R**2 * L0 ** (2 * q) / (2 * T))
    assert plan.contraction == pytest.approx(4 * d**2 * L0**2 * plan.step**2 / plan.radius**2)
    assert plan.shrinkage < 1
    terms = plan.bound(variation=0.2, first_moment=3.0).terms
    assert terms == pytest.approx(
        {
            "distance": 4 * sqrt(2 * R * d) * L0 * T**0.75,
            "first round": 3.0 * R**1.5 / (2 * sqrt(2 * d) * L0 * T**0.75),
            "probing": 8 * sqrt(2) * d**1.5 * L0 * R**1.5 * T**0.25,
            "smoothing": 2 * L0 ** (1 - q) * sqrt(d * R) * T**0.75,
            "shrinking": R / r * L0 ** (1 - q) * sqrt(d * R) * T**0.75,
            "drift": sqrt(2 * d * R) * L0 ** (2 * q - 1) * 0.2**2 * T**0.75,
        }
    )


def test_the_smallest_horizon_is_where_the_condition_begins_to_hold():
    """α ≤ ½, and in the feasible variant ξ < 1."""
    ask = {
        "convex-lipschitz": {"lipschitz": 2.0, "distance": 9.3, "exponent": 0.4},
        "convex-smooth": {"lipschitz": 2.0, "smoothness": 1.0, "distance": 9.3},
        "nonconvex-lipschitz": {"lipschitz": 2.0, "accuracy": 31.0},
        "nonconvex-smooth": {"lipschitz": 2.0, "smoothness": 1.0},
        "convex-lipschitz-feasible": {"lipschitz": 2.0, "inner_radius": 1.3, "outer_radius": 4.0},
        "convex-lipschitz-ball": {"lipschitz": 2.0, "distance": 9.3, "variation": 0.3},
    }
    assert set(ask) == set(theory.theorems)
    for name, constants in ask.items():
        make = theory.theorems[name]
        least = make(dim=3, horizon=10**6, **constants).least_horizon

        def fits(horizon, make=make, constants=constants):
            plan = make(dim=3, horizon=horizon, **constants)
            return plan.contraction <= 0.5 + 1e-12 and plan.shrinkage < 1

        assert fits(least)
        if least > 1:
            with pytest.warns(UserWarning, match=f"needs a horizon of at least {least}, not {least - 1}"):
                assert not fits(least - 1)


def test_too_short_a_horizon_warns_and_guarantees_nothing():
    with pytest.warns(UserWarning, match="needs a horizon of at least 100, not 50: plan for more rounds"):
        plan = theory.convex_lipschitz(dim=3, horizon=50, lipschitz=1.0, distance=10.0)
    assert not plan.holds
    with pytest.raises(ValueError, match="give at least 100 rounds"):
        plan.bound(variation=0.1)


def test_tight_uses_the_factors_of_the_proof():
    plan = theory.convex_lipschitz(dim=5, horizon=1000, lipschitz=2.0, distance=3.0)
    printed, tight = (plan.bound(variation=0.5, first_moment=7.0, tight=t) for t in (False, True))
    alpha, eta, delta = plan.contraction, plan.step, plan.radius
    squares = (7.0 + 1000 * 16 * 4 * 81 + 1000 * 2 * 5 * 0.25 / delta**2) / (1 - alpha)
    assert tight.total == pytest.approx(9 / (2 * eta) + eta / 2 * squares + 2 * math.sqrt(5) * 2 * delta * 1000)
    assert tight.total < printed.total
    for term in ("probing", "drift"):
        assert printed.terms[term] == pytest.approx(4 * (1 - alpha) * tight.terms[term])
    plan = theory.nonconvex_smooth(dim=5, horizon=1000, lipschitz=2.0, smoothness=3.0)
    printed, tight = (plan.bound(gap=1.0, squared=2.0, tight=t) for t in (False, True))
    assert printed.terms["probing"] == pytest.approx(2 * (1 - plan.contraction) * tight.terms["probing"])


def test_anchoring_costs_one_round_at_the_start():
    plan = theory.convex_lipschitz(dim=5, horizon=100, lipschitz=2.0, distance=3.0)
    assert plan.bound(variation=0.1).terms["first round"] == 2.0 * 3.0
    plan = theory.nonconvex_lipschitz(dim=5, horizon=100, lipschitz=2.0, accuracy=0.1)
    assert plan.bound(gap=1.0, variation=0.1).terms["first round"] == 2.0**2


def test_the_method_is_ready_for_a_tuner():
    plan = theory.convex_lipschitz(dim=3, horizon=100, lipschitz=1.0)
    tuner = tt.Tuner(np.zeros(3), plan.method(), domain=tt.Ball(2.0), seed=0)
    assert (tuner.setup.method.radius, tuner.setup.method.step.step) == (plan.radius, plan.step)
    assert isinstance(tuner.setup.directions, tt.Gaussian)
    box = tt.Box([-1.0] * 2, [1.0] * 2)
    plan = theory.convex_lipschitz_feasible(
        dim=2, horizon=1000, lipschitz=1.0, inner_radius=box.inner_radius(2), outer_radius=box.outer_radius(2)
    )
    tuner = tt.Tuner(np.zeros(2), plan.method(), domain=box, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        trial = tuner.ask()
        assert box.contains(trial.x)
        tuner.tell(trial, rng.normal() * 1e3)
        assert np.abs(tuner.centre).max() <= 1 - plan.shrinkage + 1e-9


@pytest.mark.parametrize("setting", ["deterministic", "stochastic", "adversarial"])
@pytest.mark.parametrize("name", sorted(theory.theorems))
def test_noise_and_adversaries_change_the_assumptions_not_the_numbers(name, setting):
    some = {"smoothness": 1.0, "accuracy": 0.5, "inner_radius": 1.0, "outer_radius": 1.0}
    import inspect

    make = theory.theorems[name]
    constants = {k: v for k, v in some.items() if k in inspect.signature(make).parameters}
    if name == "convex-lipschitz-ball" and setting == "adversarial":
        with pytest.raises(ValueError, match="has no guarantee with ball smoothing"):
            make(dim=2, horizon=100, lipschitz=1.0, setting=setting)
        return
    plain, other = (make(dim=2, horizon=100, lipschitz=1.0, setting=s, **constants) for s in ("deterministic", setting))
    assert (plain.step, plain.radius) == (other.step, other.radius)
    words = " ".join(other.assumptions)
    assert ("noise included" in words) == (setting == "stochastic")
    assert ("before u_t is drawn" in words) == (setting == "adversarial")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lipschitz": -2.0}, "lipschitz=-2.0 must be a finite number > 0"),
        ({"lipschitz": math.nan}, "lipschitz=nan must be"),
        ({"lipschitz": "steep"}, "lipschitz='steep' must be"),
        ({"dim": 0}, "dim=0 must be a whole number, at least 1"),
        ({"horizon": 10.5}, "horizon=10.5 must be a whole number"),
        ({"distance": 0.0}, "distance=0.0 must be a finite number > 0"),
        ({"setting": "magic"}, "setting='magic' is unknown: choose 'deterministic'"),
    ],
)
def test_bad_constants_are_named(change, reason):
    with pytest.raises(ValueError, match=reason):
        theory.convex_lipschitz(**{"dim": 3, "horizon": 100, "lipschitz": 1.0, **change})


def test_bounds_ask_for_what_they_need():
    with pytest.raises(ValueError, match="variation=V_f"):
        theory.convex_lipschitz(dim=3, horizon=100, lipschitz=1.0, distance=1.0).bound()
    with pytest.raises(ValueError, match="variation=-1"):
        theory.convex_lipschitz(dim=3, horizon=100, lipschitz=1.0, distance=1.0).bound(variation=-1)
    plan = theory.nonconvex_smooth(dim=3, horizon=100, lipschitz=1.0, smoothness=1.0)
    with pytest.raises(ValueError, match="gap="):
        plan.bound(variation=0.1)
    with pytest.raises(ValueError, match="squared=W̃_T, or variation=V_f"):
        plan.bound(gap=1.0)
    with pytest.raises(ValueError, match=r"inner_radius=2 is larger than outer_radius=1"):
        theory.convex_lipschitz_feasible(dim=3, horizon=100, lipschitz=1.0, inner_radius=2.0, outer_radius=1.0)
