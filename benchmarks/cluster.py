"""Sweeps over loky, Dask and Ray: efficiency, and where the time goes.

The same cells on each backend with the same number of workers on this machine, after some on each worker that only warm
up. A worker measures its own time inside cells, the driver that of the whole.

* busy: the time inside cells, as a share of workers × time of the sweep; of loky: the same as a ratio. Neither minds
  that others use the machine, which stretches both.
* cell: its time, and how much of it the processor worked for the process.
* overhead: a worker's time per cell outside it: hand-out, transport, and saving, which the driver does, into a folder
  on this machine.
* start, end: from nothing to the first result; closing.

    python benchmarks/cluster.py [--workers 2] [--cells 16] [--rounds 200] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from trimtab import lab
from trimtab.lab import Record
from trimtab.lab.parallel import result_cache, sweep
from trimtab.lab.parallel.executors import BACKENDS, executor_for
from trimtab.lab.step_search import build

EFFICIENCY = 0.85  # at least so busy, as a share of loky


@dataclass(frozen=True)
class Timed:
    """A record with the seconds that its computing took."""

    record: Record
    seconds: float
    processor: float

    def save(self, path: Path) -> None:
        self.record.save(path)


def compute(cell: dict[str, Any]) -> Timed:
    start, processor = time.perf_counter(), time.process_time()
    record = lab.run("lqr-v1", build("residual", 0.05, 0.003), **cell)
    return Timed(record, time.perf_counter() - start, time.process_time() - processor)


def nap(cell: int) -> int:
    time.sleep(0.2)  # so that every worker gets one
    return os.getpid()


def measure(backend: str, workers: int, cells: int, rounds: int) -> dict[str, float]:
    begin = time.perf_counter()
    executor = executor_for(backend, workers, None, None)
    executor.submit(0, nap, 0).result()
    started = time.perf_counter() - begin
    warm = {"rounds": 3, "trials": 50, "seed": 1}
    for _ in range(2):  # compile, or read what was compiled, in every worker
        for future in [executor.submit(n, compute, {**warm, "seed": n}) for n in range(workers)]:
            future.result()
    saving = 0.0
    save = result_cache.Folder.save

    def timed_save(self: result_cache.Folder, name: str, result: result_cache.Result) -> None:
        nonlocal saving
        start = time.perf_counter()
        save(self, name, result)
        saving += time.perf_counter() - start

    work = [{"rounds": rounds, "trials": 50, "seed": n} for n in range(cells)]
    close = executor.close
    executor.close = lambda: None  # type: ignore[method-assign]
    result_cache.Folder.save = timed_save  # type: ignore[method-assign]
    original = sweep.executor_for
    sweep.executor_for = lambda *_: executor  # type: ignore[assignment]
    try:
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            found = sweep.sweep(compute, work, jobs=workers, backend=backend, folder=folder)
            wall = time.perf_counter() - begin
    finally:
        sweep.executor_for, result_cache.Folder.save = original, save  # type: ignore[method-assign]
        begin = time.perf_counter()
        close()
        ended = time.perf_counter() - begin
    busy = sum(timed.seconds for timed in found if timed is not None)
    return {
        "wall": wall,
        "busy": busy / (workers * wall),
        "cell_ms": busy / cells * 1e3,
        "processor_ms": sum(timed.processor for timed in found if timed is not None) / cells * 1e3,
        "overhead_ms": (workers * wall - busy) / cells * 1e3,
        "saving_ms": saving / cells * 1e3,
        "start": started,
        "end": ended,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=200, help="of each cell: how much work it is")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for backend in BACKENDS:
        try:
            found[backend] = measure(backend, options.workers, options.cells, options.rounds)
        except ImportError as error:
            print(f"without {backend}: {error}")
    columns = ("", "busy", "of loky", "cell", "processor", "overhead", "saving", "start", "end")
    table = Table(*columns, title=f"{options.cells} cells on {options.workers} workers, {os.cpu_count()} cores")
    for backend, one in found.items():
        one["of_loky"] = one["busy"] / found["loky"]["busy"]
        times = (f"{one[name]:.0f} ms" for name in ("cell_ms", "processor_ms", "overhead_ms", "saving_ms"))
        ends = (f"{one[name]:.1f} s" for name in ("start", "end"))
        table.add_row(backend, f"{one['busy']:.0%}", f"{one['of_loky']:.2f}", *times, *ends)
    Console(width=100).print(table)
    slow = [backend for backend, one in found.items() if one["of_loky"] < EFFICIENCY]
    if options.json:
        options.json.write_text(json.dumps({**found, "failures": slow}, indent=1) + "\n")
    print("All within limits." if not slow else f"BELOW {EFFICIENCY:.0%} OF LOKY: {', '.join(slow)}")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
