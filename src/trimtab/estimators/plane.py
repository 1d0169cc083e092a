"""A plane through the values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from trimtab.estimators.base import OneQuery
from trimtab.parts import Estimate, Estimation, Frame
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value
from trimtab.validation import real

SETTLED, SCALE, TREND = 5, 100.0, 64.0


class Fit(NamedTuple):
    """What `Plane` remembers."""

    seen: Value
    square: Value
    level: Value
    trend: Value
    anchor: Array
    slope: Array


@part
@dataclass(frozen=True)
class Plane(OneQuery):
    """A plane through the values."""

    window: float = 4.0
    level: float = 0.5
    share: float = 0.65
    clip: float = 6.0
    every: int = 64
    first: int = 8
    unbiased: ClassVar[bool] = False
    located: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("window", self.window, 1, why=" of rounds")
        for name, largest in (("level", 1.0), ("share", 1.0), ("clip", math.inf)):
            real(name, getattr(self, name), 0, largest, above=True)

    def start(self, frame: Frame, centre: Array) -> Memory:
        """Nothing is known."""
        zero, nothing = frame.zero, np.zeros_like(centre)
        return Fit(zero, zero, zero + math.nan, zero, nothing, nothing)

    def echoes(self, trial: int) -> bool:
        """Whether a trial repeats the query before it."""
        n = trial + 1
        if n >= self.every:
            return n % self.every == 0
        times, rest = divmod(n, self.first)
        return rest == 0 < times and times & (times - 1) == 0

    def bind(self, frame: Frame) -> Estimation:
        """Probes, and now and then the last query again."""
        xp, unit, kept = frame.xp, frame.probe_length, 1.0 - 1.0 / self.window
        part = min(self.window / frame.dim, 1.0)

        def look(state: State, id: int, width: Value) -> Look:
            fresh = Look(id, state.centre, width)
            if self.echoes(id):
                again = state.told == id - 1
                if xp.any(again):
                    return xp.merge(again, state.last, fresh)
            return fresh

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            value, length = values[0], unit * look.width
            seen, square, level, trend, middle, slope = state.slope
            first = level != level
            if xp.any(first):
                level, middle = xp.where(first, value, level), xp.merge(first, query, middle)
            apart = query - middle
            known = part * xp.dot(slope, apart) + trend
            error = value - level - known
            limit = xp.where((seen > SETTLED) & (square > 0), self.clip * xp.sqrt(square), math.inf)
            error = xp.clip(error, -limit, limit)
            seen = seen + xp.where(first, 0.0, 1.0)
            square = square + (error * error - square) * xp.maximum(1.0 / xp.maximum(seen, 1.0), 1.0 / SCALE)
            gain = self.share / part * error / xp.maximum(xp.dot(apart, apart), 0.5 * length * length)
            slope = slope * kept
            slope += xp.times(gain, apart)
            level, trend = level + self.level * (known + error), trend + error / TREND
            apart *= self.level
            apart += middle
            fit = Fit(seen, square, level, trend, apart, slope)
            return xp.where(first, math.nan, error), 1.0, slope, fit, None

        return Estimation(look, learn)
