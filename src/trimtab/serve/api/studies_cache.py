"""Cache of studies, with optimistic concurrency: load, change, compare and set, retry."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from trimtab.serve.http.errors import ApiError
from trimtab.store.errors import Damaged
from trimtab.store.pool import Pool
from trimtab.store.shared_store import MARK_COLUMNS, SharedStore
from trimtab.store.tables import StudyColumns, StudyRow, read_study
from trimtab.study.unlocked import CachedStudy, UnlockedStudy, caught_up, load, of_row

T = TypeVar("T")
MAX_ATTEMPTS = 30  # then the study counts as too busy
STATUS_COLUMNS = MARK_COLUMNS[3:]  # columns that can change without an event


class StudyCache:
    """Studies of a store, cached by one worker."""

    def __init__(self, pool: Pool, max_size: int) -> None:
        self.pool, self._max_size = pool, max_size
        self._cached: OrderedDict[str, CachedStudy] = OrderedDict()
        self._lock = threading.Lock()
        self.conflicts = 0
        """Commits lost to another request."""

    def read(self, name: str, act: Callable[[UnlockedStudy], T]) -> T:
        """Read a study."""
        with self.pool.store() as store:
            return act(UnlockedStudy(store, self.get(store, name)))

    def change(self, name: str, act: Callable[[UnlockedStudy], T], *, expected: int | None = None) -> T:
        """Apply a function that may set the study's `move`, and store that; retry if another request came first.

        expected: sequence number that the caller has seen.
        """
        for attempt in range(MAX_ATTEMPTS):
            with self.pool.store() as store:
                study = UnlockedStudy(store, self.get(store, name))
                if expected is not None and expected != study.seq:
                    raise stale(name, study.seq, expected)
                found = act(study)
                if study.stored():
                    self.remember(study)
                    return found
                self.check_writable(store, name, archives=study.archives)
            self.conflicts += 1
            time.sleep(random.random() * 0.002 * min(attempt, 10))
        raise busy(name)

    def get(self, store: SharedStore, name: str) -> CachedStudy:
        """Return a study in its current state; 404 if it does not exist."""
        remembered = self._remembered(name)
        current = None if remembered is None else store.marks_of(name)
        if remembered is not None and current is not None and current[:3] == _version(remembered.saved):
            return remembered._replace(
                saved=remembered.saved._replace(**dict(zip(STATUS_COLUMNS, current[3:], strict=True)))
            )
        found = None
        if remembered is not None and remembered.shape is None and (saved := store.find(name)) is not None:
            found = caught_up(store, saved, remembered)  # quicker when the row alone is enough
        if found is None:
            found = self._load(store, name)
        self._keep(name, found)
        return found

    def _load(self, store: SharedStore, name: str) -> CachedStudy:
        for found in load(store, [name]):
            if isinstance(found, Damaged):
                raise found
            return found
        raise ApiError(404, "no-study", f"there is no study {name!r}")

    def as_in_row(self, store: SharedStore, row: StudyColumns) -> CachedStudy:
        """Return a study from a row of `SharedStore.rows`; from the cache, with its open trial, if it is up to date."""
        saved, remembered = read_study(row, store.where), self._remembered(row.name)
        if remembered is not None and _version(remembered.saved) == _version(saved):
            return remembered._replace(saved=saved)
        found = of_row(saved, row.state)
        return self.get(store, row.name) if found is None else found

    def check_writable(self, store: SharedStore, name: str, *, archives: bool = False) -> None:
        """Raise an error if a lost commit could not succeed on retry either.

        archives: the commit archives the study or restores it.
        """
        saved = self.get(store, name).saved
        if saved.archived is not None and not archives:
            raise ApiError(410, "archived", f"study {name!r} is archived and read-only: restore it first")
        if not store.release(saved):
            why = f"study {name!r} is in use by {saved.holder}: stop that process first"
            raise ApiError(409, "held", why, holder=saved.holder)

    def remember(self, study: UnlockedStudy) -> None:
        """Cache a study after its commit."""
        self._keep(study.name, study.known)

    def forget(self, name: str) -> None:
        """Drop an erased study."""
        with self._lock:
            self._cached.pop(name, None)

    def _remembered(self, name: str) -> CachedStudy | None:
        return self._cached.get(name)

    def _keep(self, name: str, known: CachedStudy) -> None:
        with self._lock:
            before = self._remembered(name)
            if before is None or before.saved.uid != known.saved.uid or before.saved.seq <= known.saved.seq:
                self._cached[name] = known
                self._cached.move_to_end(name)
            if len(self._cached) > self._max_size:
                self._cached.popitem(last=False)


def stale(name: str, seq: int, wanted: object) -> ApiError:
    """Return the error for an outdated sequence number."""
    return ApiError(412, "stale", f"study {name!r} is at event {seq}, not {wanted}: read it again first", seq=seq)


def busy(name: str) -> ApiError:
    """Return the error after too many lost commits."""
    return ApiError(503, "busy", f"too many requests change study {name!r} at once: retry", {"Retry-After": "1"})


def _version(saved: StudyRow) -> tuple[int, str, int]:
    """Return what identifies a state: row, study (a name can be reused) and last event."""
    return saved.id, saved.uid, saved.seq
