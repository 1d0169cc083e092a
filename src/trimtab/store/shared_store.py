"""Optimistic concurrency for a service: a commit succeeds only if the study's `seq` is unchanged.

For studies that no process holds. `Study` instead locks the study for as long as it lives; the two exclude each
other, because a commit here fails while the row names a holder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from trimtab.store import tables
from trimtab.store.backends.base import Database
from trimtab.store.errors import Damaged
from trimtab.store.store import EVERY, Store
from trimtab.store.study_filter import StudyFilter, conditions
from trimtab.store.tables import (
    EVENT_COLUMNS,
    SNAPSHOT_COLUMNS,
    STUDY_COLUMNS,
    Commit,
    Event,
    Marks,
    Snapshot,
    StudyColumns,
    StudyRow,
)
from trimtab.types import Fields

WIDTH = len(StudyColumns._fields) - 1  # without the packed state
MARK_COLUMNS = ("id", "uid", "seq", *Marks._fields)


class SharedStore(Store):
    """Store with the queries that a service needs, beyond those of a study."""

    @classmethod
    def on(cls, database: Database) -> SharedStore:
        """Wrap an open connection whose tables are known to be up to date."""
        store = cls.__new__(cls)
        store._db, store.where, store._held = database, database.where, None
        return store

    def execute(self, sql: str, *values: object) -> list[Any]:
        """Run a statement and return its rows."""
        return self._ready().execute(sql, *values)

    def change(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""
        return self._ready().change(sql, *values)

    def verify(self) -> None:
        """Raise `Moved` if the file was deleted or replaced."""
        self._ready().verify()

    def commit_if(self, commits: Sequence[Commit]) -> set[int]:
        """Store commits of studies that are not held, archived or changed; return the ids of those stored.

        One transaction for all, without locks: a commit succeeds if the study is still at the event before it
        (compare and set).
        """
        db = self._ready()
        more = [
            commit for commit in commits if commit.row or commit.snapshot is not None or commit.event.seq % EVERY == 0
        ]
        with db.transaction() if more else nullcontext():
            for commit in more:
                if commit.row and commit.row.get("archived", ...) is None:  # an archived study accepts no commit
                    self._restore(commit)
            stored = db.move([*map(tables.commit_row, commits)])
            for commit in more:
                if commit.study.id in stored and commit.snapshot is not None:
                    self._insert_snapshot(commit.study.id, commit.snapshot)
                if commit.study.id in stored and commit.row:
                    self.mark(commit.study, commit.row)
                if commit.study.id in stored and commit.event.seq % EVERY == 0:
                    self._thin(commit.study.id, commit.event.seq, commit.keep)
        db.verify()
        return stored

    def rows(self, names: Sequence[str]) -> list[StudyColumns]:
        """Return the rows of the studies with these names, with the packed state, skipping unknown ones."""
        among, values = self._ready().among("name", names)
        rows = self._db.execute(f"SELECT {STUDY_COLUMNS}, state FROM trimtab_studies WHERE {among}", *values)
        return [StudyColumns(*row) for row in rows]

    def first_after(self, study: StudyRow, seq: int, but: Sequence[str]) -> Event | None:
        """Return the first event from `seq` on whose kind is not in `but`."""
        kinds = ", ".join(f"'{kind}'" for kind in but)
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq >= ? AND kind NOT IN ({kinds})"
            " ORDER BY seq LIMIT 1",
            *(study.id, seq),
        )
        return tables.read_event(rows[0], self.where) if rows else None

    def closing(self, study: StudyRow, seq: int, round: int) -> Event | None:
        """Return the first event from `seq` on that tells this round, asks for it anew, or may have closed it."""
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq >= ? AND (kind IN ('undo', 'reset',"
            " 'set', 'setup', 'import') OR (round = ? AND kind IN ('ask', 'tell', 'applied', 'skip')))"
            " ORDER BY seq LIMIT 1",
            *(study.id, seq, round),
        )
        return tables.read_event(rows[0], self.where) if rows else None

    def marks_of(self, name: str) -> tuple[Any, ...] | None:
        """Return the MARK_COLUMNS of a study; None if it does not exist."""
        rows = self._ready().execute(
            f"SELECT {', '.join(MARK_COLUMNS)}, marked FROM trimtab_studies WHERE name = ?", name
        )
        if not rows:
            return None
        *found, marked = rows[0]
        if marked != tables.marks_checksum(found[1], found[3:]):
            raise tables.damaged_row(name, self.where)
        return tuple(found)

    def some(self, names: Sequence[str]) -> dict[str, StudyRow | Damaged]:
        """Return the studies with these names, skipping unknown ones; damaged ones as errors."""
        among, values = self._ready().among("name", names)
        return self._each(self._db.execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies WHERE {among}", *values))

    def with_states(self, names: Sequence[str]) -> list[tuple[StudyRow, Snapshot] | Damaged]:
        """Return the studies with these names, each with its latest snapshot; damaged ones as errors."""
        among, values = self._ready().among("s.name", names)
        rows = self._db.execute(
            f"SELECT {_of('s', STUDY_COLUMNS)}, {_of('t', SNAPSHOT_COLUMNS)} FROM trimtab_studies s"
            " LEFT JOIN trimtab_snapshots t ON t.study = s.id"
            " AND t.seq = (SELECT MAX(u.seq) FROM trimtab_snapshots u WHERE u.study = s.id)"
            f" WHERE {among}",
            *values,
        )
        return [self._with_state(row) for row in rows]

    def _with_state(self, row: Sequence[Any]) -> tuple[StudyRow, Snapshot] | Damaged:
        try:
            saved = tables.read_study(row[:WIDTH], self.where)
            if row[WIDTH] is None:
                raise Damaged(f"study {saved.name!r} has no state left: restore the store from a backup")
            return saved, tables.read_snapshot(row[WIDTH:], self.where)
        except Damaged as error:
            return error

    def events_between(self, spans: Mapping[int, tuple[int, int]]) -> dict[int, list[Event]]:
        """Return events by study id, each study between its two sequence numbers (after, until)."""
        found: dict[int, list[Event]] = {study: [] for study in spans}
        wanted = ", ".join(f"({study:d}, {after:d}, {until:d})" for study, (after, until) in spans.items())
        rows = self._ready().execute(
            f"WITH wanted (id, after, until) AS (VALUES {wanted})"
            f" SELECT e.study, {_of('e', EVENT_COLUMNS)} FROM wanted JOIN trimtab_events e"
            " ON e.study = wanted.id AND e.seq > wanted.after AND e.seq <= wanted.until ORDER BY e.study, e.seq"
        )
        for study, *row in rows:
            with suppress(Damaged):  # the gap is detected when the events are replayed
                found[study].append(tables.read_event(row, self.where))
        return found

    def page(self, after: str, limit: int, wanted: StudyFilter = StudyFilter()) -> dict[str, StudyRow | Damaged]:  # noqa: B008
        """Return studies ordered by name, starting after a name; damaged ones as errors."""
        where, values = wanted.condition()
        rows = self._ready().execute(
            f"SELECT {STUDY_COLUMNS} FROM trimtab_studies WHERE name > ? AND {where} ORDER BY name LIMIT ?",
            *(after, *values, limit),
        )
        return self._each(rows)

    def urgent(self, wanted: StudyFilter, first: int, most: int) -> tuple[list[str], int]:
        """Return a page of names, studies that need attention first, and the total number of matches."""
        (where, values), needs = wanted.condition(), conditions(time.time())
        order = " ".join(f"WHEN {need} THEN {n}" for n, need in enumerate(needs.values()))
        rows = self._ready().execute(
            f"SELECT name, COUNT(*) OVER () FROM trimtab_studies WHERE {where}"
            f" ORDER BY CASE {order} ELSE {len(needs)} END, name LIMIT {most:d} OFFSET {first:d}",
            *values,
        )
        return [name for name, _ in rows], rows[0][1] if rows else 0

    def needs(self, wanted: StudyFilter) -> dict[str, int]:
        """Count the studies for each reason in ATTENTION."""
        (where, values), needs = wanted.condition(), conditions(time.time())
        sums = ", ".join(f"COALESCE(SUM(CASE WHEN {need} THEN 1 ELSE 0 END), 0)" for need in needs.values())
        (row,) = self._ready().execute(f"SELECT {sums} FROM trimtab_studies WHERE {where}", *values)
        return dict(zip(needs, map(int, row), strict=True))

    def numbers(self, names: Sequence[str], most: int) -> list[Any]:
        """Return id, uid, name and seq of these studies, or without names of the first unarchived ones."""
        where, values = self._ready().among("name", names) if names else ("archived IS NULL", ())
        return self._db.execute(
            f"SELECT id, uid, name, seq FROM trimtab_studies WHERE {where} ORDER BY name LIMIT {most:d}", *values
        )

    def marks_by_id(self, ids: Sequence[int]) -> dict[int, tuple[object, ...]]:
        """Return the MARK_COLUMNS of several studies, by id."""
        among, values = self._ready().among("id", ids)
        rows = self._db.execute(f"SELECT {', '.join(MARK_COLUMNS)} FROM trimtab_studies WHERE {among}", *values)
        return {row[0]: tuple(row) for row in rows}

    def some_events(self, study: StudyRow, after: int, most: int) -> list[Event]:
        """Return the first events after a sequence number."""
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq > ? ORDER BY seq LIMIT ?",
            *(study.id, after, most),
        )
        return [tables.read_event(row, self.where) for row in rows]

    def holder(self, name: str) -> str | None:
        """Return the current holder of a study, also of a damaged one."""
        rows = self._ready().execute("SELECT id, holder FROM trimtab_studies WHERE name = ?", name)
        return str(rows[0][1] or "another process") if rows and self._db.taken(rows[0][0], name) else None

    def release(self, study: StudyRow) -> bool:
        """Return True if no process holds the study; clear a holder that was killed."""
        if study.holder is not None:
            if self._ready().taken(study.id, study.name):
                return False
            self._mark(study, lambda marks: marks._replace(holder=None) if marks.holder == study.holder else None)
        return True

    def pause(self, study: StudyRow, paused: str | None) -> None:
        """Pause a study (JSON), or resume it (None)."""
        self.mark(study, {"paused": paused})

    def mark(self, study: StudyRow, columns: Fields) -> None:
        """Set columns that are not learnt: `paused`, `archived`."""
        self._mark(study, lambda marks: marks._replace(**columns))

    def _restore(self, commit: Commit) -> None:
        """Unarchive the study before a commit that restores it, if that commit will succeed."""
        seq = commit.event.seq - 1
        self._mark(commit.study, lambda marks: marks._replace(archived=None) if marks.holder is None else None, at=seq)

    def erase(self, id: int, uid: str, seq: int) -> bool:
        """Delete a study, intact or damaged, with all its history; False if it has changed or is gone."""
        db = self._ready()
        with db.transaction():
            same = "UPDATE trimtab_studies SET seq = seq WHERE id = ? AND uid = ? AND seq = ?"
            if not db.change(same, id, uid, seq):  # takes the row lock, so concurrent writers wait
                return False
            for table in ("events", "snapshots", "requests"):
                db.execute(f"DELETE FROM trimtab_{table} WHERE study = ?", id)
            db.execute("DELETE FROM trimtab_studies WHERE id = ?", id)
        return True


def _of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))
