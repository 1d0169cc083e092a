"""Context: numbers measured beside the system, such as a load, that explain why its cost and its optimum change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numpy.typing import ArrayLike

from trimtab.inputs import by_name
from trimtab.registry import part
from trimtab.types import Array
from trimtab.validation import distinct

MOST = 3  # contexts: with each, the method has more to learn


@part
@dataclass(frozen=True)
class Context:
    """A number that is known before each query, in any unit.

    period: of numbers that go round: 24 for the hour of the day, 7 for the day of the week, 360 for an angle.

    >>> Context("hour", period=24)
    Context(name='hour', period=24)
    """

    name: str
    period: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"the name of a context must be a text, not {self.name!r}: write for example 'load'")
        if self.period is None:
            return
        number = isinstance(self.period, int | float) and not isinstance(self.period, bool)
        if not number or not 0 < self.period < math.inf:
            raise ValueError(f"period={self.period!r} of {self.name!r} must be positive: write 24 for hours of a day")


def contexts_of(given: Iterable[str | Context] | None) -> tuple[Context, ...]:
    """Read a declaration of contexts: names, or `Context`s.

    >>> contexts_of(["load"])
    (Context(name='load', period=None),)
    """
    if given is None:
        return ()
    if isinstance(given, str | Context | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f'context={given!r} must be a list of names: write context=["load", …]')
    found = tuple(each if isinstance(each, Context) else Context(each) for each in given)
    distinct("context", [each.name for each in found], MOST)
    return found


def context_row(
    declared: tuple[Context, ...],
    given: Mapping[str, ArrayLike | None] | None,
    lanes: int | None,
    remedy: str = "give Tuner(…, context={})",
) -> Array | None:
    """Convert a context by name to numbers in the declared order, `(contexts,)` or `(lanes, contexts)`; NaN if missing.

    None if the setup declares no context. remedy: how to declare one, if there is none.

    >>> context_row(contexts_of(["load", "hour"]), {"load": 0.7}, None)
    array([0.7, nan])
    """
    if not declared:
        if given:
            raise ValueError(f"context={given!r}, but none was declared: {remedy.format(sorted(given))}")
        return None
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f'context={given!r} must be numbers by name: write context={{"{declared[0].name}": 0.7}}')
    return by_name("context", [each.name for each in declared], given or {}, lanes)
