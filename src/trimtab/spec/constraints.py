"""Limits on other measured numbers (a temperature, an error rate): their definition, and how far they are exceeded.

    g = (value − max)/scale, or (min − value)/scale, should be ≤ 0 in the long run

`primal_dual` receives g with the value. The price of each limit grows while the limit is exceeded, and falls otherwise;
a single probe may exceed it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.types import Document, Fields
from trimtab.validation import choose, real

WINDOW = 100  # rounds over which the share of exceedances is averaged
TABLE = ("max", "min", "scale")
LimitsSpec = Mapping[str, Fields]
"""name → max, min or both, and optionally a scale."""


class Limit(NamedTuple):
    """A bound on one side of a number."""

    name: str
    side: str
    """max or min."""
    bound: float
    scale: float = 1.0
    """The excess is divided by this, in units of the number, before it is weighed against the value."""

    def excess(self, value: float) -> float:
        """Return how far a value exceeds the bound, in its own units; negative within."""
        return value - self.bound if self.side == "max" else self.bound - value


class Limits(NamedTuple):
    """All limits of a study with their statistics; part of its state.

    >>> limits = Limits.of({"temperature": {"max": 80, "scale": 10}})
    >>> limits.names, limits.excesses(limits.read({"temperature": 95}))
    (['temperature'], [1.5])
    """

    all: tuple[Limit, ...] = ()
    told: int = 0
    means: tuple[float, ...] = ()
    """The mean excess of each limit over all rounds, in units of its number."""
    last: tuple[float, ...] = ()
    """The numbers of the last round, in the order of `names`."""
    exceeded: tuple[float, ...] = ()
    """The share of about the last hundred rounds in which each limit was exceeded."""

    @property
    def names(self) -> list[str]:
        """The names of the numbers, without duplicates."""
        return list(dict.fromkeys(limit.name for limit in self.all))

    def read(self, given: Fields | None) -> list[float]:
        """Validate the numbers told with a value; return them in the order of `names`, NaN for None."""
        names = self.names
        if not names and given:
            raise ValueError(f"limits={given!r} do not apply: this study has no limits; leave them out")
        for name in names:
            if name not in (given or {}):
                raise ValueError(
                    f"{name} is missing: this study has limits on {', '.join(names)}; tell them with the"
                    f" value, limits={{{', '.join(f'{name!r}: …' for name in names)}}} (over HTTP: values)"
                )
        for name in given or {}:
            if name not in names:
                raise ValueError(f"there is no limit on {name!r}: this study has limits on {', '.join(names)}")
        return [_number(name, (given or {})[name]) for name in names]

    def excesses(self, values: Sequence[float]) -> list[float]:
        """Return g of each limit, for the tuner."""
        by_name = dict(zip(self.names, values, strict=True))
        return [limit.excess(by_name[limit.name]) / limit.scale for limit in self.all]

    def after(self, values: Sequence[float]) -> Limits:
        """Return the limits after the numbers of a round."""
        by_name, told = dict(zip(self.names, values, strict=True)), self.told + 1
        old = self.means or (0.0,) * len(self.all)
        now = [limit.excess(by_name[limit.name]) for limit in self.all]
        means = tuple(mean + (excess - mean) / told for mean, excess in zip(old, now, strict=True))
        before, weight = self.exceeded or (0.0,) * len(self.all), max(1 / told, 1 / WINDOW)
        exceeded = tuple(share + ((excess > 0) - share) * weight for share, excess in zip(before, now, strict=True))
        return self._replace(told=told, means=means, last=tuple(values), exceeded=exceeded)

    def describe(self) -> list[Document]:
        """Return for each limit: name, side, bound, last number, mean excess and long-run violation."""
        last = dict(zip(self.names, self.last or [None] * len(self.names), strict=True))
        means: Sequence[float | None] = self.means or [None] * len(self.all)
        return [
            {
                "name": limit.name,
                "side": limit.side,
                "bound": limit.bound,
                "value": last[limit.name],
                "mean_excess": mean,
                "violation": None if mean is None else max(mean, 0.0),
            }
            for limit, mean in zip(self.all, means, strict=True)
        ]

    def corrected(self, wanted: Limits) -> Limits:
        """Return the limits with other bounds or scales, which restart the statistics."""
        if [limit[:2] for limit in wanted.all] != [limit[:2] for limit in self.all]:
            raise ValueError(
                f"its limits are {_listed(self.all)}, but its definition says {_listed(wanted.all)}: once the study has"
                " begun, only a bound or a scale can change; restore them, or give the study a new name"
            )
        return self if wanted.all == self.all else wanted

    @classmethod
    def of(cls, given: LimitsSpec | None) -> Limits:
        """Read limits from their tables in a study.toml."""
        if not isinstance(given or {}, Mapping):
            raise ValueError(f"limits={given!r} must be a table: write [limits] with temperature = {{max = 80}}")
        found: list[Limit] = []
        for name, table in (given or {}).items():
            if not isinstance(table, Mapping) or not {"max", "min"} & set(table):
                raise ValueError(f"limits.{name}={table!r} has neither max nor min: write {name} = {{max = 80}}")
            for key in table:
                if key not in TABLE:
                    raise ValueError(f"unknown field limits.{name}.{key}: {choose(key, TABLE)}")
            scale = real(f"limits.{name}.scale", table.get("scale", 1.0), 0, above=True)
            bounds = {side: real(f"limits.{name}.{side}", table[side]) for side in ("max", "min") if side in table}
            if bounds.get("min", -math.inf) >= bounds.get("max", math.inf):
                raise ValueError(f"limits.{name}: min={bounds['min']:g} must be below max={bounds['max']:g}")
            found += [Limit(name, side, bound, scale) for side, bound in bounds.items()]
        return cls(tuple(found))

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        return self._asdict()

    @classmethod
    def from_dict(cls, saved: Document | None) -> Limits:
        """Read the output of `to_dict`."""
        if saved is None:
            return cls()
        limits = tuple(Limit(*limit) for limit in saved["all"])
        means, last, exceeded = (tuple(saved[name]) for name in ("means", "last", "exceeded"))
        return cls(limits, saved["told"], means, last, exceeded)


def _number(name: str, given: Any) -> float:
    """Return a number; NaN for None."""
    if given is None:
        return math.nan
    try:
        if isinstance(given, bool | str | bytes):
            raise TypeError
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"limit {name}={given!r} is not a number: tell one, or skip the trial") from None
    if math.isinf(number):
        raise ValueError(f"limit {name}={number} is infinite: tell a number, or skip the trial")
    return number


def _listed(limits: Sequence[Limit]) -> str:
    return ", ".join(f"{limit.name} {limit.side}" for limit in limits) or "none"
