"""View model of the list of studies: most urgent first, one page at a time."""

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

PAGE_SIZE = 50  # studies
SPARKLINE_VALUES = 40
COUNT_SECONDS, COUNT_SHARE = 1.0, 0.1  # counts are cached for 1 s, or so that counting takes 10 % of the time


class FleetPage(NamedTuple):
    """One page of the list."""

    rows: list[Document]
    total: int
    """Number of matching studies."""
    counts: dict[str, int]
    """Number of studies per kind of attention."""


class FleetOverview:
    """Read pages of the list; the counts are cached, the rows are not."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._lock = pool, threading.Lock()
        self._counts: dict[str | None, tuple[float, dict[str, int]]] = {}

    def page(self, only: str | None, search: str, needs: str, number: int) -> FleetPage:
        """Return a page of the studies whose name contains `search`, optionally only those that need this attention."""
        with self._pool.store() as store:
            wanted = StudyFilter(search, [needs] if needs else [], only)
            names, total = store.urgent(wanted, PAGE_SIZE * number, PAGE_SIZE)
            if not names and number:
                total = store.urgent(wanted, 0, 1)[1]
            counts = self._count(store, only)
        return FleetPage(self.rows(names), total, counts)

    def rows(self, names: list[str]) -> list[Document]:
        """Return the rows of these studies, in this order; erased ones are left out."""
        if not names:
            return []
        with self._pool.store() as store:
            found = {name: _row(store, name, saved) for name, saved in store.some(names).items()}
        return [found[name] for name in names if name in found]

    def _count(self, store: SharedStore, only: str | None) -> dict[str, int]:
        with self._lock:
            began = time.monotonic()
            until, counts = self._counts.get(only, (0.0, {}))
            if until < began:
                counts = store.needs(StudyFilter(only=only))
                now = time.monotonic()
                self._counts = {only: (now + max(COUNT_SECONDS, (now - began) / COUNT_SHARE), counts)}
            return counts


def _row(store: SharedStore, name: str, saved: StudyRow | Damaged) -> Document:
    if isinstance(saved, Damaged):
        return {"name": name, "attention": ["damaged"], "damaged": str(saved)}
    return {**summary_json(saved), "spark": sparkline(last_values(store, saved.id, SPARKLINE_VALUES))}
