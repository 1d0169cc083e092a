"""PBGD: a geometric grid of step sizes, each with its own centre, mixed by Hedge; parameter-free, for dynamic regret.

Zhao, Wang, Zhang, Zhou, "Bandit Convex Optimization in Non-stationary Environments", JMLR 22 (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Unpack

import numpy as np

from trimtab.estimators import OnePoint
from trimtab.estimators.base import STEEPEST, Wrapped
from trimtab.protocols import Estimate, Estimation, Estimator, Frame
from trimtab.recipes.method import Method, Options, register
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.steps import StepLike
from trimtab.types import Array, Memory, Value
from trimtab.validation import whole

FASTEST = 1e300  # limit on sums of squares


class Pool(NamedTuple):
    """Memory of `Hedged`: that of the wrapped estimator, G = Σĝ_s, Σ⟨ĝ_s, G_s⟩ and Σ⟨ĝ_s, G_s⟩²."""

    base: Memory
    total: Array
    gained: Value
    power: Value


@part
@dataclass(frozen=True)
class Hedged(Wrapped):
    """N experts descend by the same ĝ_t with steps η·r_i, r_i = 2^{i−(N+1)/2}; x_t = Σ p_i·x_{i,t}, p by Hedge.

    All experts use one estimate, so x_{i,t} = c_t − η·r_i·G_t with G_t = Σ_{s<t} ĝ_s, and the loss ⟨ĝ_t, x_{i,t} − x_t⟩
    is −η·r_i·⟨ĝ_t, G_t⟩ plus a term common to all: p_i ∝ exp(ε·r_i·Σ_s⟨ĝ_s, G_s⟩). The rate of Hedge follows from the
    range of past losses, ε = √(ln N/Σ_s (r_N − r_1)²⟨ĝ_s, G_s⟩²), which makes the weights free of units. Memory is
    O(d), since experts are not stored. A projection shifts all of them with their mean.

    >>> import trimtab as tt
    >>> method = tt.Method(estimator=tt.Hedged(tt.Residual(), count=5), radius=0.05, step=3e-3)
    """

    base: Estimator = field(default_factory=OnePoint)
    count: int = 7

    def __post_init__(self) -> None:
        whole("count", self.count, 2, 60)

    def start(self, frame: Frame, centre: Array) -> Memory:
        """All experts at the centre, with equal weights."""
        return Pool(self.base.start(frame, centre), np.zeros_like(centre), frame.zero, frame.zero)

    def bind(self, frame: Frame) -> Estimation:
        """Contrast of the wrapped estimator; the slope is the move of the experts' mean, divided by −η."""
        look_of, base, *_ = self.base.bind(frame)
        xp, sizes = frame.xp, 2.0 ** (np.arange(self.count) - (self.count - 1) / 2)
        rate = math.sqrt(math.log(self.count)) / (sizes[-1] - sizes[0])

        def mean_size(gained: Value, power: Value) -> Value:
            evidence = rate * np.asarray(gained) / np.sqrt(np.maximum(power, np.finfo(float).tiny))
            weights = np.exp((sizes - sizes[-1]) * np.maximum(evidence, 0)[..., None]
                             + (sizes - sizes[0]) * np.minimum(evidence, 0)[..., None])  # fmt: skip
            mean = (weights * sizes).sum(-1) / weights.sum(-1)
            return mean if mean.ndim else float(mean)

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            memory, total, gained, power = state.slope
            contrast, scale, vector, memory = base(state.remembering(memory), look, query, values)
            slope = xp.times(xp.where(contrast != contrast, 0.0, scale), vector)
            np.clip(slope, -STEEPEST, STEEPEST, out=slope)
            aligned = xp.clip(xp.dot(slope, total), -math.sqrt(FASTEST), math.sqrt(FASTEST))
            before = mean_size(gained, power)
            gained, power = gained + aligned, xp.minimum(power + aligned * aligned, FASTEST)
            after, following = mean_size(gained, power), np.clip(total + slope, -STEEPEST, STEEPEST)
            move = xp.axpy(after, following, -xp.times(before, total))
            return contrast, 1.0, move, Pool(memory, following, gained, power)

        return Estimation(look_of, learn)


@register("pbgd")
def pbgd(
    *, radius: float, step: StepLike, count: int = 7, base: Estimator | None = None, **more: Unpack[Options]
) -> Method:
    """Hedge over `count` step sizes around `step`, each twice the previous one; with one-point feedback, as published.

    >>> pbgd(radius=0.05, step=3e-3).estimator
    Hedged(base=OnePoint(), count=7)
    """
    return Method(estimator=Hedged(base or OnePoint(), count), radius=radius, step=step, **more)
