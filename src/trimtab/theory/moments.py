"""Bounds: the second moment of the residual estimate, the smoothing gap, and the rates of one-point feedback.

The theory covers two laws of u: "gaussian", N(0, I), estimate u/δ·(…); and "sphere", |u| = 1, estimate d·u/δ·(…)
(Appendix H). "ball" is the sphere again, with sharper constants, in the manner of arXiv 2508.12228: f_δ is the mean
over a ball, and an L₀-Lipschitz function varies little over a sphere: Var f(x + δu) ≤ L₀²δ²/(d−1) (Poincaré; L₀²δ² in
one dimension), where the paper uses the square of the largest difference. With m_t the mean of f_t over the sphere
about x_t, m′ its mean over the sphere about x_{t−1}, and u_t independent of all else,

    E(y_t − y_{t−1})² = E Var(y_t) + E(m_t − y_{t−1})²
    m_t − y_{t−1} = [m_t − m′] + [m′ − f_t(p_{t−1})] + [f_t(p_{t−1}) − f_{t−1}(p_{t−1})],

whose three parts are at most L₀η‖ĝ_{t−1}‖, of mean square L₀²δ²/(d−1), and V_f. The square of a sum of three terms is
at most three times the sum of their squares, so the probing term is linear in d instead of quadratic. The second part
requires that f_t does not depend on u_{t−1}: a cone about the last query makes it as large as the square of the
largest difference. So "ball" gives no guarantee against an adversary.
"""

from __future__ import annotations

import math
from typing import Literal

from trimtab.validation import real, whole

Law = Literal["gaussian", "sphere", "ball"]


def coefficients(dim: int, law: Law) -> tuple[float, float, float]:
    """a, p and v with α = a·L₀²η²/δ² and D = p·L₀² + v·V_f²/δ²."""
    d = float(whole("dim", dim, 1))
    known = {
        "gaussian": (4.0 * d, 16.0 * (d + 4.0) ** 2, 2.0 * d),
        "sphere": (4.0 * d**2, 16.0 * d**2, 2.0 * d**2),
        "ball": (3.0 * d**2, 4.0 * d**2 / max(d - 1.0, 1.0), 3.0 * d**2),
    }
    if law not in known:
        raise ValueError(f"law={law!r} is not covered by the theory: choose 'gaussian', 'sphere' or 'ball'")
    return known[law]


def contraction(*, dim: int, lipschitz: float, step: float, radius: float, law: Law = "gaussian") -> float:
    """α = 4dL₀²η²/δ² (4d² on the sphere, 3d² as "ball"): the gain from one squared estimate to the next.

    Below 1, large estimates die out.

    >>> contraction(dim=4, lipschitz=1.0, step=0.25, radius=1.0)
    1.0
    """
    slope = (
        real("lipschitz", lipschitz, 0, above=True)
        * real("step", step, 0, above=True)
        / real("radius", radius, 0, above=True)
    )
    return coefficients(dim, law)[0] * slope**2


def perturbation(*, dim: int, lipschitz: float, radius: float, variation: float, law: Law = "gaussian") -> float:
    """D, the contribution of each round to the second moment (Lemma 2.6; Lemma H.6 on the sphere).

    16L₀²(d+4)² + 2dV_f²/δ²; on the sphere 16d²L₀² + 2d²V_f²/δ²; as "ball" 4d²L₀²/(d−1) + 3d²V_f²/δ². With noise, use
    V_{f,ξ} of Section 5 for V_f.

    >>> perturbation(dim=1, lipschitz=1.0, radius=0.1, variation=0.1)
    402.0
    """
    _, probing, moving = coefficients(dim, law)
    drift = real("variation", variation, 0) / real("radius", radius, 0, above=True)
    return probing * real("lipschitz", lipschitz, 0, above=True) ** 2 + moving * drift**2


def second_moment(
    *,
    dim: int,
    lipschitz: float,
    step: float,
    radius: float,
    variation: float,
    first: float = 0.0,
    round: int | None = None,
    law: Law = "gaussian",
) -> float:
    """A bound on E‖ĝ_t‖²: αᵗ·first + D·(1 − αᵗ)/(1 − α) in round t, and max(first, D/(1 − α)) over all rounds.

    first: E‖ĝ_0‖²; 0 where the first measurement only anchors, as in `Tuner`. Infinite over all rounds if α ≥ 1.
    (Lemma 5.2 of the paper writes ĝ_t on its right side: it must read ĝ_{t−1}, as here.)

    >>> constants = dict(dim=2, lipschitz=1.0, step=0.1, radius=0.5, variation=0.0)
    >>> second_moment(**constants, round=1), round(second_moment(**constants), 1)
    (576.0, 847.1)
    """
    alpha = contraction(dim=dim, lipschitz=lipschitz, step=step, radius=radius, law=law)
    added = perturbation(dim=dim, lipschitz=lipschitz, radius=radius, variation=variation, law=law)
    first = real("first", first, 0)
    if round is None:
        return max(first, added / (1.0 - alpha)) if alpha < 1.0 else math.inf
    whole("round", round)
    try:
        power = alpha**round
    except OverflowError:
        return math.inf
    total = float(round) if alpha == 1.0 else (1.0 - power) / (1.0 - alpha)
    return power * first + added * total


