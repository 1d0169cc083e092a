"""High-pass filtered values: the value minus a running mean of earlier ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from trimtab.estimators.base import OneQuery, slope_along
from trimtab.protocols import Estimate, Estimation, Frame, fresh_look
from trimtab.registry import part
from trimtab.rescaling import POWERS
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value
from trimtab.validation import real


class Mean(NamedTuple):
    """Memory of `HighPass`."""

    mean: Value


POWERS[Mean] = {}


@part
@dataclass(frozen=True)
class HighPass(OneQuery):
    """a_t = z_t with z_t = β·z_{t−1} + y_t − y_{t−1}: the value minus a running mean b_t of earlier values.

    In terms of the mean, z_t = y_t − b_t and b_{t+1} = y_t − β·z_t. β = 0 is residual feedback. Unbiased for the same
    reason: everything except y_t is independent of u_t. A larger β averages more noise and probing out of the anchor,
    but follows a drifting offset more slowly. This is the high-pass filter of extremum seeking, and the first half of
    HLF-SZO (Chen, Tang, Li, ICML 2022); `trimtab.recipes.hlf_szo` adds the second half.

    >>> import trimtab as tt
    >>> tt.high_pass(radius=0.05, step=3e-3, beta=0.8).estimator
    HighPass(beta=0.8)
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        real("beta", self.beta, 0.0, 1.0, below=True, why=", to make a high-pass filter: choose 0 <= beta < 1")

    def start(self, frame: Frame, centre: Array) -> Memory:
        """A memory without a mean."""
        return Mean(frame.zero + math.nan)

    def bind(self, frame: Frame) -> Estimation:
        """Contrast: the value minus the mean."""
        slope, where, beta = slope_along(frame, recall=1.0 - self.beta), frame.xp.where, self.beta

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            contrast = values[0] - state.slope[0]
            mean = values[0] - beta * where(contrast != contrast, 0.0, contrast)
            scale, vector = slope(state, look, contrast)
            return contrast, scale, vector, Mean(mean)

        return Estimation(fresh_look, learn, frame.longest)
