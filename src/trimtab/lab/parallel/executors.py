"""Executors of the cells of a sweep: this process, processes of this machine (loky), or a cluster (Dask, Ray).

An executor runs one cell per worker at a time and returns `concurrent.futures` futures. If a worker dies, its cell is
computed again. Workers ignore Ctrl-C; the main process handles it and stops them.
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from trimtab.lab.parallel.result_cache import code_version
from trimtab.util.extras import pip_install

C = TypeVar("C")
R = TypeVar("R")
Report = Callable[[int, float], None]

BACKENDS = {"loky": "lab", "dask": "cluster", "ray": "ray"}
"""Name → the extra that installs it."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
DEATHS = 3  # worker deaths after which a cell is given up
CONNECT_ATTEMPTS = 5  # attempts to connect to Ray: the server it forks for each client sometimes dies (ray#63202)
KERNELS = threading.Lock()  # Numba's simplest threading layer aborts if two threads of a process start kernels at once


class CellExecutor(Protocol):
    """Computes cells."""

    lost: tuple[type[BaseException], ...]
    """Errors raised when a worker died: the cell has to be submitted again."""
    deaths: int
    """The number of such errors after which a cell is given up."""

    def width(self) -> int:
        """The number of cells it can compute at once now."""
        ...

    def submit(self, n: int, compute: Callable[..., R], cell: C) -> Future[R]:
        """Compute cell n."""
        ...

    def close(self) -> None:
        """Cancel unfinished cells, and stop the workers started here."""
        ...


def executor_for(backend: str, jobs: int, cluster: str | None, report: Report | None) -> CellExecutor:
    """Create an executor: connected to the cluster at an address, or with `jobs` workers of its own."""
    try:
        if backend == "dask":
            return Dask(jobs, cluster)
        if backend == "ray":
            return Ray(jobs, cluster)
        return InProcess(report) if jobs == 1 else Loky(jobs)
    except ImportError as error:
        raise ImportError(f"backend={backend!r} needs: {pip_install(BACKENDS[backend])}") from error


@contextmanager
def executor_of(jobs: int) -> Iterator[CellExecutor | None]:
    """Keep worker processes of this machine for several sweeps; yields None, for this process, if jobs is 1."""
    executor = None if jobs == 1 else executor_for("loky", jobs, None, None)
    try:
        yield executor
    finally:
        if executor is not None:
            executor.close()


def compute_in_worker(compute: Callable[[C], R], cell: C, version: str, share: int) -> R:
    """Compute a cell in a worker, with the same code, on its share of the cores."""
    if code_version() != version:
        raise ImportError(
            f"a worker on {platform.node()} has another trimtab than this one, or another"
            " NumPy, SciPy or Numba: install the same there"
        )
    from trimtab.problems.kernels.compiling import threads  # imports Numba, which only workers need

    with KERNELS, threads(share):
        return compute(cell)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C while workers start, so that they inherit the block; a pending one is handled afterwards.

    Another thread may still receive it, and Python then calls the handler in the main thread: so that is replaced, too.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler if handler is not None else signal.SIG_DFL)
        if pending:
            signal.raise_signal(signal.SIGINT)


class InProcess:
    """This process, one cell at a time; the only executor that reports progress within a cell."""

    lost: tuple[type[BaseException], ...] = ()
    deaths = DEATHS

    def __init__(self, report: Report | None) -> None:
        self._report = report

    def width(self) -> int:
        """One cell."""
        return 1

    def submit(self, n: int, compute: Callable[..., R], cell: C) -> Future[R]:
        """Compute the cell before returning."""
        report, future = self._report, Future[R]()
        options = {"progress": lambda share: report(n, min(share, 0.999))} if report else {}
        future.set_result(compute(cell, **options))
        return future

    def close(self) -> None:
        """Do nothing."""


