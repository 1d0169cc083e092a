"""What most steps have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from trimtab.protocols import Frame, Pacing, Sense
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value

Rate = Callable[[State, Look, Value, Sense | None], tuple[Value, Memory]]


class FixedWidth(ABC):
    """A step whose probes stay as wide as they are, and that does not ask where the centre went."""

    scale_free: ClassVar[bool] = False
    needs_sense: ClassVar[bool] = False
    finds_width: ClassVar[bool] = False
    narrowest: ClassVar[float] = 1.0
    widest: ClassVar[float] = 1.0

    @property
    def constant(self) -> float | tuple[float, ...] | None:
        """It changes."""
        return None

    def start(self, frame: Frame, centre: Array) -> Memory:
        """Nothing to remember."""
        return ()

    @abstractmethod
    def rate(self, frame: Frame) -> Rate:
        """(state, look, contrast, sense) → η_t, and the new memory: all that is left to say."""

    def bind(self, frame: Frame) -> Pacing:
        """The same width in every round, and nothing to settle."""
        return Pacing(lambda pace, trial: 1.0, self.rate(frame))
