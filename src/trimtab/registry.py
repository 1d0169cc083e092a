"""Where parts make themselves known: one decorator serves saving, the exports and the contract tests."""

from __future__ import annotations

from typing import TypeVar

Part = TypeVar("Part", bound=type)

parts: dict[str, type] = {}
"""Name → class: estimators, steps, directions, domains. A dataclass in here can be saved, and is exported."""


def part(cls: Part) -> Part:
    """Make a part known by the name of its class, so that it can be saved: a decorator of a frozen dataclass.

    >>> from dataclasses import dataclass
    >>> import trimtab as tt
    >>> @tt.part
    ... @dataclass(frozen=True)
    ... class Shell(tt.Sphere):
    ...     "Directions of a method of your own."
    >>> parts.pop("Shell") is Shell
    True
    """
    parts[cls.__name__] = cls
    return cls
