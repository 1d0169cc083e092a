"""The fleet as people look at it: those that need somebody first, a page at a time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from trimtab.live import schema
from trimtab.live.figures import sparkline
from trimtab.live.pool import Pool
from trimtab.live.schema import STUDY_COLUMNS, Saved
from trimtab.live.shared import SharedStore
from trimtab.live.thinning import last_values
from trimtab.serve.showing import ATTENTION, at_a_glance, attention
from trimtab.types import Document

PAGE = 50  # studies of a page
SPARK = 40  # values of a sparkline
COLUMNS = "name, created, seq, status, proposal, decision, holder, paused"
FRESH, SHARE = 1.0, 0.1  # the order is held for a second, or so long that making it takes a tenth of the time


class Found(NamedTuple):
    """A page of the fleet."""

    rows: list[Document]
    total: int
    """Studies that fit the search."""
    counts: dict[str, int]
    """How many of all need what."""


class Overview:
    """Knows the order of all studies, for a moment: rows are always read anew."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._lock = pool, threading.Lock()
        self._until, self._order = 0.0, list[tuple[int, str, list[str]]]()

    def page(self, only: str | None, search: str, wanted: str, number: int) -> Found:
        """Studies whose name has the search in it, and that need what is wanted, if that is something."""
        order, low = self._ordered(), search.lower()
        mine = [(name, needs) for _, name, needs in order if only in (None, name)]
        fit = [name for name, needs in mine if low in name.lower() and (not wanted or wanted in needs)]
        counts = {word: sum(word in needs for _, needs in mine) for word in ATTENTION}
        return Found(self.rows(fit[PAGE * number : PAGE * (number + 1)]), len(fit), counts)

    def rows(self, names: list[str]) -> list[Document]:
        """What the list says of some studies, in this order; those that are gone are left out."""
        if not names:
            return []
        marks = ", ".join("?" * len(names))
        with self._pool.store() as store:
            rows = store.execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies WHERE name IN ({marks})", *names)
            found = {saved.name: _row(store, saved) for saved in (schema.read_study(row, store.where) for row in rows)}
        return [found[name] for name in names if name in found]

    def _ordered(self) -> list[tuple[int, str, list[str]]]:
        with self._lock:
            began = time.monotonic()
            if self._until < began:
                with self._pool.store() as store:
                    rows = store.execute(f"SELECT {COLUMNS} FROM trimtab_studies WHERE archived IS NULL")
                self._order = sorted(map(_placed, rows))
                now = time.monotonic()
                self._until = now + max(FRESH, (now - began) / SHARE)
            return self._order


def _placed(row: Sequence[Any]) -> tuple[int, str, list[str]]:
    name, created, seq, status, proposal, decision, holder, paused = row
    needs = attention(Saved(0, "", name, created, {}, seq, json.loads(status), proposal, decision, holder, paused))
    return ATTENTION.index(needs[0]) if needs else len(ATTENTION), name, needs


def _row(store: SharedStore, saved: Saved) -> Document:
    return {**at_a_glance(saved), "spark": sparkline(last_values(store, saved.id, SPARK))}
