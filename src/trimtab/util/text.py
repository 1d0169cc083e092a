"""Formatting of text: untrusted text for storage and display, counts, values and times."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

LONGEST = 500


def clean(text: str, longest: int = LONGEST) -> str:
    """Escape unprintable characters; of long text, keep the end.

    >>> clean("a\\x1b[31mb\\x00")
    'a\\\\x1b[31mb\\\\x00'
    """
    cut = text if len(text) <= longest else "…" + text[-longest:]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "round"), plural(0, "round"), plural(2, "study")
    ('1 round', '0 rounds', '2 studies')
    """
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun}"


def said(x: float | None, digits: int = 3) -> str:
    """Format a number to a few digits; "?" if it is not known.

    >>> said(1234.5), said(None), said(0.1234, 2)
    ('1.23e+03', '?', '0.12')
    """
    return "?" if x is None or math.isnan(x) else f"{x:.{digits}g}"


def aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Format rows of cells as lines with aligned columns.

    >>> aligned([("knob", "centre"), ("valve", "60")])
    ['knob   centre', 'valve  60']
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def plain(value: Any) -> Any:
    """Convert to JSON types; numbers that are not finite become None.

    >>> plain({"ends": (0.5, math.inf)})
    {'ends': [0.5, None]}
    """
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def shown(text: str, longest: int = 60) -> str:
    """Clean, shorten and quote text for a message."""
    return f"'{clean(text.strip(), longest)}'"


def word(value: object) -> str:
    """Format the value of a knob for a command.

    >>> word("gzip"), word(True), word(3), word(0.25)
    ('gzip', 'true', '3', '0.25')
    """
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else repr(value)


def moment(seconds: float) -> str:
    """Format a Unix time in local time with its zone.

    >>> len(moment(0.0).split())
    3
    """
    return time.strftime("%F %T %Z", time.localtime(seconds))
