"""Limits on other measured numbers (a temperature, an error rate): their definition, and how far they are exceeded.

Limits with a risk are kept by `belief`, which receives the numbers themselves; only that share of queries may exceed
them. Limits with a scale are kept by `primal_dual` in the long run:

    g = (value − max)/scale, or (min − value)/scale, should be ≤ 0 in the mean

It receives g with the value. The price of each limit grows while the limit is exceeded, and falls otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab import limit as declared
from trimtab.inputs import by_name
from trimtab.limit import VALUE, limits_of
from trimtab.types import Document, Fields
from trimtab.validation import choose, real

WINDOW = 100  # rounds over which the share of exceedances is averaged
TABLE = ("max", "min", "scale")
LimitsSpec = Mapping[str, Fields | declared.Limit] | Iterable[declared.Limit]
"""name → max, min or both, and optionally a risk; for `primal_dual`, a scale."""


class Limit(NamedTuple):
    """A bound on one side of a number."""

    name: str
    side: str
    """max or min."""
    bound: float
    scale: float = 1.0
    """The excess is divided by this, in units of the number, before it is weighed against the value."""
    risk: float | None = None
    """The share of queries that may exceed it; None for `primal_dual`."""

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
    last: tuple[float | None, ...] = ()
    """The last numbers, in the order of `numbers`."""
    exceeded: tuple[float, ...] = ()
    """The share of about the last hundred rounds in which each limit was exceeded."""
    counts: tuple[tuple[int, int], ...] | None = None
    """For limits with a risk: the measurements of each, and those beyond it."""

    @property
    def has_risk(self) -> bool:
        """Whether a share of queries is promised, as by `belief`."""
        return any(limit.risk is not None for limit in self.all)

    @property
    def numbers(self) -> list[str]:
        """The names of the limited numbers, without duplicates."""
        return list(dict.fromkeys(limit.name for limit in self.all))

    @property
    def names(self) -> list[str]:
        """The names of the numbers that are told beside the value."""
        return [name for name in self.numbers if name != VALUE or not self.has_risk]

    @property
    def declared(self) -> tuple[declared.Limit, ...]:
        """The limits with a risk, as a tuner takes them."""
        tables: dict[str, dict[str, Any]] = {}
        for limit in self.all:
            if limit.risk is not None:
                tables.setdefault(limit.name, {"risk": limit.risk})[limit.side] = limit.bound
        return limits_of(tables)

    def read(self, given: Fields | None) -> list[float]:
        """Validate the numbers told with a value; return them in the order of `names`, NaN for None."""
        names = self.names
        if self.has_risk:
            return self._some(given)
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

    def _some(self, given: Fields | None) -> list[float]:
        """Validate numbers of which any may be missing."""
        if VALUE in (given or {}) and VALUE in self.numbers:
            raise ValueError("the limit 'value' is one of the value itself: leave it out of tell(…, limits=…)")
        by_name("limit", self.names, dict.fromkeys(given or {}), None)  # refuses names that are not declared
        return [_number(name, (given or {}).get(name)) for name in self.names]

    def recorded(self, value: object, numbers: Sequence[float]) -> tuple[float | None, list[float | None] | None]:
        """Return what is stored of a round: the value and the numbers, None where there is none."""
        missing: Any = value
        number = None if value is None or math.isnan(missing) else float(missing)
        if self.has_risk:
            known: list[float | None] = [None if math.isnan(each) else each for each in numbers]
            return number, known if any(each is not None for each in known) else None
        number = None if any(map(math.isnan, numbers)) else number
        return number, list(numbers) if numbers and number is not None else None

    def beside(self, numbers: Sequence[float | None]) -> list[float]:
        """Return what the tuner is told beside the value: the numbers, NaN where one is missing, or g of each limit."""
        found = [math.nan if each is None else each for each in numbers]
        return found if self.has_risk else self.excesses(found)

    def excesses(self, values: Sequence[float]) -> list[float]:
        """Return g of each limit, for the tuner."""
        found = dict(zip(self.names, values, strict=True))
        return [limit.excess(found[limit.name]) / limit.scale for limit in self.all]

    def after(self, values: Sequence[float | None] | None, value: float | None = None) -> Limits:
        """Return the limits after the numbers of a round and its value; None if there were none."""
        if self.has_risk:
            return self._counted(values or [None] * len(self.names), value)
        return self if values is None else self._averaged([math.nan if each is None else each for each in values])

    def _counted(self, values: Sequence[float | None], value: float | None) -> Limits:
        """Return the limits after a round in which numbers may be missing."""
        known = {VALUE: value, **dict(zip(self.names, values, strict=True))}
        counts, means, exceeded = [], [], []
        for k, limit in enumerate(self.all):
            number, over = self.counts[k] if self.counts else (0, 0)
            mean, share = (self.means[k], self.exceeded[k]) if self.means else (0.0, 0.0)
            now = known[limit.name]
            if now is not None:
                excess, number = limit.excess(now), number + 1
                over += excess > 0
                mean += (excess - mean) / number
                share += ((excess > 0) - share) * max(1 / number, 1 / WINDOW)
            counts.append((number, over))
            means.append(mean)
            exceeded.append(share)
        before = self.last or (None,) * len(self.numbers)
        last = (then if known[name] is None else known[name] for name, then in zip(self.numbers, before, strict=True))
        told = self.told + any(known[name] is not None for name in self.numbers)
        return self._replace(
            told=told, means=tuple(means), last=tuple(last), exceeded=tuple(exceeded), counts=tuple(counts)
        )

    def _averaged(self, values: Sequence[float]) -> Limits:
        found, told = dict(zip(self.names, values, strict=True)), self.told + 1
        old = self.means or (0.0,) * len(self.all)
        now = [limit.excess(found[limit.name]) for limit in self.all]
        means = tuple(mean + (excess - mean) / told for mean, excess in zip(old, now, strict=True))
        before, weight = self.exceeded or (0.0,) * len(self.all), max(1 / told, 1 / WINDOW)
        exceeded = tuple(share + ((excess > 0) - share) * weight for share, excess in zip(before, now, strict=True))
        return self._replace(told=told, means=means, last=tuple(values), exceeded=exceeded)

    def describe(self) -> list[Document]:
        """Return for each limit: name, side, bound, last number, mean excess and long-run violation.

        With a risk, also the number of measurements and of those beyond the limit.
        """
        last = dict(zip(self.numbers, self.last or [None] * len(self.numbers), strict=True))
        means: Sequence[float | None] = self.means or [None] * len(self.all)
        counts = self.counts or ((0, 0),) * len(self.all)
        if self.counts:
            means = [mean if number else None for mean, (number, _) in zip(means, counts, strict=True)]
        return [
            {
                "name": limit.name,
                "side": limit.side,
                "bound": limit.bound,
                "value": last[limit.name],
                "mean_excess": mean,
                "violation": None if mean is None else max(mean, 0.0),
                **({} if limit.risk is None else {"risk": limit.risk, "measured": number, "exceeded": over}),
            }
            for limit, mean, (number, over) in zip(self.all, means, counts, strict=True)
        ]

    def corrected(self, wanted: Limits) -> Limits:
        """Return the limits with other bounds or scales, which restart the statistics."""
        if [limit[:2] for limit in wanted.all] != [limit[:2] for limit in self.all]:
            raise ValueError(
                f"its limits are {_listed(self.all)}, but its definition says {_listed(wanted.all)}: once the study has"
                " begun, only a bound, a risk or a scale can change; restore them, or give the study a new name"
            )
        return self if wanted.all == self.all else wanted

    @classmethod
    def with_risk(cls, given: LimitsSpec | None) -> Limits:
        """Read limits for `belief`, each with its risk.

        >>> Limits.with_risk({"temperature": {"max": 80}}).all[0].risk
        0.01
        """
        if isinstance(given, Mapping):
            for name, table in given.items():
                if isinstance(table, Mapping) and "scale" in table:
                    raise ValueError(
                        f"limits.{name}.scale applies only to primal_dual, which needs a step: remove it, or give both"
                    )
        elif given is not None and not isinstance(given, list | tuple):
            raise ValueError(f"limits={given!r} must be a table: write [limits] with temperature = {{max = 80}}")
        return cls(
            tuple(
                Limit(each.name, side, float(bound), 1.0, each.risk)
                for each in limits_of(given)
                for side, bound in (("max", each.max), ("min", each.min))
                if bound is not None
            )
        )

    @classmethod
    def of(cls, given: LimitsSpec | None) -> Limits:
        """Read limits for `primal_dual`."""
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise ValueError(f"limits={given!r} must be a table: write [limits] with temperature = {{max = 80}}")
        found: list[Limit] = []
        for name, table in given.items():
            if not isinstance(table, Mapping) or not {"max", "min"} & set(table):
                raise ValueError(f"limits.{name}={table!r} has neither max nor min: write {name} = {{max = 80}}")
            for key in table:
                if key == "risk":
                    raise ValueError(f"limits.{name}.risk needs the method belief, without a step: leave one out")
                if key not in TABLE:
                    raise ValueError(f"unknown field limits.{name}.{key}: {choose(key, TABLE)}")
            scale = real(f"limits.{name}.scale", table.get("scale", 1.0), 0, above=True)
            bounds = {side: real(f"limits.{name}.{side}", table[side]) for side in ("max", "min") if side in table}
            if bounds.get("min", -math.inf) >= bounds.get("max", math.inf):
                raise ValueError(f"limits.{name}: min={bounds['min']:g} must be below max={bounds['max']:g}")
            found += [Limit(name, side, bound, scale) for side, bound in bounds.items()]
        return cls(tuple(found))

    def to_dict(self) -> Document:
        """Convert to JSON types; without the fields of limits with a risk, if there is none."""
        found = {**self._asdict(), "all": [limit if self.has_risk else limit[:4] for limit in self.all]}
        if self.counts is None:
            del found["counts"]
        return found

    @classmethod
    def from_dict(cls, saved: Document | None) -> Limits:
        """Read the output of `to_dict`."""
        if saved is None:
            return cls()
        limits = tuple(Limit(*limit) for limit in saved["all"])
        means, last, exceeded = (tuple(saved[name]) for name in ("means", "last", "exceeded"))
        counts = None if "counts" not in saved else tuple((number, over) for number, over in saved["counts"])
        return cls(limits, saved["told"], means, last, exceeded, counts)


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
