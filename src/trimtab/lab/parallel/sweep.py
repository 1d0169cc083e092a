"""Compute many cells, each a pure function of its configuration, once each, on all cores or a cluster.

A finished cell is saved at once (`trimtab.lab.parallel.result_cache`) and not computed again, neither after an
interruption nor by a later run that shares the cache. Cells run on an executor (`trimtab.lab.parallel.executors`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Generic, TypeVar

from trimtab.lab.parallel.executors import BACKENDS, CellExecutor, Report, executor_for
from trimtab.lab.parallel.result_cache import Result, ResultStore, key, load_result, store_at
from trimtab.lab.sim.record import Record
from trimtab.types import Document
from trimtab.validation import whole

Cell = Document
"""The configuration of one unit of work; may also be a dataclass."""

C = TypeVar("C")
R = TypeVar("R", bound=Result)

POLL = 1.0  # seconds between checks for new workers of the cluster


def sweep(
    compute: Callable[..., R],
    cells: Sequence[C],
    *,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str | None = None,
    executor: CellExecutor | None = None,
    folder: str | Path | None = None,
    report: Report | None = None,
    load: Callable[[Path], R] = Record.load,  # type: ignore[assignment]
) -> list[R | None]:
    """Call compute(cell) for every cell; the result is None for cells not computed before an interruption (Ctrl-C).

    jobs: the number of workers. backend: "loky", processes of this machine (this process if jobs is 1); "dask" or
    "ray", the cluster at the address `cluster`, else the one this process is connected to, else a temporary one of
    `jobs` processes. It is started only if cells are missing. If a worker dies, its cell is computed again.
    executor: an executor to use instead, which is left running (`trimtab.lab.parallel.executors.executor_of`).
    folder: the cache of finished cells, which concurrent runs may share: a folder, or the fsspec URL of an object
    store; None for no cache. Cells that name a method or problem from outside trimtab are never cached.
    report(n, share): called when this share of cell n is done. load: reads a result written by its `save(path)`.

    >>> sweep(lambda cell: cell**2, [1, 2, 3])
    [1, 4, 9]
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r} is unknown: choose from {', '.join(BACKENDS)}")
    if cluster is not None and backend == "loky":
        raise ValueError(f"cluster={cluster!r} needs backend='dask' or 'ray': loky has no cluster")
    whole("jobs", jobs, 1)
    run = _Run(compute, cells, store_at(folder), report, load)
    if run.waiting:
        run.go(lambda: executor or executor_for(backend, jobs, cluster, report), stays=executor is not None)
    return run.results


class _Run(Generic[C, R]):
    """One call of `sweep`: cells are waiting, submitted, or done."""

    def __init__(
        self,
        compute: Callable[..., R],
        cells: Sequence[C],
        store: ResultStore | None,
        report: Report | None,
        load: Callable[[Path], R],
    ) -> None:
        self._compute, self._cells, self._store, self._report, self._load = compute, cells, store, report, load
        self._names = [key(cell) if store else "" for cell in cells]
        self._submitted: dict[Future[R], int] = {}
        self._deaths: Counter[int] = Counter()
        self.results: list[R | None] = [None] * len(cells)
        self.waiting = deque(n for n in range(len(cells)) if not self._found(n))

    def go(self, executor_of: Callable[[], CellExecutor], *, stays: bool) -> None:
        """Run until all cells are done, or until Ctrl-C; close the executor unless it stays."""
        executor = None
        try:
            if self._store is not None:
                self._store.prepare()
            executor = executor_of()
            while self.waiting or self._submitted:
                while self.waiting and len(self._submitted) < executor.width():
                    if not self._found(n := self.waiting.popleft()):  # another run may just have finished it
                        self._submitted[executor.submit(n, self._compute, self._cells[n])] = n
                for future in wait(self._submitted, POLL, FIRST_COMPLETED).done:
                    self._collect(future, executor)
        except KeyboardInterrupt:
            pass
        finally:
            try:
                for future in list(self._submitted):  # save cells that have just finished
                    if executor and future.done() and not future.cancelled() and future.exception() is None:
                        self._collect(future, executor)
            finally:
                if executor is not None and not stays:
                    executor.close()

    def _collect(self, future: Future[R], executor: CellExecutor) -> None:
        """Save a result; submit the cell again if its worker died; re-raise an error of the cell itself."""
        n = self._submitted.pop(future)
        if future.cancelled():
            raise ConnectionError(f"the cluster dropped {self._cells[n]}: check that it still runs")
        error = future.exception()
        if error is None:
            if self._store is not None and self._names[n]:
                self._store.save(self._names[n], future.result())
            self._done(n, future.result())
        elif isinstance(error, executor.lost):
            self._deaths[n] += 1
            if self._deaths[n] >= executor.deaths:
                raise ChildProcessError(f"workers die of {self._cells[n]}: give them more memory") from error
            self.waiting.appendleft(n)
        else:
            raise getattr(error, "cause", None) or error  # Ray wraps it

    def _found(self, n: int) -> bool:
        record = load_result(self._store, self._names[n], self._load)
        if record is not None:
            self._done(n, record)
        return record is not None

    def _done(self, n: int, record: R) -> None:
        self.results[n] = record
        if self._report:
            self._report(n, 1.0)
