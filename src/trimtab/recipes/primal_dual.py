"""Residual feedback with measured limits: a primal-dual method, whose multipliers are learnt with the centre.

Chen, Giannakis, "Bandit Convex Optimization for Scalable and Dynamic IoT Management", arXiv 1707.09060 (the saddle
point); projected primal-dual zeroth-order methods: arXiv 2206.11123.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Unpack

from trimtab.estimators.base import STEEPEST, OneQuery, slope_along
from trimtab.protocols import Estimate, Estimation, Frame, fresh_look
from trimtab.recipes.method import Method, Options, register
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.steps import StepLike
from trimtab.types import Array, Memory, Value
from trimtab.validation import real, whole


class Prices(NamedTuple):
    """Memory of `Lagrangian`: the multipliers λ_i, the price of exceeding each limit."""

    prices: tuple[Value, ...]


@part
@dataclass(frozen=True)
class Lagrangian(OneQuery):
    """a_t = L_t(x_t + δu_t; λ_t) − L_{t−1}(x_{t−1} + δu_{t−1}; λ_t), where L(x; λ) = f(x) + Σ_i λ_i·g_i(x)

        λ_i ← max(0, λ_i·(1 − α·decay) + α·g_i),   α the dual step

    One query measures f and g_1, …, g_m, required to be ≤ 0. Values of the previous round get the same weights λ_t, so
    a_t is the residual of a single function, unbiased for ∇f + Σλ_i∇g_i because u_t is independent of λ_t.

    >>> import trimtab as tt
    >>> tt.primal_dual(radius=0.05, step=0.02, dual_step=0.02, limits=2).estimator
    Lagrangian(limits=2, dual_step=0.02, decay=0.0)
    """

    limits: int = 1
    dual_step: float = 0.01
    decay: float = 0.0
    unbiased: ClassVar[bool] = False  # with respect to f alone

    def __post_init__(self) -> None:
        whole("limits", self.limits, 1, 2**20, why=": without any, use tt.residual")
        real("dual_step", self.dual_step, 0, above=True)
        real("decay", self.decay, 0, 1 / self.dual_step, why=", so that a price decays without oscillating")

    @property
    def told(self) -> int:  # type: ignore[override]
        """The value, and one number per limit."""
        return 1 + self.limits

    def start(self, frame: Frame, centre: Array) -> Memory:
        """All multipliers at 0."""
        return Prices((frame.zero,) * self.limits)

    def bind(self, frame: Frame) -> Estimation:
        """Contrast: the residual of the Lagrangian."""
        slope, xp = slope_along(frame, recall=1.0), frame.xp
        dual_step, kept = self.dual_step, 1.0 - self.dual_step * self.decay

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            before, prices = state.values, state.slope.prices
            contrast = values[0] - before[0]
            for price, limit, anchor in zip(prices, values[1:], before[1:], strict=True):
                contrast = contrast + price * (limit - anchor)
            contrast = xp.clip(contrast, -STEEPEST, STEEPEST)
            scale, vector = slope(state, look, contrast)
            raised = (kept * price + dual_step * limit for price, limit in zip(prices, values[1:], strict=True))
            paid = tuple(xp.clip(price, 0.0, STEEPEST) for price in raised)
            return contrast, scale, vector, Prices(paid)

        return Estimation(fresh_look, learn, frame.longest)


@register("primal-dual")
def primal_dual(
    *,
    radius: float,
    step: StepLike,
    limits: int = 1,
    dual_step: float = 0.01,
    decay: float = 0.0,
    **more: Unpack[Options],
) -> Method:
    """Minimise f subject to g_1, …, g_m ≤ 0, all measured in one query: `tuner.tell(trial, value, limits=[…])`.

    limits: m. dual_step: α, the rise of a multiplier per round and unit of excess; if f and g have similar slopes, use
    about the step (Chen & Giannakis use equal ones). No step suits every system: one that is too large drives the
    centre into a corner of the domain, beyond the limits. decay: makes multipliers fade, which permits a lasting excess
    of decay·λ; use it if the system oscillates. If f and g are both linear it always does, because the centre only
    settles where f + Σλ_i·g_i is curved.

    The guarantee concerns the long run: λ_i grows by at least α·g_i every round, so the mean of g_i over the queries of
    T rounds is at most λ_i/(α·T), which vanishes if the multiplier stays bounded (with decay = 0). A single query is
    **not** guaranteed to be safe: the method learns a limit by exceeding it, possibly by far at first, after a jump, or
    during oscillations. Put hard limits into `bounds` or `domain`, or enforce them outside.

    >>> import trimtab as tt
    >>> tuner = tt.Tuner([0.0], primal_dual(radius=0.05, step=0.02, dual_step=0.02), domain=tt.Box(-1, 1), seed=0)
    >>> for _ in range(2000):
    ...     trial = tuner.ask()
    ...     tuner.tell(trial, (trial.x[0] - 0.9) ** 2, limits=[trial.x[0] - 0.3])  # best at 0.9, allowed to 0.3
    >>> bool(abs(tuner.centre[0] - 0.3) < 0.05)
    True
    """
    return Method(estimator=Lagrangian(limits, dual_step, decay), radius=radius, step=step, **more)
