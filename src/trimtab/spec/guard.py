"""The guard settings of a study, and validation of user input."""

from __future__ import annotations

import datetime
import math
import sys
from dataclasses import dataclass, field
from typing import Any

LONGEST = 10**9  # seconds
SPELT = {"minimize": "minimise", "maximize": "maximise", "center": "centre"}
"""Accepted alternative spellings."""


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Bounds on what the tuner may do, and reactions to failures."""

    largest_move: float | None = None
    failures: int | None = None
    on_failures: str = "hold"
    stop_above: float | None = None
    stop_below: float | None = None
    quiet_hours: list[str] = field(default_factory=list)
    approval: bool = False
    dry_run: bool = False
    leave_at: str = "centre"
    revert: bool = True
    on_revert: str = "stop"

    def __post_init__(self) -> None:
        if self.largest_move is not None:
            number("guard.largest_move", self.largest_move, 0, 1, "a share of the ranges, for example 0.02")
        if self.failures is not None and (type(self.failures) is not int or self.failures < 1):
            raise ValueError(
                f"guard.failures={self.failures!r} is not a valid number of rounds: give a whole number, at least 1"
            )
        choice("guard.on_failures", self.on_failures, "hold", "start")
        object.__setattr__(self, "leave_at", spelt(self.leave_at))
        choice("guard.leave_at", self.leave_at, "query", "centre", "start")
        for name in ("stop_above", "stop_below"):
            if getattr(self, name) is not None:
                number(f"guard.{name}", getattr(self, name), -math.inf, math.inf, "a value of the measurement")
        choice("guard.on_revert", self.on_revert, "stop", "restart")
        for name in ("approval", "dry_run", "revert"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"guard.{name}={getattr(self, name)!r} must be true or false")
        if not isinstance(self.quiet_hours, list):
            raise ValueError(f'guard.quiet_hours={self.quiet_hours!r} must be a list: write ["22:00-06:00"]')
        for span in self.quiet_hours:
            _span(span)

    def quiet(self, now: datetime.time) -> bool:
        """Whether this time of day is within the quiet hours.

        >>> Guard(quiet_hours=["22:00-06:00"]).quiet(datetime.time(23, 30))
        True
        """
        for begin, end in map(_span, self.quiet_hours):
            if (begin <= now < end) if begin <= end else (now >= begin or now < end):
                return True
        return False

    def beyond(self, value: float) -> str | None:
        """Return why this value ends the run, or None."""
        if self.stop_above is not None and value > self.stop_above:
            return f"the value {value:g} is above guard.stop_above={self.stop_above:g}"
        if self.stop_below is not None and value < self.stop_below:
            return f"the value {value:g} is below guard.stop_below={self.stop_below:g}"
        return None


def number(name: str, number: Any, low: float, high: float, what: str, *, equal: bool = False) -> None:
    """Refuse anything but a number above `low` (`equal`: at least `low`) and at most `high`."""
    good = isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= sys.float_info.max
    if not good or not (low < number <= high or (equal and number == low)):
        limits = (
            ""
            if math.isinf(low)
            else f", {'at least' if equal else 'above'} {low:g}"
            if math.isinf(high)
            else f", {low:g} to {high:g}"
        )
        raise ValueError(f"{name}={number!r} is out of range: give {what}{limits}")


def spelt(word: Any) -> Any:
    """Normalise the spelling of a word; other types are left for `choice` to refuse."""
    return SPELT.get(word, word) if isinstance(word, str) else word


def choice(name: str, word: object, *choices: str) -> None:
    """Refuse a word that is not among the choices."""
    if word not in choices:
        raise ValueError(f"{name}={word!r} is unknown: choose {' or '.join(map(repr, choices))}")


def _span(text: Any) -> tuple[datetime.time, datetime.time]:
    try:
        begin, end = (datetime.time.fromisoformat(part.strip()) for part in text.split("-"))
        if begin.tzinfo is None is end.tzinfo:
            return begin, end
        why = "has a time zone, but these are local times of this machine"
    except (ValueError, AttributeError):
        why = "is not a valid time span"
    raise ValueError(f'guard.quiet_hours: {text!r} {why}: write "22:00-06:00"')
