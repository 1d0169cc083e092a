"""One parameter of the system."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from trimtab.types import Array, Document, Fields
from trimtab.validation import choose, real

Level = Any
"""The value of a knob: a number, True or False, or one of its choices."""

UNSET: Any = None  # default of fields that may follow from the others
WIDEST = 1e300  # largest high/low on a logarithmic scale
TYPES = {
    "float": "float",
    "real": "float",
    "integer": "integer",
    "int": "integer",
    "bool": "bool",
    "boolean": "bool",
    "choice": "choice",
    "choices": "choice",
    "categorical": "choice",
}


@dataclass(frozen=True)
class Knob:
    """One parameter of the system: name, low, high, and start, its current value.

    type: "float" ("real"), "integer" ("int"), "bool", or "choice", which `choices=[…]` implies.
    scale: "linear" or "log". step: the spacing of valid values, counted from low.
    radius: the probing radius as a share of the range (of a weight, for choices), if it differs from the other knobs'.
    low == high fixes a knob: it has no coordinate and is never probed.

    >>> Knob("gain", -2, 2, 0) == Knob(name="gain", low=-2, high=2, start=0)
    True
    >>> knob = Knob("workers", 1, 64, 4, type="int", scale="log")
    >>> knob.share(8), knob.value(0.5)
    (0.5, 8.0)
    >>> Knob("codec", choices=["gzip", "zstd", "lz4"], start="gzip").place("zstd")
    [0.0, 1.0, 0.0]
    """

    name: str
    low: Level = UNSET
    high: Level = UNSET
    start: Level = UNSET
    _: KW_ONLY
    type: str = UNSET
    scale: str = "linear"
    unit: str = ""
    step: float | None = None
    choices: tuple[Level, ...] | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and re.fullmatch(r"[A-Za-z_]\w{0,63}", self.name, re.ASCII)):
            raise ValueError(f"knob {self.name!r}: a name is letters, digits and _, and starts with a letter")
        kind = getattr(self.type, "__name__", self.type) or ("float" if self.choices is None else "choice")
        if not isinstance(kind, str) or kind not in TYPES:
            self._refuse("type", "unknown: choose 'float', 'integer' or 'bool', or give choices")
        self._set(type=TYPES[kind])
        if self.scale not in ("linear", "log"):
            self._refuse("scale", "unknown: choose 'linear' or 'log'")
        if not isinstance(self.unit, str):
            self._refuse("unit", 'not a string: write it in quotes, for example "ms"')
        if self.radius is not None:
            name, why = f"knob {self.name!r}: radius", " of the range"
            self._set(radius=real(name, self.radius, 0, 0.5, above=True, below=True, why=why))
        if (self.type == "choice") != (self.choices is not None):
            self._refuse("choices", f"not valid for type={kind!r}: give choices=[…] for a choice, and only then")
        if self.type == "choice":
            self._check_choices()
        else:
            self._check_numbers()

    def _check_choices(self) -> None:
        given = self.choices
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            self._refuse("choices", "not a list of choices: give for example choices=['gzip', 'zstd']")
        self._set(choices=tuple(given))
        for choice in given:
            if not isinstance(choice, str | int | float) or (isinstance(choice, float) and not math.isfinite(choice)):
                self._refuse("choices", f"not valid: {choice!r} must be a string, a finite number, True or False")
            if sum(_same(choice, other) for other in given) > 1:
                self._refuse("choices", f"not a list of distinct choices: give {choice!r} once")
        for field, last in (("low", given[0]), ("high", given[-1])):
            if getattr(self, field) is not None and not _same(getattr(self, field), last):
                self._refuse(field, "not used for choices: leave it out")
            self._set(**{field: last})
        if self.step is not None or self.scale != "linear":
            self._refuse("step" if self.step is not None else "scale", "not used for choices: leave it out")
        if not any(_same(self.start, choice) for choice in given):
            self._refuse("start", f"not one of the choices {list(given)}: give the current value of the system")

    def _check_numbers(self) -> None:
        if self.type == "bool":
            for field, least in (("low", False), ("high", True), ("start", None)):
                given = least if getattr(self, field) is None else getattr(self, field)
                if given not in (False, True):
                    self._refuse(field, "not a bool: give True or False")
                self._set(**{field: bool(given) if field == "start" else int(given)})
        for field in ("low", "high", "start", "step"):
            number = getattr(self, field)
            if number is None and field == "step":
                continue
            number = number.item() if isinstance(number, np.generic) else number
            if isinstance(number, bool) and self.type != "bool":
                self._refuse(field, "not a finite number: give one")
            if not isinstance(number, int | float) or not abs(number) <= 1e150:
                self._refuse(field, "not a finite number: give one")
            if self.type == "integer" and number != int(number):
                self._refuse(field, 'not a whole number: give one, or type = "float"')
            self._set(**{field: number})
        if not self.low <= self.high:
            self._refuse("low", f"not below high={self.high!r}: swap them, or widen the range")
        if not self.low <= self.start <= self.high:
            self._refuse("start", f"outside {self.low!r} to {self.high!r}: give the current value of the system")
        if self.scale == "log" and self.low <= 0:
            self._refuse("low", 'not above zero, as scale = "log" needs: raise it, or use scale = "linear"')
        if self.scale == "log" and not self.high / self.low <= WIDEST:
            self._refuse("low", f"too far from high={self.high!r} for floating point: narrow the range")
        if self.step is not None:
            self._check_grid(self.step)

    def _check_grid(self, step: float) -> None:
        if self.type == "bool" or not step > 0 or (self.high - self.low) / step > 1e15:
            self._refuse("step", "not a valid spacing of values in this range: make it larger, or leave it out")
        low, pitch = Decimal(str(self.low)), Decimal(str(step))
        for field in ("high", "start"):
            levels, rest = divmod(Decimal(str(getattr(self, field))) - low, pitch)
            if rest:
                near = f"{float(low + levels * pitch):g} or {float(low + (levels + 1) * pitch):g}"
                self._refuse(field, f"not a whole number of steps of {step!r} above low={self.low!r}: give {near}")

    def _set(self, **values: object) -> None:
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def _refuse(self, field: str, why: str) -> NoReturn:
        value = getattr(self, field)
        value = list(value) if isinstance(value, tuple) else value
        raise ValueError(f"knob {self.name!r}: {field}={value!r} is {why}")

    @cached_property
    def size(self) -> int:
        """The number of coordinates: 1, one per choice, or 0 if the knob is fixed."""
        if self.choices is not None:
            return len(self.choices) if len(self.choices) > 1 else 0
        return int(self.low < self.high)

    @cached_property
    def levels(self) -> int | None:
        """The number of steps from low to high; None if every number is valid."""
        if self.step is None:
            return None if self.type in ("float", "choice") else int(self.high) - int(self.low)
        return int((Decimal(str(self.high)) - Decimal(str(self.low))) / Decimal(str(self.step)))

    @property
    def coarseness(self) -> float:
        """The mean spacing of valid values as a share of the range; 0 if every number is valid."""
        if not self.size:
            return 0.0
        if self.choices is not None:
            return 1.0
        return 1.0 / self.levels if self.levels else 0.0

    def share(self, value: float) -> float:
        """Convert a number to its position in the range, 0 to 1."""
        return 0.0 if self.low == self.high else min(max(self.portion(value, self.low, self.high), 0.0), 1.0)

    def portion(self, value: float, low: float, high: float) -> float:
        """Convert a number to its position between low (0) and high (1); not clipped."""
        if self.scale == "log":
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    def value(self, share: float) -> float:
        """Convert a position in the range to a number within the limits, not rounded."""
        if self.scale == "log":
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        return float(min(max(value, self.low), self.high))

    def place(self, value: object) -> list[float]:
        """Convert a value of the knob to coordinates: shares or weights."""
        if self.choices is not None:
            found = [float(_same(value, choice)) for choice in self.choices]
            if not any(found):
                raise ValueError(f"knob {self.name!r}: {value!r} is not one of the choices {list(self.choices)}")
        elif not isinstance(value, int | float | np.number) or not self.low <= value <= self.high:
            raise ValueError(
                f"knob {self.name!r}: {value!r} is not in {self.low!r} to {self.high!r}: set it within its limits"
            )
        else:
            found = [self.share(float(value))]
        return found if self.size else []

    def at(self, shares: Sequence[float] | Array, draw: float | None = None) -> Level:
        """Convert coordinates to a valid value: random, given a draw from [0, 1); else the nearest or likeliest."""
        if self.choices is not None:
            if not self.size:
                return self.choices[0]
            weights = np.maximum(shares, 0.0)
            if draw is None:
                return self.choices[int(weights.argmax())]
            sums = np.cumsum(weights)
            return self.choices[int(np.searchsorted(sums, draw * sums[-1], side="right"))]
        value = self.value(shares[0]) if self.size else float(self.low)
        if self.levels is None:
            return value
        steps = min((value - self.low) / (1 if self.step is None else self.step), self.levels)
        below = math.floor(steps if draw is not None else steps + 0.5)
        level = below + (draw is not None and draw < steps - below)
        if self.type == "bool":
            return bool(self.low + level)
        if self.type == "integer":
            return int(self.low) + level * int(self.step or 1)
        return float(Decimal(str(self.low)) + level * Decimal(str(self.step)))


def knob_fields(knob: Knob) -> Document:
    """The fields of a knob that are set, for JSON."""
    found = {field.name: getattr(knob, field.name) for field in fields(knob)}
    if knob.choices is not None:
        found |= {"low": None, "high": None, "choices": list(knob.choices)}
    return {name: value for name, value in found.items() if value is not None}


def knob_of(given: Fields) -> Knob:
    """Create a knob from its fields: the inverse of `knob_fields`."""
    known = {field.name for field in fields(Knob)}
    who = f"knob {given['name']!r}" if "name" in given else "a knob"
    for field in given:
        if field not in known:
            raise ValueError(f"{who}: unknown field {field!r}: {choose(field, sorted(known))}")
    kind = given.get("type")
    free = given.get("choices") is not None or TYPES.get(getattr(kind, "__name__", str(kind))) == "bool"
    needed = ("name", "start") if free else ("name", "low", "high", "start")
    for field in needed:
        if given.get(field) is None:
            raise ValueError(f"{who} has no {field}: every knob needs name, low, high and start")
    return Knob(**given)


def _same(a: object, b: object) -> bool:
    """Compare by value, but distinguish 1 from True."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)
