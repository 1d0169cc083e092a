"""Parse the value from a command's output, strictly: exactly one number, or none and the reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.tune.terminal import MIXED, rendered
from trimtab.util.text import clean, shown

Read = tuple[float | None, str | None]
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
UNIT = r"[%°]?[a-zµμΩ]*(?:/[a-zµμΩ]+)?"
WORD = re.compile(rf"({NUMBER})({UNIT})|[+-]?(?:nan|inf|infinity)", re.ASCII | re.I)
THOUSANDS = re.compile(r"[kKMGT]i?")  # in place of a unit: 5k is 5000, and must not be read as 5
NAME = 'to name the value, print JSON or name=number, and write value = "name" in the study'


def read_value(out: str, key: str | None = None) -> Read:
    """Return the only number of the last line, or with a key the number of that name; or None, and why.

    >>> read_value("took 3 tries\\nlatency: 12.5ms\\n")
    (12.5, None)
    >>> read_value('{"latency": {"p99": 7.25}}', "latency.p99")
    (7.25, None)
    >>> read_value("reads=3 latency=12.5", "latency")
    (12.5, None)
    >>> read_value("1,234.5")[0] is None
    True
    """
    out, lost = rendered(out)
    if lost is not None:
        return None, f"after the control sequence {shown(lost)} the last line is uncertain: print the value without it"
    lines = [line for line in out.split("\n") if line.strip()]
    if not lines:
        return None, "the command printed nothing: its last line must hold the value"
    if key is not None:
        return _named(out, key)
    if MIXED in lines[-1]:
        return _mixed(lines[-1])
    numbers = _numbers(lines[-1])
    if numbers is None or len(numbers) != 1:
        count = "no number" if numbers == [] else "not exactly one number"
        return None, f"{count} in the last line: {shown(lines[-1])}; {_full(lines[-1]) or NAME}"
    return _finite(numbers[0])


def read_values(
    out: str, key: str | None, names: Sequence[str], required: bool = True
) -> tuple[float | None, str | None, dict[str, float]]:
    """Return the value (by default under the name "value") and the numbers under the other names.

    required: if a number is missing, there is no value either.

    >>> read_values('{"value": 3.5, "temperature": 71}', None, ["temperature"])
    (3.5, None, {'temperature': 71.0})
    >>> print(read_values('{"value": 3.5}', None, ["temperature"])[1])
    the limit "temperature": no number under 'temperature' in the output: '{"value": 3.5}'
    """
    value, why = read_value(out, "value" if key is None and names else key)
    found: dict[str, float] = {}
    for name in names:
        number, missing = read_value(out, name)
        if number is None and not required:
            continue
        if number is None:
            return None, why or f'the limit "{name}": {missing}', {}
        found[name] = number
    return value, why, found if value is not None or not required else {}


def _named(out: str, key: str) -> Read:
    for given in reversed(list(_parts(out))):
        if isinstance(given, str) and MIXED in given:
            return _mixed(given)
        there = _line(key, given) if isinstance(given, str) else _document(key, given)
        if there is not None:
            return there
    return None, f"no number under {clean(key)!r} in the output: {shown(out)}"


def _mixed(line: str) -> Read:
    over = line.replace(MIXED, "…")
    return None, f"a line is written over in part: {shown(over)}; print the value on a line of its own"


def _finite(value: float) -> Read:
    return (value, None) if math.isfinite(value) else (None, f"the value is {value}")


def _numbers(line: str) -> list[float] | None:
    """Return all numbers of a line, with or without a unit; None if a word is ambiguous (3.2.1, 0x1F, 5k)."""
    found = []
    for word in _words(line):
        number = _number(word)
        if number is not None:
            found.append(number)
        elif word[:1].isdigit() or re.match(r"[+\-.]+\d", word):
            return None
    return found


def _words(line: str) -> list[str]:
    return [word.rstrip(".!?") for word in re.split(r"[\s,;:=()\[\]{}\"'|<>]+", line)]


def _number(word: str) -> float | None:
    match = WORD.fullmatch(word)
    if match is None or _in_thousands(match):
        return None
    return float(match[1] or word)


def _in_thousands(match: re.Match[str]) -> bool:
    return THOUSANDS.fullmatch(match[2] or "") is not None


def _full(line: str) -> str | None:
    """Return the remedy for a number in thousands, if there is one."""
    for word in _words(line):
        if (match := WORD.fullmatch(word)) and _in_thousands(match):
            return f"{word} may mean more than {match[1]}: print the number in full, or put a space before the unit"
    return None


def _parts(out: str) -> Iterator[str | list[Any] | dict[str, Any]]:
    """Yield JSON documents that start and end with a line, and all other lines."""
    at = 0
    while at < len(out):
        end = _end(out, at)
        line = out[at:end]
        begin = at + len(line) - len(line.lstrip())
        if out.startswith(("{", "["), begin):
            try:
                document, after = json.JSONDecoder().raw_decode(out, begin)
            except (ValueError, RecursionError):
                pass
            else:
                if not out[after : _end(out, after)].strip():
                    yield document
                    at = _end(out, after)
                    continue
        yield line
        at = end


def _end(out: str, at: int) -> int:
    """Return the end of the line."""
    return out.find("\n", at) + 1 or len(out)


def _document(key: str, found: Any) -> Read | None:
    """Read a dotted key of a JSON document; None if it is missing."""
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    if isinstance(found, bool) or not isinstance(found, int | float):
        return _none(key, json.dumps(found))
    try:
        return _finite(float(found))
    except OverflowError:
        return _finite(math.inf)


def _line(key: str, line: str) -> Read | None:
    """Read the last key=… or key: … of a line, or a line of just the key and a word; None if the key is missing."""
    name = re.escape(key)
    alone = re.fullmatch(rf"\s*{name}\s+([^\s:=]+)\s*", line)
    given = re.findall(rf"(?<![\w.-]){name}(?![\w.-])\s*[:=]\s*([^\s,;]*(?:,\d[^\s,;]*)*)", line)
    if alone is None and not given:
        return None
    word = (given[-1] if given else alone[1] if alone else "").rstrip(",;.!?)]}")
    number = _number(word)
    return _none(key, word) if number is None else _finite(number)


def _none(key: str, word: str) -> Read:
    remedy = _full(word)
    return None, f"no number under {clean(key)!r}, but {shown(word)}{'; ' + remedy if remedy else ''}"
