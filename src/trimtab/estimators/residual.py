"""Residual feedback: the method of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.estimators.base import OneQuery, slope_along
from trimtab.protocols import Estimate, Estimation, Frame, fresh_look
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.types import Array, Value


@part
@dataclass(frozen=True)
class Residual(OneQuery):
    """a_t = f_t(x_t + δu_t) − f_{t−1}(x_{t−1} + δu_{t−1}): residual feedback (Eq. 3; stochastic form in Section 5).

    Unbiased for ∇f_{δ,t}(x_t), because u_t has zero mean and is independent of the anchor (Lemma 2.4), the previous
    value.
    """

    def bind(self, frame: Frame) -> Estimation:
        """Contrast: the difference of two consecutive values."""
        slope = slope_along(frame, recall=1.0)

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            contrast = values[0] - state.values[0]
            scale, vector = slope(state, look, contrast)
            return contrast, scale, vector, ()

        return Estimation(fresh_look, learn, frame.longest)
