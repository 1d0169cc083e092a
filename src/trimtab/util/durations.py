"""Parsing of durations: seconds, or text such as "10s", "2m", "1h" or "500ms"."""

from __future__ import annotations

import re
from typing import Any

from trimtab.types import Document, Fields

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
FIELDS = ("pause", "timeout", "store_patience")
WANTED = 'seconds, or text such as "10s", "2m", "1h" or "500ms"'


def seconds(given: Any) -> Any:
    """Convert a duration with a unit to seconds; return anything else unchanged, for later validation.

    >>> seconds("2m"), seconds("1.5 h"), seconds("500ms"), seconds(3), seconds("soon")
    (120.0, 5400.0, 0.5, 3, 'soon')
    """
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*([a-z]+)\s*", given) if isinstance(given, str) else None
    return float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else given


def in_seconds(fields: Fields) -> Document:
    """Return the fields of a study with all durations in seconds."""
    return {name: seconds(value) if name in FIELDS else value for name, value in fields.items()}
