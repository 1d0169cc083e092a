"""The store of studies: SQLite by default, PostgreSQL by URL, with the same statements.

Each study has one row with its current position, one row per event, and a snapshot of the state at every hundredth
event. `record` writes them in one transaction that fails if another process wrote meanwhile (compare and set on
`seq`), and is durable when it returns (WAL with synchronous=FULL, or PostgreSQL's log). Only the holder of a study
writes. It has a file lock beside SQLite, or an advisory lock in PostgreSQL; both end with their process, so a killed
process leaves nothing to clean up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from trimtab.store import tables
from trimtab.store.backends.base import Database, open_database
from trimtab.store.errors import Damaged, StoreError, Taken
from trimtab.store.migrations import set_up
from trimtab.store.tables import (
    EVENT_COLUMNS,
    ROUTINE,
    SNAPSHOT_COLUMNS,
    STUDY_COLUMNS,
    Event,
    Marks,
    Snapshot,
    StudyColumns,
    StudyRow,
    marks_checksum,
)
from trimtab.types import Document
from trimtab.util.checksums import canonical
from trimtab.util.text import moment
from trimtab.validation import choose

EVERY = 100  # events between snapshots, and between thinnings of the history


class Store:
    """One connection to a database with studies. Not thread-safe; `Study` serialises its own calls.

    mode: "create" creates the store if necessary, "write" needs an existing one, "read" only reads. thorough: check
    the whole file first.

    >>> with Store(":memory:") as store:
    ...     store.names(), store.check()
    ([], [])
    """

    def __init__(self, where: str | os.PathLike[str], mode: str = "create", *, thorough: bool = False) -> None:
        self._db = open_database(os.fspath(where), mode, thorough)
        self.where = self._db.where
        self._held: StudyRow | None = None
        self._tried: list[float] = []  # the times of attempts to store an event that are not acknowledged yet
        try:
            set_up(self._db, mode)
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the study and close the database."""
        if self._held is not None and not self._db.lost:
            with suppress(StoreError), self._db.transaction():  # informative only: the lock decides
                self._mark(self._held, lambda marks: marks._replace(holder=None))
        self._held = None
        self._db.close()

    def backup(self, path: Path) -> None:
        """Copy the whole store into one file, even while it is being written."""
        self._ready().backup(path)

    def check(self) -> list[str]:
        """Return the problems of the database itself."""
        return self._ready().check()

    def names(self) -> list[str]:
        """Return the names of all studies."""
        return [name for (name,) in self._ready().execute("SELECT name FROM trimtab_studies ORDER BY name")]

    def held(self) -> list[str]:
        """Return the names of the studies that a process holds now."""
        db = self._ready()
        rows = db.execute("SELECT id, name FROM trimtab_studies ORDER BY name")
        return [name for id, name in rows if db.taken(id, name)]

    def all(self) -> dict[str, StudyRow | Damaged]:
        """Return all studies by name; damaged ones as errors."""
        return self._each(self._ready().execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies ORDER BY name"))

    def _each(self, rows: Sequence[Sequence[Any]]) -> dict[str, StudyRow | Damaged]:
        """Read rows of STUDY_COLUMNS, by name; damaged ones as errors."""
        found: dict[str, StudyRow | Damaged] = {}
        for row in (StudyColumns(*row) for row in rows):
            try:
                found[row.name] = tables.read_study(row, self.where)
            except Damaged as error:
                found[str(row.name)] = error
        return found

    def find(self, name: str) -> StudyRow | None:
        """Return the study of that name, or None."""
        rows = self._ready().execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies WHERE name = ?", name)
        return tables.read_study(rows[0], self.where) if rows else None

    def load(self, name: str) -> StudyRow:
        """Return the study of that name; ValueError if it does not exist."""
        found = self.find(name)
        if found is None:
            names = self.names()
            raise ValueError(
                f"there is no study {name!r} in {self.where}: {choose(name, names) if names else 'it has none yet'}"
            )
        return found

    def add(
        self,
        name: str,
        setup: Document,
        status: Document,
        events: Sequence[Event],
        snapshots: Sequence[Snapshot],
        created: float | None = None,
        state: Callable[[str], bytes | None] | None = None,
    ) -> StudyRow:
        """Add a study with its events so far, and checkpoint the log into the file.

        state: returns the packed state for the study's uid.
        """
        uid, sorted_by = os.urandom(8).hex(), tables.sort_columns(status)
        made = time.time() if created is None else created
        about = (uid, name, made, canonical(setup), events[-1].seq, canonical(status), *sorted_by)
        db = self._ready()
        with db.transaction():
            db.execute(
                "INSERT INTO trimtab_studies (uid, name, created, setup, seq, status, failures, advised, told,"
                " checksum, marked, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(*about, tables.row_checksum(*about), marks_checksum(uid, Marks())),
                None if state is None else state(uid),
            )
            ((id,),) = db.execute("SELECT id FROM trimtab_studies WHERE name = ?", name)
            for event in events:
                self._insert_event(id, event)
            for snapshot in snapshots:
                self._insert_snapshot(id, snapshot)
        db.settle()
        return self.load(name)

    def record(
        self,
        study: StudyRow,
        event: Event,
        status: Document,
        snapshot: Snapshot | None,
        keep: int,
        request: str | None = None,
    ) -> None:
        """Append an event and update the study's position; durable when this returns. Old events are thinned.

        request: the request that the event answers; deleted in the same transaction.
        """
        db, text = self._ready(), canonical(status)
        sorted_by = tables.sort_columns(status)
        checksum = tables.row_checksum(
            study.uid, study.name, study.created, study.described, event.seq, text, *sorted_by
        )
        self._tried.append(event.time)
        with db.transaction():
            changed = db.change(
                "UPDATE trimtab_studies SET seq = ?, status = ?, checksum = ?, failures = ?, advised = ?, told = ?"
                " WHERE id = ? AND seq = ?",
                *(event.seq, text, checksum, *sorted_by, study.id, event.seq - 1),
            )
            if changed == 1:
                self._insert_event(study.id, event)
                if snapshot is not None:
                    self._insert_snapshot(study.id, snapshot)
                if event.seq % EVERY == 0:
                    self._thin(study.id, event.seq, keep)
                if request is not None:
                    self.answer(study, request)
            elif not self._has(study, event):
                raise Taken(f"study {study.name!r} was changed by another process meanwhile: open it again")
        db.verify()
        self._tried.clear()

    def snapshot(self, study: StudyRow, snapshot: Snapshot) -> None:
        """Store the state after the last event."""
        db = self._ready()
        with db.transaction():
            db.execute("DELETE FROM trimtab_snapshots WHERE study = ? AND seq = ?", study.id, snapshot.seq)
            self._insert_snapshot(study.id, snapshot)

    def state(self, study: StudyRow) -> bytes | None:
        """Return the packed state in the study's row."""
        rows = self._ready().execute("SELECT state FROM trimtab_studies WHERE id = ?", study.id)
        return rows[0][0] if rows else None

    def events(self, study: StudyRow, after: int = -1, until: int = 2**62) -> list[Event]:
        """Return the history, oldest first."""
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq > ? AND seq <= ? ORDER BY seq",
            *(study.id, max(after, -1), until),
        )
        return [tables.read_event(row, self.where) for row in rows]

    def snapshots(self, study: StudyRow, until: int = 2**62) -> list[Snapshot]:
        """Return all stored snapshots, oldest first."""
        rows = self._ready().execute(
            f"SELECT {SNAPSHOT_COLUMNS} FROM trimtab_snapshots WHERE study = ? AND seq <= ? ORDER BY seq",
            *(study.id, until),
        )
        return [tables.read_snapshot(row, self.where) for row in rows]

    def last_snapshot(self, study: StudyRow, until: int) -> Snapshot | None:
        """Return the latest snapshot that is not after event `until`."""
        rows = self._ready().execute(
            f"SELECT {SNAPSHOT_COLUMNS} FROM trimtab_snapshots WHERE study = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
            *(study.id, until),
        )
        return tables.read_snapshot(rows[0], self.where) if rows else None

    def before_round(self, study: StudyRow, round: int, *, late: bool = False) -> Event | None:
        """Return the latest event after which `round` was the next one, if it is still stored.

        late: use the event that handed the trial out, because values may arrive out of order.
        """
        if not 0 <= round < 2**62:  # beyond the range of a BIGINT
            return None
        if late:
            asked = (
                "SELECT {} FROM trimtab_events WHERE study = ? AND kind = 'ask' AND round = ? ORDER BY seq DESC LIMIT 1"
            )
            rows = self._ready().execute(asked.format(EVENT_COLUMNS), study.id, round - 1)
            if rows:
                return tables.read_event(rows[0], self.where)
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND ((kind IN ('tell', 'applied', 'skip')"
            " AND round = ?) OR (kind NOT IN ('ask', 'tell', 'applied', 'skip', 'baseline', 'hold', 'leave')"
            " AND round = ?))"
            " ORDER BY seq DESC LIMIT 1",
            *(study.id, round - 1, round),
        )
        return tables.read_event(rows[0], self.where) if rows else None

    def propose(self, study: StudyRow, proposal: str) -> None:
        """Store a proposal, and clear the decision on an earlier one."""
        self._mark(study, lambda marks: marks._replace(proposal=proposal, decision=None))

    def decide(self, study: StudyRow, decision: str) -> bool:
        """Store a decision on the proposal in `study`; False if it is gone, or decided on already."""

        def decided(marks: Marks) -> Marks | None:
            fresh = marks.proposal == study.proposal and marks.decision is None
            return marks._replace(decision=decision) if fresh else None

        return self._mark(study, decided, at=study.seq)

    def _mark(self, study: StudyRow, change: Callable[[Marks], Marks | None], at: int | None = None) -> bool:
        """Change the marks of a study's row, retrying on concurrent changes; False if they must not change.

        at: the sequence number that the study must have. change: returns None to leave the marks unchanged.
        """
        db, where = self._ready(), "WHERE id = ? AND uid = ? AND seq = COALESCE(?, seq)"
        columns, values = ", ".join(Marks._fields), ", ".join("?" * len(Marks._fields))
        this = (study.id, study.uid, at)
        while rows := db.execute(f"SELECT {columns}, marked FROM trimtab_studies {where}", *this):
            *found, marked = rows[0]
            if marked != marks_checksum(study.uid, found):
                raise tables.damaged_row(study.name, self.where)
            if (after := change(Marks(*found))) is None:
                return False
            changed = f"UPDATE trimtab_studies SET ({columns}, marked) = ({values}, ?) {where} AND marked = ?"
            if db.change(changed, *after, marks_checksum(study.uid, after), *this, marked):
                return True
        return False

    def request(self, study: StudyRow, request: str) -> None:
        """Store a request to the holder of a study."""
        self._ready().execute("INSERT INTO trimtab_requests (study, request) VALUES (?, ?)", study.id, request)

    def requests(self, study: StudyRow) -> list[str]:
        """Return the requests to the holder, oldest first."""
        rows = self._ready().execute("SELECT request FROM trimtab_requests WHERE study = ? ORDER BY id", study.id)
        return [text for (text,) in rows]

    def answer(self, study: StudyRow, request: str) -> None:
        """Delete a request that was fulfilled or refused."""
        self._ready().execute("DELETE FROM trimtab_requests WHERE study = ? AND request = ?", study.id, request)

    def hold(self, study: StudyRow) -> None:
        """Become the only writer of a study; `Taken` names the present one."""
        if not self._db.lock(study.id, study.name):
            holder = self.load(study.name).holder or "another process"
            raise Taken(f"study {study.name!r} is in use by {holder}: stop that first, or use another name")
        me = f"{person()}, process {os.getpid()}, since {moment(time.time())}"
        with self._db.transaction():
            self._mark(study, lambda marks: marks._replace(holder=me))
        self._held = study

    def _ready(self) -> Database:
        """Return the database; reconnect and lock the study again if the connection was lost."""
        if self._db.lost:
            self._db.reconnect()
            if self._held is not None:
                self.hold(self._held)
        return self._db

    def _has(self, study: StudyRow, event: Event) -> bool:
        """Whether an earlier attempt of this process stored the event, but its acknowledgement was lost."""
        there = self.events(study, event.seq - 1)
        same = len(there) == 1 and there[0]._replace(time=event.time) == event
        return same and there[0].time in self._tried

    def _insert_event(self, study: int, event: Event) -> None:
        self._db.execute(tables.INSERT_EVENT, *tables.event_row(study, event))

    def _insert_snapshot(self, study: int, snapshot: Snapshot) -> None:
        self._db.execute(
            f"INSERT INTO trimtab_snapshots (study, {SNAPSHOT_COLUMNS}) VALUES (?, ?, ?, ?, ?)",
            *tables.snapshot_row(study, snapshot),
        )

    def _thin(self, study: int, seq: int, keep: int) -> None:
        """Keep every 100th of the events older than `keep`, every 1000th of those older than 10·keep, …"""
        age, every = keep, EVERY
        kinds = ", ".join(f"'{kind}'" for kind in ROUTINE)
        while age <= seq:
            last = (seq - age) // EVERY * EVERY
            block = (study, last - EVERY, last)
            self._db.execute(
                f"DELETE FROM trimtab_events WHERE study = ? AND seq > ? AND seq <= ? AND seq % {every} <> 0"
                f" AND kind IN ({kinds})",
                *block,
            )
            self._db.execute(
                "DELETE FROM trimtab_snapshots WHERE study = ? AND seq > ? AND seq <= ? AND seq NOT IN"
                " (SELECT seq FROM trimtab_events WHERE study = ? AND seq > ? AND seq <= ?)",
                *(*block, *block),
            )
            age, every = age * 10, every * 10


def person() -> str:
    """Return user@host, for messages."""
    return f"{os.environ.get('USER', os.getuid())}@{os.uname().nodename}"
