"""The tables of a store, for SQLite and PostgreSQL alike, and their rows with checksums.

A study's row holds its current position and its packed state (`trimtab.study.packed_state`). An event holds value,
query, centre and note, with numbers as 8-byte floats; behind the knobs of a query stands its context, if it has one. A
snapshot is the state of the tuner after an event: after every hundredth, and after each whose state does not follow
from values. A request asks the holder of a study for a change of settings.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from trimtab.store.errors import Damaged
from trimtab.types import Document
from trimtab.util.checksums import canonical, checksum, hashed, quoted

VERSION = 12
"""Incremented with every change of the stored format: of tables, checksums, or the documents in them."""
REQUESTS = "CREATE TABLE trimtab_requests (id {id}, study INTEGER NOT NULL, request TEXT NOT NULL)"
TOKENS = """CREATE TABLE trimtab_tokens (
        id TEXT PRIMARY KEY, hash TEXT NOT NULL, scope TEXT NOT NULL, study TEXT, label TEXT, created {real} NOT NULL,
        expires {real}, revoked {real}, parent TEXT)"""
MIGRATIONS: dict[int, tuple[str, ...]] = {10: (), 11: (), 12: ()}  # their documents are read as they are
"""version → the statements that migrate to it from the version before. Older stores are refused."""
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
"""The value of every knob, by name: ints for integers, bools for switches."""
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
"""The kinds of events that are measurements, including failed ones."""
ROUTINE = (*ROUNDS, "ask")
"""The kinds that follow from values; they are thinned when old, and all others have a snapshot. "ask": a trial was
handed out in a study with several open trials."""
UNLEARNT = ("baseline", "hold", "leave")
"""The rounds that the tuner does not learn from."""
STILL = ("leave", "pause", "resume", "archive", "restore")
"""The kinds that leave the open trial unchanged."""


class Event(NamedTuple):
    """One entry of a study's history.

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
    """The round of the trial; for an undo, a reset and the like, the next round."""
    kind: str
    """One of KINDS; "setup" is the former name of "set"."""
    value: float | None
    query: list[Any] | None
    """The setting that was measured, in the units of the knobs; a choice as its index, a switch as 0 or 1."""
    centre: list[Any]
    """The operating point afterwards, in the units of the knobs; for a choice, the likeliest one."""
    time: float
    note: str | None
    limits: list[float | None] | None = None
    """The measured numbers that the study has limits on; None in place of one not measured."""
    context: list[float | None] | None = None
    """The context that the trial was for, in the order it was declared; None in place of a number not known."""


class Snapshot(NamedTuple):
    """State of the tuner after an event, to resume from or to undo to."""

    seq: int
    state: str
    """Setup and state, as written by `trimtab.storage`."""
    diagnostics: Document


class Marks(NamedTuple):
    """The columns of a study's row that change without an event; they have a checksum of their own."""

    proposal: str | None = None
    """The proposal that waits for approval, as JSON."""
    decision: str | None = None
    """The decision on it, as JSON."""
    holder: str | None = None
    """The process that holds the study, if any."""
    paused: str | None = None
    """Author, time and reason of the pause, as JSON."""
    archived: float | None = None


class StudyRow(NamedTuple):
    """A stored study; the fields from `proposal` to `archived` are its `Marks`."""

    id: int
    uid: str
    """Globally unique: differs even from a study of the same name in another store."""
    name: str
    created: float
    setup: Document
    seq: int
    status: Document
    """Summary of the current position."""
    proposal: str | None
    decision: str | None
    holder: str | None
    paused: str | None
    archived: float | None
    described: str
    """The setup as the text in the row."""


class Commit(NamedTuple):
    """One step of a study to store: the event, the status after it, and a snapshot if one is due."""

    study: StudyRow
    event: Event
    status: Document
    snapshot: Snapshot | None
    keep: int
    request: str | None = None
    """The request that the event answers."""
    state: bytes | None = None
    """The packed state, for the row."""
    row: Document | None = None
    """Other columns of the row that change with it: `paused`, `archived`."""

    @property
    def saved(self) -> StudyRow:
        """The study afterwards."""
        return self.study._replace(seq=self.event.seq, status=self.status)


class StudyColumns(NamedTuple):
    """A stored row of trimtab_studies, before its checksum is verified."""

    id: int
    uid: str
    name: str
    created: float
    setup: str
    seq: int
    status: str
    failures: int
    advised: int
    told: float | None
    checksum: int
    proposal: str | None
    decision: str | None
    holder: str | None
    paused: str | None
    archived: float | None
    marked: int
    state: bytes | None = None
    """The packed state, if the query asked for it."""

    @property
    def marks(self) -> Marks:
        """The columns that `marked` is the checksum of."""
        return Marks(self.proposal, self.decision, self.holder, self.paused, self.archived)

    @property
    def is_intact(self) -> bool:
        """Whether the checksums match."""
        described = (self.uid, self.name, self.created, self.setup, self.seq, self.status)
        try:
            expected = row_checksum(*described, self.failures, self.advised, self.told)
            return self.checksum == expected and self.marked == marks_checksum(self.uid, self.marks)
        except (ValueError, TypeError, AttributeError):  # a value of another type
            return False


