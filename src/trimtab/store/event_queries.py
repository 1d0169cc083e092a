"""Evenly thinned history of a study, for plots."""

from __future__ import annotations

from trimtab.store import tables
from trimtab.store.shared_store import SharedStore
from trimtab.store.tables import EVENT_COLUMNS, ROUTINE, Event, StudyRow


def thinned(store: SharedStore, study: StudyRow, since: float, most: int) -> list[Event]:
    """Return about `most` rounds since a time, oldest first, and all other events.

    Rounds are picked by sequence number (every 2nd, 5th, 10th, …), so the choice is stable as events are added.
    """
    where, values = "study = ? AND time >= ?", (study.id, since)
    [(count,)] = store.execute(f"SELECT COUNT(*) FROM trimtab_events WHERE {where}", *values)
    kinds = ", ".join(f"'{kind}'" for kind in ROUTINE)
    rows = store.execute(
        f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE {where} AND (seq % {every(count, most)} = 0"
        f" OR kind NOT IN ({kinds})) ORDER BY seq DESC LIMIT {2 * most:d}",
        *values,
    )
    return [tables.read_event(row, store.where) for row in reversed(rows)]


def every(count: int, most: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, … that leaves at most `most`.

    >>> every(900, 1000), every(1001, 1000), every(100_000, 1000)
    (1, 2, 100)
    """
    size = 1
    while True:
        for factor in (1, 2, 5):
            if count <= most * size * factor:
                return size * factor
        size *= 10


def latest(store: SharedStore, study: StudyRow, most: int, *, rounds: bool) -> list[Event]:
    """Return the latest events, newest first: rounds with a value, or all others."""
    kinds = (
        "kind IN ('tell', 'applied', 'baseline')" if rounds else "kind NOT IN ('ask', 'tell', 'applied', 'baseline')"
    )
    rows = store.execute(
        f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND {kinds} ORDER BY seq DESC LIMIT {most:d}",
        study.id,
    )
    return [tables.read_event(row, store.where) for row in rows]


def last_values(store: SharedStore, study: int, most: int) -> list[float]:
    """Return the last values that the tuner learnt from, oldest first."""
    rows = store.execute(
        "SELECT value FROM trimtab_events WHERE study = ? AND kind IN ('tell', 'applied') AND value IS NOT NULL"
        f" ORDER BY seq DESC LIMIT {most:d}",
        study,
    )
    return [row[0] for row in reversed(rows)]
