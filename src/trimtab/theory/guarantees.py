"""The step and radius of a theorem, and its guarantee term by term; see `trimtab.theory.plans`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trimtab.directions import Gaussian, Sphere
from trimtab.estimators import Residual
from trimtab.recipes import Method
from trimtab.theory.moments import Law, coefficients, gradient_gap, smoothing_gap
from trimtab.validation import real


@dataclass(frozen=True)
class Bound:
    """A guarantee: named terms and their sum, over the whole horizon.

    >>> from trimtab.theory import Bound, convex_lipschitz
    >>> bound: Bound = convex_lipschitz(dim=2, horizon=1000, lipschitz=1.0, distance=1.0).bound(variation=0.1)
    >>> bound.total == sum(bound.terms.values())
    True
    """

    terms: dict[str, float]
    regret: str
    """The bounded quantity."""
    order: str
    """The order of growth."""
    horizon: int

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def per_step(self) -> float:
        """The total divided by the horizon."""
        return self.total / self.horizon


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Step and radius by a theorem, and its guarantee.

    >>> from trimtab.theory import Plan, theorems
    >>> plan: Plan = theorems["convex-lipschitz"](dim=2, horizon=1000, lipschitz=1.0, distance=1.0)
    >>> plan.theorem, plan.method().radius == plan.radius
    ('Theorem 3.2', True)
    """

    theorem: str
    dim: int
    horizon: int
    lipschitz: float
    """L₀."""
    step: float
    """η."""
    radius: float
    """δ; on the sphere, the length of the probe."""
    shrinkage: float = 0.0
    """ξ: the centre stays in (1 − ξ)X, so that every query stays in X (Appendix H); 0 for all other theorems."""
    contraction: float
    """α; the bounds need α ≤ ½."""
    least_horizon: int
    """The smallest horizon for which the theorem holds."""
    assumptions: tuple[str, ...]
    order: str
    regret: str
    convex: bool
    smoothness: float | None = None
    """L₁, where the theorem uses it."""
    distance: float | None = None
    """R, if it was known."""
    inner_radius: float | None = None
    outer_radius: float | None = None
    law: Law = "gaussian"
    """The law of u, and of the constants: "ball" is the sphere with sharper constants."""

    @property
    def holds(self) -> bool:
        """Whether the horizon is long enough for the theorem."""
        return self.horizon >= self.least_horizon

    @property
    def feasible(self) -> bool:
        """Whether all queries stay in the domain (Appendix H)."""
        return self.inner_radius is not None

    def method(self) -> Method:
        """The method for `Tuner`; the feasible variant also needs the domain with these radii."""
        if self.feasible:
            return Method(estimator=Residual(), radius=self.radius, step=self.step, directions=Sphere(), margin="scale")
        if self.law == "ball":
            return Method(estimator=Residual(), radius=self.radius, step=self.step, directions=Sphere(), margin="none")
        return Method(estimator=Residual(), radius=self.radius, step=self.step, directions=Gaussian())

    def bound(
        self,
        *,
        variation: float | None = None,
        distance: float | None = None,
        gap: float | None = None,
        accumulated: float = 0.0,
        squared: float | None = None,
        first_moment: float | None = None,
        tight: bool = False,
        played: bool = False,
    ) -> Bound:
        """The guarantee over the horizon, by term.

        Convex theorems need variation=V_f, and distance=R unless the plan has it. Nonconvex ones need
        gap = E f_δ,0(x_0) − min f_δ,T, accumulated = W_T, and squared = W̃_T, or variation = V_f: W̃_T = T·V_f².
        With noise these are V_{f,ξ} and W̃_{T,ξ} (Section 5).

        first_moment: E‖ĝ_0‖², if there was a measurement before the first. tight: see `trimtab.theory.plans`.
        played: bound the evaluated cost, at x_t + δu_t, instead of the cost at the centres: E f_t(x_t + δu_t) =
        f_δ,t(x_t) adds the gap between f_δ and f once more, T·L₀δ√d for Lipschitz f. Convex theorems only.
        """
        if not self.holds:
            raise ValueError(
                f"{self.theorem} guarantees nothing for horizon={self.horizon}: give at least {self.least_horizon}"
                f" rounds (here α={self.contraction:.3g}, ξ={self.shrinkage:.3g})"
            )
        if variation is not None:
            real("variation", variation, 0)
        if first_moment is not None:
            real("first_moment", first_moment, 0)
        if played and not self.convex:
            raise ValueError(f"{self.theorem} bounds slopes, which have no evaluated cost: leave played= out")
        terms = (
            self._convex(variation, distance, first_moment, tight, played)
            if self.convex
            else self._nonconvex(variation, gap, accumulated, squared, first_moment, tight)
        )
        return Bound(terms, self.regret, self.order, self.horizon)

    def _convex(
        self, variation: float | None, distance: float | None, first: float | None, tight: bool, played: bool
    ) -> dict[str, float]:
        d, horizon, l0, step, radius = self.dim, self.horizon, self.lipschitz, self.step, self.radius
        if variation is None:
            raise ValueError("the bound needs variation=V_f: the rms change of the value at a fixed point, per round")
        reach = 2.0 * self.outer_radius if self.outer_radius is not None else self.distance
        if reach is None:
            if distance is None:
                raise ValueError(
                    "the bound needs distance=R, the largest distance from the start to the best fixed point;"
                    " the step and radius were chosen without it"
                )
            reach = real("distance", distance, 0, above=True)
        _, probing, moving = coefficients(d, self.law)
        # The paper has η for (η/2)·2, and another factor 2 in the two terms that grow with T (valid, loose).
        exact = tight or self.law == "ball"
        start, run = (step / (2.0 * (1.0 - self.contraction)),) * 2 if exact else (step, 2.0 * step)
        gap = smoothing_gap(
            dim=d,
            radius=radius,
            law=self.law,
            **({"smoothness": self.smoothness} if self.smoothness else {"lipschitz": l0}),
        )
        terms = {
            "distance": reach**2 / (2.0 * step),
            "first round": l0 * reach if first is None else start * first,
            "probing": run * probing * l0**2 * horizon,
            "smoothing": 2.0 * gap * horizon,
            "drift": run * moving * variation**2 / radius**2 * horizon,
        }
        if played:
            terms["playing"] = (gap if self.law == "gaussian" else radius * l0) * horizon
        if self.outer_radius is not None:
            terms["shrinking"] = self.outer_radius * l0 * self.shrinkage * horizon
        return terms

    def _nonconvex(
        self,
        variation: float | None,
        gap: float | None,
        accumulated: float,
        squared: float | None,
        first: float | None,
        tight: bool,
    ) -> dict[str, float]:
        d, horizon, l0, step, radius = self.dim, self.horizon, self.lipschitz, self.step, self.radius
        if gap is None:
            raise ValueError("the bound needs gap=: the smoothed cost at the start minus the lowest at the horizon")
        if squared is None:
            if variation is None:
                raise ValueError("the bound needs squared=W̃_T, or variation=V_f, which gives W̃_T = T·V_f²")
            squared = horizon * variation**2
        real("gap", gap, 0)
        real("accumulated", accumulated, 0, why=": a falling cost counts as 0")
        real("squared", squared, 0)
        descended = math.sqrt(d) * l0 / radius if self.smoothness is None else self.smoothness
        twice = 1.0 if self.smoothness is None else 2.0  # ‖∇f‖² ≤ 2‖∇f_δ‖² + 2‖∇f − ∇f_δ‖²
        run = twice * descended * step / (2.0 * (1.0 - self.contraction)) if tight else twice * descended * step
        terms = {
            "gap": twice * gap / step,
            "accumulated variation": twice * accumulated / step,
            "first round": l0**2 if first is None else run * first,
            "probing": run * 16.0 * l0**2 * (d + 4.0) ** 2 * horizon,
            "drift": run * 2.0 * d * squared / radius**2,
        }
        if self.smoothness is not None:
            terms["smoothing"] = 2.0 * gradient_gap(dim=d, radius=radius, smoothness=self.smoothness) ** 2 * horizon
        return terms
