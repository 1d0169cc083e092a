"""Base classes of estimators with one query per round, whose contrast a_t multiplies the probe direction:

    ĝ_t = (scale/δ_t) · a_t · u_t

Subclasses only define a_t. Values are floats (one system) or arrays (lanes); noisy values F_t(·; ξ_t) (Section 5) need
no special treatment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from trimtab.inputs import STEEPEST as STEEPEST
from trimtab.protocols import Estimator, Frame
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value

SlopeAlong = Callable[[State, Look, Value], tuple[Value, Array]]


class OneQuery:
    """One query at x + δ_t·u, contrasted with earlier values; no memory beyond the value told last."""

    offsets: ClassVar[tuple[float, ...]] = (1.0,)
    told: ClassVar[int] = 1
    lags: ClassVar[tuple[int, ...]] = (0,)
    anchored: ClassVar[bool] = True
    unbiased: ClassVar[bool] = True
    located: ClassVar[bool] = False

    def start(self, frame: Frame, centre: Array) -> Memory:
        """An empty memory."""
        return ()


class Wrapped:
    """An estimator that wraps another one, `base`, which defines the queries and the contrast."""

    base: Estimator
    unbiased: ClassVar[bool] = False
    offsets = property(lambda self: self.base.offsets)
    told = property(lambda self: self.base.told)
    lags = property(lambda self: self.base.lags)
    anchored = property(lambda self: self.base.anchored)
    located = property(lambda self: self.base.located)


def slope_along(frame: Frame, recall: float = 0.0) -> SlopeAlong:
    """Build (state, look, contrast) → scale and vector of (scale/δ_t)·contrast·u.

    recall: the weight of −y_{t−1} in the contrast. If that value was measured at −u (`Paired`), it contains the same
    gradient, and the estimate is divided by 1 + recall.
    """
    per_probe, direction, partner = frame.scale / frame.radius, frame.direction, frame.partner
    where = frame.xp.where

    def single(state: State, look: Look, contrast: Value) -> tuple[Value, Array]:
        return per_probe / look.width * contrast, direction(state.key, look.trial)

    def paired(state: State, look: Look, contrast: Value) -> tuple[Value, Array]:
        both = where(state.told == partner(look.trial), 1.0 + recall, 1.0)
        return per_probe / look.width / both * contrast, direction(state.key, look.trial)

    return single if partner(0) is None else paired
