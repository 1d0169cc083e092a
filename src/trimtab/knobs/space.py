"""All knobs of a system: the domain of their coordinates, and the conversion in both directions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from trimtab.domains import Box, Domain, Product, Simplex
from trimtab.knobs.knob import Knob, Level, knob_fields, knob_of
from trimtab.randomness import ROUNDING, Keyed
from trimtab.recipes import SHARE
from trimtab.types import Array, Document, Fields

LAST = 1 - 2.0**-53  # the largest draw, which chooses the last neighbour
COARSEST = 1 / 3  # largest default radius of a knob with few positions, as a share of its range
Setting = dict[str, Level]
"""The value of every knob, by name; whole numbers are ints, switches bools."""


@dataclass(frozen=True)
class Knobs:
    """All knobs of a system, in the order of their coordinates.

    radius: the probing radius of the method; coordinates of knobs with their own radius are scaled by the ratio.
    ranges: name → the (low, high) that coordinates and radius refer to, if they differ from the limits of the knob:
    changing limits later does not change coordinates.

    >>> knobs = Knobs.of([dict(name="gain", low=0, high=10, start=2), dict(name="cache", type="bool", start=True)])
    >>> knobs.setting(knobs.start)
    {'gain': 2.0, 'cache': True}
    """

    all: tuple[Knob, ...]
    radius: float = SHARE
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.all:
            raise ValueError("there are no knobs: give at least one, with name, low, high and start")
        names = [knob.name.upper() for knob in self.all]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two knobs are called {name}: names must differ by more than upper and lower case")

    @classmethod
    def of(cls, given: Iterable[Knob | Fields], radius: float = SHARE) -> Knobs:
        """Create from knobs, or from mappings with their fields."""
        if isinstance(given, Knob | Mapping | str) or not isinstance(given, Iterable):
            raise TypeError(f"knobs={given!r} must be a list of knobs: give [dict(name=…, low=…, high=…, start=…), …]")
        found = []
        for knob in given:
            if not isinstance(knob, Knob | Mapping):
                raise TypeError(f"{knob!r} is not a knob: give a Knob, or dict(name=…, low=…, high=…, start=…)")
            found.append(knob if isinstance(knob, Knob) else knob_of(knob))
        return cls(tuple(found), radius)

    def with_default_radii(self) -> Knobs:
        """Give coarse knobs without their own radius one that is large enough to change their value.

        That is one step of a whole number, a stepped number or a switch, or the distance between two choices; at most
        a third of the range, at least the radius of the others.

        >>> coarse = dict(name="threads", low=1, high=5, start=2, type="integer")
        >>> Knobs.of([coarse]).with_default_radii().all[0].radius
        0.25
        """
        steps = [min(knob.coarseness, COARSEST) for knob in self.all]
        wider = [knob.radius is None and step > self.radius for knob, step in zip(self.all, steps, strict=True)]
        found = [replace(k, radius=s) if wide else k for k, s, wide in zip(self.all, steps, wider, strict=True)]
        return Knobs(tuple(found), self.radius, self.ranges)

    @cached_property
    def movable(self) -> int:
        """The number of knobs that are not fixed."""
        return sum(knob.size > 0 for knob in self.all)

    @cached_property
    def dim(self) -> int:
        """The number of coordinates."""
        return sum(knob.size for knob in self.all)

    @property
    def domain(self) -> Domain:
        """The domain of the coordinates: boxes, and a simplex for each choice."""
        parts: list[tuple[Domain, int]] = []
        extents: list[tuple[float, float]] = []
        for knob in (*self.all, None):
            if knob is not None and knob.choices is None:
                extents += [self.extent(knob)] * knob.size
                continue
            if extents:
                low, high = zip(*extents, strict=True)
                parts.append((Box(low if any(low) else 0.0, high if set(high) != {1.0} else 1.0), len(extents)))
                extents = []
            if knob is not None and knob.size:
                parts.append((Simplex(self.side(knob)), knob.size))
        if not parts:
            raise ValueError("every knob is fixed: give at least one of them low < high")
        return parts[0][0] if len(parts) == 1 else Product(*parts)

    @property
    def start(self) -> Array:
        """The coordinates of the initial setting."""
        return self.coordinates({knob.name: knob.start for knob in self.all})

    def coordinates(self, setting: Mapping[str, Level]) -> Array:
        """Convert a setting to coordinates: the inverse of `setting`."""
        names = [knob.name for knob in self.all]
        if set(setting) != set(names):
            raise ValueError(
                f"a setting of {sorted(setting)} does not fit the knobs {names}: give each of them a value"
            )
        return np.array([x for k in self.all for x in self._outward(k, k.place(setting[k.name]))])

    def _outward(self, knob: Knob, shares: list[float]) -> list[float]:
        low, high = self.extent(knob)
        return [low + (high - low) * share for share in shares]

    def values(self, coordinates: Sequence[float] | Array) -> list[Level]:
        """Convert coordinates to values in the units of the knobs; numbers not rounded, the likeliest choices."""
        shares = zip(self.all, self.shares(coordinates), strict=True)
        return [k.at(part) if k.choices is not None or not k.size else k.value(part[0]) for k, part in shares]

    @cached_property
    def names(self) -> list[str]:
        """The names in order."""
        return [knob.name for knob in self.all]

    def setting(self, coordinates: Sequence[float] | Array) -> Setting:
        """The nearest valid setting, with the likeliest choices."""
        return {k.name: k.at(part) for k, part in zip(self.all, self.shares(coordinates), strict=True)}

    def probe(self, coordinates: Sequence[float] | Array, seed: int, trial: int, lane: int = 0) -> Setting:
        """The setting of a query; discrete knobs are drawn by (seed, trial), independently of the direction."""
        if not self.rounded:
            return self.setting(coordinates)
        # A new generator for each call: several threads may ask for the same trial at once.
        draws = next(Keyed(seed, ROUNDING).generators(trial, lane)).random(len(self.all)).tolist()
        shares = self.shares(coordinates)
        return {k.name: k.at(part, draw) for k, part, draw in zip(self.all, shares, draws, strict=True)}

    def drawn(self, coordinates: Array, seed: int, trial: int, lane: int = 0) -> Array | None:
        """The coordinates of the setting that `probe` draws; None if every knob is continuous."""
        return self.coordinates(self.probe(coordinates, seed, trial, lane)) if self.rounded else None

    def alternatives(self, coordinates: Array, setting: Setting) -> list[Setting]:
        """A setting drawn for a query, then others next to the query: of one knob alone, of all, and the nearest."""
        shares = self.shares(coordinates)
        ends = [{k.name: k.at(part, draw) for k, part in zip(self.all, shares, strict=True)} for draw in (LAST, 0.0)]
        one = [{**setting, name: end[name]} for name in self.names for end in ends if end[name] != setting[name]]
        return [setting, *one, *ends, self.setting(coordinates)]

    def room(self) -> str:
        """The remedy if the probes do not fit into the ranges."""
        most = max((knob.size for knob in self.all if knob.choices is not None), default=0)
        choices = f"; {most} choices need one below 1/{2 * (most - 1)} of a weight" if most > 1 else ""
        return (
            f"a knob needs a radius below 1/2 of its range{choices}: lower it, or use tt.auto, which has no such limit"
        )

    def side(self, knob: Knob) -> float:
        """The length of the reference range of a knob, in coordinates."""
        return 1.0 if knob.radius is None else self.radius / knob.radius

    def extent(self, knob: Knob) -> tuple[float, float]:
        """The limits of a knob, in coordinates."""
        side, measure = self.side(knob), self.ranges.get(knob.name)
        if measure is None:
            return 0.0, side
        low, high = (knob.portion(limit, *measure) for limit in (knob.low, knob.high))
        return side * low, side * high

    def shares(self, coordinates: Sequence[float] | Array) -> list[list[float]]:
        """The coordinates of each knob, as shares or weights."""
        flat = np.asarray(coordinates, dtype=float)
        if flat.shape != (self.dim,):
            raise ValueError(f"the coordinates have shape {flat.shape}, but the knobs have {self.dim}: give as many")
        low, length, slices = self.measures
        shares: list[float] = ((flat - low) / length).tolist()
        return [shares[part] for part in slices]

    @cached_property
    def rounded(self) -> bool:
        """Whether any knob is rounded at random."""
        return any(knob.size and (knob.choices is not None or knob.levels is not None) for knob in self.all)

    @cached_property
    def measures(self) -> tuple[Array, Array, list[slice]]:
        """The lower limit and the length of each coordinate, and the slice of each knob."""
        extents = [self.extent(knob) for knob in self.all for _ in range(knob.size)]
        ends = list(accumulate((knob.size for knob in self.all), initial=0))
        slices = [slice(*pair) for pair in pairwise(ends)]
        return np.array([low for low, _ in extents]), np.array([high - low for low, high in extents]), slices

    @cached_property
    def ends(self) -> tuple[Array, Array, Array, Array]:
        """Limits of each coordinate of a number, and the distance from each limit to the next valid value.

        Infinite and 0 for choices and switches, whose best value is always at an end.
        """
        ends = [self._ends(knob) for knob in self.all for _ in range(knob.size)]
        low, high, first, last = (np.array(column) for column in zip(*ends, strict=True))
        return low, high, first, last

    def _ends(self, knob: Knob) -> tuple[float, float, float, float]:
        if knob.type not in ("float", "integer"):
            return -math.inf, math.inf, 0.0, 0.0
        low, high = self.extent(knob)
        if knob.levels is None:
            return low, high, 0.0, 0.0
        unit, length = (knob.high - knob.low) / knob.levels, high - low
        return low, high, length * knob.share(knob.low + unit), length * (1.0 - knob.share(knob.high - unit))

    def to_list(self) -> list[Document]:
        """The fields of all knobs, for JSON."""
        return [knob_fields(knob) for knob in self.all]
