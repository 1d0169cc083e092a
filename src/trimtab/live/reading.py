"""The value in what a command printed, read strictly: exactly one number, or a round without a value that says why."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from trimtab.live.text import clean, shown

Read = tuple[float | None, str | None]
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
WORD = re.compile(
    rf"({NUMBER}|[+-]?(?:nan|inf|infinity))([^\W\d_]*|[%°][^\W\d_]?|[^\W\d_]+/[^\W\d_]+)", re.ASCII | re.I
)
NAME = 'to name the value, print JSON or name=number, and write value = "name" in the study'


def read_value(out: str, key: str | None = None) -> Read:
    """The only number of the last line; or with a key, the number of that name; or none, and why.

    >>> read_value("took 3 tries\\nlatency: 12.5ms\\n")
    (12.5, None)
    >>> read_value('{"latency": {"p99": 7.25}}', "latency.p99")
    (7.25, None)
    >>> read_value("reads=3 latency=12.5", "latency")
    (12.5, None)
    >>> read_value("1,234.5")[0] is None
    True
    """
    lines = [line for line in out.splitlines() if line.strip()]
    if not lines:
        return None, "the command printed nothing: its last line must hold the value"
    if key is not None:
        for text in (*reversed(lines), out):
            found = _under(key, text)
            if found is not None:
                return _finite(found)
        return None, f"no number under {clean(key)!r} in the output: {shown(out)}"
    numbers = _numbers(lines[-1])
    if numbers is None or len(numbers) != 1:
        count = "no number" if numbers == [] else "not exactly one number"
        return None, f"{count} in the last line: {shown(lines[-1])}; {NAME}"
    return _finite(numbers[0])


def read_values(out: str, key: str | None, names: Sequence[str]) -> tuple[float | None, str | None, dict[str, float]]:
    """The value (by default that of the name "value"), and the numbers under other names, all of which must be there.

    >>> read_values('{"value": 3.5, "temperature": 71}', None, ["temperature"])
    (3.5, None, {'temperature': 71.0})
    >>> print(read_values('{"value": 3.5}', None, ["temperature"])[1])
    the limit "temperature": no number under 'temperature' in the output: '{"value": 3.5}'
    """
    value, why = read_value(out, "value" if key is None and names else key)
    found: dict[str, float] = {}
    for name in names:
        number, missing = read_value(out, name)
        if number is None:
            return None, why or f'the limit "{name}": {missing}', {}
        found[name] = number
    return value, why, found if value is not None else {}


def _finite(value: float) -> Read:
    return (value, None) if math.isfinite(value) else (None, f"the value is {value}")


def _numbers(line: str) -> list[float] | None:
    """All numbers of a line, with or without a unit; None if something in it may be one or not (3.2.1, 0x1F)."""
    found = []
    for word in re.split(r"[\s,;:=()\[\]{}\"'|<>]+", line):
        word = word.rstrip(".!?")
        number = _number(word)
        if number is not None:
            found.append(number)
        elif word[:1].isdigit() or re.match(r"[+\-.]+\d", word):
            return None
    return found


def _number(word: str) -> float | None:
    match = WORD.fullmatch(word)
    return float(match[1]) if match else None


def _under(key: str, text: str) -> float | None:
    if text.lstrip().startswith(("{", "[")):
        try:
            found = json.loads(text)
            for part in key.split("."):
                found = found[part]
            if isinstance(found, int | float) and not isinstance(found, bool):
                return float(found)
        except OverflowError:
            return math.inf
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        return None
    match = re.search(rf"(?<![\w.]){re.escape(key)}\s*[:=]?\s*([^\s;]+)", text)
    return None if match is None else _number(match[1].rstrip(","))
