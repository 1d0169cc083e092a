"""Locks on cells, so that runs sharing a result store do not compute the same cell."""

from __future__ import annotations

import os
import platform
import threading
import time

from trimtab.lab.parallel.result_cache import ResultStore

PATIENCE = 60.0  # seconds without a heartbeat after which a claim expires; heartbeats are sent four times as often


class CellLocks:
    """The cells claimed by this run.

    A claim is a small file beside the results, which a thread of its owner rewrites every quarter of PATIENCE. A claim
    unchanged for PATIENCE, by the clock of the observer, may be taken over; at once if its owner was a process of this
    machine that has ended. CellLocks only save work: two runs that hold the same claim write the same bytes.
    """

    def __init__(self, store: ResultStore | None) -> None:
        self._store = store
        self._owner = f"{platform.node() or 'unknown'} {os.getpid()} {os.urandom(6).hex()}"
        self._held: set[str] = set()
        self._watched: dict[str, tuple[bytes, float]] = {}
        self._lock, self._over, self._signs = threading.Lock(), threading.Event(), 0
        self._thread = threading.Thread(target=self._live, name="trimtab-claims", daemon=True)
        if store is not None:
            self._thread.start()

    def take(self, name: str) -> bool:
        """Claim a cell; False if another run holds it. Cells that are not cached ("") can always be claimed."""
        if self._store is None or not name or name in self._held:
            return True
        with self._lock:
            try:
                self._store.create(f"{name}.claim", self._sign())
            except FileExistsError:
                if not self._abandoned(name):
                    return False
                self._store.write(f"{name}.claim", self._sign())
            self._held.add(name)
        return True

    def release(self, name: str) -> None:
        """Release a cell, finished or not."""
        if self._store is not None and name in self._held:
            with self._lock:
                self._held.remove(name)
                self._store.remove(f"{name}.claim")

    def close(self) -> None:
        """Release all cells."""
        self._over.set()
        for name in list(self._held):
            self.release(name)

    def _sign(self) -> bytes:
        return f"{self._owner} {self._signs}".encode()

    def _abandoned(self, name: str) -> bool:
        assert self._store is not None
        try:
            sign = self._store.read(f"{name}.claim")
        except FileNotFoundError:  # just released: the next attempt will succeed
            return False
        node, _, rest = sign.decode(errors="replace").partition(" ")
        owner = rest.partition(" ")[0]
        if node == platform.node() and owner.isdecimal() and not _runs(int(owner)):
            return True
        before, since = self._watched.get(name, (b"", 0.0))
        if sign != before:
            self._watched[name] = sign, time.monotonic()
            return False
        return time.monotonic() - since > PATIENCE

    def _live(self) -> None:
        assert self._store is not None
        while not self._over.wait(PATIENCE / 4):
            self._signs += 1
            for name in list(self._held):
                with self._lock:
                    if name in self._held:
                        try:
                            self._store.write(f"{name}.claim", self._sign())
                        except OSError:  # the store is unavailable: the next heartbeat may succeed
                            break


def _runs(process: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere os.kill(pid, 0) would end the process; wait for PATIENCE instead
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
