"""Named parameters ↔ coordinates: one description of a space, for the tuner, studies and adapters alike.

The method works on coordinates. A number has one, its share z ∈ [0, 1] of the range, linear or logarithmic; a choice
has one weight per possibility, on a simplex; a fixed knob (low == high) has none. What a system cannot take in between
is drawn, each knob by its own draw, so that the expectation is what the coordinates say:

* whole numbers, grids and switches: up with the probability of the fraction, E[rounded] = the wanted value;
* choices: possibility i with the probability of its weight w_i.

So the measurement is in expectation f̃, the multilinear interpolation of f between what can be set: E[y·u] is the
smoothed gradient of f̃ without bias, and f̃ is least where f is, at a setting that exists. Taking the nearest instead
would hide every probe shorter than half a unit. The draws are a function of (seed, trial), like the directions: asking
again, also after a crash, gives the same setting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from trimtab.domains import Box, Domain, Product, Simplex
from trimtab.randomness import ROUNDING, Keyed
from trimtab.types import Array
from trimtab.validation import real

Setting = dict[str, Any]
"""The value of every knob, by name; whole numbers are ints, switches bools."""

SHARE = 0.05  # the default radius, as a share of the range
GIVEN: Any = None  # a field that the others may say
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


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One parameter of the system; start is where it is now.

    type: "float" ("real"), "integer" ("int"), "bool", or "choice", which `choices=[…]` says by itself.
    scale: "linear" or "log". step: the distance of the values that can be set, from low on, as 0.25 of a float.
    radius: how far to probe, as a share of the range (of a weight, for choices), if not as far as the others.
    low == high holds a knob fixed: it has no coordinate, and is never probed.

    >>> knob = Knob(name="workers", low=1, high=64, start=4, type="int", scale="log")
    >>> knob.share(8), knob.value(0.5)
    (0.5, 8.0)
    >>> Knob(name="codec", choices=["gzip", "zstd", "lz4"], start="gzip").place("zstd")
    [0.0, 1.0, 0.0]
    """

    name: str
    low: Any = GIVEN
    high: Any = GIVEN
    start: Any = GIVEN
    type: str = GIVEN
    scale: str = "linear"
    unit: str = ""
    step: float | None = None
    choices: tuple[Any, ...] | None = None
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
            self._refuse("unit", 'not a text: write it in quotes, for example "ms"')
        if self.radius is not None:
            what, why = f"knob {self.name!r}: radius", " of the range"
            self._set(radius=real(what, self.radius, 0, 0.5, above=True, below=True, why=why))
        if (self.type == "choice") != (self.choices is not None):
            self._refuse("choices", f"not for type={kind!r}: give choices=[…] for a choice, and nothing for a number")
        if self.type == "choice":
            self._check_choices()
        else:
            self._check_numbers()

    def _check_choices(self) -> None:
        given = self.choices
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            self._refuse("choices", "not a list of possibilities: give for example choices=['gzip', 'zstd']")
        self._set(choices=tuple(given))
        for choice in given:
            if not isinstance(choice, str | int | float) or (isinstance(choice, float) and not math.isfinite(choice)):
                self._refuse("choices", f"made of {choice!r}, too: a choice is a text, a number, or True or False")
            if sum(_same(choice, other) for other in given) > 1:
                self._refuse("choices", f"telling {choice!r} twice: name every possibility once")
        for field, last in (("low", given[0]), ("high", given[-1])):
            if getattr(self, field) is not None and not _same(getattr(self, field), last):
                self._refuse(field, "of no use for choices: leave it out")
            self._set(**{field: last})
        if self.step is not None or self.scale != "linear":
            self._refuse("step" if self.step is not None else "scale", "of no use for choices: leave it out")
        if not any(_same(self.start, choice) for choice in given):
            self._refuse("start", f"none of the choices {list(given)}: start is where the system is now")

    def _check_numbers(self) -> None:
        if self.type == "bool":
            for field, least in (("low", False), ("high", True), ("start", None)):
                given = least if getattr(self, field) is None else getattr(self, field)
                if given not in (False, True):
                    self._refuse(field, "neither True nor False: give one of them")
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
            self._refuse("start", f"outside {self.low!r} to {self.high!r}: start is where the system is now")
        if self.scale == "log" and self.low <= 0:
            self._refuse("low", 'not above zero, as scale = "log" needs: raise it, or use scale = "linear"')
        if self.step is not None:
            self._check_grid(self.step)

    def _check_grid(self, step: float) -> None:
        if self.type == "bool" or not step > 0 or (self.high - self.low) / step > 1e15:
            self._refuse("step", "no distance of two values in this range: make it larger, or leave it out")
        low, pitch = Decimal(str(self.low)), Decimal(str(step))
        for field in ("high", "start"):
            levels, rest = divmod(Decimal(str(getattr(self, field))) - low, pitch)
            if rest:
                near = f"{float(low + levels * pitch):g} or {float(low + (levels + 1) * pitch):g}"
                self._refuse(field, f"not low={self.low!r} and a number of steps of {step!r}: give {near}")

    def _set(self, **values: Any) -> None:
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def _refuse(self, field: str, why: str) -> NoReturn:
        value = getattr(self, field)
        value = list(value) if isinstance(value, tuple) else value
        raise ValueError(f"knob {self.name!r}: {field}={value!r} is {why}")

    @cached_property
    def size(self) -> int:
        """How many coordinates it has: 1, one for each choice, or 0 if it is fixed."""
        if self.choices is not None:
            return len(self.choices) if len(self.choices) > 1 else 0
        return int(self.low < self.high)

    @cached_property
    def levels(self) -> int | None:
        """How many steps there are from low to high; None where every number can be set."""
        if self.step is None:
            return None if self.type in ("float", "choice") else int(self.high) - int(self.low)
        return int((Decimal(str(self.high)) - Decimal(str(self.low))) / Decimal(str(self.step)))

    def share(self, value: float) -> float:
        """A number → its place in the range, 0 to 1."""
        if self.low == self.high:
            return 0.0
        if self.scale == "log":
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def value(self, share: float) -> float:
        """A place in the range → the number, never outside it, before any rounding."""
        if self.scale == "log":
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        return float(min(max(value, self.low), self.high))

    def place(self, value: Any) -> list[float]:
        """What is set → coordinates, as shares and weights."""
        if self.choices is not None:
            found = [float(_same(value, choice)) for choice in self.choices]
            if not any(found):
                raise ValueError(f"knob {self.name!r}: {value!r} is none of the choices {list(self.choices)}: use one")
        elif not isinstance(value, int | float | np.number) or not self.low <= value <= self.high:
            raise ValueError(
                f"knob {self.name!r}: {value!r} is not in {self.low!r} to {self.high!r}: set it within its limits"
            )
        else:
            found = [self.share(float(value))]
        return found if self.size else []

    def at(self, shares: Sequence[float] | Array, draw: float | None = None) -> Any:
        """Coordinates → what can be set: by a draw from [0, 1) as above, without one the nearest, or likeliest."""
        if self.choices is not None:
            if not self.size:
                return self.choices[0]
            weights = np.maximum(shares, 0.0)
            if draw is None:
                return self.choices[int(weights.argmax())]
            upto = np.cumsum(weights)
            return self.choices[int(np.searchsorted(upto, draw * upto[-1], side="right"))]
        value = self.value(shares[0]) if self.size else float(self.low)
        if self.levels is None:
            return value
        place = min((value - self.low) / (1 if self.step is None else self.step), self.levels)
        down = math.floor(place if draw is not None else place + 0.5)
        level = down + (draw is not None and draw < place - down)
        if self.type == "bool":
            return bool(self.low + level)
        if self.type == "integer":
            return int(self.low) + level * int(self.step or 1)
        return float(Decimal(str(self.low)) + level * Decimal(str(self.step)))


