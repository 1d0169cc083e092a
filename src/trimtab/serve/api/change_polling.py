"""Which studies changed: one look at the store for all streams of a worker, a few times a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.concurrency import run_in_threadpool

from trimtab.store.errors import StoreError
from trimtab.store.pool import Pool

TICK = 0.3  # seconds between two looks: a change is shown within a second


class Changes:
    """What changed for one stream since it asked last."""

    def __init__(self, ids: set[int]) -> None:
        self.ids, self.pending = ids, set(ids)
        self._awake = asyncio.Event()
        self._awake.set()  # at first, everything is new

    def add(self, ids: set[int]) -> None:
        """These did."""
        if mine := ids & self.ids:
            self.pending |= mine
            self._awake.set()

    async def next(self, longest: float) -> set[int]:
        """Wait for some; none after the longest time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._awake.wait(), longest)
        self._awake.clear()
        found, self.pending = self.pending, set()
        return found


class ChangePoller:
    """Looks at the rows of all studies that somebody watches, while somebody does."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._streams: set[Changes] = set()
        self._seen: dict[int, Any] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, ids: set[int]) -> Iterator[Changes]:
        """Changes of some studies, for as long as they are wanted."""
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
            with suppress(StoreError):  # it is away: streams wait
                rows = await run_in_threadpool(self._look, sorted(wanted))
                new = {id for id, row in rows.items() if self._seen.get(id) != row}
                self._seen = rows
                for stream in list(self._streams):
                    stream.add(new)
            await asyncio.sleep(TICK)
        self._seen = {}

    def _look(self, ids: list[int]) -> dict[int, Any]:
        with self._pool.store() as store:
            return store.glances(ids)
