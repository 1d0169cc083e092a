"""Append events to the store, then update memory: every change of a study is an event."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from trimtab.spec.knob_encoding import encode
from trimtab.store.errors import Damaged
from trimtab.store.store import EVERY
from trimtab.store.tables import ROUNDS, ROUTINE, STILL, Commit, Event
from trimtab.study import core_calls
from trimtab.study.advice import advised
from trimtab.study.bases.read import StudyReads
from trimtab.study.position import Position, follow
from trimtab.util.text import clean

LOG = logging.getLogger("trimtab.live")


class StudyWrites(StudyReads):
    """Study that can append events to its store."""

    callbacks: list[Callable[[Any, Event], object]]
    """Called with the study and each event, after it is stored."""
    _held: bool
    _turn: int
    _snapshot_at: int
    _open: Any

    def _position_after(self, seq: int) -> tuple[int, Position]:
        """Return the position after an event, replayed from the last snapshot, and the `seq` of that snapshot."""
        snapshot = self._store.last_snapshot(self._saved, seq)
        if snapshot is None:
            raise Damaged(f"study {self.name!r} has no state left before event {seq}: restore the store from a backup")
        events = self._store.events(self._saved, snapshot.seq, seq)
        if len(events) != seq - snapshot.seq:
            raise LookupError(f"events {snapshot.seq} to {seq} are no longer kept")
        return snapshot.seq, follow(snapshot, events, f"study {self.name!r}")

    def _last_position(self) -> tuple[int, Position]:
        """Return `_position_after` the last event; `Damaged` if an event since the last snapshot is missing."""
        seq = self._saved.seq
        try:
            if not self._store.events(self._saved, seq - 1, seq):
                raise LookupError(f"event {seq}, the last one, is missing")
            return self._position_after(seq)
        except LookupError as error:
            raise Damaged(f"study {self.name!r} is damaged ({error}): restore the store from a backup") from None

    def _record(
        self,
        kind: str,
        after: Position,
        round: int,
        value: float | None = None,
        query: list[object] | None = None,
        note: str | None = None,
        limits: list[float | None] | None = None,
        request: str | None = None,
        context: core_calls.Row | None = None,
    ) -> None:
        """Store an event, then update this object; every change goes through here."""
        seq, now = self.seq + 1, time.time()
        knobs = after.terms.knobs
        centre = encode(knobs, knobs.values(core_calls.centre(after.state)))
        asked = None if query is None else encode(knobs, query)
        note = None if note is None else clean(note)
        event = Event(seq, round, kind, value, asked, centre, now, note, limits, context)
        turn = self._turn if kind in STILL or self._keeps_trial(kind, after) else seq
        status = after.status(knobs, turn, now if kind in ROUNDS else self._saved.status["time"])
        if advice := advised(after):
            status["advice"] = advice
        snapshot = after.snapshot(seq) if self._is_kept(kind, seq) else None
        self._write(Commit(self._saved, event, status, snapshot, after.terms["keep"], request), after, turn)
        self._position, self.seq, self._turn = after, seq, turn
        self._saved = self._saved._replace(seq=seq, status=status)
        self._snapshot_at = self._snapshot_at if snapshot is None else seq
        if turn == seq:
            self._open = None
        seen = self._in_units(event) if self.callbacks else event
        for call in self.callbacks:
            try:
                call(self, seen)
            except Exception:
                LOG.exception("a callback failed after round %d; the study continues", round)

    def _is_kept(self, kind: str, seq: int) -> bool:
        """Whether an event is stored with a snapshot."""
        return kind not in ROUTINE or seq % EVERY == 0

    def _write(self, move: Commit, after: Position, turn: int) -> None:
        """Store a commit. after: the position it leads to; turn: the last event that changed the state."""
        if not self._held:
            raise ValueError(f"study {self.name!r} was opened read-only: use Study.open to change it")
        self._store.record(*move[:6])

    def _keeps_trial(self, kind: str, after: Position) -> bool:
        """Whether a change of settings leaves the open trial open."""
        same = after.state is self.state and after.setup is self.setup and after.baseline == self._position.baseline
        return kind in ("set", "undo") and same
