"""A study as one JSON text with a checksum: `trimtab export` writes it, `trimtab import` checks it event by event."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trimtab.spec.knob_encoding import Knob, Knobs, described, read_knobs
from trimtab.store.errors import Damaged
from trimtab.store.store import Store
from trimtab.store.tables import KINDS, ROUNDS, ROUTINE, UNLEARNT, Event, Snapshot, StudyRow
from trimtab.study.create import check_name
from trimtab.study.position import Position, read_snapshot
from trimtab.types import Document
from trimtab.util.checksums import canonical, checksum
from trimtab.util.text import clean

FORMAT = "trimtab.study"
VERSION = 3


class Range(NamedTuple):
    """The widest limits that a knob has had."""

    knob: Knob
    low: float
    high: float


class Exported(NamedTuple):
    """The validated content of an exported file."""

    name: str
    created: float
    knobs: Knobs
    events: list[Event]
    snapshots: list[Snapshot]
    position: Position
    """State of the tuner after the last event."""


def write(saved: StudyRow, events: Sequence[Event], snapshots: Sequence[Snapshot]) -> str:
    """Return the text with its checksum; `Damaged` if events are missing."""
    try:
        _check_complete(events, snapshots)
    except ValueError as error:
        raise Damaged(f"study {saved.name!r} is damaged ({error}): restore the store from a backup") from None
    document = {
        "format": FORMAT,
        "version": VERSION,
        "name": saved.name,
        "created": saved.created,
        "setup": saved.setup,
        "events": [_event_document(event) for event in events],
        "snapshots": [snapshot._asdict() for snapshot in snapshots],
    }
    return canonical({**document, "checksum": checksum(document)})


def _event_document(event: Event) -> Document:
    """Return an event as a dict; the context only if it has one, as in files from before there was any."""
    found = event._asdict()
    if event.context is None:
        del found["context"]
    return found


def read(text: str, report: Callable[[str, float], None] | None = None) -> Exported:
    """Read and validate the output of `write`. report(what, share of the work) is called now and then."""
    try:
        return _read(json.loads(text), report or _ignore_progress)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OSError, RecursionError) as error:
        why = clean(str(error) or type(error).__name__, 200)
        raise ValueError(f"this file is not an exported study, or is damaged ({why}): export it again") from None


def import_text(
    where: str | os.PathLike[str],
    text: str,
    name: str | None = None,
    report: Callable[[str, float], None] | None = None,
) -> str:
    """Add the output of `write` to another store; return the study's name there."""
    found = read(text, report)
    name = name or found.name
    check_name(name)
    last, now = found.events[-1], found.position
    seq = last.seq + 1
    imported = Event(seq, now.state.round, "import", None, None, last.centre, time.time(), None)
    with Store(where) as store:
        if store.find(name) is not None:
            raise ValueError(f"study {name!r} already exists in {store.where}: import it under another name with --as")
        status = now.status(now.terms.knobs, seq, max((e.time for e in found.events if e.kind in ROUNDS), default=None))
        snapshots = [*found.snapshots, now.snapshot(seq)]
        store.add(name, described(found.knobs), status, [*found.events, imported], snapshots, found.created)
    return name


def _ignore_progress(what: str, share: float) -> None:
    """No-op progress callback."""


