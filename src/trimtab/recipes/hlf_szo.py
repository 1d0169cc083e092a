"""HLF-SZO: residual feedback with high-pass filtered values and low-pass filtered moves (momentum).

Chen, Tang, Li, "Improve Single-Point Zeroth-Order Optimization Using High-Pass and Low-Pass Filters", ICML 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Unpack

import numpy as np

from trimtab.estimators import HighPass
from trimtab.estimators.base import STEEPEST, Wrapped
from trimtab.protocols import Estimate, Estimation, Estimator, Frame
from trimtab.recipes.method import Method, Options, register
from trimtab.registry import part
from trimtab.rescaling import POWERS
from trimtab.state import Look, State
from trimtab.steps import StepLike
from trimtab.types import Array, Memory, Value
from trimtab.validation import real


class Filtered(NamedTuple):
    """Memory of `Momentum`: that of the wrapped estimator, and the filtered estimate."""

    base: Memory
    filtered: Array


POWERS[Filtered] = {"filtered": -1}


@part
@dataclass(frozen=True)
class Momentum(Wrapped):
    """m_t = α·m_{t−1} + ĝ_t in place of ĝ_t: a low-pass filter behind another estimator (heavy ball).

    Without projection x_{t+1} − x_t = −η·ĝ_t + α·(x_t − x_{t−1}), so a step η moves 1/(1 − α) times as far.

    >>> import trimtab as tt
    >>> method = tt.Method(estimator=tt.Momentum(tt.Residual(), alpha=0.5), radius=0.05, step=3e-3)
    """

    base: Estimator = field(default_factory=HighPass)
    alpha: float = 0.9

    def __post_init__(self) -> None:
        real("alpha", self.alpha, 0, 1, below=True)

    def start(self, frame: Frame, centre: Array) -> Memory:
        """The memory of the wrapped estimator, and no momentum."""
        return Filtered(self.base.start(frame, centre), np.zeros_like(centre))

    def bind(self, frame: Frame) -> Estimation:
        """Contrast of the wrapped estimator, filtered slope."""
        look_of, base, *_ = self.base.bind(frame)
        xp, alpha = frame.xp, self.alpha

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            memory, filtered = state.slope
            contrast, scale, vector, memory = base(state.remembering(memory), look, query, values)
            slope = xp.axpy(xp.where(contrast != contrast, 0.0, scale), vector, alpha * filtered)
            np.clip(slope, -STEEPEST, STEEPEST, out=slope)
            return contrast, 1.0, slope, Filtered(memory, slope)

        return Estimation(look_of, learn)


@register("hlf-szo")
def hlf_szo(*, radius: float, step: StepLike, beta: float = 0.5, alpha: float = 0.9, **more: Unpack[Options]) -> Method:
    """HLF-SZO with high-pass parameter β and momentum α.

    >>> hlf_szo(radius=0.05, step=3e-3).estimator
    Momentum(base=HighPass(beta=0.5), alpha=0.9)
    """
    return Method(estimator=Momentum(HighPass(beta), alpha), radius=radius, step=step, **more)
