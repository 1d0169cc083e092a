"""Steps that are functions of the trial, and conversion of numbers and functions to steps."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

import numpy as np

from trimtab.protocols import Frame, Step
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.steps.adaptive import Adaptive
from trimtab.steps.base import FixedWidth, Rate
from trimtab.steps.constant import Constant
from trimtab.types import Array, Memory, Value
from trimtab.validation import real

StepLike: TypeAlias = "Step | Adaptive | float | Sequence[float] | Array | Callable[[int], float]"
"""Accepted as a step: a number, one per lane, a function of the round, or one of `trimtab.steps`."""


class _Scheduled(FixedWidth):
    @abstractmethod
    def at(self, trial: int) -> float:
        """η_t of a trial."""

    def rate(self, frame: Frame) -> Rate:
        """η_t of the trial whose value is told."""
        at = self.at

        def rate(state: State, look: Look, contrast: Value) -> tuple[Value, Memory]:
            return at(int(np.max(look.trial))), ()

        return rate


@part
@dataclass(frozen=True)
class Power(_Scheduled):
    """η_t = η/(1 + t)^p: a schedule that can be saved.

    >>> Power(0.5, exponent=1.0).at(4)
    0.1
    """

    step: float
    exponent: float = 0.75

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", real("step", self.step, 0, above=True))
        real("exponent", self.exponent, 0, 2)

    def at(self, trial: int) -> float:
        """η/(1 + t)^p."""
        return float(self.step / (1 + trial) ** self.exponent)


@dataclass(frozen=True)
class Schedule(_Scheduled):
    """η_t = function(t): any function of the round. It cannot be saved: give the method again when loading.

    >>> Schedule(lambda t: 1 / (1 + t)).at(3)
    0.25
    """

    function: Callable[[int], float]

    def at(self, trial: int) -> float:
        """Call the function and check its result."""
        step = float(self.function(trial))
        if not (math.isfinite(step) and step >= 0):
            raise ValueError(f"the schedule gave {step!r} in round {trial}: a step must be a finite number >= 0")
        return step


def as_step(step: StepLike) -> Step | Adaptive:
    """Convert a number to `Constant` and a function of the round to `Schedule`; return a step rule unchanged."""
    if isinstance(step, Real | np.ndarray | list | tuple):
        return Constant(step)
    if hasattr(step, "widest"):
        return step  # type: ignore[return-value]
    if callable(step):
        return Schedule(step)
    raise TypeError(f"step={step!r} is not a step: give a number, a function of the round, or one of trimtab.steps")
