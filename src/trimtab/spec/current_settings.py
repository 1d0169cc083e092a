"""The settings that can change while a study runs, at their present values: knobs with limits, guard, run settings."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from trimtab.spec.guard import LONGEST, Guard, number
from trimtab.spec.knob_encoding import Knobs, described, read_knobs
from trimtab.types import Document, Fields
from trimtab.util.durations import WANTED

KEEP = 100_000
TABLES: dict[str, type] = {"guard": Guard}
"""The tables of a study.toml whose fields can change: name → the dataclass that validates them."""
RUN: Document = {"pause": 0.0, "timeout": 60.0, "keep": KEEP}
"""The fields outside tables, with their defaults."""


@dataclass(frozen=True)
class RunSettings:
    """The present knobs and settings, the last definition of the study, and the last change."""

    knobs: Knobs
    settings: Fields = field(default_factory=dict)
    """The values that differ from the defaults."""
    said: Fields = field(default_factory=dict)
    """All fields of the last definition; `Study.open` applies those that have changed since."""
    starts: Fields = field(default_factory=dict)
    """The original starts of knobs whose start is now outside the limits."""
    since: int | None = None
    """The event of the last change of settings that was not undone."""

    def __getitem__(self, name: str) -> Any:
        return self.settings.get(name, DEFAULTS[name])

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        more = {name: dict(getattr(self, name)) for name in ("settings", "said", "starts")}
        return {**described(self.knobs), **more, "since": self.since}

    @classmethod
    def from_dict(cls, saved: Document) -> RunSettings:
        """Read the output of `to_dict`."""
        return cls(read_knobs(saved), saved["settings"], saved["said"], saved["starts"], saved["since"])

    def with_settings(self, changes: Fields) -> RunSettings:
        """Return a copy with changed settings, validated."""
        settings = {**self.settings, **changes}
        check(settings)
        return replace(self, settings={name: value for name, value in settings.items() if value != DEFAULTS[name]})

    def table(self, name: str) -> Any:
        """One of the tables, as its dataclass."""
        return table(name, self.settings)


def check(settings: Fields) -> None:
    """Refuse invalid settings."""
    found = {**RUN, **settings}
    number("pause", found["pause"], 0, LONGEST, WANTED, equal=True)
    number("timeout", found["timeout"], 0, LONGEST, WANTED)
    keep = found["keep"]
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1000:
        raise ValueError(f"keep={keep!r} is not a valid number of rounds: give a whole number, at least 1000")
    for name in TABLES:
        table(name, settings)


def table(name: str, settings: Fields) -> Any:
    """One of the tables, as its dataclass."""
    begin = f"{name}."
    return TABLES[name](**{key.removeprefix(begin): v for key, v in settings.items() if key.startswith(begin)})


def flattened(tables: Fields) -> Document:
    """Return the fields of tables by dotted names."""
    return {f"{name}.{f.name}": getattr(made, f.name) for name, made in tables.items() for f in fields(made)}


DEFAULTS: Fields = MappingProxyType({**RUN, **flattened({name: kind() for name, kind in TABLES.items()})})
"""The default of every setting."""
