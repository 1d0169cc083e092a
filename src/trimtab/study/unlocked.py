"""A study for one request of a service, without a lock: loaded from its row, changed by a conditional `Commit`.

Workers hold only caches: a `CachedStudy` is valid for one sequence number, and is updated from the events since. Of two
concurrent changes to the same study, both are computed, and one is committed.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.store import approvals, tables
from trimtab.store.errors import Damaged
from trimtab.store.shared_store import SharedStore
from trimtab.store.tables import ROUTINE, STILL, Commit, Event, Setting, Snapshot, StudyRow
from trimtab.study import core_calls
from trimtab.study.packed_state import SHAPES, Shape, packed, unpack
from trimtab.study.position import Position, advance, follow
from trimtab.study.study import Study, Trial
from trimtab.types import Document
from trimtab.util.text import clean

LONG = 10  # replayed events after which a study whose row cannot hold its state gets a snapshot


class CachedStudy(NamedTuple):
    """A study after some event, cached."""

    saved: StudyRow
    position: Position
    snapshot_at: int
    open: Trial | None = None
    """The open trial, if it was computed already."""
    followed: int = 0
    """The number of events that were replayed when it was loaded."""
    shape: Shape | None = None
    """The configuration that it shares with others, if its row can hold its state."""


def caught_up(store: SharedStore, saved: StudyRow, known: CachedStudy) -> CachedStudy | None:
    """Update a cached study from the events since; None if it must be loaded from its state."""
    if known.saved.uid != saved.uid or known.saved.seq > saved.seq:
        return None
    if known.saved.seq == saved.seq:
        return known._replace(saved=saved)
    events = store.events(saved, known.saved.seq, saved.seq)
    if len(events) != saved.seq - known.saved.seq or any(event.kind not in ROUTINE for event in events):
        return None
    position = advance(known.position, events, f"study {saved.name!r}")
    return known._replace(saved=saved, position=position, open=None)


def load(store: SharedStore, names: Sequence[str]) -> list[CachedStudy | Damaged]:
    """Load the studies with these names, skipping unknown ones: from rows alone if possible, else from snapshots."""
    found: list[CachedStudy | Damaged] = []
    rest: list[str] = []
    for row in store.rows(names):
        try:
            known = of_row(tables.read_study(row, store.where), row.state)
        except Damaged as error:
            found.append(error)
            continue
        rest += [row.name] if known is None else []
        found += [] if known is None else [known]
    return found + _from_snapshots(store, rest) if rest else found


def of_row(saved: StudyRow, state: bytes | None) -> CachedStudy | None:
    """Load a study from its row alone; None if its packed state is stale, or its shape is not cached."""
    found = None if state is None else unpack(saved.uid, state, saved.seq)
    shape = None if found is None else SHAPES.get(found.key)
    if found is None or shape is None:
        return None
    position = shape.position(found.seed, found.numbers)
    return CachedStudy(saved, position, saved.seq, shape=shape)


def _from_snapshots(store: SharedStore, names: Sequence[str]) -> list[CachedStudy | Damaged]:
    found = store.with_states(names)
    whole = [pair for pair in found if not isinstance(pair, Damaged)]
    spans = {saved.id: (snapshot.seq, saved.seq) for saved, snapshot in whole if snapshot.seq < saved.seq}
    events = store.events_between(spans) if spans else {}
    damaged: list[CachedStudy | Damaged] = [error for error in found if isinstance(error, Damaged)]
    return damaged + [_loaded(*pair, events) for pair in whole]


def _loaded(saved: StudyRow, snapshot: Snapshot, events: Mapping[int, Sequence[Event]]) -> CachedStudy | Damaged:
    try:
        return made_of(saved, snapshot, events.get(saved.id, ()))
    except Damaged as error:
        return error


def made_of(saved: StudyRow, snapshot: Snapshot, events: Sequence[Event]) -> CachedStudy:
    """Load a study from its last snapshot and the events since."""
    if len(events) != saved.seq - snapshot.seq:
        raise Damaged(f"study {saved.name!r}: events after {snapshot.seq} are missing: restore the store from a backup")
    position = follow(snapshot, events, f"study {saved.name!r}")
    return CachedStudy(saved, position, snapshot.seq, followed=len(events), shape=SHAPES.of(position))


class UnlockedStudy(Study):
    """A study within one request. Changes set `move`, which `SharedStore.commit_if` stores or refuses."""

    def __init__(self, store: SharedStore, known: CachedStudy) -> None:
        saved = known.saved
        self._store: SharedStore = store
        self._saved, self._held = saved, False
        self._lock = threading.RLock()
        self.callbacks = []
        self.name, self.uid, self.seq = saved.name, saved.uid, saved.seq
        self._position, self._snapshot_at, self._open, self._followed, self._shape = known[1:]
        self._asked, self._news, self._fresh_advice = [], [], []
        self._known_advice = set(saved.status.get("advice", ()))
        self._turn = saved.status["turn"]
        self._marks: Document = {}
        self.move: Commit | None = None

    @property
    def saved(self) -> StudyRow:
        """The row as it will be after the commit."""
        return self._saved

    @property
    def known(self) -> CachedStudy:
        """The study to cache once the commit is stored."""
        about = (self._snapshot_at, self._open, self._followed, self._shape)
        return CachedStudy(self._saved, self._position, *about)

    @property
    def open_id(self) -> int:
        """The id of the open trial."""
        return self._turn + 1

    @property
    def hands_out(self) -> bool:
        """Whether handing out a trial is an event: if several may be open, or one has a context."""
        return not self.setup.keeps_one

    def read_context(self, given: Mapping[str, float | None] | None) -> dict[str, float | None] | None:
        """Check a context and complete it with None; None if none is given."""
        row = core_calls.read_context(self.setup, given)
        return None if given is None else core_calls.named(self.setup, row)

    @property
    def open_ids(self) -> list[int]:
        """The ids of all open trials."""
        return [id for _, id in self._position.pending] if self.hands_out else [self.open_id]

    @property
    def pending(self) -> list[Trial]:
        """The open trials of a study that allows several, oldest first."""
        return [self._handed_out(id, round) for round, id in self._position.pending]

    def _announce_advice(self) -> list[str]:
        """Log advice without warnings: a service shows it with the study."""
        super()._announce_advice()
        return []

    def _handed_out(self, id: int, round: int) -> Trial:
        return self._probe(id, round, self.state)

    def hand_out(self, note: str | None = None, context: Mapping[str, float | None] | None = None) -> Trial:
        """Open the next trial beside others; its id is the sequence number of this event."""
        trial = self.ask(context)
        row = self._row(trial)
        after = self._position.handed_out(self.seq + 1, row)
        self._record("ask", after, trial.round, None, list(trial.knobs.values()), note, context=row)
        return trial._replace(id=self.seq)

    def _asked_for(self, trial: Trial | int) -> Trial:
        id: Any = getattr(trial, "id", trial)
        found = [pair for pair in self._position.pending if pair[1] == id]
        return self._handed_out(id, found[0][0]) if found else super()._asked_for(trial)

    def closing_event(self, trial: int) -> Event | None:
        """Return the event that closed a trial, by a value or otherwise; None if it is no longer stored."""
        seq: int | None = trial if self.seq - self.settings["keep"] < trial else None
        asked = self._store.events(self._saved, trial - 1, trial) if self.hands_out else []
        handed_out = asked[0] if asked and asked[0].kind == "ask" else None
        while seq is not None:
            event = (
                self._store.first_after(self._saved, seq, (*STILL, "ask"))
                if handed_out is None
                else self._store.closing(self._saved, seq + 1, handed_out.round)
            )
            if event is None or event.kind not in ("set", "undo") or not self._kept_trial(event.seq):
                return event
            seq = event.seq + (handed_out is None)
        return None

    def _kept_trial(self, seq: int) -> bool:
        """Whether a change of settings left the open trial open."""
        before, after = (self._position_after(at)[1] for at in (seq - 1, seq))
        same = core_calls.pack(before.setup, before.state) == core_calls.pack(after.setup, after.state)
        return same and before.baseline == after.baseline

    def proposed(self, trial: Trial) -> approvals.Decision | None:
        """Return the decision on a trial that needs approval; without one, propose the trial."""
        proposal = self._proposal(trial.knobs)
        found = approvals.decision(self._saved, proposal)
        if found is None and self._saved.proposal != json.dumps(proposal):
            self._store.propose(self._saved, json.dumps(proposal))
        return found

    def word_on(self, trial: Trial) -> approvals.Decision | None:
        """Return the decision on a trial, if there is one."""
        return approvals.decision(self._saved, self._proposal(trial.knobs))

    def released(self) -> bool:
        """Return True if no process holds the study; clear a holder that was killed."""
        return self._store.release(self._saved)

    def pause_row(self, paused: str | None) -> None:
        """Pause the study (JSON), or resume it (None)."""
        self._mark(paused=paused)

    def tell_at(
        self,
        trial: Trial,
        value: float | None,
        note: str | None = None,
        limits: Mapping[str, float | None] | None = None,
    ) -> None:
        """Record a value measured at another setting than the query, and learn from it as such.

        Nothing is learnt without a value or one of the limited numbers, or in a baseline round.
        """
        numbers = [] if value is None else self.limits.read(limits)
        reference, set_to, row = trial.kind == "baseline", list(trial.knobs.values()), self._row(trial)
        before = self._position if reference else self._position.opened(trial.round, row)
        missing = any(map(math.isnan, numbers)) and not self.limits.has_risk
        if value is None or reference or missing:
            kind = "baseline" if reference else "skip"
            state = (
                self.state
                if reference
                else core_calls.tell(self.knobs, self.setup, before.state, None, None, trial.round)
            )
            after = before.after(self.knobs, kind, None, state, None, trial.round)
            self._record(kind, after, trial.round, None, set_to, note, context=row)
            return
        _, stored = self.limits.recorded(value, numbers)
        measurement = (value, trial.knobs, self.limits.beside(numbers), trial.round)
        state = core_calls.tell_at(self.knobs, self.setup, before.state, *measurement)
        after = before.after(self.knobs, "applied", value, state, stored, trial.round)
        self._record("applied", after, trial.round, value, set_to, note, stored, context=row)

    def setting_of(self, event: Event) -> Setting:
        """Return the setting that was measured, by name."""
        query: Setting = self.describe(self._in_units(event))["query"]
        return query

    @property
    def event(self) -> Event:
        """The event to be committed."""
        assert self.move is not None
        return self.move.event

    def archive(self, time: float | None) -> None:
        """Archive the study, or restore it (None)."""
        self._mark(archived=time)

    @property
    def archives(self) -> bool:
        """Whether this request archives or restores the study."""
        return "archived" in self._marks

    def _mark(self, **columns: Any) -> None:
        """Set columns that are not learnt, in the same commit as the event, if there is one."""
        self._marks |= columns
        self._saved = self._saved._replace(**columns)
        if self.move is not None:
            self.move = self.move._replace(row=self._marks)

    def stored(self) -> bool:
        """Store the changes; False if another request changed the study first."""
        if self.move is not None:
            return bool(self._store.commit_if([self.move]))
        if self._marks:
            self._store.mark(self._saved, self._marks)
        return True

    def append(self, words: str) -> None:
        """Append to the note of the event without truncating it."""
        assert self.move is not None
        event = self.move.event
        note = "; ".join(filter(None, [event.note, clean(words)]))
        self.move = self.move._replace(event=event._replace(note=note))

    def sign(self, who: str, why: str) -> None:
        """Add to the note of the event who caused it, and why."""
        assert self.move is not None
        event = self.move.event
        words = [f"{event.note}, by {who}" if event.note else f"by {who}", why]
        self.move = self.move._replace(event=event._replace(note=clean(": ".join(filter(None, words)))))

    def _is_kept(self, kind: str, seq: int) -> bool:
        return (self._shape is None and self._followed >= LONG) or super()._is_kept(kind, seq)

    def _write(self, move: Commit, after: Position, turn: int) -> None:
        if move.event.kind not in ROUTINE:
            self._shape = SHAPES.of(after)
        state = packed(self._shape, self.uid, after, move.event.seq, turn)
        self.move = move._replace(state=state, row=self._marks)
        self._followed = 0

    def _is_ours(self) -> bool:
        return self._saved.holder is None or self.released()
