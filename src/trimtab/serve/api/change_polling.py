"""Detect changed studies: one poll of the store serves all streams of a worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.concurrency import run_in_threadpool

from trimtab.store.errors import StoreError
from trimtab.store.pool import Pool

POLL_INTERVAL = 0.3  # seconds; together with the page's own delay, a change is shown within a second


class Changes:
    """Studies that changed since a stream last asked."""

    def __init__(self, ids: set[int]) -> None:
        self.ids, self.pending = ids, set(ids)
        self._ready = asyncio.Event()
        self._ready.set()  # initially every study counts as changed

    def add(self, ids: set[int]) -> None:
        """Record changed studies."""
        if mine := ids & self.ids:
            self.pending |= mine
            self._ready.set()

    async def next(self, timeout: float) -> set[int]:
        """Wait for changes; an empty set after the timeout."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), timeout)
        self._ready.clear()
        found, self.pending = self.pending, set()
        return found


class ChangePoller:
    """Poll the rows of all subscribed studies while there are subscribers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._streams: set[Changes] = set()
        self._seen: dict[int, Any] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def subscribe(self, ids: set[int]) -> Iterator[Changes]:
        """Subscribe to changes of some studies while the context is open."""
        changes = Changes(ids)
        self._streams.add(changes)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield changes
        finally:
            self._streams.discard(changes)

    async def _run(self) -> None:
        while self._streams:
            wanted = Counter(id for stream in self._streams for id in stream.ids)
            with suppress(StoreError):  # the store is unavailable: streams wait
                rows = await run_in_threadpool(self._read_rows, sorted(wanted))
                new = {id for id, row in rows.items() if self._seen.get(id) != row}
                self._seen = rows
                for stream in list(self._streams):
                    stream.add(new)
            await asyncio.sleep(POLL_INTERVAL)
        self._seen = {}

    def _read_rows(self, ids: list[int]) -> dict[int, Any]:
        with self._pool.store() as store:
            return store.marks_by_id(ids)
