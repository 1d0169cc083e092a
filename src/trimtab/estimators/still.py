"""No tuning at all: the baseline for every method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from trimtab.estimators.base import OneQuery
from trimtab.protocols import Estimate, Estimation, Frame, fresh_look
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.types import Array, Value


@part
@dataclass(frozen=True)
class Still(OneQuery):
    """Measure at the centre and never move.

    >>> import trimtab as tt
    >>> tuner = tt.Tuner([1.0], tt.Method(estimator=tt.Still(), radius=0.1, step=0.1))
    >>> tuner.tell(tuner.ask(), 3.0)
    >>> tuner.centre
    array([1.])
    """

    offsets: ClassVar[tuple[float, ...]] = (0.0,)
    unbiased: ClassVar[bool] = False

    def bind(self, frame: Frame) -> Estimation:
        """No contrast: always NaN."""
        nothing = frame.zero + math.nan

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            return nothing, frame.zero, state.centre, ()

        return Estimation(fresh_look, learn)
