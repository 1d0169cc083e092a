"""The recursion of the second moment, the smoothing gaps, the rates of one-point feedback."""

import math

import numpy as np
import pytest

from trimtab import theory

CONSTANTS = {"dim": 3, "lipschitz": 2.0, "step": 0.01, "radius": 0.2, "variation": 0.4}


@pytest.mark.parametrize("law", ["gaussian", "sphere", "ball"])
@pytest.mark.parametrize("step", [0.01, 0.5])
def test_the_closed_form_is_the_recursion(law, step):
    some = {**CONSTANTS, "step": step, "law": law}
    alpha = theory.contraction(**{k: v for k, v in some.items() if k != "variation"})
    added = theory.perturbation(**{k: v for k, v in some.items() if k != "step"})
    factor, probing, moving = {"gaussian": (12, 16 * 49, 6), "sphere": (36, 16 * 9, 18), "ball": (27, 18, 27)}[law]
    assert alpha == pytest.approx(factor * 4.0 * step**2 / 0.04)
    assert added == pytest.approx(4.0 * probing + moving * 0.16 / 0.04)
    moment = 5.0
    for t in range(1, 20):
        moment = alpha * moment + added
        assert theory.second_moment(**some, first=5.0, round=t) == pytest.approx(moment)
    limit = theory.second_moment(**some, first=5.0)
    assert limit == (pytest.approx(max(5.0, added / (1 - alpha))) if alpha < 1 else math.inf)
    assert moment <= limit or alpha >= 1
    assert theory.second_moment(**some, first=1e9) == (1e9 if alpha < 1 else math.inf)


def test_at_the_edge_of_contraction_it_grows_linearly():
    some = {**CONSTANTS, "dim": 1, "lipschitz": 1.0, "radius": 1.0, "step": 0.5, "variation": 0.0}
    assert theory.second_moment(**some, round=7) == pytest.approx(7 * 16 * 25)


@pytest.mark.parametrize("d", [1, 4, 30])
@pytest.mark.parametrize("radius", [0.05, 0.8])
def test_smoothing_gaps_cover_norms_and_parabolas(d, radius):
    """Against Monte Carlo: ‖x‖ at 0 is the worst of the 1-Lipschitz, ½‖x‖² of the 1-smooth functions."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((20_000, d))
    ball = u / np.linalg.norm(u, axis=1, keepdims=True) * rng.random((len(u), 1)) ** (1 / d)
    for law, probe in (("gaussian", u), ("sphere", ball)):
        length = radius * np.linalg.norm(probe, axis=1)
        norm, parabola = length.mean(), (0.5 * length**2).mean()
        gap = theory.smoothing_gap(dim=d, radius=radius, lipschitz=1.0, law=law)
        assert 0.3 * gap < norm <= gap * 1.02
        gap = theory.smoothing_gap(dim=d, radius=radius, smoothness=1.0, law=law)
        assert 0.1 * gap < parabola <= gap * 1.02
    both = theory.smoothing_gap(dim=d, radius=radius, lipschitz=1.0, smoothness=1.0)
    assert both == min(radius * math.sqrt(d), radius**2 * d)


def test_the_gap_of_the_gradient():
    """f = z³/6·L₁ has a second derivative that is 1-Lipschitz only locally; a parabola has no gap at all."""
    assert theory.gradient_gap(dim=6, radius=0.1, smoothness=2.0) == pytest.approx(0.1 * 2.0 * 27)
    # ½L₁·z|z| is L₁-smooth; at 0 its smoothed slope is L₁·δ·E|u| = L₁δ√(2/π), far inside.
    assert math.sqrt(2 / math.pi) * 0.1 * 2.0 < theory.gradient_gap(dim=1, radius=0.1, smoothness=2.0)


def test_rates_of_one_point_feedback():
    some = {"dim": 4, "horizon": 10_000, "distance": 3.0, "level": 5.0}
    assert theory.one_point_order(**some, lipschitz=2.0) == pytest.approx(math.sqrt(4 * 2 * 3 * 5) * 1000)
    assert theory.one_point_order(**some, smoothness=8.0) == pytest.approx(2 * (4 * 3 * 5 * 10_000) ** (2 / 3))
    with pytest.raises(ValueError, match="lipschitz= or smoothness="):
        theory.one_point_order(**some)
    # At the variation to beat, both orders are equal.
    v = theory.variation_to_beat(level=5.0, lipschitz=2.0)
    assert v**2 / 2.0 * math.sqrt(4 * 3.0) * 1000 == pytest.approx(theory.one_point_order(**some, lipschitz=2.0))
    assert theory.variation_to_beat(level=1.0, lipschitz=2.0) == 0.0  # L₀ ≲ B is needed as well
    v = theory.variation_to_beat(level=5.0, lipschitz=2.0, smoothness=8.0)
    assert v**2 / 2.0 * (4 * 3.0 * 10_000) ** (2 / 3) == pytest.approx(theory.one_point_order(**some, smoothness=8.0))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"law": "cube"}, "law='cube' is not covered by the theory: choose 'gaussian', 'sphere' or 'ball'"),
        ({"radius": 0.0}, "radius=0.0 must be a finite number > 0"),
        ({"dim": 2.5}, "dim=2.5 must be a whole number"),
        ({"round": -1}, "round=-1 must be a whole number, at least 0"),
    ],
)
def test_bad_input(change, reason):
    with pytest.raises(ValueError, match=reason):
        theory.second_moment(**{**CONSTANTS, **change})
    with pytest.raises(ValueError, match="lipschitz=, smoothness=, or both"):
        theory.smoothing_gap(dim=2, radius=0.1)


@pytest.mark.parametrize("dim", [2, 10, 60])
def test_a_lipschitz_function_varies_little_over_a_sphere(dim):
    """Poincaré: Var f(x + δu) ≤ L₀²δ²/(d−1); a linear function has L₀²δ²/d."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((40_000, dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    x = rng.standard_normal(dim)
    for f in (lambda p: p[:, 0], lambda p: np.linalg.norm(p, axis=1), lambda p: np.abs(p).sum(1) / math.sqrt(dim)):
        assert f(x + 0.3 * u).var() < 1.03 * 0.3**2 / (dim - 1)
