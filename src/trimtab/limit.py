"""Limits: numbers that must stay below a maximum, or above a minimum, at every query but a stated share of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from trimtab.inputs import LARGEST, by_name
from trimtab.registry import part
from trimtab.types import Array
from trimtab.validation import distinct, real

MOST = 10  # limits: each is a filter bank of its own
VALUE = "value"  # the name of a limit of the value itself
RISKS = 1e-6, 0.25
EXAMPLE = '{"temperature": {"max": 80}}'


@part
@dataclass(frozen=True)
class Limit:
    """A measured number that must stay at or below `max`, at or above `min`, or both.

    name: as in `tell(trial, value, limits={name: …})`; "value" is the value itself, which is not told again.
    risk: the share of queries that may exceed it in truth.

    >>> Limit("temperature", max=80)
    Limit(name='temperature', max=80, min=None, risk=0.01)
    """

    name: str
    max: float | None = None
    min: float | None = None
    risk: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"the name of a limit must be a text, not {self.name!r}: write limits={EXAMPLE}")
        if self.max is None and self.min is None:
            raise ValueError(
                f'limit {self.name!r} has neither max nor min: write limits={{"{self.name}": {{"max": …}}}}'
            )
        why = f" in the unit of {self.name!r}"
        for side, number in (("max", self.max), ("min", self.min)):
            if number is not None:
                real(side, number, -LARGEST, LARGEST, why=why)
        if self.max is not None and self.min is not None and self.min >= self.max:
            raise ValueError(
                f"limit {self.name!r} has min={self.min:g}, not below max={self.max:g}: leave a range between"
            )
        real("risk", self.risk, *RISKS, why=f" of {self.name!r}: 0.01 lets 1 % of queries exceed it")


class Side(NamedTuple):
    """One side of a limit: sign·number ≤ most, where numbers are as a rule receives them."""

    most: float
    risk: float
    number: int
    """Its place among a round's values: 0 for the value itself."""
    sign: float
    limit: int
    """The number of the limit it is a side of."""


def limits_of(given: Mapping[str, Any] | Iterable[Limit] | None) -> tuple[Limit, ...]:
    """Read a declaration of limits: fields by name, or `Limit`s.

    >>> limits_of({"temperature": {"max": 80}})
    (Limit(name='temperature', max=80, min=None, risk=0.01),)
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        found = tuple(_limit(name, each) for name, each in given.items())
    else:
        found = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(each, Limit) for each in found):
            raise TypeError(f"limits={given!r} must be limits by name: write limits={EXAMPLE}")
    distinct("limit", [each.name for each in found], MOST)
    return found


def _limit(name: str, given: object) -> Limit:
    if isinstance(given, Limit) and given.name == name:
        return given
    known = [field.name for field in fields(Limit)][1:]
    if not isinstance(given, Mapping):
        raise TypeError(f'limit {name!r} is {given!r}: write limits={{"{name}": {{"max": 80}}}}')
    for field in given:
        if field not in known:
            near = difflib.get_close_matches(str(field), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
            raise ValueError(f"limit {name!r} has no field {field!r}: {hint}")
    return Limit(name, **given)


def measured(limits: tuple[Limit, ...]) -> tuple[str, ...]:
    """The names of the numbers that are measured beside the value.

    >>> measured(limits_of({"value": {"max": 9}, "temperature": {"max": 80}}))
    ('temperature',)
    """
    return tuple(each.name for each in limits if each.name != VALUE)


def sides(limits: tuple[Limit, ...], maximise: bool) -> tuple[Side, ...]:
    """The sides of all limits, for a rule, whose values are to be minimised.

    >>> sides(limits_of({"yield": {"min": 2}}), True)
    (Side(most=-2, risk=0.01, number=1, sign=-1.0, limit=0),)
    """
    names, found = measured(limits), []
    for index, each in enumerate(limits):
        number = 0 if each.name == VALUE else 1 + names.index(each.name)
        turned = -1.0 if maximise and not number else 1.0
        if each.max is not None:
            found.append(Side(each.max, each.risk, number, turned, index))
        if each.min is not None:
            found.append(Side(-each.min, each.risk, number, -turned, index))
    return tuple(found)


def numbers_row(limits: tuple[Limit, ...], given: Mapping[str, ArrayLike | None] | None, lanes: int | None) -> Array:
    """Convert measured numbers by name to an array in the declared order, on the last axis; NaN if not measured.

    >>> numbers_row(limits_of({"temperature": {"max": 80}}), {"temperature": 71.2}, None)
    array([71.2])
    """
    if given is not None and VALUE in given and any(each.name == VALUE for each in limits):
        raise ValueError("the limit 'value' is one of the value itself: leave it out of tell(…, limits=…)")
    return by_name("limit", measured(limits), given or {}, lanes)