@dataclass(frozen=True)
class Knobs:
    """All knobs of a system, in the order of their coordinates.

    radius: how far the method probes; knobs with a radius of their own have coordinates scaled by radius/their own.

    >>> knobs = Knobs.of([dict(name="gain", low=0, high=10, start=2), dict(name="cache", type="bool", start=True)])
    >>> knobs.setting(knobs.start)
    {'gain': 2.0, 'cache': True}
    """

    all: tuple[Knob, ...]
    radius: float = SHARE

    def __post_init__(self) -> None:
        if not self.all:
            raise ValueError("there is no knob: give at least one, with name, low, high and start")
        names = [knob.name.upper() for knob in self.all]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two knobs are called {name}: names must differ by more than upper and lower case")

    @classmethod
    def of(cls, given: Iterable[Knob | Mapping[str, Any]], radius: float = SHARE) -> Knobs:
        """From knobs, or from mappings with the fields of one."""
        return cls(tuple(knob if isinstance(knob, Knob) else _knob(knob) for knob in given), radius)

    @property
    def dim(self) -> int:
        """How many coordinates there are."""
        return sum(knob.size for knob in self.all)

    @property
    def domain(self) -> Domain:
        """Where coordinates may be: a box, beside a simplex for each choice."""
        parts: list[tuple[Domain, int]] = []
        sides: list[float] = []
        for knob in (*self.all, None):
            if knob is not None and knob.choices is None:
                sides += [self.side(knob)] * knob.size
                continue
            if sides:
                parts.append((Box(0.0, sides if set(sides) != {1.0} else 1.0), len(sides)))
                sides = []
            if knob is not None and knob.size:
                parts.append((Simplex(self.side(knob)), knob.size))
        if not parts:
            raise ValueError("every knob is fixed: give at least one of them low < high")
        return parts[0][0] if len(parts) == 1 else Product(*parts)

    @property
    def start(self) -> Array:
        """Where the system is when it begins."""
        return self.coordinates({knob.name: knob.start for knob in self.all})

    def coordinates(self, setting: Mapping[str, Any]) -> Array:
        """What is set → coordinates: the other way of `setting`."""
        names = [knob.name for knob in self.all]
        if set(setting) != set(names):
            raise ValueError(
                f"a setting of {sorted(setting)} does not fit the knobs {names}: give each of them a value"
            )
        return np.array([self.side(k) * share for k in self.all for share in k.place(setting[k.name])])

    def values(self, coordinates: Sequence[float] | Array) -> list[Any]:
        """Coordinates → values in the units of the knobs, numbers not rounded; of choices, the likeliest."""
        shares = zip(self.all, self.shares(coordinates), strict=True)
        return [k.at(part) if k.choices is not None or not k.size else k.value(part[0]) for k, part in shares]

    def setting(self, coordinates: Sequence[float] | Array) -> Setting:
        """The nearest setting that the system can take; of choices, the likeliest."""
        return {k.name: k.at(part) for k, part in zip(self.all, self.shares(coordinates), strict=True)}

    def probe(self, coordinates: Sequence[float] | Array, keyed: Keyed, trial: int, lane: int = 0) -> Setting:
        """The setting of a query, by draws that belong to the trial."""
        draws = next(iter(keyed.generators(trial, lane))).random(len(self.all)).tolist()
        shares = self.shares(coordinates)
        return {k.name: k.at(part, draw) for k, part, draw in zip(self.all, shares, draws, strict=True)}

    def room(self) -> str:
        """How wide probes may be, where they have to fit into the ranges as they are."""
        most = max((knob.size for knob in self.all if knob.choices is not None), default=0)
        choices = f"; {most} choices need one below 1/{2 * (most - 1)} of a weight" if most > 1 else ""
        return f"a knob needs a radius below 1/2 of its range{choices}: lower it, or use tt.auto, which can do without"

    def side(self, knob: Knob) -> float:
        """How long its range is, in coordinates."""
        return 1.0 if knob.radius is None else self.radius / knob.radius

    def shares(self, coordinates: Sequence[float] | Array) -> list[list[float]]:
        """Each knob's own coordinates, as shares and weights."""
        flat = np.asarray(coordinates, dtype=float)
        if flat.shape != (self.dim,):
            raise ValueError(f"the coordinates have shape {flat.shape}, but the knobs have {self.dim}: give as many")
        found, first = [], 0
        for knob in self.all:
            found.append((flat[first : first + knob.size] / self.side(knob)).tolist())
            first += knob.size
        return found

    def to_list(self) -> list[dict[str, Any]]:
        """Plain mappings, for JSON."""
        return [knob_fields(knob) for knob in self.all]


def rounding(seed: int) -> Keyed:
    """The draws of a tuner's settings: independent of its directions."""
    return Keyed(seed, ROUNDING)


def knob_fields(knob: Knob) -> dict[str, Any]:
    """What was said of a knob."""
    said = {field.name: getattr(knob, field.name) for field in fields(knob)}
    if knob.choices is not None:
        said |= {"low": None, "high": None, "choices": list(knob.choices)}
    return {name: value for name, value in said.items() if value is not None}


def _same(a: object, b: object) -> bool:
    """Equal, and of one kind: 1 is not True."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _knob(given: Mapping[str, Any]) -> Knob:
    known = {field.name for field in fields(Knob)}
    name = given.get("name", "?")
    for field in given:
        if field not in known:
            raise ValueError(f"knob {name!r}: {field!r} is no field of a knob: choose from {', '.join(sorted(known))}")
    kind = given.get("type")
    free = given.get("choices") is not None or TYPES.get(getattr(kind, "__name__", str(kind))) == "bool"
    needed = ("name", "start") if free else ("name", "low", "high", "start")
    for field in needed:
        if given.get(field) is None:
            raise ValueError(f"knob {name!r} has no {field}: every knob needs name, low, high and start")
    return Knob(**given)
