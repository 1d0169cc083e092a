"""Residual feedback under limits that are measured, too: the multipliers learn beside the centre.

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
    """What `Lagrangian` remembers: λ_i, what an excess of each limit costs."""

    prices: tuple[Value, ...]


@part
@dataclass(frozen=True)
class Lagrangian(OneQuery):
    """a_t = L_t(x_t + δu_t; λ_t) − L_{t−1}(x_{t−1} + δu_{t−1}; λ_t), where L(x; λ) = f(x) + Σ_i λ_i·g_i(x)

        λ_i ← max(0, λ_i·(1 − α·decay) + α·g_i),   α the dual step

    One query brings f and g_1, …, g_m, which are to be ≤ 0. The values of the round before are weighed by the same λ_t,
    so that a_t is a residual of one function: unbiased for ∇f + Σλ_i∇g_i, because u_t is independent of λ_t.

    >>> import trimtab as tt
    >>> tt.primal_dual(radius=0.05, step=0.02, dual_step=0.02, limits=2).estimator
    Lagrangian(limits=2, dual_step=0.02, decay=0.0)
    """

    limits: int = 1
    dual_step: float = 0.01
    decay: float = 0.0
    unbiased: ClassVar[bool] = False  # of f alone

    def __post_init__(self) -> None:
        whole("limits", self.limits, 1, 2**20, why=": without any, use tt.residual")
        real("dual_step", self.dual_step, 0, above=True)
        real("decay", self.decay, 0, 1 / self.dual_step, why=", so that a price decays without oscillating")

    @property
    def told(self) -> int:  # type: ignore[override]
        """The value, and one number for each limit."""
        return 1 + self.limits

    def start(self, frame: Frame, centre: Array) -> Memory:
        """Nothing costs anything yet."""
        return Prices((frame.zero,) * self.limits)

    def bind(self, frame: Frame) -> Estimation:
        """The residual of the Lagrangian is the contrast."""
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
            return contrast, scale, vector, Prices(paid), None

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
    """Minimise f where g_1, …, g_m ≤ 0, all measured at one query a round: `tuner.tell(trial, value, limits=[…])`.

    limits: m. dual_step: α, how fast the price of a limit rises while it is exceeded, per round and unit of g; near the
    step (Chen & Giannakis take them equal) where f and g are about as steep. No step suits every system: one that is
    too large ends in the corners of the domain, beyond the limits. decay: fades the prices, at the cost of an excess of
    decay·λ in the long run; for a system that swings, as it does for ever where f and g are both linear: the
    centre settles only where f + Σλ_i·g_i is curved.

    What it promises is the long run: λ grows by at least α·g in every round, so the mean of g_i over what was played in
    T rounds is at most λ_i/(α·T), which goes to 0 while the price stays bounded (decay = 0). What it does **not**
    promise is the safety of a single probe: it learns a limit by exceeding it, and may be far beyond it at first, after
    a jump, or while a price swings. What must never happen belongs into `bounds` or `domain`, or a guard outside.

    >>> import trimtab as tt
    >>> tuner = tt.Tuner([0.0], primal_dual(radius=0.05, step=0.02, dual_step=0.02), domain=tt.Box(-1, 1), seed=0)
    >>> for _ in range(2000):
    ...     trial = tuner.ask()
    ...     tuner.tell(trial, (trial.x[0] - 0.9) ** 2, limits=[trial.x[0] - 0.3])  # best at 0.9, allowed to 0.3
    >>> bool(abs(tuner.centre[0] - 0.3) < 0.05)
    True
    """
    return Method(estimator=Lagrangian(limits, dual_step, decay), radius=radius, step=step, **more)
