"""A belief that listens to the recorded rounds of a study whose method is another one.

The history is replayed from a snapshot with the belief beside the method; nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from trimtab.recipes.belief import MOST
from trimtab.recipes.belief.listening import Explained
from trimtab.store.errors import Damaged
from trimtab.store.store import EVERY, Store
from trimtab.store.tables import ROUTINE, Event, Snapshot, StudyRow
from trimtab.study import core_calls
from trimtab.study.changes.rules import moved
from trimtab.study.position import Position, advance, read_snapshot

HEARD = 2000  # events that are replayed at most
LEARNT = ("tell", "applied", "skip")


class Listened(NamedTuple):
    """The position of a study with a belief beside its method, and what the belief has heard."""

    position: Position
    rounds: int
    """Rounds since it began to listen."""
    since: int
    """The first of them."""
    before: Position | None = None
    """The position before the event that was asked for."""
    after: Position | None = None
    """The position after it."""


def refusal(saved: StudyRow, position: Position) -> str | None:
    """Return why no belief can listen to this study; None if one can."""
    setup, name = position.setup, saved.name
    if setup.dim > MOST:
        return f"study {name!r} has {setup.dim} knobs, and a belief explains at most {MOST}: see trimtab show {name}"
    if setup.told > 1 or setup.queries > 1:
        return (
            f"study {name!r} cannot be explained: its method learns from several numbers a round, and a belief from one"
        )
    return None


def listen(
    store: Store, saved: StudyRow, until: int, wanted: int | None, report: Callable[[float], None] | None = None
) -> Listened:
    """Replay the events up to `until`. wanted: the event to return the positions before and after."""
    start, events = _history(store, saved, until)
    who = f"study {saved.name!r}"
    position = _anew(read_snapshot(start, who))
    rounds, since, done = 0, position.state.round, 0
    before = after = None
    for run in _runs(events, wanted):
        if run[-1].seq == wanted:
            before = position
        if run[0].kind in ROUTINE:
            position = advance(position, run, who)
            rounds += sum(event.kind in LEARNT for event in run)
        else:
            position, fresh = _changed(store, saved, position, run[0], who)
            rounds, since = (0, position.state.round) if fresh else (rounds, since)
        if run[-1].seq == wanted:
            after = position
        done += len(run)
        if report is not None:
            report(done / len(events))
    return Listened(position, rounds, since, before, after)


def _history(store: Store, saved: StudyRow, until: int) -> tuple[Snapshot, list[Event]]:
    """Return a snapshot and all events since, up to `until`; later than wanted if older rounds were thinned out."""
    start = store.last_snapshot(saved, max(until - HEARD, 0))
    events = store.events(saved, -1 if start is None else start.seq, until)
    first = next((b.seq for a, b in reversed(list(pairwise(events))) if b.seq != a.seq + 1), None)
    if first is None and events and (start is None or events[0].seq != start.seq + 1):
        first = events[0].seq
    if first is not None:
        start = store.last_snapshot(saved, first)  # thinned history begins with one
        if start is None or start.seq < first:
            start = store.last_snapshot(saved, min(first + EVERY, until))
    if start is None or (first is not None and start.seq < first):
        raise Damaged(f"study {saved.name!r} has no state left before event {until}: restore the store from a backup")
    return start, [event for event in events if event.seq > start.seq]


def _runs(events: Sequence[Event], wanted: int | None) -> Iterator[list[Event]]:
    """Cut the history into pieces: routine events together, up to EVERY; any other event, and the wanted one, alone."""
    run: list[Event] = []
    for event in events:
        alone = event.kind not in ROUTINE or event.seq == wanted
        if run and (alone or len(run) >= EVERY):
            yield run
            run = []
        if alone:
            yield [event]
        else:
            run.append(event)
    if run:
        yield run


def _anew(position: Position) -> Position:
    setup, state = core_calls.listening(position.setup, position.state)
    return position._replace(setup=setup, state=state)


def _changed(store: Store, saved: StudyRow, position: Position, event: Event, who: str) -> tuple[Position, bool]:
    """Return the position after an event that follows from no value, and whether the belief begins anew.

    It does after a reset or the return to an earlier round. After changed settings it goes on, in the new units.
    """
    snapshot = store.last_snapshot(saved, event.seq)
    if snapshot is None or snapshot.seq != event.seq:
        raise Damaged(f"{who} has no state after event {event.seq}: restore the store from a backup")
    there = read_snapshot(snapshot, who)
    if event.kind == "reset" or there.state.round != position.state.round:
        return _anew(there), True
    carried = moved(position, there.terms.knobs, Explained(method=there.setup.method))
    setup, state = core_calls.listening(there.setup, there.state, core_calls.belief_of(carried.state))
    return there._replace(setup=setup, state=state), False