def smoothing_gap(
    *,
    dim: int,
    radius: float,
    lipschitz: float | None = None,
    smoothness: float | None = None,
    law: Law = "gaussian",
) -> float:
    """A bound on |f_δ(x) − f(x)|, the best that the given constants allow.

    δL₀√d and δ²L₁d (Lemma 2.2); on the sphere, where f_δ is the mean over a ball, δL₀ and δ²L₁ (Lemma H.5).

    >>> smoothing_gap(dim=4, radius=0.5, lipschitz=1.0), smoothing_gap(dim=4, radius=0.5, smoothness=0.1)
    (1.0, 0.1)
    """
    coefficients(dim, law)  # rejects an unknown law
    spread = 1.0 if law != "gaussian" else float(dim)
    radius = real("radius", radius, 0, above=True)
    gaps = []
    if lipschitz is not None:
        gaps.append(radius * real("lipschitz", lipschitz, 0, above=True) * math.sqrt(spread))
    if smoothness is not None:
        gaps.append(radius**2 * real("smoothness", smoothness, 0) * spread)
    if not gaps:
        raise ValueError("a smoothing gap needs a constant of f: give lipschitz=, smoothness=, or both")
    return min(gaps)


def gradient_gap(*, dim: int, radius: float, smoothness: float) -> float:
    """A bound on ‖∇f_δ(x) − ∇f(x)‖ for Gaussian smoothing: δL₁(d+3)^{3/2} (Lemma 2.2).

    >>> gradient_gap(dim=1, radius=0.1, smoothness=1.0)
    0.8
    """
    return real("radius", radius, 0, above=True) * real("smoothness", smoothness, 0) * math.pow(dim + 3.0, 1.5)


def one_point_order(
    *,
    dim: int,
    horizon: int,
    distance: float,
    level: float,
    lipschitz: float | None = None,
    smoothness: float | None = None,
) -> float:
    """The best known regret of one-point feedback quoted by the paper, up to an unknown constant.

    √(d·L₀·R·B)·T^{3/4} for Lipschitz f, L₁^{1/3}·(d·R·B·T)^{2/3} for smooth f (give smoothness= for it), where the
    level B bounds |f_t| for all rounds. Compare only its growth with a bound, since the constant is unknown.

    >>> one_point_order(dim=4, horizon=10_000, distance=1.0, level=4.0, lipschitz=1.0)
    4000.0
    """
    size = dim * real("distance", distance, 0, above=True) * real("level", level, 0, above=True)
    if smoothness is not None:
        return math.pow(real("smoothness", smoothness, 0, above=True), 1 / 3) * math.pow(size * horizon, 2 / 3)
    if lipschitz is None:
        raise ValueError("a rate of one-point feedback needs a constant of f: give lipschitz= or smoothness=")
    return math.sqrt(size * real("lipschitz", lipschitz, 0, above=True)) * math.pow(horizon, 0.75)


def variation_to_beat(*, level: float, lipschitz: float, smoothness: float | None = None) -> float:
    """The V_f up to which residual feedback has the better order: √(B^{1/2}L₀^{3/2}); smooth, √(B^{2/3}L₁^{1/3}L₀).

    These are the conditions after Theorems 3.2 and 3.4, again up to a constant. They omit L₀ ≲ B, which is needed too:
    the bound of residual feedback has a term in L₀ alone, however small the drift. So this is 0 if L₀ > B.

    >>> variation_to_beat(level=16.0, lipschitz=1.0), variation_to_beat(level=1.0, lipschitz=16.0)
    (2.0, 0.0)
    """
    level, lipschitz = real("level", level, 0, above=True), real("lipschitz", lipschitz, 0, above=True)
    if lipschitz > level:
        return 0.0
    if smoothness is None:
        return math.sqrt(level**0.5 * lipschitz**1.5)
    return math.sqrt(level ** (2 / 3) * real("smoothness", smoothness, 0, above=True) ** (1 / 3) * lipschitz)
