"""The state of a study after an event, rebuilt from a snapshot by replaying values; the path is deterministic."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from trimtab.monitor.baseline import Baseline, Share
from trimtab.monitor.diagnostics import Diagnostics
from trimtab.monitor.savings import Ledger, Saving
from trimtab.setup import Setup
from trimtab.spec.constraints import Limits
from trimtab.spec.current_settings import RunSettings
from trimtab.spec.knob_encoding import Knob, Knobs, decode, encode, level
from trimtab.state import State
from trimtab.store.errors import Damaged
from trimtab.store.tables import UNLEARNT, Event, Setting, Snapshot
from trimtab.study import core_calls
from trimtab.types import Document

LOG = logging.getLogger("trimtab.live")
BASELINE, LEDGER, LIMITS, ASKED = "baseline", "ledger", "limits", "asked"  # stored with the diagnostics in a snapshot
NEAR = 1e-6  # share of the range: tolerance for rounding differences between versions of NumPy


class Position(NamedTuple):
    """State of a study after some event of its history."""

    setup: Setup
    state: State
    diagnostics: Diagnostics
    terms: RunSettings
    """The knobs and other settings that may be changed."""
    baseline: Baseline = Baseline()
    ledger: Ledger = Ledger()
    limits: Limits = Limits()
    asked: tuple[tuple[int, int], ...] = ()
    """Rounds handed out while others were open, each with its trial id."""

    @property
    def pending(self) -> tuple[tuple[int, int], ...]:
        """Rounds in `asked` that are still open."""
        still = {round for round, _ in self.state.open}
        return tuple(pair for pair in self.asked if pair[0] in still)

    def handed_out(self, id: int, context: core_calls.Row | None = None) -> Position:
        """Return the position after handing out the next trial under this id."""
        state = core_calls.hand_out(self.terms.knobs, self.setup, self.state, context)
        round = state.open[-1][0]
        asked = (*(pair for pair in self.pending if pair[0] != round), (round, id))
        return self._replace(state=state, asked=asked)

    def opened(self, round: int, context: core_calls.Row | None) -> Position:
        """Return the position in which the trial of this round is open, if the state alone does not say which it is."""
        state = core_calls.opened(self.terms.knobs, self.setup, self.state, round, context)
        return self if state is self.state else self._replace(state=state)

    def after(
        self,
        knobs: Knobs,
        kind: str,
        value: float | None,
        state: State,
        limits: Sequence[float | None] | None = None,
        trial: int | None = None,
    ) -> Position:
        """Return the position after a routine event that led to `state`; trial: its round, if not the next one."""
        now = self.diagnostics
        if kind == "leave":
            return self
        if value is None:
            now = now.missed()
        elif kind in UNLEARNT:
            now = replace(now, failures=0)
        else:
            now = core_calls.measured(knobs, self.setup, self.state, state, now, value)
        found = self._replace(state=state, diagnostics=now)
        if kind in ("tell", "applied", "skip"):
            found = found._replace(limits=self.limits.after(limits, value))
        round = self.state.round if trial is None else trial
        return found if kind == "hold" else found._replace(**self._accounted(kind, value, round))

    def _accounted(self, kind: str, value: float | None, round: int) -> Document:
        """Return the baseline schedule and the sums of the saving after a round."""
        ledger, slot, every, maximise = self.ledger, self.baseline.slot, self.baseline.spacing, self.setup.maximise
        if value is not None and kind == "baseline":
            ledger = ledger.reference(slot, value, every=every, maximise=maximise)
        elif value is not None:
            probing = core_calls.probing_cost(self.setup, self.state, round)
            ledger = ledger.tuned(slot, value, probing, every=every, maximise=maximise)
        baseline = self.baseline.after(kind, value is None, self.state.key.seed)
        if ledger.anytime.whole.differences > self.ledger.anytime.whole.differences:
            baseline = baseline.paced(ledger.anytime)
        return {"baseline": baseline, "ledger": ledger}

    @property
    def saving(self) -> Saving:
        """The saving against the baseline so far."""
        return saved(self.ledger, self.setup, self.baseline.spacing, self.baseline.setting)

    def planned(self, every: int, setting: Setting | None, share: Share | None = None) -> Position:
        """Return the position with another baseline; a different reference restarts the saving."""
        same = setting == self.baseline.setting
        baseline = self.baseline.planned(every, setting, self.state.key.seed, share)
        return self._replace(baseline=baseline, ledger=self.ledger if same else Ledger())

    def snapshot(self, seq: int) -> Snapshot:
        """Return the snapshot to store with an event."""
        figures = {**self.diagnostics.to_dict(), BASELINE: self.baseline.to_dict(), LEDGER: self.ledger.to_dict()}
        figures |= {LIMITS: self.limits.to_dict()} if self.limits.all else {}
        figures |= {ASKED: self.pending} if self.pending else {}
        text = core_calls.pack(self.setup, self.state, self.terms.to_dict())
        return Snapshot(seq, text, json.loads(json.dumps(figures)))

    def status(self, knobs: Knobs, turn: int, time: float | None) -> Document:
        """Summarise for the study's row. turn: the last event that changed the state; time: of the last round."""
        running = self.diagnostics
        told = bool(running.values)
        found = status_document(
            self.state.round,
            turn,
            knobs.setting(core_calls.centre(self.state)),
            running.values[-1] if told else None,
            (running.fast, running.slow) if told else None,
            (running.skipped, running.failures),
            self.setup.maximise,
            time,
            self.saving.to_dict(),
        )
        return found | ({"limits": self.describe_limits()} if self.limits.all else {})

    def describe_limits(self) -> list[Document]:
        """Return the description of each limit; with a risk, also the margin that is left for it."""
        rooms = core_calls.margins(self.setup, self.state) if self.limits.has_risk else []
        found = self.limits.describe()
        return [{**each, "margin": room} for each, room in zip(found, rooms, strict=True)] if rooms else found


