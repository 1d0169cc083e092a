"""Studies on rows, for a worker that keeps nothing: load, change, compare and set; if somebody was faster, again."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from trimtab.live.pool import Pool
from trimtab.live.row import Known, RowStudy, load, load_many
from trimtab.live.shared import GLANCE, SharedStore
from trimtab.serve.problems import Problem

T = TypeVar("T")
TRIES = 30  # before somebody is told that a study is too busy
STORED = GLANCE[2:]  # what may change in a row without an event


class Fleet:
    """All studies of a store, as one worker sees them."""

    def __init__(self, pool: Pool, most: int) -> None:
        self.pool, self._most = pool, most
        self._cache: OrderedDict[str, Known] = OrderedDict()
        self._lock = threading.Lock()
        self.conflicts = 0
        """How often somebody else was faster."""

    def look(self, name: str, act: Callable[[RowStudy], T]) -> T:
        """What can be said of a study as it is now."""
        with self.pool.store() as store:
            return act(RowStudy(store, self.known(store, name)))

    def change(self, name: str, act: Callable[[RowStudy], T], *, expected: int | None = None, hasty: bool = False) -> T:
        """Do something with a study that may set its `move`, and store that; again, if somebody else was faster.

        expected: the sequence number that the caller saw. hasty: begin with what is remembered, which mostly holds.
        """
        for attempt in range(TRIES):
            remembered = self._remembered(name) if hasty and attempt == 0 else None
            with self.pool.store() as store:
                study = RowStudy(store, remembered or self.known(store, name))
                if expected is not None and expected != study.seq:
                    raise Problem(
                        412,
                        "stale",
                        f"study {name!r} is at {study.seq}, not {expected}: look again first",
                        seq=study.seq,
                    )
                try:
                    found = act(study)
                except Problem:
                    if remembered is not None:
                        continue
                    raise
                if study.move is None or store.commit_if([study.move]):
                    self.remember(study)
                    return found
                self.refuse(store, name)
            self.conflicts += 1
            time.sleep(random.random() * 0.002 * min(attempt, 10))
        raise Problem(503, "busy", f"too many change study {name!r} at once: try again", {"Retry-After": "1"})

    def known(self, store: SharedStore, name: str) -> Known:
        """A study as it is now; 404 if there is none."""
        remembered = self._remembered(name)
        glance = None if remembered is None else store.glance(name)
        if remembered is not None and glance is not None and glance[:2] == (remembered.saved.id, remembered.saved.seq):
            return remembered._replace(saved=remembered.saved._replace(**dict(zip(STORED, glance[2:], strict=True))))
        saved = store.find(name)
        if saved is None:
            raise Problem(404, "no-study", f"there is no study {name!r}")
        found = load(store, saved, remembered)
        self._keep(name, found)
        return found

    def known_many(self, store: SharedStore, names: Sequence[str], *, hasty: bool) -> dict[str, Known]:
        """Those of many that there are; hasty: as they are remembered."""
        found = {name: known for name in names if hasty and (known := self._remembered(name)) is not None}
        cold = [name for name in dict.fromkeys(names) if self._remembered(name) is None]
        for name, known in load_many(store, cold).items() if cold else ():
            self._keep(name, known)
            found[name] = known
        for name in names:
            if name not in found:
                with suppress(Problem):
                    found[name] = self.known(store, name)
        return found

    def refuse(self, store: SharedStore, name: str) -> None:
        """After a move that was not stored: a problem, if it will not be stored at the next try either."""
        saved = self.known(store, name).saved
        if saved.archived is not None:
            raise Problem(410, "archived", f"study {name!r} is archived: it is only there to be looked at")
        if not store.release(saved):
            raise Problem(409, "held", f"study {name!r} is held by {saved.holder}, which tells it", holder=saved.holder)

    def remember(self, study: RowStudy) -> None:
        """What was just stored."""
        self._keep(study.name, study.known)

    def forget(self, name: str) -> None:
        """It is gone."""
        with self._lock:
            self._cache.pop(name, None)

    def _remembered(self, name: str) -> Known | None:
        return self._cache.get(name)

    def _keep(self, name: str, known: Known) -> None:
        with self._lock:
            before = self._cache.get(name)
            if before is None or before.saved.uid != known.saved.uid or before.saved.seq <= known.saved.seq:
                self._cache[name] = known
                self._cache.move_to_end(name)
            if len(self._cache) > self._most:
                self._cache.popitem(last=False)
