"""The tables of a store, for SQLite and PostgreSQL alike, and how their rows are read and sealed.

A study is a sealed row that says where it is, with the state to go on from (`trimtab.study.packed_state`); an event is
value, query, centre and note, numbers as 8-byte floats; a snapshot is the state of the tuner after an event, at every
hundredth and wherever the state did not follow from values; a request is a correction that somebody asks the holder of
a study for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from trimtab.store.errors import Damaged
from trimtab.types import Document
from trimtab.util.checksums import canonical, checksum, hashed, quoted

VERSION = 9
"""Counts up with every change of what is stored: of tables and checksums, and of the documents in them."""
REQUESTS = "CREATE TABLE trimtab_requests (id {id}, study INTEGER NOT NULL, request TEXT NOT NULL)"
TOKENS = """CREATE TABLE trimtab_tokens (
        id TEXT PRIMARY KEY, hash TEXT NOT NULL, scope TEXT NOT NULL, study TEXT, label TEXT, created {real} NOT NULL,
        expires {real}, revoked {real}, parent TEXT)"""
MIGRATIONS: dict[int, tuple[str, ...]] = {9: ()}  # how often a limit is exceeded: unknown where it is missing
"""version → the statements that lead to it from the one before; without those of an older one, it is refused."""
TABLES = (
    "CREATE TABLE trimtab_meta (version INTEGER NOT NULL)",
    """CREATE TABLE trimtab_studies (
        id {id}, uid TEXT NOT NULL, name TEXT NOT NULL UNIQUE, created {real} NOT NULL, setup TEXT NOT NULL,
        seq BIGINT NOT NULL, status TEXT NOT NULL, checksum BIGINT NOT NULL,
        proposal TEXT, decision TEXT, holder TEXT, paused TEXT, archived {real},
        failures INTEGER NOT NULL DEFAULT 0, advised INTEGER NOT NULL DEFAULT 0, told {real},
        marked BIGINT NOT NULL, state {blob})""",
    "{roomy}",
    """CREATE TABLE trimtab_events (
        study INTEGER NOT NULL, seq BIGINT NOT NULL, round BIGINT NOT NULL,
        kind TEXT NOT NULL, value {real}, query {blob}, centre {blob} NOT NULL, time {real} NOT NULL, note TEXT,
        checksum BIGINT NOT NULL, limits {blob}, PRIMARY KEY (study, seq)) {clustered}""",
    """CREATE TABLE trimtab_snapshots (
        study INTEGER NOT NULL REFERENCES trimtab_studies (id), seq BIGINT NOT NULL, state TEXT NOT NULL,
        diagnostics TEXT NOT NULL, checksum BIGINT NOT NULL, PRIMARY KEY (study, seq)) {clustered}""",
    REQUESTS,
    TOKENS,
)
Setting = Document
"""The value of every knob, by name; whole numbers are ints, switches bools."""
KINDS = (
    *(
        "ask",
        "tell",
        "applied",
        "skip",
        "baseline",
        "hold",
        "leave",
        "start",
        "undo",
        "reset",
        "set",
        "setup",
        "import",
    ),
    *("pause", "resume", "archive", "restore"),
)
ROUNDS = ("tell", "applied", "skip", "baseline", "hold", "leave")
"""The kinds of events that are measurements, or failed ones."""
ROUTINE = (*ROUNDS, "ask")
"""The kinds that follow from values and are thinned when they are old; the others have a snapshot. "ask": a trial was
handed out beside others that are open, where several may be."""
UNLEARNT = ("baseline", "hold", "leave")
"""Those of them that teach the tuner nothing, whatever the value."""
STILL = ("leave", "pause", "resume", "archive", "restore")
"""The kinds after which the open trial is the same as before."""


class Event(NamedTuple):
    """What happened: one line of a study's history.

    >>> from trimtab.live import Study
    >>> knobs = [dict(name="heat", low=150, high=220, start=180)]
    >>> study = Study.open(":memory:", "press", knobs, seed=0)
    >>> study.tell(study.ask(), 12.5)
    >>> event: Event = list(study.events())[-1]
    >>> event.kind, event.value, event.query
    ('tell', 12.5, [180.0])
    >>> study.close()
    """

    seq: int
    round: int
    """Of the trial; for an undo, a reset and the like, the next round."""
    kind: str
    """One of KINDS; what is set now was setup once."""
    value: float | None
    query: list[Any] | None
    """What was set, in the units of the knobs; a choice is stored as its number, from 0 on, a switch as 0 or 1."""
    centre: list[Any]
    """The operating point afterwards, in the units of the knobs; of a choice, the likeliest."""
    time: float
    note: str | None
    limits: list[float] | None = None
    """The numbers that were told beside the value, where the study has limits on some."""


class Snapshot(NamedTuple):
    """The tuner after an event, to go on from, or to go back to."""

    seq: int
    state: str
    """Setup and state, as `trimtab.storage` writes them."""
    diagnostics: Document


class Marks(NamedTuple):
    """What changes in a study's row without an event, by whoever changes it; sealed by itself."""

    proposal: str | None = None
    """What waits for a person's approval."""
    decision: str | None = None
    """The person's word on it."""
    holder: str | None = None
    """The process that tunes it, if one does."""
    paused: str | None = None
    """Who asked that nothing new is set, when and why, as JSON."""
    archived: float | None = None


class StudyRow(NamedTuple):
    """A study as it is stored; the fields from `proposal` to `archived` are its `Marks`."""

    id: int
    uid: str
    """Never that of another study, also of the same name in another store."""
    name: str
    created: float
    setup: Document
    seq: int
    status: Document
    """Where it is, at a glance."""
    proposal: str | None
    decision: str | None
    holder: str | None
    paused: str | None
    archived: float | None
    described: str
    """The setup as it is written in the row."""


