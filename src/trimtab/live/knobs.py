"""Named parameters ↔ coordinates: a knob has a name, a range, a scale, and a start, which is where the system is now.

The tuner works on the share z ∈ [0, 1] of each range, linear or logarithmic. Integer knobs are rounded at random, up
with the probability of their fraction, so that E[rounded] is the wanted value. Rounded each by its own draw, the
measurement is in expectation f̃(v), the piecewise (multi)linear interpolation of f between whole numbers; hence E[y·u]
is the smoothed gradient of f̃ without bias, and f̃ has its minimum where f has it, at whole numbers. Rounding to the
nearest would hide every probe shorter than half a unit. The draws are a function of (seed, round), like the
directions: asking again, also after a crash, gives the same whole numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from trimtab.live.schema import Setting
from trimtab.randomness import ROUNDING, Keyed
from trimtab.types import Array


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One parameter of the system.

    type: "float" or "integer" (rounded at random, see above); scale: "linear" or "log".

    >>> knob = Knob(name="workers", low=1, high=64, start=4, type="integer", scale="log")
    >>> knob.share(8), knob.value(0.5)
    (0.5, 8.0)
    """

    name: str
    low: float
    high: float
    start: float
    type: str = "float"
    scale: str = "linear"
    unit: str = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and re.fullmatch(r"[A-Za-z_]\w{0,63}", self.name, re.ASCII)):
            raise ValueError(f"knob {self.name!r}: a name is letters, digits and _, and starts with a letter")
        for field, choices in (("type", ("float", "integer")), ("scale", ("linear", "log"))):
            if getattr(self, field) not in choices:
                self._refuse(field, f"unknown: choose {choices[0]!r} or {choices[1]!r}")
        if not isinstance(self.unit, str):
            self._refuse("unit", 'not a text: write it in quotes, for example "ms"')
        for field in ("low", "high", "start"):
            number = getattr(self, field)
            if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= 1e150:
                self._refuse(field, "not a finite number: give one")
            if self.type == "integer" and number != int(number):
                self._refuse(field, 'not a whole number: give one, or type = "float"')
        if not self.low < self.high:
            self._refuse("low", f"not below high={self.high!r}: swap them, or widen the range")
        if not self.low <= self.start <= self.high:
            self._refuse("start", f"outside {self.low!r} to {self.high!r}: start is where the system is now")
        if self.scale == "log" and self.low <= 0:
            self._refuse("low", 'not above zero, as scale = "log" needs: raise it, or use scale = "linear"')

    def _refuse(self, field: str, why: str) -> None:
        raise ValueError(f"knob {self.name!r}: {field}={getattr(self, field)!r} is {why}")

    def share(self, value: float) -> float:
        """The knob's value → its place in the range, 0 to 1."""
        if self.scale == "log":
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """A place in the range → the knob's value, never outside it, before any rounding."""
        if self.scale == "log":
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        return float(min(max(value, self.low), self.high))


@dataclass(frozen=True)
class Knobs:
    """All knobs of a system, in the order of the coordinates.

    >>> knobs = Knobs((Knob(name="gain", low=0, high=10, start=2), Knob(name="size", low=1, high=9, start=5)))
    >>> knobs.setting(knobs.start)
    {'gain': 2.0, 'size': 5.0}
    """

    all: tuple[Knob, ...]

    def __post_init__(self) -> None:
        if not self.all:
            raise ValueError("there is no knob: give at least one, with name, low, high and start")
        names = [knob.name.upper() for knob in self.all]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two knobs are called {name}: names must differ by more than upper and lower case")

    @classmethod
    def of(cls, given: Iterable[Knob | Mapping[str, Any]]) -> Knobs:
        """From knobs, or from mappings with the fields of one."""
        return cls(tuple(knob if isinstance(knob, Knob) else _knob(knob) for knob in given))

    @property
    def start(self) -> Array:
        """Where the system is when the study begins, as shares of the ranges."""
        return np.array([min(max(knob.share(knob.start), 0.0), 1.0) for knob in self.all])

    def values(self, shares: Sequence[float] | Array) -> list[float]:
        """Coordinates → values in the units of the knobs, not rounded."""
        return [knob.value(share) for knob, share in zip(self.all, shares, strict=True)]

    def setting(self, shares: Sequence[float] | Array) -> Setting:
        """The nearest setting that the system can take."""
        return self._named([_nearest(k, v) for k, v in zip(self.all, self.values(shares), strict=True)])

    def probe(self, shares: Sequence[float] | Array, keyed: Keyed, round: int) -> Setting:
        """The setting of a query: whole numbers rounded at random, by draws that belong to the round."""
        draws = next(iter(keyed.generators(round))).random(len(self.all)).tolist()
        rounded = [
            v if knob.type == "float" else _up(v, draw)
            for knob, v, draw in zip(self.all, self.values(shares), draws, strict=True)
        ]
        return self._named(rounded)

    def whole(self, values: Sequence[float]) -> list[float]:
        """Stored values again as they were set: those of integer knobs as ints."""
        return [v if knob.type == "float" else int(v) for knob, v in zip(self.all, values, strict=True)]

    def _named(self, values: list[float]) -> Setting:
        return {knob.name: value for knob, value in zip(self.all, values, strict=True)}

    def to_list(self) -> list[dict[str, Any]]:
        """Plain mappings, for JSON."""
        return [asdict(knob) for knob in self.all]


def rounding(seed: int) -> Keyed:
    """The draws of stochastic rounding: for whole numbers, independent of the directions."""
    return Keyed(seed, ROUNDING)


def _up(value: float, draw: float) -> int:
    floor = math.floor(value)
    return floor + (draw < value - floor)


def _nearest(knob: Knob, value: float) -> float:
    return value if knob.type == "float" else math.floor(value + 0.5)


def _knob(given: Mapping[str, Any]) -> Knob:
    known = {field.name for field in fields(Knob)}
    name = given.get("name", "?")
    for field in given:
        if field not in known:
            raise ValueError(f"knob {name!r}: {field!r} is no field of a knob: choose from {', '.join(sorted(known))}")
    for field in ("name", "low", "high", "start"):
        if field not in given:
            raise ValueError(f"knob {name!r} has no {field}: every knob needs name, low, high and start")
    return Knob(**given)
