"""Where parts and methods make themselves known: one decorator serves saving, the exports and the contract tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Part = TypeVar("Part", bound=type)
Constructor = TypeVar("Constructor", bound=Callable[..., Any])

parts: dict[str, type] = {}
"""Name → class: estimators, steps, directions, domains. A dataclass in here can be saved, and is exported."""
methods: dict[str, Callable[..., Any]] = {}
"""Name → constructor of a method, with `radius=` and, where it needs one, `step=`."""


def part(cls: Part) -> Part:
    """Make a part known by the name of its class."""
    parts[cls.__name__] = cls
    return cls


def method(name: str) -> Callable[[Constructor], Constructor]:
    """Make a constructor of methods known as `trimtab.methods[name]`."""

    def add(constructor: Constructor) -> Constructor:
        methods[name] = constructor
        return constructor

    return add


def exported(name: str) -> Any:
    """The part or constructor of this name (as an identifier), or None."""
    return parts.get(name) or next((f for key, f in methods.items() if key.replace("-", "_") == name), None)
