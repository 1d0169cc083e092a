"""Where studies live: SQLite by default, PostgreSQL by URL, with the same statements.

One row per study says where it is, one row per event what happened, and every hundredth event has a snapshot of the
state. `record` writes them in one transaction that holds only if nobody else wrote meanwhile (compare and set on
`seq`), and what it returns from is on the disk (WAL with synchronous=FULL, or PostgreSQL's own log). Only the holder
of a study writes: a file lock beside SQLite, an advisory lock in PostgreSQL, both of which end with their process, so
that nothing has to be tidied up after a kill.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from trimtab.store import tables
from trimtab.store.backends.base import Database, opened
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
    StudyRow,
    seal_marks,
)
from trimtab.types import Document
from trimtab.util.checksums import canonical
from trimtab.util.text import moment
from trimtab.validation import choose

EVERY = 100  # how often, in events, there is a snapshot, and the history is thinned


class Store:
    """One connection to a database with studies. It is not for several threads at once; `Study` sees to that.

    mode: "create" makes a store where there is none, "write" does not, "read" only reads. thorough: look through
    the whole file first.

    >>> with Store(":memory:") as store:
    ...     store.names(), store.check()
    ([], [])
    """

    def __init__(self, where: str | os.PathLike[str], mode: str = "create", *, thorough: bool = False) -> None:
        self._db = opened(os.fspath(where), mode, thorough)
        self.where = self._db.where
        self._held: StudyRow | None = None
        self._tried: list[float] = []  # the times of an event that was not acknowledged yet
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
        """Let go of the database and of the study that was held."""
        if self._held is not None and not self._db.lost:
            with suppress(StoreError), self._db.transaction():  # only a courtesy: the lock is what counts
                self._mark(self._held, lambda marks: marks._replace(holder=None))
        self._held = None
        self._db.close()

    def backup(self, path: Path) -> None:
        """A copy of the whole store in one file, also while somebody writes."""
        self._ready().backup(path)

    def check(self) -> list[str]:
        """What is wrong with the database itself."""
        return self._ready().check()

    def names(self) -> list[str]:
        """All studies."""
        return [name for (name,) in self._ready().execute("SELECT name FROM trimtab_studies ORDER BY name")]

    def held(self) -> list[str]:
        """Those of them that a process holds now."""
        db = self._ready()
        rows = db.execute("SELECT id, name FROM trimtab_studies ORDER BY name")
        return [name for id, name in rows if db.taken(id, name)]

    def all(self) -> dict[str, StudyRow | Damaged]:
        """All studies, in one go; one that is damaged does not hide the others."""
        return self._each(self._ready().execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies ORDER BY name"))

    def _each(self, rows: Sequence[Sequence[Any]]) -> dict[str, StudyRow | Damaged]:
        """Rows of STUDY_COLUMNS, by name."""
        found: dict[str, StudyRow | Damaged] = {}
        for row in rows:
            try:
                found[row[2]] = tables.read_study(row, self.where)
            except Damaged as error:
                found[str(row[2])] = error
        return found

    def find(self, name: str) -> StudyRow | None:
        """The study of that name, if there is one."""
        rows = self._ready().execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies WHERE name = ?", name)
        return tables.read_study(rows[0], self.where) if rows else None

    def load(self, name: str) -> StudyRow:
        """The study of that name."""
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
        """A new study, with the events it has so far; afterwards in the file itself, not only in its log.

        state: what makes the state in one piece, of the study's uid.
        """
        uid, urgent = os.urandom(8).hex(), tables.urgency(status)
        made = time.time() if created is None else created
        about = (uid, name, made, canonical(setup), events[-1].seq, canonical(status), *urgent)
        db = self._ready()
        with db.transaction():
            db.execute(
                "INSERT INTO trimtab_studies (uid, name, created, setup, seq, status, failures, advised, told,"
                " checksum, marked, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(*about, tables.seal(*about), seal_marks(uid, Marks())),
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
        """Append the event and say where the study is; on the disk when this returns. Old events are thinned.

        request: what the event is the answer to; it is gone with it.
        """
        db, text = self._ready(), canonical(status)
        urgent = tables.urgency(status)
        sealed = tables.seal(study.uid, study.name, study.created, study.described, event.seq, text, *urgent)
        self._tried.append(event.time)
        with db.transaction():
            changed = db.change(
                "UPDATE trimtab_studies SET seq = ?, status = ?, checksum = ?, failures = ?, advised = ?, told = ?"
                " WHERE id = ? AND seq = ?",
                *(event.seq, text, sealed, *urgent, study.id, event.seq - 1),
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
        """Beside the last event, the state after it."""
        db = self._ready()
        with db.transaction():
            db.execute("DELETE FROM trimtab_snapshots WHERE study = ? AND seq = ?", study.id, snapshot.seq)
            self._insert_snapshot(study.id, snapshot)

    def state(self, study: StudyRow) -> bytes | None:
        """The state in one piece, as the study's row has it."""
        rows = self._ready().execute("SELECT state FROM trimtab_studies WHERE id = ?", study.id)
        return rows[0][0] if rows else None

    def events(self, study: StudyRow, after: int = -1, until: int = 2**62) -> list[Event]:
        """The history from the oldest on."""
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq > ? AND seq <= ? ORDER BY seq",
            *(study.id, max(after, -1), until),
        )
        return [tables.read_event(row, self.where) for row in rows]

    def snapshots(self, study: StudyRow, until: int = 2**62) -> list[Snapshot]:
        """All that are kept, from the oldest on."""
        rows = self._ready().execute(
            f"SELECT {SNAPSHOT_COLUMNS} FROM trimtab_snapshots WHERE study = ? AND seq <= ? ORDER BY seq",
            *(study.id, until),
        )
        return [tables.read_snapshot(row, self.where) for row in rows]

    def last_snapshot(self, study: StudyRow, until: int) -> Snapshot | None:
        """The newest one that is not after an event."""
        rows = self._ready().execute(
            f"SELECT {SNAPSHOT_COLUMNS} FROM trimtab_snapshots WHERE study = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
            *(study.id, until),
        )
        return tables.read_snapshot(rows[0], self.where) if rows else None

    def before_round(self, study: StudyRow, round: int, *, late: bool = False) -> Event | None:
        """The newest event after which `round` was the next one, if it is still kept; late: that is when it was asked.

        Where values may come late, that of the round before says nothing of it.
        """
        if not 0 <= round < 2**62:  # more than a database counts to
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
        """Write down what waits for a decision; an older decision is none on this."""
        self._mark(study, lambda marks: marks._replace(proposal=proposal, decision=None))

    def decide(self, study: StudyRow, decision: str) -> bool:
        """Write down a decision on the proposal that `study` shows; False if it is gone, or decided on already."""

        def decided(marks: Marks) -> Marks | None:
            fresh = marks.proposal == study.proposal and marks.decision is None
            return marks._replace(decision=decision) if fresh else None

        return self._mark(study, decided, at=study.seq)

    def _mark(self, study: StudyRow, change: Callable[[Marks], Marks | None], at: int | None = None) -> bool:
        """Change the marks of a study's row, whoever else does meanwhile; whether that was possible.

        at: the only sequence number at which they may be. change: None where these must not be changed.
        """
        db, where = self._ready(), "WHERE id = ? AND uid = ? AND seq = COALESCE(?, seq)"
        columns, values = ", ".join(Marks._fields), ", ".join("?" * len(Marks._fields))
        this = (study.id, study.uid, at)
        while rows := db.execute(f"SELECT {columns}, marked FROM trimtab_studies {where}", *this):
            *found, marked = rows[0]
            if marked != seal_marks(study.uid, found):
                raise tables.damaged_row(study.name, self.where)
            if (after := change(Marks(*found))) is None:
                return False
            changed = f"UPDATE trimtab_studies SET ({columns}, marked) = ({values}, ?) {where} AND marked = ?"
            if db.change(changed, *after, seal_marks(study.uid, after), *this, marked):
                return True
        return False

    def request(self, study: StudyRow, request: str) -> None:
        """Write down what is asked of the holder of a study."""
        self._ready().execute("INSERT INTO trimtab_requests (study, request) VALUES (?, ?)", study.id, request)

    def requests(self, study: StudyRow) -> list[str]:
        """What is asked of the holder, oldest first."""
        rows = self._ready().execute("SELECT request FROM trimtab_requests WHERE study = ? ORDER BY id", study.id)
        return [text for (text,) in rows]

    def answer(self, study: StudyRow, request: str) -> None:
        """It is done, or cannot be."""
        self._ready().execute("DELETE FROM trimtab_requests WHERE study = ? AND request = ?", study.id, request)

    def hold(self, study: StudyRow) -> None:
        """Become the only one who writes this study, or say who is."""
        if not self._db.lock(study.id, study.name):
            holder = self.load(study.name).holder or "another process"
            raise Taken(f"study {study.name!r} is in use by {holder}: stop that first, or use another name")
        me = f"{person()}, process {os.getpid()}, since {moment(time.time())}"
        with self._db.transaction():
            self._mark(study, lambda marks: marks._replace(holder=me))
        self._held = study

    def _ready(self) -> Database:
        """The database; connected again if the connection was lost, with the same lock, or an error says who has it."""
        if self._db.lost:
            self._db.reconnect()
            if self._held is not None:
                self.hold(self._held)
        return self._db

    def _has(self, study: StudyRow, event: Event) -> bool:
        """Whether the event is there already: a commit from here was heard, and only its answer was lost."""
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
        """Of events older than `keep` every 100th stays, older than 10·keep every 1000th, …; see docs/live.md."""
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
    """Who this is, for others to read."""
    return f"{os.environ.get('USER', os.getuid())}@{os.uname().nodename}"
