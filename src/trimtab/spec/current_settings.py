"""What a person may correct while a study runs, as it is now: the knobs with their limits, and the rails of the run."""

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
"""The tables of a study.toml whose fields may be corrected: name → the dataclass that checks them."""
RUN: Document = {"pause": 0.0, "timeout": 60.0, "keep": KEEP}
"""The fields outside of tables, with their defaults."""


@dataclass(frozen=True)
class RunSettings:
    """The knobs as they are now, what was said of the run, and by which correction it came to be so."""

    knobs: Knobs
    settings: Fields = field(default_factory=dict)
    """Where they are not the defaults."""
    said: Fields = field(default_factory=dict)
    """Every field as whoever opened the study said it last: what has changed since then is a correction."""
    starts: Fields = field(default_factory=dict)
    """Where knobs began that could not begin there between the limits of now."""
    since: int | None = None
    """The event of the last correction that was not taken back."""

    def __getitem__(self, name: str) -> Any:
        return self.settings.get(name, DEFAULTS[name])

    def to_dict(self) -> Document:
        """For JSON."""
        more = {name: dict(getattr(self, name)) for name in ("settings", "said", "starts")}
        return {**described(self.knobs), **more, "since": self.since}

    @classmethod
    def from_dict(cls, saved: Document) -> RunSettings:
        """What `to_dict` gave."""
        return cls(read_knobs(saved), saved["settings"], saved["said"], saved["starts"], saved["since"])

    def with_settings(self, changes: Fields) -> RunSettings:
        """The terms with other settings, checked."""
        settings = {**self.settings, **changes}
        check(settings)
        return replace(self, settings={name: value for name, value in settings.items() if value != DEFAULTS[name]})

    def table(self, name: str) -> Any:
        """One of the tables, as its dataclass."""
        return table(name, self.settings)


def check(settings: Fields) -> None:
    """Refuse what cannot be."""
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
    """Tables, as dataclasses → dotted names and values."""
    return {f"{name}.{f.name}": getattr(made, f.name) for name, made in tables.items() for f in fields(made)}


DEFAULTS: Fields = MappingProxyType({**RUN, **flattened({name: kind() for name, kind in TABLES.items()})})
"""Of every setting."""