class Commit(NamedTuple):
    """One step of a study, to be stored: the event, where the study is then, and the state, if it is kept."""

    study: StudyRow
    event: Event
    status: Document
    snapshot: Snapshot | None
    keep: int
    request: str | None = None
    """What it is the answer to."""
    state: bytes | None = None
    """The state in one piece, for the row."""
    row: Document | None = None
    """What else of the row changes with it: `paused`, `archived`."""

    @property
    def saved(self) -> StudyRow:
        """The study afterwards."""
        return self.study._replace(seq=self.event.seq, status=self.status)


STUDY_COLUMNS = (
    "id, uid, name, created, setup, seq, status, failures, advised, told, checksum, proposal, decision, holder, paused,"
    " archived, marked"
)
EVENT_COLUMNS = "seq, round, kind, value, query, centre, time, note, checksum, limits"
SNAPSHOT_COLUMNS = "seq, state, diagnostics, checksum"
INSERT_EVENT = f"INSERT INTO trimtab_events (study, {EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def urgency(status: Document) -> tuple[int, int, float | None]:
    """What of a status has columns of its own, for the database to sort by: `failures`, `advised`, `told`."""
    return status["failures"], len(status.get("advice", ())), status["time"]


def seal(uid: str, name: str, created: float, setup: str, seq: int, status: str, *urgency: float | None) -> int:
    """The checksum of a study's row. That of its setup stands for the setup: many studies have the same."""
    about = f"[{quoted(uid)},{quoted(name)},{created!r},{_hashed(setup)},{seq!r},{urgency!r}]"
    return hashed(f"{about}{status}".encode())


def seal_marks(uid: str, marks: Sequence[object]) -> int:
    """The checksum of a study's marks."""
    return hashed(repr((uid, *marks)).encode())


def is_sealed(row: Sequence[Any]) -> bool:
    """Whether a row of STUDY_COLUMNS is what was written."""
    try:
        return bool(row[10] == seal(*row[1:10]) and row[16] == seal_marks(row[1], row[11:16]))
    except (ValueError, TypeError, AttributeError):  # a value of another type
        return False


@lru_cache(1000)
def _hashed(text: str) -> int:
    return hashed(text.encode())


def read_study(row: Sequence[Any], where: str) -> StudyRow:
    """A row of trimtab_studies, if it is what was written."""
    id, uid, name, created, setup, seq, status = row[:7]
    if not is_sealed(row):
        raise damaged_row(name, where)
    return StudyRow(id, uid, name, created, json.loads(setup), seq, json.loads(status), *Marks(*row[11:16]), setup)


def damaged_row(name: str, where: str) -> Damaged:
    """The error for a row that is not what was written."""
    return Damaged(
        f"study {name!r} in {where} is damaged (the checksum does not match): restore the store from a backup"
    )


def move_row(move: Commit) -> tuple[Any, ...]:
    """For `Database.move`: the study's row, and the event's."""
    study, seq, text = move.study, move.event.seq, canonical(move.status)
    urgent = urgency(move.status)
    sealed = seal(study.uid, study.name, study.created, study.described, seq, text, *urgent)
    return (study.uid, text, sealed, *urgent, move.state, *event_row(study.id, move.event))


def event_row(study: int, event: Event) -> tuple[Any, ...]:
    """For trimtab_events."""
    seq, round, kind, value, query, centre, time, note, limits = event
    beside = None if limits is None else _pack(limits)
    about = (seq, round, kind, value, None if query is None else _pack(query), _pack(centre), time, note)
    return (study, *about, _sealed(about, beside), beside)


def read_event(row: Sequence[Any], where: str) -> Event:
    """A row of EVENT_COLUMNS, if it is what was written."""
    seq, round, kind, value, query, centre, time, note, sealed, limits = row
    try:
        told = (None if numbers is None else _unpack(numbers) for numbers in (query, limits))
        event = Event(seq, round, kind, value, next(told), _unpack(centre), time, note, next(told))
        if sealed != _sealed(tuple(row[:8]), limits):
            raise ValueError("the checksum does not match")
    except (ValueError, TypeError, struct.error) as error:
        raise Damaged(f"event {seq} in {where} is damaged ({error}): restore the store from a backup") from None
    return event


def _sealed(about: tuple[Any, ...], limits: bytes | None) -> int:
    """The checksum of an event, of its numbers as they are stored. about: seq, round, kind, value, query, …, note."""
    seq, round, kind, value, query, centre, time, note = about
    sizes = (None if query is None else len(query), len(centre), None if limits is None else len(limits))
    blobs = (query or b"") + centre + (limits or b"")
    return hashed(repr((seq, round, kind, value, time, note, *sizes)).encode() + blobs)


def snapshot_row(study: int, snapshot: Snapshot) -> tuple[object, ...]:
    """For trimtab_snapshots."""
    return study, snapshot.seq, snapshot.state, json.dumps(snapshot.diagnostics), checksum(snapshot)


def read_snapshot(row: Sequence[Any], where: str) -> Snapshot:
    """A row of trimtab_snapshots without its study, if it is what was written."""
    seq, state, diagnostics, sealed = row
    try:
        snapshot = Snapshot(seq, state, json.loads(diagnostics))
        if checksum(snapshot) != sealed:
            raise ValueError("the checksum does not match")
    except (ValueError, TypeError) as error:
        raise Damaged(
            f"the state after event {seq} in {where} is damaged ({error}): undo to an earlier round"
        ) from None
    return snapshot


def _pack(numbers: list[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def _unpack(data: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(data) // 8}d", data))
