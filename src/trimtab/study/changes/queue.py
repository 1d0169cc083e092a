"""Requests to the holder of a study for a change of settings: stored as JSON, applied before the next trial."""

from __future__ import annotations

import json
import os
import time
import tomllib
from typing import TYPE_CHECKING

from trimtab.store.errors import Taken
from trimtab.types import Document, Fields

if TYPE_CHECKING:
    from trimtab.study.changes.rules import Changes

PATIENCE, POLL = 5.0, 0.1  # seconds to wait for the holder, and between polls


def requested(changes: Fields, who: str, why: str | None) -> str:
    """Return the request as JSON; each one is unique."""
    try:
        return json.dumps({"changes": dict(changes), "who": who, "why": why, "id": os.urandom(8).hex()})
    except TypeError as error:
        raise ValueError(f"{dict(changes)} cannot be stored ({error}): give numbers and text") from None


def read_request(text: str) -> tuple[Document, str]:
    """Return the changes of a request, and who asks for them and why."""
    found = json.loads(text)
    return found["changes"], f"{found['who']}{': ' + found['why'] if found['why'] else ''}"


def read_change(text: str) -> tuple[str, object]:
    """Parse FIELD=VALUE, with the value as in a study.toml; text needs no quotes, and "none" clears a field.

    >>> read_change("knobs.x.high=5"), read_change("guard.leave_at=start"), read_change("guard.failures = none")
    (('knobs.x.high', 5), ('guard.leave_at', 'start'), ('guard.failures', None))
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise ValueError(f"{text!r} is not field=value, for example radius=0.02 or knobs.batch.high=1024")
    if value.lower() == "none":
        return name, None
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def correct(where: str, name: str, changes: Fields, *, who: str | None, why: str | None) -> tuple[Changes, bool]:
    """Change a study's settings, or request it of its holder; return the changes, and whether they are made."""
    from trimtab.study.study import Study

    try:
        with Study.open(where, name) as study:
            return study.set(changes, who=who, why=why), True
    except Taken:
        with Study.open_unlocked(where, name, mode="write") as study:
            changed = study.set(changes, who=who, why=why)
            end = time.monotonic() + PATIENCE
            while (waiting := study.asked()) and time.monotonic() < end:
                time.sleep(POLL)
            return changed, not waiting
