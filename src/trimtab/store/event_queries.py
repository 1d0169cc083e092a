"""Some of a study's history, evenly: as much as can be drawn, however long it is."""

from __future__ import annotations

from trimtab.store import tables
from trimtab.store.shared_store import SharedStore
from trimtab.store.tables import EVENT_COLUMNS, ROUTINE, Event, StudyRow


def thinned(store: SharedStore, study: StudyRow, since: float, most: int) -> list[Event]:
    """About as many rounds as `most` since a time, the oldest first, and whatever else happened.

    Every 2nd, 5th, 10th, …: by their numbers, so that the same ones are seen when more come.
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
    """The least of 1, 2, 5, 10, 20, … that leaves no more than `most`.

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
    """The last events, the newest first: rounds with a value, or all the others."""
    kinds = (
        "kind IN ('tell', 'applied', 'baseline')" if rounds else "kind NOT IN ('ask', 'tell', 'applied', 'baseline')"
    )
    rows = store.execute(
        f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ? AND {kinds} ORDER BY seq DESC LIMIT {most:d}",
        study.id,
    )
    return [tables.read_event(row, store.where) for row in rows]


def last_values(store: SharedStore, study: int, most: int) -> list[float]:
    """The last values that were learnt from, the oldest first."""
    rows = store.execute(
        "SELECT value FROM trimtab_events WHERE study = ? AND kind IN ('tell', 'applied') AND value IS NOT NULL"
        f" ORDER BY seq DESC LIMIT {most:d}",
        study,
    )
    return [row[0] for row in reversed(rows)]
