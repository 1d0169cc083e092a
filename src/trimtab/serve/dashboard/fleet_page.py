"""The fleet as people look at it: those that need somebody first, a page at a time."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from trimtab.serve.api.json_views import summary_json
from trimtab.store.errors import Damaged
from trimtab.store.event_queries import last_values
from trimtab.store.pool import Pool
from trimtab.store.shared_store import SharedStore
from trimtab.store.study_filter import StudyFilter
from trimtab.store.tables import StudyRow
from trimtab.study.plots.plotly_figures import sparkline
from trimtab.types import Document

PAGE = 50  # studies of a page
SPARK = 40  # values of a sparkline
FRESH, SHARE = 1.0, 0.1  # counts are held for a second, or so long that counting takes a tenth of the time


class Found(NamedTuple):
    """A page of the fleet."""

    rows: list[Document]
    total: int
    """Studies that fit the search."""
    counts: dict[str, int]
    """How many of all need what."""


class Overview:
    """Knows how many studies need what, for a moment; rows are always read anew."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._lock = pool, threading.Lock()
        self._counts: dict[str | None, tuple[float, dict[str, int]]] = {}

    def page(self, only: str | None, search: str, needs: str, number: int) -> Found:
        """Studies whose name has the search in it, and that need what is wanted, if that is something."""
        with self._pool.store() as store:
            wanted = StudyFilter(search, [needs] if needs else [], only)
            names, total = store.urgent(wanted, PAGE * number, PAGE)
            if not names and number:
                total = store.urgent(wanted, 0, 1)[1]
            counts = self._needs(store, only)
        return Found(self.rows(names), total, counts)

    def rows(self, names: list[str]) -> list[Document]:
        """What the list says of some studies, in this order; those that are gone are left out."""
        if not names:
            return []
        with self._pool.store() as store:
            found = {name: _row(store, name, saved) for name, saved in store.some(names).items()}
        return [found[name] for name in names if name in found]

    def _needs(self, store: SharedStore, only: str | None) -> dict[str, int]:
        with self._lock:
            began = time.monotonic()
            until, counts = self._counts.get(only, (0.0, {}))
            if until < began:
                counts = store.needs(StudyFilter(only=only))
                now = time.monotonic()
                self._counts = {only: (now + max(FRESH, (now - began) / SHARE), counts)}
            return counts


def _row(store: SharedStore, name: str, saved: StudyRow | Damaged) -> Document:
    if isinstance(saved, Damaged):
        return {"name": name, "attention": ["damaged"], "damaged": str(saved)}
    return {**summary_json(saved), "spark": sparkline(last_values(store, saved.id, SPARK))}
