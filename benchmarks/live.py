"""Durable ask + tell at d = 10 beside Optuna's on SQLite; then the growth of the file, the cost as rounds go on, undo.

Both write to a file in the same folder, interleaved in one process, and both wait for the disk: trimtab with WAL and
synchronous=FULL, Optuna as it comes. Each figure is the median of many short repetitions. The long study is filled
without waiting for the disk; its cost is then measured against that of a new study, side by side, as it is used. With
--long, also that of one with 10⁶ events, all of them kept, which are copies of its first ones. Run it with `make
bench`, or

    python benchmarks/live.py [--quick | --long] [--json FILE] [--folder FOLDER]
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
from typing import Any

import optuna

from trimtab.live import Store, Study
from trimtab.spec.current_settings import KEEP
from trimtab.store.tables import row_checksum, sort_columns
from trimtab.util.checksums import canonical

DIM = 10
LEAST = 50.0  # times faster than Optuna
GROWTH = 1.3  # a round of a long study may cost so many times that of a new one
MEGABYTES = 30.0  # that 10⁵ rounds may add to the file, all of them kept
KEEP_ALL = 10**7


def trimtab(folder: Path, keep: int = KEEP) -> tuple[Study, Callable[[], None]]:
    knobs = [{"name": f"x{k}", "low": 0.0, "high": 1.0, "start": 0.5} for k in range(DIM)]
    study = Study.open(folder / "trimtab.db", "bench", knobs, seed=0, keep=keep)

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


def waiting(study: Study, durable: bool) -> None:
    """Whether the disk is waited for."""
    study._store._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")


def age(folder: Path, events: int) -> None:
    """A study that looks as if it had run so long: its first hundred events again and again."""
    study, call = trimtab(folder)
    seconds(call, 100)
    history, position, name = list(study.events()), study._position, study.name
    study.close()
    state = position.state._replace(round=events)
    position = position._replace(state=state)
    with Store(folder / "trimtab.db") as store:
        saved = store.load(name)
        with store._db.transaction():
            for seq in range(101, events + 1):
                store._insert_event(saved.id, history[1 + seq % 100]._replace(seq=seq, round=seq - 1))
                if seq % 100 == 0:
                    store._insert_snapshot(saved.id, position.snapshot(seq))
            status = canonical({**saved.status, "round": events, "turn": events})
            about = (saved.uid, name, saved.created, saved.described, events, status)
            checksum = row_checksum(*about, *sort_columns(saved.status))
            store._db.execute("UPDATE trimtab_studies SET seq = ?, status = ?, checksum = ?", events, status, checksum)


def as_rounds_go_on(folder: Path, rounds: int, *, copied: bool) -> dict[str, Any]:
    """Measure a long study: seconds per round, interleaved with those of a new one; bytes; undo, open."""
    (folder / "new").mkdir()
    sizes, each = [], []
    if copied:
        age(folder, rounds)
    study, old = trimtab(folder, KEEP_ALL)
    waiting(study, False)
    for _ in range(0 if copied else 10):
        each.append(seconds(old, rounds // 10))
        sizes.append(size(folder))
    waiting(study, True)
    fresh, new = trimtab(folder / "new")
    found: dict[str, list[float]] = {"old": [], "new": []}
    for _ in range(40):
        for name, call in (("old", old), ("new", new)):
            found[name].append(seconds(call, 50))
    undo = []
    for back in (1, 50, 149, 1000) if copied else (1, 50, 149, 1000, rounds // 2 + 50):
        before = study.round
        undo.append(seconds(lambda back=back, before=before: study.undo(before - back), 1))  # type: ignore[misc]
        study.undo(before)
    study.close()
    fresh.close()
    opened = seconds(lambda: Study.open(folder / "trimtab.db", "bench").close(), 1)
    costs = {name: statistics.median(times) for name, times in found.items()}
    return {"rounds": rounds, **costs, "filling": each, "sizes": sizes, "undo": max(undo), "open": opened}


def _list(numbers: list[float], unit: float) -> str:
    return ", ".join(f"{number * unit:.2g}" if number * unit < 10 else f"{number * unit:.0f}" for number in numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10⁴ rounds instead of 10⁵, fewer repetitions")
    parser.add_argument("--long", action="store_true", help="also a study with 10⁶ events")
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

    later = []
    for rounds, copied in [(10**4 if options.quick else 10**5, False), *[(10**6, True)] * options.long]:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            study = as_rounds_go_on(Path(name), rounds, copied=copied)
        later.append(study)
        old, new = study["old"], study["new"]
        print(f"\nAfter {rounds:,} rounds one costs {old * 1e3:.2f} ms, of a new study {new * 1e3:.2f} ms")
        print(f"undo: {study['undo'] * 1e3:.0f} ms at most; open: {study['open'] * 1e3:.0f} ms")
        if old / new > GROWTH:
            failures.append(f"a round costs {old / new:.2f} times as much after {rounds:,}")
        if copied:
            continue
        print(f"without the disk, in each tenth of them: {_list(study['filling'], 1e3)} ms")
        print(f"MB on the disk after each tenth: {_list(study['sizes'], 2.0**-20)}")
        grown = (study["sizes"][-1] - study["sizes"][0]) / 0.9 / rounds * 1e5 / 2**20
        if grown > MEGABYTES:
            failures.append(f"{grown:.0f} MB for 10⁵ rounds")
    if options.json:
        options.json.write_text(json.dumps({"seconds": found, "later": later, "failures": failures}, indent=1))
    print("\nAll within limits." if not failures else "\nBEYOND LIMITS: " + "; ".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
