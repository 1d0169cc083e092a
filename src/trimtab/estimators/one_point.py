"""Conventional one-point feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trimtab.estimators.base import OneQuery, slope_along
from trimtab.protocols import Estimate, Estimation, Frame, fresh_look
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.types import Array, Value


@part
@dataclass(frozen=True)
class OnePoint(OneQuery):
    """a_t = f_t(x_t + δu_t): conventional one-point feedback (Eq. 2; Flaxman et al. 2005, Gasnikov et al. 2017).

    >>> import trimtab as tt
    >>> tt.one_point(radius=0.05, step=1e-4).estimator
    OnePoint()
    """

    anchored: ClassVar[bool] = False

    def bind(self, frame: Frame) -> Estimation:
        """Contrast: the value itself."""
        slope = slope_along(frame)

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            scale, vector = slope(state, look, values[0])
            return values[0], scale, vector, ()

        return Estimation(fresh_look, learn, frame.longest)
