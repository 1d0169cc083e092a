"""Verification of a stored study."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

from trimtab.spec.knob_encoding import encode, read_knobs
from trimtab.store.errors import StoreError
from trimtab.store.store import Store
from trimtab.store.tables import Event, StudyRow
from trimtab.study import core_calls
from trimtab.study.packed_state import SHAPES, packed, unpack
from trimtab.study.position import Position, follow


def check_study(store: Store, saved: StudyRow, report: Callable[[float], None] | None = None) -> list[str]:
    """Return the problems of a study: checksums, unreadable states, and values that do not lead to the recorded state.

    report: called now and then with the completed share of the work.
    """
    problems: list[str] = []
    try:
        read_knobs(saved.setup)
        events = store.events(saved, until=saved.seq)
        snapshots = store.snapshots(saved, until=saved.seq)
    except (StoreError, ValueError, KeyError, TypeError) as error:
        return [str(error)]
    if not events or events[-1].seq != saved.seq:
        problems.append(f"the last event, {saved.seq}, is missing")
    if not snapshots:
        problems.append("no state is stored")
    kept = {event.seq: event for event in events}
    for n, (snapshot, following) in enumerate(zip_longest(snapshots, snapshots[1:])):
        if report is not None:
            report(n / len(snapshots))
        until = saved.seq + 1 if following is None else following.seq
        path = [kept[seq] for seq in range(snapshot.seq + 1, until) if seq in kept]
        whole = len(path) == until - snapshot.seq - 1
        if following is None and not whole:
            problems.append(f"events after {snapshot.seq} are missing")
        try:
            there = follow(snapshot, path if whole else [], f"the state after event {snapshot.seq}")
        except StoreError as error:
            problems.append(str(error))
            continue
        if following is None and whole:
            problems += _check_row(store, saved, there, kept.get(saved.seq))
    return problems


def _check_row(store: Store, saved: StudyRow, there: Position, last: Event | None) -> list[str]:
    """Check that the packed state in the row, if current, equals the replayed state bit for bit."""
    data, knobs = store.state(saved), there.terms.knobs
    piece = None if data is None else unpack(saved.uid, data, saved.seq)
    shape = SHAPES.of(there)
    if piece is None or shape is None or piece.key != shape.key or last is None:
        return []  # stale, so no one reads it
    if encode(knobs, knobs.values(core_calls.centre(there.state))) != last.centre:
        return []  # written with another version of NumPy, equal up to rounding
    if data != packed(shape, saved.uid, there, saved.seq, saved.status["turn"]):
        return [f"the stored state does not match event {saved.seq}: restore the store from a backup"]
    return []
