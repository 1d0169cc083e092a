"""A study that nobody holds, for one request: loaded from its row, changed by a `Commit` if it is the next.

Workers keep nothing that matters: what is `Known` of a study is valid for one sequence number, and is brought up to
date from the events since. Two who change the same study at once both compute, and one of them commits.
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

LONG = (
    10  # events that somebody had to follow to load a study whose row cannot hold its state: the next gets a snapshot
)


class Known(NamedTuple):
    """A study as it was after one event."""

    saved: StudyRow
    position: Position
    snapshot_at: int
    open: Trial | None = None
    """If it was asked for already."""
    followed: int = 0
    """How many events led here from the last state, when it was loaded."""
    shape: Shape | None = None
    """What it has in common with others, if its row can hold its state."""

    @property
    def at_rest(self) -> Known:
        """The same in a tenth of the memory: what is drawn ahead is drawn again when it is needed."""
        setup = core_calls.at_rest(self.position.setup)
        return self._replace(position=self.position._replace(setup=setup))


def caught_up(store: SharedStore, saved: StudyRow, known: Known) -> Known | None:
    """What is to be known of a row, from what was known before; None where only its state says that."""
    if known.saved.uid != saved.uid or known.saved.seq > saved.seq:
        return None
    if known.saved.seq == saved.seq:
        return known._replace(saved=saved)
    events = store.events(saved, known.saved.seq, saved.seq)
    if len(events) != saved.seq - known.saved.seq or any(event.kind not in ROUTINE for event in events):
        return None
    position = advance(known.position, events, f"study {saved.name!r}")
    return known._replace(saved=saved, position=position, open=None)


def load(store: SharedStore, names: Sequence[str]) -> list[Known | Damaged]:
    """Studies of those names that there are: from their rows alone, or, where these do not say, from snapshots."""
    found: list[Known | Damaged] = []
    less: list[str] = []
    for row in store.rows(names):
        try:
            known = of_row(row, store.where)
        except Damaged as error:
            found.append(error)
            continue
        less += [row[2]] if known is None else []
        found += [] if known is None else [known]
    return found + _from_snapshots(store, less) if less else found


def of_row(row: Sequence[Any], where: str) -> Known | None:
    """What a row alone says of a study; None where its state is out of date, or of a shape that is not known."""
    *columns, state = row
    saved = tables.read_study(columns, where)
    piece = None if state is None else unpack(saved.uid, state, saved.seq)
    shape = None if piece is None else SHAPES.get(piece.key)
    if piece is None or shape is None:
        return None
    position = shape.position(shape.reseeded(piece.seed), piece.numbers)
    return Known(saved, position, saved.seq, shape=shape)


def _from_snapshots(store: SharedStore, names: Sequence[str]) -> list[Known | Damaged]:
    found = store.with_states(names)
    whole = [pair for pair in found if not isinstance(pair, Damaged)]
    spans = {saved.id: (snapshot.seq, saved.seq) for saved, snapshot in whole if snapshot.seq < saved.seq}
    events = store.events_between(spans) if spans else {}
    damaged: list[Known | Damaged] = [error for error in found if isinstance(error, Damaged)]
    return damaged + [_loaded(*pair, events) for pair in whole]


def _loaded(saved: StudyRow, snapshot: Snapshot, events: Mapping[int, Sequence[Event]]) -> Known | Damaged:
    try:
        return made_of(saved, snapshot, events.get(saved.id, ()))
    except Damaged as error:
        return error


def made_of(saved: StudyRow, snapshot: Snapshot, events: Sequence[Event]) -> Known:
    """What is known of a row with its last state, and what was told since."""
    if len(events) != saved.seq - snapshot.seq:
        raise Damaged(f"study {saved.name!r}: events after {snapshot.seq} are missing: restore the store from a backup")
    position = follow(saved.setup, snapshot, events, f"study {saved.name!r}")
    return Known(saved, position, snapshot.seq, followed=len(events), shape=SHAPES.of(position))


class UnlockedStudy(Study):
    """A study as one request sees it. What changes it sets `move`, which `Store.commit_if` stores, or not."""

    def __init__(self, store: SharedStore, known: Known) -> None:
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
        """The row, as it would be."""
        return self._saved

    @property
    def known(self) -> Known:
        """To go on from, once the move is stored."""
        about = (self._snapshot_at, self._open, self._followed, self._shape)
        return Known(self._saved, self._position, *about)

    @property
    def open_id(self) -> int:
        """The number of the open trial."""
        return self._turn + 1

    @property
    def open_ids(self) -> list[int]:
        """The numbers of all trials that may be told now."""
        return [id for _, id in self._position.pending] if self.setup.max_pending > 1 else [self.open_id]

    @property
    def pending(self) -> list[Trial]:
        """The trials that were handed out and are not told yet, the oldest first, where several may be open."""
        return [self._handed_out(id, round) for round, id in self._position.pending]

    def _appeared(self) -> list[str]:
        """Log advice, and warn of none: what this sets may not be stored, and a service shows advice with a study."""
        super()._appeared()
        return []

    def _handed_out(self, id: int, round: int) -> Trial:
        return Trial(id, self.knobs.probe(core_calls.ask(self.setup, self.state, round), self.setup.seed, round), round)

    def hand_out(self, note: str | None = None) -> Trial:
        """The next trial, which is open from now on beside others; its number is that of the event."""
        trial, after = self.ask(), self._position.handed_out(self.seq + 1)
        self._record("ask", after, trial.round, None, list(trial.knobs.values()), note)
        return trial._replace(id=self.seq)

    def _asked_for(self, trial: Trial | int) -> Trial:
        id: Any = getattr(trial, "id", trial)
        found = [pair for pair in self._position.pending if pair[1] == id]
        return self._handed_out(id, found[0][0]) if found else super()._asked_for(trial)

    def closing_event(self, trial: int) -> Event | None:
        """The event that closed a trial: its value, or what a person did instead; None if it is not kept."""
        seq: int | None = trial if self.seq - self.settings["keep"] < trial else None
        asked = self._store.events(self._saved, trial - 1, trial) if self.setup.max_pending > 1 else []
        handed_out = asked[0] if asked and asked[0].kind == "ask" else None
        while seq is not None:
            event = (
                self._store.first_after(self._saved, seq, (*STILL, "ask"))
                if handed_out is None
                else self._store.closing(self._saved, seq + 1, handed_out.round)
            )
            if event is None or event.kind not in ("set", "undo") or not self._was_left_alone(event.seq):
                return event
            seq = event.seq + (handed_out is None)
        return None

    def _was_left_alone(self, seq: int) -> bool:
        """Whether a correction was of the run alone, so that the open trial was still open after it."""
        before, after = (self._position_after(at)[1] for at in (seq - 1, seq))
        same = core_calls.pack(before.setup, before.state) == core_calls.pack(after.setup, after.state)
        return same and before.baseline == after.baseline

    def proposed(self, trial: Trial) -> approvals.Decision | None:
        """The word on a trial that has to be approved; if there is none, it waits for one from now on."""
        proposal = self._proposal(trial.knobs)
        found = approvals.decision(self._saved, proposal)
        if found is None and self._saved.proposal != json.dumps(proposal):
            self._store.propose(self._saved, json.dumps(proposal))
        return found

    def word_on(self, trial: Trial) -> approvals.Decision | None:
        """A person's word on a trial, if there is one."""
        return approvals.decision(self._saved, self._proposal(trial.knobs))

    def released(self) -> bool:
        """Whether the process that held the study is gone."""
        return self._store.release(self._saved)

    def pause_row(self, paused: str | None) -> None:
        """Ask that nothing new is set, or take that back."""
        self._mark(paused=paused)

    def tell_at(
        self,
        trial: Trial,
        value: float | None,
        note: str | None = None,
        limits: Mapping[str, float | None] | None = None,
    ) -> None:
        """A value that was measured at other knobs than those asked for: learnt from as what it is.

        Nothing is where there is none, or one of the numbers beside it is missing, or the reference was asked for.
        """
        told = [] if value is None else self.limits.read(limits)
        reference, set_to = trial.kind == "baseline", list(trial.knobs.values())
        if value is None or reference or any(map(math.isnan, told)):
            kind = "baseline" if reference else "skip"
            state = self.state if reference else core_calls.tell(self.setup, self.state, None, None, trial.round)
            after = self._position.after(self.knobs, kind, None, state, None, trial.round)
            self._record(kind, after, trial.round, None, set_to, note)
            return
        excesses = self.limits.excesses(told)
        told_at = (value, trial.knobs, excesses, trial.round)
        state = core_calls.tell_at(self.knobs, self.setup, self.state, *told_at)
        after = self._position.after(self.knobs, "applied", value, state, told or None, trial.round)
        self._record("applied", after, trial.round, value, set_to, note, told or None)

    def setting_of(self, event: Event) -> Setting:
        """What was set, by name."""
        query: Setting = self.describe(self._in_units(event))["query"]
        return query

    @property
    def event(self) -> Event:
        """What would happen."""
        assert self.move is not None
        return self.move.event

    def archive(self, time: float | None) -> None:
        """Put the study aside, or take it out again."""
        self._mark(archived=time)

    @property
    def archives(self) -> bool:
        """Whether it is put aside, or taken out again."""
        return "archived" in self._marks

    def _mark(self, **columns: Any) -> None:
        """Change what of the row is not learnt, together with the move, if there is one."""
        self._marks |= columns
        self._saved = self._saved._replace(**columns)
        if self.move is not None:
            self.move = self.move._replace(row=self._marks)

    def stored(self) -> bool:
        """Store what was changed; whether nobody was faster."""
        if self.move is not None:
            return bool(self._store.commit_if([self.move]))
        if self._marks:
            self._store.mark(self._saved, self._marks)
        return True

    def append(self, words: str) -> None:
        """Say more in the history, behind what is there: none of that is cut off."""
        assert self.move is not None
        event = self.move.event
        note = "; ".join(filter(None, [event.note, clean(words)]))
        self.move = self.move._replace(event=event._replace(note=note))

    def sign(self, who: str, why: str) -> None:
        """Say in the history who did it, and why."""
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