def status_document(
    round: int,
    turn: int,
    centre: Setting,
    value: float | None,
    means: tuple[float, float] | None,
    missed: tuple[int, int],
    maximise: bool,
    time: float | None,
    saving: Document,
) -> Document:
    """Build the status of a study's row. means: of about ten and a hundred values; missed: in all, and in a row."""
    return {
        "round": round,
        "turn": turn,
        "centre": centre,
        "value": value,
        "mean": None if means is None else means[0],
        "trend": None if means is None else means[0] - means[1],
        "skipped": missed[0],
        "failures": missed[1],
        "goal": "maximise" if maximise else "minimise",
        "time": time,
        "saving": saving,
    }


def saved(ledger: Ledger, setup: Setup, every: int, reference: Setting | None) -> Saving:
    """Return the saving, worded for the reference in use."""
    against = "the start" if reference is None else "the reference"
    return ledger.saving(maximise=setup.maximise, every=every, against=against)


def follow(snapshot: Snapshot, events: Sequence[Event], who: str) -> Position:
    """Return the position after the last event; `Damaged` if it differs from the recorded one."""
    return advance(read_snapshot(snapshot, who), events, who)


def advance(position: Position, events: Sequence[Event], who: str) -> Position:
    """Replay routine events; `Damaged` if the result differs from the recorded position."""
    knobs = position.terms.knobs
    for event in events:
        state = position.state
        if event.kind in ("ask", "tell", "skip", "applied"):
            again = event.kind != "ask" or event.context is not None  # with contexts, a trial may be asked for anew
            late = again and event.round in (round for round, _ in state.open)
            if event.round != state.round and not late:
                raise Damaged(f"{who} is damaged: event {event.seq} belongs to round {event.round}, not {state.round}")
        if event.kind == "ask":
            position = position.handed_out(event.seq, event.context)
            continue
        if event.kind in ("tell", "skip", "applied"):
            position = position.opened(event.round, event.context)
            state = position.state
        if event.kind in ("tell", "skip"):
            excesses = None if event.limits is None else position.limits.beside(event.limits)
            state = core_calls.tell(knobs, position.setup, state, event.value, excesses, event.round)
        elif event.kind == "applied":
            query = decode(knobs, event.query or [], whole=True)
            applied = {knob.name: level for knob, level in zip(knobs.all, query, strict=True)}
            excesses = None if event.limits is None else position.limits.beside(event.limits)
            measurement = (event.value or 0.0, applied, excesses, event.round)
            state = core_calls.tell_at(knobs, position.setup, state, *measurement)
        position = position.after(knobs, event.kind, event.value, state, event.limits, event.round)
    if events:
        _compare(knobs, position.state, events[-1], who)
    return position


def read_snapshot(snapshot: Snapshot, who: str, *, verified: bool = True) -> Position:
    """Read the position in a snapshot. verified: it comes from a store, which has checked it."""
    try:
        setup, state, stored = core_calls.unpack(snapshot.state, verified=verified)
        terms = RunSettings.from_dict(stored)
        figures = dict(snapshot.diagnostics)
        baseline, ledger = Baseline.from_dict(figures.pop(BASELINE)), Ledger.from_dict(figures.pop(LEDGER))
        limits = Limits.from_dict(figures.pop(LIMITS, None))
        asked = tuple((round, id) for round, id in figures.pop(ASKED, ()))
        return Position(setup, state, Diagnostics.from_dict(figures), terms, baseline, ledger, limits, asked)
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(f"{who} is damaged ({error})") from None


def _compare(knobs: Knobs, state: State, event: Event, who: str) -> None:
    centre = core_calls.centre(state)
    if encode(knobs, knobs.values(centre)) == event.centre:
        return
    recorded = decode(knobs, event.centre, whole=False)
    if any(_off(*pair) > NEAR for pair in zip(knobs.all, knobs.shares(centre), recorded, strict=True)):
        raise Damaged(
            f"{who}: replaying the values since the last snapshot does not give the recorded state: restore a backup"
        )
    LOG.warning("%s: the replayed path differs from the recorded one in the last digits; was NumPy changed?", who)


def _off(knob: Knob, shares: list[float], recorded: Any) -> float:
    """Return how far a knob is from the recorded value; for a choice, how far it is from being the likeliest."""
    if not shares:
        return 0.0
    there = int(level(knob, recorded)) if knob.choices is not None else None
    return abs(shares[0] - knob.share(recorded)) if there is None else max(shares) - shares[there]