def _read(document: Document, report: Callable[[str, float], None]) -> Exported:
    if document["format"] != FORMAT or document["version"] != VERSION:
        raise ValueError(f"it says {document['format']!r}, version {document['version']!r}")
    if document.pop("checksum") != checksum(document):
        raise ValueError("the checksum does not match")
    knobs = read_knobs(document["setup"])
    snapshots = [Snapshot(**snapshot) for snapshot in document["snapshots"]]
    positions = []
    for n, given in enumerate(snapshots):
        report("states", n / len(snapshots))
        positions.append(read_snapshot(given, f"the state after event {given.seq}", verified=False))
    report("events", 1.0)
    ranges = _ranges([knobs, *(position.terms.knobs for position in positions)])
    contexts = len(positions[-1].setup.contexts)
    events = [_event(event, ranges, contexts) for event in document["events"]]
    for before, after in itertools.pairwise(events):
        if after.seq <= before.seq:
            raise ValueError(f"event {after.seq} comes after event {before.seq}")
    _check_complete(events, snapshots)
    for snapshot, position in zip(snapshots, positions, strict=True):
        if position.setup.shape != (knobs.dim,):
            raise ValueError(
                f"the state after event {snapshot.seq} has shape {position.setup.shape}, not that of these knobs"
            )
    return Exported(document["name"], _finite("created", document["created"]), knobs, events, snapshots, position)


def _check_complete(events: Sequence[Event], snapshots: Sequence[Snapshot]) -> None:
    """Check that every snapshot has its event, and the last event has a snapshot."""
    known = {event.seq for event in events}
    for snapshot in snapshots:
        if snapshot.seq not in known:
            raise ValueError(f"event {snapshot.seq!r} is missing, but the state after it is there")
    if snapshots[-1].seq != events[-1].seq:
        raise ValueError("the state after the last event is missing")


def _ranges(knobs: Sequence[Knobs]) -> list[Range]:
    """Return the widest limits that each knob has had."""
    return [
        Range(k[0], min(v.low for v in k), max(v.high for v in k))
        if k[0].choices is None
        else Range(k[0], 0, len(k[0].choices) - 1)
        for k in zip(*(version.all for version in knobs), strict=True)
    ]


def _event(given: Document, ranges: Sequence[Range], contexts: int) -> Event:
    event = Event(**given)
    for name in ("seq", "round"):
        number = getattr(event, name)
        if type(number) is not int or not 0 <= number < 2**62:
            raise ValueError(f"event {event.seq!r}: {name}={number!r} must be a whole number ≥ 0")
    if event.kind not in KINDS:
        raise ValueError(f"event {event.seq}: kind={event.kind!r} is unknown")
    if event.kind not in UNLEARNT and (event.value is None) != (event.kind not in ("tell", "applied")):
        raise ValueError(f"event {event.seq}: a {event.kind} with value={event.value!r}")
    if event.note is not None and not isinstance(event.note, str):
        raise ValueError(f"event {event.seq}: note={event.note!r} must be text")
    if (event.query is None) != (event.kind not in ROUTINE):
        raise ValueError(f"event {event.seq}: a {event.kind} with query={event.query!r}")
    if event.context is not None and (event.query is None or len(event.context) != contexts):
        raise ValueError(f"event {event.seq}: context={event.context!r} in a study with {contexts} contexts")
    return event._replace(
        value=None if event.value is None else _finite("value", event.value),
        query=None if event.query is None else _point(event.seq, event.query, ranges),
        centre=_point(event.seq, event.centre, ranges),
        limits=None if event.limits is None else [None if x is None else _finite("limit", x) for x in event.limits],
        context=event.context and [None if x is None else _finite("context", x) for x in event.context],
        time=_finite("time", event.time),
        note=None if event.note is None else clean(event.note),
    )


def _point(seq: int, given: list[float], ranges: Sequence[Range]) -> list[float]:
    """Check a setting against the widest limits of the knobs."""
    point = [_finite("setting", number) for number in given]
    if len(point) != len(ranges):
        raise ValueError(f"event {seq}: {len(point)} settings for {len(ranges)} knobs")
    for (knob, low, high), number in zip(ranges, point, strict=True):
        if not low <= number <= high or (knob.choices is not None and number % 1):
            raise ValueError(f"event {seq}: {knob.name}={number!r} is outside {low!r} to {high!r}")
    return point


def _finite(name: str, number: object) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= sys.float_info.max:
        raise ValueError(f"{name}={number!r} is not a finite number")
    return float(number)
