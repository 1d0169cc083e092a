"""Numbers that a user gives: what each must be, said once, with the value, the reason and the remedy."""

from __future__ import annotations

import math
import operator
from numbers import Real


def whole(name: str, number: object, least: int = 0, below: int | None = None, *, why: str = "") -> int:
    """A whole number, least ≤ number < below, as an int; `why` is added to the error.

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
    """A finite number, least ≤ number ≤ most (above: least < number, below: number < most), as a float.

    >>> real("radius", 0.5, 0, above=True)
    0.5
    >>> real("radius", float("nan"), 0, above=True)
    Traceback (most recent call last):
    ValueError: radius=nan must be a finite number > 0
    """
    if isinstance(number, Real) and not isinstance(number, bool):
        try:
            found = float(number)
        except OverflowError:  # a whole number with hundreds of digits
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
