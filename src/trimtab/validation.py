"""Validation of arguments; errors state the value, the reason and the remedy."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from numbers import Real

LISTED = 30
"""Most names listed in one message."""


def whole(name: str, number: object, least: int = 0, below: int | None = None, *, why: str = "") -> int:
    """Check that least ≤ number < below and return it as an int; `why` is appended to the error.

    >>> whole("trials", 5, 1)
    5
    >>> whole("trials", 0.5, 1)
    Traceback (most recent call last):
    ValueError: trials=0.5 must be a whole number, at least 1
    """
    if not isinstance(number, bool) and hasattr(number, "__index__"):
        found = operator.index(number)
        if found >= least and (below is None or found < below):
            return found
    limit = f" and below {below}" if below is not None else ""
    raise ValueError(f"{name}={number!r} must be a whole number, at least {least}{limit}{why}")


def distinct(kind: str, names: Sequence[str], most: int) -> None:
    """Check that declared names differ, and that there are no more than can be learnt.

    >>> distinct("context", ["load", "load"], 3)
    Traceback (most recent call last):
    ValueError: context 'load' is declared twice: give each a name of its own
    """
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{kind} {repeated!r} is declared twice: give each a name of its own")
    if len(names) > most:
        raise ValueError(f"{len(names)} {kind}s are too many to learn: give the {most} that matter most")


def real(
    name: str,
    number: object,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    above: bool = False,
    below: bool = False,
    why: str = "",
) -> float:
    """Check that least ≤ number ≤ most (above: least < number; below: number < most); return it as a float.

    >>> real("radius", 0.5, 0, above=True)
    0.5
    >>> real("radius", float("nan"), 0, above=True)
    Traceback (most recent call last):
    ValueError: radius=nan must be a finite number > 0
    """
    if isinstance(number, Real) and not isinstance(number, bool):
        try:
            found = float(number)
        except OverflowError:  # an int with hundreds of digits
            found = math.inf
        if (
            math.isfinite(found)
            and (found > least if above else found >= least)
            and (found < most if below else found <= most)
        ):
            return found
    limits = []
    if least > -math.inf:
        limits.append(f" {'>' if above else '>='} {least:g}")
    if most < math.inf:
        limits.append(f" {'<' if below else '<='} {most:g}")
    raise ValueError(f"{name}={number!r} must be a finite number{' and'.join(limits)}{why}")


def choose(given: str, known: Iterable[str]) -> str:
    """The remedy for an unknown name: the one probably meant, or a list of all.

    >>> choose("comand", ["command", "goal"]), choose("x", ["command", "goal"])
    ('did you mean "command"?', 'choose from command, goal')
    """
    names = list(known)
    rest = [f"… ({len(names)} in all)"] if len(names) > LISTED else []
    return near(given, names) or f"choose from {', '.join([*names[:LISTED], *rest])}"


def near(given: str, known: Iterable[str]) -> str | None:
    """Ask whether the closest known name was meant; None if no name is close.

    >>> near("Timeuot", ["timeout", "goal"]), near("x", ["timeout"])
    ('did you mean "timeout"?', None)
    """
    from difflib import get_close_matches  # needed for errors only

    names = {name.lower(): name for name in known}
    found = get_close_matches(given.lower(), names, n=1)
    return f'did you mean "{names[found[0]]}"?' if found else None
