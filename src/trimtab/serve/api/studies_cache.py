"""Studies on rows, for a worker that keeps nothing: load, change, compare and set; if somebody was faster, again."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from trimtab.serve.http.errors import ApiError
from trimtab.store.errors import Damaged
from trimtab.store.pool import Pool
from trimtab.store.shared_store import GLANCE, SharedStore
from trimtab.store.tables import StudyRow
from trimtab.study.unlocked import Known, UnlockedStudy, caught_up, load, of_row

T = TypeVar("T")
TRIES = 30  # before somebody is told that a study is too busy
AWAKE = 500  # studies that are remembered with all that makes their next round quick
STORED = GLANCE[3:]  # what may change in a row without an event


class StudyCache:
    """All studies of a store, as one worker sees them."""

    def __init__(self, pool: Pool, most: int) -> None:
        self.pool, self._most = pool, most
        self._awake: OrderedDict[str, Known] = OrderedDict()
        self._resting: OrderedDict[str, Known] = OrderedDict()
        self._lock = threading.Lock()
        self.conflicts = 0
        """How often somebody else was faster."""

    def look(self, name: str, act: Callable[[UnlockedStudy], T]) -> T:
        """What can be said of a study as it is now."""
        with self.pool.store() as store:
            return act(UnlockedStudy(store, self.known(store, name)))

    def change(self, name: str, act: Callable[[UnlockedStudy], T], *, expected: int | None = None) -> T:
        """Do something with a study that may set its `move`, and store that; again, if somebody else was faster.

        expected: the sequence number that the caller saw.
        """
        for attempt in range(TRIES):
            with self.pool.store() as store:
                study = UnlockedStudy(store, self.known(store, name))
                if expected is not None and expected != study.seq:
                    raise stale(name, study.seq, expected)
                found = act(study)
                if study.stored():
                    self.remember(study)
                    return found
                self.refuse(store, name, archives=study.archives)
            self.conflicts += 1
            time.sleep(random.random() * 0.002 * min(attempt, 10))
        raise busy(name)

    def known(self, store: SharedStore, name: str) -> Known:
        """A study as it is now; 404 if there is none."""
        remembered = self._remembered(name)
        glance = None if remembered is None else store.glance(name)
        if remembered is not None and glance is not None and glance[:3] == _version(remembered.saved):
            return remembered._replace(saved=remembered.saved._replace(**dict(zip(STORED, glance[3:], strict=True))))
        found = None
        if remembered is not None and remembered.shape is None and (saved := store.find(name)) is not None:
            found = caught_up(store, saved, remembered)  # where the row says it all, that is quicker
        if found is None:
            found = self._load(store, name)
        self._keep(name, found)
        return found

    def _load(self, store: SharedStore, name: str) -> Known:
        for found in load(store, [name]):
            if isinstance(found, Damaged):
                raise found
            return found
        raise ApiError(404, "no-study", f"there is no study {name!r}")

    def as_in_row(self, store: SharedStore, row: Sequence[Any]) -> Known:
        """A study as a row of `SharedStore.rows` has it."""
        found = of_row(row, store.where)
        return self.known(store, row[2]) if found is None else found

    def refuse(self, store: SharedStore, name: str, *, archives: bool = False) -> None:
        """After a move that was not stored: a problem, if it will not be stored at the next try either.

        archives: it is the one that archives the study, or takes it out again.
        """
        saved = self.known(store, name).saved
        if saved.archived is not None and not archives:
            raise ApiError(410, "archived", f"study {name!r} is archived and read-only: restore it first")
        if not store.release(saved):
            why = f"study {name!r} is in use by {saved.holder}: stop that first"
            raise ApiError(409, "held", why, holder=saved.holder)

    def remember(self, study: UnlockedStudy) -> None:
        """What was just stored."""
        self._keep(study.name, study.known)

    def forget(self, name: str) -> None:
        """It is gone."""
        with self._lock:
            self._awake.pop(name, None)
            self._resting.pop(name, None)

    def _remembered(self, name: str) -> Known | None:
        return self._awake.get(name) or self._resting.get(name)

    def _keep(self, name: str, known: Known) -> None:
        with self._lock:
            before = self._remembered(name)
            if before is None or before.saved.uid != known.saved.uid or before.saved.seq <= known.saved.seq:
                self._resting.pop(name, None)
                self._awake[name] = known
                self._awake.move_to_end(name)
            if len(self._awake) > AWAKE:
                longest, tired = self._awake.popitem(last=False)
                self._resting[longest] = tired.at_rest
            if len(self._awake) + len(self._resting) > self._most:
                (self._resting or self._awake).popitem(last=False)


def stale(name: str, seq: int, wanted: object) -> ApiError:
    """For one who saw a study as it was before."""
    return ApiError(412, "stale", f"study {name!r} is at event {seq}, not {wanted}: read it again first", seq=seq)


def busy(name: str) -> ApiError:
    """For one whom others were faster than, all the time."""
    return ApiError(503, "busy", f"too many requests change study {name!r} at once: retry", {"Retry-After": "1"})


def _version(saved: StudyRow) -> tuple[int, str, int]:
    """What a glance begins with: which study it is, also where one was made anew under its name, and which event."""
    return saved.id, saved.uid, saved.seq
