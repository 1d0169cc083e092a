"""One function per theorem of the paper: from constants of a problem to step, radius and guarantee.

All convex bounds come from one chain (proof of Theorem 3.2), all nonconvex ones from another (Theorem 4.2):

    convex      R²/2η + (η/2)·Σ E‖ĝ_t‖² + 2T·(gap of the values)
    nonconvex   (gap + W_T)/η + (L/2)·η·Σ E‖ĝ_t‖²        with L the smoothness of the descended function
    both        Σ E‖ĝ_t‖² ≤ (E‖ĝ_0‖² + T·16L₀²(d+4)² + (2d/δ²)·Σ E(f_t − f_{t−1})²)/(1 − α),  and α ≤ ½

`Plan.bound` gives the terms as printed in the paper, where 1/(1 − α) is bounded by 2; `tight=True` uses the actual α.

Corrections to the paper's text:
* Theorems 3.2, 3.4 and H print the terms from 16L₀²(d+4)² and V_f² with η instead of η/2: valid, loose by 2. `tight`
  uses the correct factor.
* Theorem 4.2's third term must contain L₀², as the algebra before it shows; here it does. Its condition T ≥ 1/(dε_f)
  should be T ≥ ε_f/d, which follows from α = ε_f/(2dT) ≤ ½.
* Appendix H also needs ξ = δ/r < 1 (Lemma H.3), hence a horizon T > (r̄d/(L₀^{2q}r²))²; the theorem omits this.
* The theorems use a ĝ_0, which would need a measurement before the first. In `Tuner` the first measurement only
  anchors: ĝ_0 = 0, x does not move, and round 0 costs at most L₀R more (L₀² in gradient norm). This is the term
  "first round", unless you give E‖ĝ_0‖².
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Literal

from trimtab.theory.guarantees import Plan
from trimtab.theory.moments import Law, contraction
from trimtab.validation import real, whole

Setting = Literal["deterministic", "stochastic", "adversarial"]
ROOT8 = 2.0 * math.sqrt(2.0)


def convex_lipschitz(
    *,
    dim: int,
    horizon: int,
    lipschitz: float,
    distance: float | None = None,
    exponent: float = 0.0,
    setting: Setting = "deterministic",
) -> Plan:
    """Theorem 3.2: convex, L₀-Lipschitz. The static regret grows like T^{3/4}.

    distance: R ≥ ‖x_0 − x*‖, if known. exponent: q of Remark 3.3 (use 1 for L₀ < 1, 0 for L₀ ≥ 1).

    >>> plan = convex_lipschitz(dim=10, horizon=10_000, lipschitz=1.0, distance=1.0)
    >>> {name: round(term) for name, term in plan.bound(variation=0.1).terms.items()}
    {'distance': 4472, 'first round': 1, 'probing': 7012, 'smoothing': 6325, 'drift': 45}
    """
    dim, horizon, l0 = _checked(dim, horizon, lipschitz)
    r, exponent = 1.0 if distance is None else real("distance", distance, 0, above=True), real("exponent", exponent)
    start, length = ("L₀", "√(dR)") if distance is not None else ("L₀R²", "√d")
    costs = f"{start} + L₀^{{1−q}} + L₀^{{2q−1}}V_f²" if exponent else f"{start} + V_f²/L₀"
    return _plan(
        "Theorem 3.2" if not exponent else "Theorem 3.2 with Remark 3.3",
        dim,
        horizon,
        l0,
        step=r**1.5 / (ROOT8 * l0 * math.sqrt(dim) * horizon**0.75),
        radius=math.sqrt(r) * l0**-exponent * horizon**-0.25,
        least=l0 ** (2 * exponent) * r**2,
        assumptions=(CONVEX, LIPSCHITZ, _nearby(distance), *_drift(setting), QUERIES),
        order=f"O(({costs})·{length}·T^{{3/4}})",
        regret=STATIC,
        convex=True,
        distance=distance,
    )


def convex_smooth(
    *,
    dim: int,
    horizon: int,
    lipschitz: float,
    smoothness: float,
    distance: float | None = None,
    setting: Setting = "deterministic",
) -> Plan:
    """Theorem 3.4: convex, L₀-Lipschitz, L₁-smooth. The static regret grows like T^{2/3}.

    >>> plan = convex_smooth(dim=10, horizon=10_000, lipschitz=1.0, smoothness=1.0, distance=1.0)
    >>> round(plan.radius, 3)
    0.147
    """
    dim, horizon, l0 = _checked(dim, horizon, lipschitz)
    r = 1.0 if distance is None else real("distance", distance, 0, above=True)
    return _plan(
        "Theorem 3.4",
        dim,
        horizon,
        l0,
        step=r ** (4 / 3) / (ROOT8 * l0 * dim ** (2 / 3) * horizon ** (2 / 3)),
        radius=r ** (1 / 3) * dim ** (-1 / 6) * horizon ** (-1 / 6),
        least=r**2,
        assumptions=(CONVEX, LIPSCHITZ, SMOOTH, _nearby(distance), *_drift(setting), QUERIES),
        order="O((L₀ + L₁ + V_f²/L₀)·(dRT)^{2/3})" if distance else "O((L₀R² + L₁ + V_f²/L₀)·(dT)^{2/3})",
        regret=STATIC,
        convex=True,
        distance=distance,
        smoothness=real("smoothness", smoothness, 0, above=True),
    )


def nonconvex_lipschitz(
    *, dim: int, horizon: int, lipschitz: float, accuracy: float, setting: Setting = "deterministic"
) -> Plan:
    """Theorem 4.2: L₀-Lipschitz, not convex, unconstrained. Bounds Σ E‖∇f_δ,t(x_t)‖², with |f_δ − f| ≤ ε_f.

    accuracy: ε_f, the allowed difference between the smoothed cost and the cost.

    >>> round(nonconvex_lipschitz(dim=4, horizon=10_000, lipschitz=1.0, accuracy=0.1).radius, 3)
    0.05
    """
    dim, horizon, l0 = _checked(dim, horizon, lipschitz)
    e = real("accuracy", accuracy, 0, above=True)
    return _plan(
        "Theorem 4.2",
        dim,
        horizon,
        l0,
        step=e**1.5 / (ROOT8 * l0**2 * dim**1.5 * math.sqrt(horizon)),
        radius=e / (math.sqrt(dim) * l0),
        least=e / dim,  # the paper: 1/(dε_f)
        assumptions=(UNCONSTRAINED, LIPSCHITZ, BELOW, *_drift(setting, accumulated=True)),
        # The paper has L₀ in the second part; the term it stands for has L₀².
        order="O(d^{3/2}L₀²ε_f^{−3/2}(W_T + W̃_T/T)·T^{1/2} + d^{3/2}L₀²ε_f^{1/2}·T^{1/2})",
        regret="Σ E‖∇f_δ,t(x_t)‖², the squared slope of the smoothed cost",
        convex=False,
    )


def nonconvex_smooth(
    *, dim: int, horizon: int, lipschitz: float, smoothness: float, setting: Setting = "deterministic"
) -> Plan:
    """Theorem 4.3: L₀-Lipschitz, L₁-smooth, not convex, unconstrained. Bounds Σ E‖∇f_t(x_t)‖².

    W̃_T must grow more slowly than T: under a constant V_f the drift term grows like T, and there is no guarantee.

    >>> round(nonconvex_smooth(dim=4, horizon=10_000, lipschitz=1.0, smoothness=1.0).radius, 4)
    0.0315
    """
    dim, horizon, l0 = _checked(dim, horizon, lipschitz)
    return _plan(
        "Theorem 4.3",
        dim,
        horizon,
        l0,
        step=1.0 / (ROOT8 * l0 * dim ** (4 / 3) * math.sqrt(horizon)),
        radius=dim ** (-5 / 6) * horizon**-0.25,
        least=1.0,
        assumptions=(UNCONSTRAINED, LIPSCHITZ, SMOOTH, BELOW, *_drift(setting, accumulated=True), VANISHING),
        order="O(d^{4/3}L₀·W_T·T^{1/2} + d^{4/3}(L₁/L₀)·W̃_T)",
        regret="Σ E‖∇f_t(x_t)‖², the squared slope",
        convex=False,
        smoothness=real("smoothness", smoothness, 0, above=True),
    )


def convex_lipschitz_feasible(
    *,
    dim: int,
    horizon: int,
    lipschitz: float,
    inner_radius: float,
    outer_radius: float,
    exponent: float = 0.0,
    setting: Setting = "deterministic",
) -> Plan:
    """Appendix H: convex, L₀-Lipschitz, all queries inside the domain X; u on the unit sphere.

    inner_radius, outer_radius: r and r̄ such that a ball of radius r lies in X, and X in a ball of radius r̄ about the
    same point (`domain.inner_radius`, `domain.outer_radius`). The centre stays in (1 − ξ)X, ξ = δ/r.

    >>> plan = convex_lipschitz_feasible(dim=2, horizon=10_000, lipschitz=1.0, inner_radius=1.0, outer_radius=1.0)
    >>> round(plan.radius, 3), round(plan.shrinkage, 3)
    (0.141, 0.141)
    """
    dim, horizon, l0 = _checked(dim, horizon, lipschitz)
    r, big = real("inner_radius", inner_radius, 0, above=True), real("outer_radius", outer_radius, 0, above=True)
    exponent = real("exponent", exponent)
    if r > big:
        raise ValueError(f"inner_radius={r:g} is larger than outer_radius={big:g}: the inner ball lies in the domain")
    radius = math.sqrt(big * dim) * l0**-exponent * horizon**-0.25
    # The theorem omits ξ = δ/r < 1, which Lemma H.3 needs: otherwise nothing is left of the domain.
    room = math.floor((big * dim / (l0 ** (2 * exponent) * r**2)) ** 2) + 1
    return _plan(
        "Theorem of Appendix H",
        dim,
        horizon,
        l0,
        step=big**1.5 / (ROOT8 * l0 * math.sqrt(dim) * horizon**0.75),
        radius=radius,
        least=max(big**2 * l0 ** (2 * exponent), room),
        shrinkage=radius / r,
        assumptions=(
            CONVEX,
            LIPSCHITZ,
            f"a ball of radius {r:g} lies in X, and X in one of radius {big:g}",
            *_drift(setting),
        ),
        order="O((L₀ + L₀^{1−q} + L₀^{2q−1}V_f²)·√(d·r̄)·T^{3/4})",
        regret=STATIC,
        convex=True,
        inner_radius=r,
        outer_radius=big,
        law="sphere",
    )


def convex_lipschitz_ball(
    *,
    dim: int,
    horizon: int,
    lipschitz: float,
    distance: float | None = None,
    variation: float = 0.0,
    setting: Setting = "deterministic",
) -> Plan:
    """Convex, L₀-Lipschitz, u on the unit sphere: without drift the static regret is O(√(dT)), as for two points.

    Follows arXiv 2508.12228, which treats a static function; the second moment is that of `trimtab.theory.moments` for
    law="ball". With C = 4d²/(d−1) + 2√6·d and α = 3d²L₀²η²/δ² ≤ ½,

        η = R/(L₀√(2CT)),   δ = √6·d·L₀·η:   regret ≤ L₀R√(2CT),   C ≈ 9d.

    variation: V_f, if the cost drifts. Then η ≤ (R²/2T)^{3/4}/(3d²V_f²L₀²)^{1/4} and δ ≥ (3ηd²V_f²/L₀)^{1/3} balance
    the contributions of drift and smoothing, and the regret grows like T^{3/4}.

    setting: not "adversarial": the bound requires that f_t does not depend on u_{t−1}, which an adversary knows.

    >>> plan = convex_lipschitz_ball(dim=36, horizon=100_000, lipschitz=2.0, distance=1.0)
    >>> other = convex_lipschitz(dim=36, horizon=100_000, lipschitz=2.0, distance=1.0)
    >>> round(plan.bound(variation=0.0).per_step, 2), round(other.bound(variation=0.0).per_step, 1)
    (0.16, 3.4)
    """
    dim, horizon, l0 = _checked(dim, horizon, lipschitz)
    r = 1.0 if distance is None else real("distance", distance, 0, above=True)
    v = real("variation", variation, 0)
    if setting == "adversarial":
        raise ValueError(
            "setting='adversarial' has no guarantee with ball smoothing, which requires that f_t does not depend on the"
            " last direction, and an adversary knows it: use convex_lipschitz (convex-lipschitz)"
        )
    probing = 4.0 * dim**2 / max(dim - 1.0, 1.0) + 2.0 * math.sqrt(6.0) * dim
    step = r / (l0 * math.sqrt(2.0 * probing * horizon))
    if v:
        step = min(step, (r**2 / (2.0 * horizon)) ** 0.75 / (3.0 * dim**2 * v**2 * l0**2) ** 0.25)
    return _plan(
        "Ball smoothing (arXiv 2508.12228)",
        dim,
        horizon,
        l0,
        step=step,
        radius=max(math.sqrt(6.0) * dim * l0 * step, (3.0 * step * dim**2 * v**2 / l0) ** (1 / 3)),
        least=1.0,
        assumptions=(CONVEX, LIPSCHITZ, _nearby(distance), *_drift(setting), QUERIES),
        order="O(L₀R√(dT)) without drift, O(T^{3/4}) with it",
        regret=STATIC,
        convex=True,
        distance=distance,
        law="ball",
    )


theorems: dict[str, Callable[..., Plan]] = {
    "convex-lipschitz": convex_lipschitz,
    "convex-smooth": convex_smooth,
    "nonconvex-lipschitz": nonconvex_lipschitz,
    "nonconvex-smooth": nonconvex_smooth,
    "convex-lipschitz-feasible": convex_lipschitz_feasible,
    "convex-lipschitz-ball": convex_lipschitz_ball,
}

CONVEX = "every f_t is convex"
LIPSCHITZ = "every f_t is L₀-Lipschitz everywhere it may be measured"
SMOOTH = "every f_t is L₁-smooth: its gradient is L₁-Lipschitz"
BELOW = "f_t is bounded below"
UNCONSTRAINED = "there are no constraints"
QUERIES = "f_t can be measured outside the domain (a query may leave it)"
VANISHING = "W̃_T grows more slowly than T: with a steady drift, this theorem guarantees nothing"
STATIC = "static regret: the total cost above that of the best fixed point"


def _checked(dim: int, horizon: int, lipschitz: float) -> tuple[int, int, float]:
    return whole("dim", dim, 1), whole("horizon", horizon, 1), real("lipschitz", lipschitz, 0, above=True)


def _nearby(distance: float | None) -> str:
    if distance is None:
        return "the distance to the best fixed point is unknown (step and radius do not use it)"
    return f"the best fixed point is within R={distance:g} of the start"


def _drift(setting: Setting, *, accumulated: bool = False) -> tuple[str, ...]:
    """Assumption 3.1 or 4.1, or its counterpart with noise (Section 5) or against an adversary (Appendix I)."""
    if setting not in ("deterministic", "stochastic", "adversarial"):
        raise ValueError(f"setting={setting!r} is unknown: choose 'deterministic', 'stochastic' or 'adversarial'")
    noisy = setting == "stochastic"
    one, two = ("V_{f,ξ}", "W̃_{T,ξ}") if noisy else ("V_f", "W̃_T")
    change = "the measurement, noise included" if noisy else "the cost"
    words = [
        f"from round to round, {change} at the last query changes by at most {one} rms"
        if not accumulated
        else f"over the run, the squared changes of {change} at the last query add up to at most {two}, and the rises"
        " of the smoothed cost to at most W_T"
    ]
    if noisy:
        words.append("noise is unbiased, fresh in every measurement, and F_t(·; ξ) is L₀-Lipschitz for every ξ")
    if setting == "adversarial":
        # Appendix I describes the other order, for which the estimate is biased and nothing is guaranteed.
        words.append("the adversary chooses f_t before u_t is drawn, and never exceeds this bound")
    else:
        words.append("the drift does not depend on the queries")
    return tuple(words)


def _plan(
    theorem: str,
    dim: int,
    horizon: int,
    lipschitz: float,
    *,
    step: float,
    radius: float,
    least: float,
    assumptions: tuple[str, ...],
    order: str,
    regret: str,
    convex: bool,
    shrinkage: float = 0.0,
    smoothness: float | None = None,
    distance: float | None = None,
    inner_radius: float | None = None,
    outer_radius: float | None = None,
    law: Law = "gaussian",
) -> Plan:
    least_horizon = max(1, math.ceil(round(least, 9)))
    if horizon < least_horizon:
        warnings.warn(
            f"{theorem} needs a horizon of at least {least_horizon}, not {horizon}: plan for more rounds, or use step"
            " and radius as a first guess without a guarantee",
            stacklevel=3,
        )
    return Plan(
        theorem=theorem,
        dim=dim,
        horizon=horizon,
        lipschitz=lipschitz,
        step=step,
        radius=radius,
        shrinkage=shrinkage,
        contraction=contraction(dim=dim, lipschitz=lipschitz, step=step, radius=radius, law=law),
        least_horizon=least_horizon,
        assumptions=assumptions,
        order=order,
        regret=regret,
        convex=convex,
        smoothness=smoothness,
        distance=distance,
        inner_radius=inner_radius,
        outer_radius=outer_radius,
        law=law,
    )
