"""Constant steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.protocols import Frame
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.steps.base import FixedWidth, Rate
from trimtab.types import Array, Memory, Value


@part
@dataclass(frozen=True)
class Constant(FixedWidth):
    """η_t = η, one number for all lanes or one per lane.

    >>> Constant(0.1).constant
    0.1
    """

    step: float | Sequence[float] | Array

    def __post_init__(self) -> None:
        step = np.asarray(self.step)
        if step.ndim > 1 or step.dtype.kind not in "iuf" or not (np.isfinite(step).all() and (step > 0).all()):
            raise ValueError(f"step={self.step!r} is not a step size: it must be a finite number > 0")
        object.__setattr__(self, "step", float(step) if step.ndim == 0 else tuple(step.tolist()))

    @property
    def constant(self) -> float | tuple[float, ...] | None:
        """η."""
        return self.step  # type: ignore[return-value]

    def rate(self, frame: Frame) -> Rate:
        """η in every round."""
        step = self.step if isinstance(self.step, float) else np.array(self.step)

        def rate(state: State, look: Look, contrast: Value) -> tuple[Value, Memory]:
            return step, ()

        return rate