class Loky:
    """Processes of this machine, each a pool of one, so that the death of one does not affect the others."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    deaths = DEATHS

    def __init__(self, jobs: int) -> None:
        import joblib.externals.loky  # noqa: F401  fails before the work begins if it is missing

        self._threads = max(1, (os.cpu_count() or 1) // jobs)
        self._pools = [self._pool() for _ in range(jobs)]
        self._futures: list[Future[object] | None] = [None] * jobs

    def _pool(self) -> Executor:
        from joblib.externals.loky import ProcessPoolExecutor

        found: Executor = ProcessPoolExecutor(max_workers=1, env=dict.fromkeys(THREADS, str(self._threads)))
        return found

    def width(self) -> int:
        """One cell per process."""
        return len(self._pools)

    def submit(self, n: int, compute: Callable[..., R], cell: C) -> Future[R]:
        """Submit to an idle process, which is replaced if it died."""
        k = next(k for k, future in enumerate(self._futures) if future is None or future.done())
        work = partial(compute_in_worker, compute, cell, code_version(), self._threads)
        with interrupts_blocked():
            try:
                future = self._pools[k].submit(work)
            except BrokenExecutor:
                self._pools[k] = self._pool()
                future = self._pools[k].submit(work)
        self._futures[k] = future  # type: ignore[assignment]
        return future

    def close(self) -> None:
        """Kill the processes."""
        for pool in self._pools:
            pool.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]  # loky's


class Dask:
    """The Dask cluster at an address, else that of this process's client, else a new one on this machine."""

    deaths = 1  # Dask itself retries the cell of a dead worker three times

    def __init__(self, jobs: int, address: str | None) -> None:
        import distributed

        self.lost: tuple[type[BaseException], ...] = (distributed.KilledWorker,)
        self._jobs, self._own = jobs, True
        with interrupts_blocked():
            if address is not None:
                self._client = distributed.Client(address)
            else:
                try:
                    self._client, self._own = distributed.get_client(), False
                except ValueError:
                    self._client = distributed.Client(
                        n_workers=jobs, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
                    )
        self._executor = self._client.get_executor(pure=False)

    def width(self) -> int:
        """One cell per worker; at least `jobs`, so that a cluster that scales on demand does so."""
        return max(self._jobs, len(self._client.nthreads()))

    def submit(self, n: int, compute: Callable[..., R], cell: C) -> Future[R]:
        """Submit the cell to the scheduler."""
        future: Future[R] = self._executor.submit(compute_in_worker, compute, cell, code_version(), 1)
        return future

    def close(self) -> None:
        """Cancel what is left; a cluster that was there before stays."""
        self._executor.shutdown(wait=False)
        if self._own:
            self._client.close()


class Ray:
    """The Ray cluster at an address, else that of this process, else a new one on this machine."""

    deaths = DEATHS

    def __init__(self, jobs: int, address: str | None) -> None:
        import ray
        from ray import exceptions

        self.lost: tuple[type[BaseException], ...] = (
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.OutOfMemoryError,
            exceptions.ObjectLostError,
        )
        self._ray, self._jobs, self._own = ray, jobs, not ray.is_initialized()
        if self._own:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            local = {} if address else {"num_cpus": jobs, "include_dashboard": False}
            options = {"address": address or "local", "log_to_driver": False, "logging_level": "ERROR", **local}
            for knock in range(1, CONNECT_ATTEMPTS + 1):
                try:
                    with interrupts_blocked():
                        ray.init(**options)
                    break
                except ConnectionAbortedError:
                    if knock == CONNECT_ATTEMPTS:
                        raise
        self._remote = ray.remote(compute_in_worker).options(num_cpus=1, max_retries=0)
        self._sent: list[tuple[Future[object], object]] = []

    def width(self) -> int:
        """One cell per processor; at least `jobs`, so that a cluster that scales on demand does so."""
        return max(self._jobs, int(self._ray.cluster_resources().get("CPU", 0)))

    def submit(self, n: int, compute: Callable[..., R], cell: C) -> Future[R]:
        """Submit to the cluster."""
        reference = self._remote.remote(compute, cell, code_version(), 1)
        future: Future[R] = reference.future()
        self._sent = [(sent, of) for sent, of in self._sent if not sent.done()]
        self._sent.append((future, reference))  # type: ignore[arg-type]
        return future

    def close(self) -> None:
        """Cancel what is left; a cluster that was there before stays."""
        for future, reference in self._sent:
            if not future.done():
                self._ray.cancel(reference, force=True)
        if self._own:
            self._ray.shutdown()
