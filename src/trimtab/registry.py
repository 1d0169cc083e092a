"""Registry of parts, used by saving, the package exports and the contract tests."""

from __future__ import annotations

from typing import TypeVar

Part = TypeVar("Part", bound=type)

parts: dict[str, type] = {}
"""Name → class of estimators, steps, directions and domains; registered dataclasses can be saved and are exported."""


def part(cls: Part) -> Part:
    """Register a frozen dataclass under its class name, so that it can be saved.

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