STUDY_COLUMNS = ", ".join(StudyColumns._fields[:-1])
EVENT_COLUMNS = "seq, round, kind, value, query, centre, time, note, checksum, limits"
SNAPSHOT_COLUMNS = "seq, state, diagnostics, checksum"
INSERT_EVENT = f"INSERT INTO trimtab_events (study, {EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def sort_columns(status: Document) -> tuple[int, int, float | None]:
    """Return the parts of a status that have columns to sort by: `failures`, `advised`, `told`."""
    return status["failures"], len(status.get("advice", ())), status["time"]


def row_checksum(
    uid: str, name: str, created: float, setup: str, seq: int, status: str, *sorted_by: float | None
) -> int:
    """Return the checksum of a study's row. The hash of the setup is cached, since many studies share one."""
    about = f"[{quoted(uid)},{quoted(name)},{created!r},{_hashed(setup)},{seq!r},{sorted_by!r}]"
    return hashed(f"{about}{status}".encode())


def marks_checksum(uid: str, marks: Sequence[object]) -> int:
    """Return the checksum of a study's marks."""
    return hashed(repr((uid, *marks)).encode())


@lru_cache(1000)
def _hashed(text: str) -> int:
    return hashed(text.encode())


def read_study(row: Sequence[Any], where: str) -> StudyRow:
    """Read a row of STUDY_COLUMNS; `Damaged` if a checksum does not match."""
    row = StudyColumns(*row)
    if not row.is_intact:
        raise damaged_row(row.name, where)
    setup, status = json.loads(row.setup), json.loads(row.status)
    return StudyRow(row.id, row.uid, row.name, row.created, setup, row.seq, status, *row.marks, row.setup)


def damaged_row(name: str, where: str) -> Damaged:
    """Return the error for a row whose checksum does not match."""
    return Damaged(
        f"study {name!r} in {where} is damaged (the checksum does not match): restore the store from a backup"
    )


def commit_row(commit: Commit) -> tuple[Any, ...]:
    """Return the columns of the study and of the event, for `Database.move`."""
    study, seq, text = commit.study, commit.event.seq, canonical(commit.status)
    sorted_by = sort_columns(commit.status)
    digest = row_checksum(study.uid, study.name, study.created, study.described, seq, text, *sorted_by)
    return (study.uid, text, digest, *sorted_by, commit.state, *event_row(study.id, commit.event))


def event_row(study: int, event: Event) -> tuple[Any, ...]:
    """Return a row for trimtab_events."""
    seq, round, kind, value, query, centre, time, note, limits, context = event
    beside = None if limits is None else _pack([math.nan if x is None else x for x in limits])
    asked = None if query is None else _pack([*query, *(math.nan if x is None else x for x in context or ())])
    about = (seq, round, kind, value, asked, _pack(centre), time, note)
    return (study, *about, _event_checksum(about, beside), beside)


def read_event(row: Sequence[Any], where: str) -> Event:
    """Read a row of EVENT_COLUMNS; `Damaged` if its checksum does not match."""
    seq, round, kind, value, query, centre, time, note, stored, limits = row
    try:
        asked, beside = (None if numbers is None else _unpack(numbers) for numbers in (query, limits))
        at = _unpack(centre)
        context = [None if math.isnan(x) else x for x in (asked or ())[len(at) :]] or None
        asked = None if asked is None else asked[: len(at)]
        numbers = None if beside is None else [None if math.isnan(x) else x for x in beside]
        event = Event(seq, round, kind, value, asked, at, time, note, numbers, context)
        if stored != _event_checksum(tuple(row[:8]), limits):
            raise ValueError("the checksum does not match")
    except (ValueError, TypeError, struct.error) as error:
        raise Damaged(f"event {seq} in {where} is damaged ({error}): restore the store from a backup") from None
    return event


def _event_checksum(about: tuple[Any, ...], limits: bytes | None) -> int:
    """Return the checksum of an event with its packed numbers. about: seq, round, kind, value, query, …, note."""
    seq, round, kind, value, query, centre, time, note = about
    sizes = (None if query is None else len(query), len(centre), None if limits is None else len(limits))
    blobs = (query or b"") + centre + (limits or b"")
    return hashed(repr((seq, round, kind, value, time, note, *sizes)).encode() + blobs)


def snapshot_row(study: int, snapshot: Snapshot) -> tuple[object, ...]:
    """Return a row for trimtab_snapshots."""
    return study, snapshot.seq, snapshot.state, json.dumps(snapshot.diagnostics), checksum(snapshot)


def read_snapshot(row: Sequence[Any], where: str) -> Snapshot:
    """Read a row of SNAPSHOT_COLUMNS; `Damaged` if its checksum does not match."""
    seq, state, diagnostics, stored = row
    try:
        snapshot = Snapshot(seq, state, json.loads(diagnostics))
        if checksum(snapshot) != stored:
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
