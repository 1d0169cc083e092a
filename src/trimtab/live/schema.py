"""The tables of a store, for SQLite and PostgreSQL alike, and how their rows are read and sealed.

A study is a sealed row that says where it is, with the state to go on from (`trimtab.live.packed`); an event is value,
query, centre and note, numbers as 8-byte floats; a snapshot is the state of the tuner after an event, at every
hundredth and wherever the state did not follow from values; a request is a correction that somebody asks the holder of
a study for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from trimtab.live.checksums import canonical, checksum, hashed, quoted
from trimtab.live.errors import Damaged
from trimtab.types import Document

VERSION = 7
REQUESTS = "CREATE TABLE trimtab_requests (id {id}, study INTEGER NOT NULL, request TEXT NOT NULL)"
TOKENS = """CREATE TABLE trimtab_tokens (
        id TEXT PRIMARY KEY, hash TEXT NOT NULL, scope TEXT NOT NULL, study TEXT, label TEXT, created {real} NOT NULL,
        expires {real}, revoked {real}, parent TEXT)"""
MIGRATIONS: dict[int, tuple[str, ...]] = {
    3: ("ALTER TABLE trimtab_events ADD COLUMN limits {blob}", REQUESTS),
    4: (
        "ALTER TABLE trimtab_studies ADD COLUMN paused TEXT",
        "ALTER TABLE trimtab_studies ADD COLUMN archived {real}",
        TOKENS,
    ),
    5: (
        "ALTER TABLE trimtab_studies ADD COLUMN failures INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE trimtab_studies ADD COLUMN advised INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE trimtab_studies ADD COLUMN told {real}",
        "UPDATE trimtab_studies SET failures = {failures}, told = {time}",
    ),
    6: ("ALTER TABLE trimtab_studies ADD COLUMN state {blob}", "{roomy}", "{unchecked}"),
    7: (),  # rows are sealed another way; those of before are read as they are
}
"""version → the statements that lead to it from the one before."""
TABLES = (
    "CREATE TABLE trimtab_meta (version INTEGER NOT NULL)",
    """CREATE TABLE trimtab_studies (
        id {id}, uid TEXT NOT NULL, name TEXT NOT NULL UNIQUE, created {real} NOT NULL, setup TEXT NOT NULL,
        seq BIGINT NOT NULL, status TEXT NOT NULL, checksum BIGINT NOT NULL,
        proposal TEXT, decision TEXT, holder TEXT, paused TEXT, archived {real},
        failures INTEGER NOT NULL DEFAULT 0, advised INTEGER NOT NULL DEFAULT 0, told {real}, state {blob})""",
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


class Saved(NamedTuple):
    """A study as it is stored."""

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
    """What waits for a person's approval."""
    decision: str | None
    """The person's word on it."""
    holder: str | None
    """The process that tunes it, if one does."""
    paused: str | None = None
    """Who asked that nothing new is set, when and why, as JSON."""
    archived: float | None = None
    described: str = ""
    """The setup as it is written in the row."""


class Move(NamedTuple):
    """One step of a study, to be stored: the event, where the study is then, and the state, if it is kept."""

    study: Saved
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
    def saved(self) -> Saved:
        """The study afterwards."""
        return self.study._replace(seq=self.event.seq, status=self.status)


STUDY_COLUMNS = "id, uid, name, created, setup, seq, status, checksum, proposal, decision, holder, paused, archived"
EVENT_COLUMNS = "seq, round, kind, value, query, centre, time, note, checksum, limits"
INSERT_EVENT = f"INSERT INTO trimtab_events (study, {EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def urgency(status: Document) -> tuple[int, int, float | None]:
    """What of a status has columns of its own, for the database to sort by: `failures`, `advised`, `told`."""
    return status["failures"], len(status.get("advice", ())), status["time"]


def seal(uid: str, name: str, created: float, setup: str, seq: int, status: str) -> int:
    """The checksum of a study's row. That of its setup stands for the setup: many studies have the same."""
    return hashed(f"[{quoted(uid)},{quoted(name)},{created!r},{_hashed(setup)},{seq}]{status}".encode())


def is_sealed(sealed: int, uid: str, name: str, created: float, setup: str, seq: int, status: str) -> bool:
    """Whether a checksum is that of a row, also of one that was written before version 7 of the tables."""
    about = (uid, name, created, setup, seq, status)
    return sealed == seal(*about) or sealed == checksum(about)


@lru_cache(1000)
def _hashed(text: str) -> int:
    return hashed(text.encode())


def read_study(row: Sequence[Any], where: str) -> Saved:
    """A row of trimtab_studies, if it is what was written."""
    id, uid, name, created, setup, seq, status, sealed, *rest = row
    try:
        if not is_sealed(sealed, uid, name, created, setup, seq, status):
            raise ValueError("the checksum does not match")
        found = Saved(id, uid, name, created, json.loads(setup), seq, json.loads(status), *rest)
        return found._replace(described=setup)
    except (ValueError, TypeError) as error:
        raise unfit(name, where, str(error)) from None


def unfit(name: str, where: str, why: str = "the checksum does not match") -> Damaged:
    """The error for a row that is not what was written."""
    return Damaged(f"study {name!r} in {where} is damaged ({why}): restore the store from a backup")


def move_row(move: Move) -> tuple[Any, ...]:
    """For `Database.move`: the study's row, and the event's."""
    study, seq, text = move.study, move.event.seq, canonical(move.status)
    sealed = seal(study.uid, study.name, study.created, study.described or canonical(study.setup), seq, text)
    return (study.uid, text, sealed, *urgency(move.status), move.state, *event_row(study.id, move.event))


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
        if sealed != _sealed(tuple(row[:8]), limits) and sealed != _sealed_before(event):
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


def _sealed_before(event: Event) -> int:
    """What it was up to version 5 of the tables; without limits, what it was before there were any."""
    return checksum(event if event.limits is not None else event[:-1])


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
