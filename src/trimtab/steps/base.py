"""Base class of steps with a constant probe width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from trimtab.protocols import Frame, Pacing
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value

Rate = Callable[[State, Look, Value], tuple[Value, Memory]]


class FixedWidth(ABC):
    """A step with probes of constant width that does not depend on how the centre moved."""

    scale_free: ClassVar[bool] = False
    narrowest: ClassVar[float] = 1.0
    widest: ClassVar[float] = 1.0

    @property
    def constant(self) -> float | tuple[float, ...] | None:
        """None: the rate changes over time."""
        return None

    def start(self, frame: Frame, centre: Array) -> Memory:
        """An empty memory."""
        return ()

    @abstractmethod
    def rate(self, frame: Frame) -> Rate:
        """The function (state, look, contrast) → (η_t, new memory)."""

    def bind(self, frame: Frame) -> Pacing:
        """Bind `rate`, with width 1 in every round."""
        return Pacing(lambda pace, trial: 1.0, self.rate(frame))
