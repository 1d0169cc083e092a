"""A store that several write to at once, without locks: the next event is whose sequence number fits.

For studies that no process holds. `Study` has its own way, with a lock for as long as it lives; the two exclude each
other, because a move here holds only where the row says that nobody holds the study.
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
    StudyRow,
)
from trimtab.types import Fields

WIDTH = len(STUDY_COLUMNS.split(", "))
GLANCE = ("id", "uid", "seq", *Marks._fields)


class SharedStore(Store):
    """What a service asks of a store, beyond what a study does."""

    @classmethod
    def on(cls, database: Database) -> SharedStore:
        """On a connection that is there, to tables that are known to be as they should."""
        store = cls.__new__(cls)
        store._db, store.where, store._held = database, database.where, None
        return store

    def execute(self, sql: str, *values: object) -> list[Any]:
        """The rows that a statement gives."""
        return self._ready().execute(sql, *values)

    def change(self, sql: str, *values: object) -> int:
        """How many rows a statement changed."""
        return self._ready().change(sql, *values)

    def verify(self) -> None:
        """Raise if what was written is not in what is there now."""
        self._ready().verify()

    def commit_if(self, moves: Sequence[Commit]) -> set[int]:
        """Store the moves of studies that nobody holds, archived or changed meanwhile; gives the ids of those.

        One transaction for all and no lock: a move counts if the study is still at the event before it (compare and
        set).
        """
        db = self._ready()
        more = [move for move in moves if move.row or move.snapshot is not None or move.event.seq % EVERY == 0]
        with db.transaction() if more else nullcontext():
            for move in more:
                if move.row and move.row.get("archived", ...) is None:  # no other is moved
                    self._restore(move)
            stored = db.move([*map(tables.move_row, moves)])
            for move in more:
                if move.study.id in stored and move.snapshot is not None:
                    self._insert_snapshot(move.study.id, move.snapshot)
                if move.study.id in stored and move.row:
                    self.mark(move.study, move.row)
                if move.study.id in stored and move.event.seq % EVERY == 0:
                    self._thin(move.study.id, move.event.seq, move.keep)
        db.verify()
        return stored

    def rows(self, names: Sequence[str]) -> list[Any]:
        """STUDY_COLUMNS and the state in one piece, of studies of those names that there are."""
        among, values = self._ready().among("name", names)
        return self._db.execute(f"SELECT {STUDY_COLUMNS}, state FROM trimtab_studies WHERE {among}", *values)

    def first_after(self, study: StudyRow, seq: int, but: Sequence[str]) -> Event | None:
        """The first event from `seq` on that is of another kind than those."""
        kinds = ", ".join(f"'{kind}'" for kind in but)
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq >= ? AND kind NOT IN ({kinds})"
            " ORDER BY seq LIMIT 1",
            *(study.id, seq),
        )
        return tables.read_event(rows[0], self.where) if rows else None

    def closing(self, study: StudyRow, seq: int, round: int) -> Event | None:
        """The first event from `seq` on that is the value of a round handed out before, or that may have closed it."""
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq >= ? AND (kind IN ('undo', 'reset',"
            " 'set', 'setup', 'import') OR (round = ? AND kind IN ('tell', 'applied', 'skip'))) ORDER BY seq LIMIT 1",
            *(study.id, seq, round),
        )
        return tables.read_event(rows[0], self.where) if rows else None

    def glance(self, name: str) -> tuple[Any, ...] | None:
        """Of a study, what GLANCE names; None if there is none."""
        rows = self._ready().execute(f"SELECT {', '.join(GLANCE)}, marked FROM trimtab_studies WHERE name = ?", name)
        if not rows:
            return None
        *found, marked = rows[0]
        if marked != tables.seal_marks(found[1], found[3:]):
            raise tables.damaged_row(name, self.where)
        return tuple(found)

    def some(self, names: Sequence[str]) -> dict[str, StudyRow | Damaged]:
        """Studies of those names that there are; one that is damaged does not hide the others."""
        among, values = self._ready().among("name", names)
        return self._each(self._db.execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies WHERE {among}", *values))

    def with_states(self, names: Sequence[str]) -> list[tuple[StudyRow, Snapshot] | Damaged]:
        """Studies of those names that there are, each with its newest snapshot."""
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
        """What happened in studies, by id, after one event and until another."""
        found: dict[int, list[Event]] = {study: [] for study in spans}
        wanted = ", ".join(f"({study:d}, {after:d}, {until:d})" for study, (after, until) in spans.items())
        rows = self._ready().execute(
            f"WITH wanted (id, after, until) AS (VALUES {wanted})"
            f" SELECT e.study, {_of('e', EVENT_COLUMNS)} FROM wanted JOIN trimtab_events e"
            " ON e.study = wanted.id AND e.seq > wanted.after AND e.seq <= wanted.until ORDER BY e.study, e.seq"
        )
        for study, *row in rows:
            with suppress(Damaged):  # then one is missing, which is seen
                found[study].append(tables.read_event(row, self.where))
        return found

    def page(self, after: str, limit: int, wanted: StudyFilter = StudyFilter()) -> dict[str, StudyRow | Damaged]:  # noqa: B008
        """Studies by name, from the first after a name on; one that is damaged does not hide the others."""
        where, values = wanted.condition()
        rows = self._ready().execute(
            f"SELECT {STUDY_COLUMNS} FROM trimtab_studies WHERE name > ? AND {where} ORDER BY name LIMIT ?",
            *(after, *values, limit),
        )
        return self._each(rows)

    def urgent(self, wanted: StudyFilter, first: int, most: int) -> tuple[list[str], int]:
        """The names of some studies, those that need somebody first, and how many there are of them all."""
        (where, values), needs = wanted.condition(), conditions(time.time())
        urgency = " ".join(f"WHEN {need} THEN {n}" for n, need in enumerate(needs.values()))
        rows = self._ready().execute(
            f"SELECT name, COUNT(*) OVER () FROM trimtab_studies WHERE {where}"
            f" ORDER BY CASE {urgency} ELSE {len(needs)} END, name LIMIT {most:d} OFFSET {first:d}",
            *values,
        )
        return [name for name, _ in rows], rows[0][1] if rows else 0

    def needs(self, wanted: StudyFilter) -> dict[str, int]:
        """How many studies need what."""
        (where, values), needs = wanted.condition(), conditions(time.time())
        sums = ", ".join(f"COALESCE(SUM(CASE WHEN {need} THEN 1 ELSE 0 END), 0)" for need in needs.values())
        (row,) = self._ready().execute(f"SELECT {sums} FROM trimtab_studies WHERE {where}", *values)
        return dict(zip(needs, map(int, row), strict=True))

    def numbers(self, names: Sequence[str], most: int) -> list[Any]:
        """id, uid, name and seq of studies, or of the first ones that are not archived."""
        where, values = self._ready().among("name", names) if names else ("archived IS NULL", ())
        return self._db.execute(
            f"SELECT id, uid, name, seq FROM trimtab_studies WHERE {where} ORDER BY name LIMIT {most:d}", *values
        )

    def glances(self, ids: Sequence[int]) -> dict[int, tuple[object, ...]]:
        """The same as `glance`, by id."""
        among, values = self._ready().among("id", ids)
        rows = self._db.execute(f"SELECT {', '.join(GLANCE)} FROM trimtab_studies WHERE {among}", *values)
        return {row[0]: tuple(row) for row in rows}

    def some_events(self, study: StudyRow, after: int, most: int) -> list[Event]:
        """The first ones after an event."""
        rows = self._ready().execute(
            f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND seq > ? ORDER BY seq LIMIT ?",
            *(study.id, after, most),
        )
        return [tables.read_event(row, self.where) for row in rows]

    def holder(self, name: str) -> str | None:
        """Who holds a study now, whether its row is whole or not."""
        rows = self._ready().execute("SELECT id, holder FROM trimtab_studies WHERE name = ?", name)
        return str(rows[0][1] or "another process") if rows and self._db.taken(rows[0][0], name) else None

    def release(self, study: StudyRow) -> bool:
        """Whether nobody holds the study: what a process that was killed left written is taken away."""
        if study.holder is not None:
            if self._ready().taken(study.id, study.name):
                return False
            self._mark(study, lambda marks: marks._replace(holder=None) if marks.holder == study.holder else None)
        return True

    def pause(self, study: StudyRow, paused: str | None) -> None:
        """Ask that nothing new is set, or take that back."""
        self.mark(study, {"paused": paused})

    def mark(self, study: StudyRow, columns: Fields) -> None:
        """Change what of a row is not learnt: `paused`, `archived`."""
        self._mark(study, lambda marks: marks._replace(**columns))

    def _restore(self, move: Commit) -> None:
        """Before a move that takes a study out again, if it will be stored."""
        seq = move.event.seq - 1
        self._mark(move.study, lambda marks: marks._replace(archived=None) if marks.holder is None else None, at=seq)

    def erase(self, id: int, uid: str, seq: int) -> bool:
        """A study with all its history, for ever, whole or damaged; False if it has changed, or is gone."""
        db = self._ready()
        with db.transaction():
            same = "UPDATE trimtab_studies SET seq = seq WHERE id = ? AND uid = ? AND seq = ?"
            if not db.change(same, id, uid, seq):  # others who store it wait
                return False
            for table in ("events", "snapshots", "requests"):
                db.execute(f"DELETE FROM trimtab_{table} WHERE study = ?", id)
            db.execute("DELETE FROM trimtab_studies WHERE id = ?", id)
        return True


def _of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))
