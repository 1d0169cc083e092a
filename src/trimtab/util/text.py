"""Formatting of text: untrusted text for storage and display, counts, values and times."""

from __future__ import annotations

import time

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
