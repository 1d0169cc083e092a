"""Durable ask + tell at d = 10 beside Optuna's on SQLite, the growth of the file, and the cost as the rounds go on.

Both write to a file in the same folder, interleaved in one process, and both wait for the disk: trimtab with WAL and
synchronous=FULL, Optuna as it comes. Each figure is the median of many short repetitions. Run it with `make bench`, or

    python benchmarks/live.py [--quick] [--json FILE] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import optuna

from trimtab.live import Study

DIM = 10
LEAST = 50.0  # times faster than Optuna
GROWTH = 1.3  # a round of a long study may cost so many times that of a new one


def trimtab(folder: Path) -> tuple[Study, Callable[[], None]]:
    knobs = [{"name": f"x{k}", "low": 0.0, "high": 1.0, "start": 0.5} for k in range(DIM)]
    study = Study.open(folder / "trimtab.db", "bench", knobs, seed=0)

    def round() -> None:
        trial = study.ask()
        study.tell(trial, sum((x - 0.3) ** 2 for x in trial.knobs.values()))

    return study, round


def peer(folder: Path, sampler: optuna.samplers.BaseSampler) -> Callable[[], None]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{folder}/{type(sampler).__name__}.db", sampler=sampler)
    space = {f"x{k}": optuna.distributions.FloatDistribution(0.0, 1.0) for k in range(DIM)}

    def round() -> None:
        trial = study.ask(space)
        study.tell(trial, sum((x - 0.3) ** 2 for x in trial.params.values()))

    return round


def seconds(call: Callable[[], None], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("trimtab.db*"))


def beside_optuna(folder: Path, repetitions: int) -> dict[str, float]:
    """Seconds per round: the medians of interleaved repetitions."""
    study, ours = trimtab(folder)
    random, default = peer(folder, optuna.samplers.RandomSampler(0)), peer(folder, optuna.samplers.TPESampler(seed=0))
    contestants = {"trimtab": (ours, 100), "optuna, random": (random, 3), "optuna, default": (default, 3)}
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repetitions):
        for name, (call, times) in contestants.items():
            found[name].append(seconds(call, times))
    study.close()
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def as_rounds_go_on(folder: Path, rounds: int) -> tuple[dict[str, float], list[int]]:
    """Seconds per round of a study that has run so long and of a new one, interleaved; bytes on the disk on the way."""
    (folder / "new").mkdir()
    study, old = trimtab(folder)
    sizes = []
    for _ in range(10):
        seconds(old, rounds // 10)
        sizes.append(size(folder))
    fresh, new = trimtab(folder / "new")
    found: dict[str, list[float]] = {"old": [], "new": []}
    for _ in range(40):
        for name, call in (("old", old), ("new", new)):
            found[name].append(seconds(call, 50))
    study.close()
    fresh.close()
    return {name: statistics.median(times) for name, times in found.items()}, sizes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10⁴ rounds instead of 10⁵, fewer repetitions")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="where to write the databases (default: a temporary folder)")
    options = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        found = beside_optuna(Path(name), 8 if options.quick else 20)
    print(f"Durable ask + tell at d = {DIM}, on SQLite:")
    for contestant, each in found.items():
        times = each / found["trimtab"]
        print(f"  {contestant:<16} {each * 1e3:8.2f} ms, {1 / each:7.0f} per second ({times:.0f}x)")
        if contestant == "optuna, default" and times < LEAST:
            failures.append(f"only {times:.0f}x faster than {contestant}")

    rounds = 10**4 if options.quick else 10**5
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        each, sizes = as_rounds_go_on(Path(name), rounds)
    times = each["old"] / each["new"]
    print(f"\nAfter {rounds:,} rounds one costs {each['old'] * 1e3:.2f} ms, of a new study {each['new'] * 1e3:.2f} ms")
    megabytes = ", ".join(f"{share / 2**20:.1f}" for share in sizes)
    print(f"MB on the disk after each tenth of them: {megabytes}")
    if times > GROWTH:
        failures.append(f"a round costs {times:.2f} times as much after {rounds:,}")
    if options.json:
        figures = {"seconds": found, "later": each, "sizes": sizes, "failures": failures}
        options.json.write_text(json.dumps(figures, indent=1))
    print("\nAll within limits." if not failures else "\nBEYOND LIMITS: " + "; ".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
