"""What a round costs: ask + tell of residual feedback against the floor, `auto` against residual, and other libraries.

The floor is what no such method can avoid: d standard normals (SFC64, the fastest generator of NumPy) and one daxpy.
All contestants of one dimension run interleaved in one process; each figure is the best of many short repetitions,
so that other users of the machine do not count. Run it with `make bench`, or

    python benchmarks/overhead.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import psutil
from scipy.linalg.blas import daxpy

import trimtab as tt

LIMITS = {10: 8.0, 576: 2.5, 10**4: 1.6, 10**6: 1.6}
AUTO_LIMITS = {576: 3.0, 10**4: 2.0}  # times residual
RADEMACHER_LIMIT = 0.8  # at d = 10^6
PEERS = {"cmaes SepCMA": 2.0, "nevergrad OnePlusOne": 20.0}  # times slower, at least, at d = 10


def floor(d: int) -> Callable[[], None]:
    rng = np.random.Generator(np.random.SFC64(0))
    x = np.zeros(d)

    def round() -> None:
        daxpy(rng.standard_normal(d), x, a=1e-3)

    return round


def tuner(d: int, method: tt.Method) -> Callable[[], None]:
    tuner = tt.Tuner(np.zeros(d), method, seed=0)
    values = itertools.cycle(np.random.default_rng(0).standard_normal(4099).tolist())

    def round() -> None:
        trial = tuner.ask()
        tuner.tell(trial, next(values))

    return round


def residual(directions: tt.Gaussian | tt.Rademacher) -> tt.Method:
    return tt.residual(radius=0.05, step=1e-3, directions=directions)


def sepcma(d: int) -> Callable[[], None]:
    from cmaes import SepCMA

    optimizer = SepCMA(mean=np.zeros(d), sigma=0.1, seed=0)
    rng = np.random.default_rng(0)
    told: list[tuple[np.ndarray, float]] = []

    def round() -> None:
        told.append((optimizer.ask(), rng.standard_normal()))
        if len(told) == optimizer.population_size:
            optimizer.tell(told)
            told.clear()

    return round


def oneplusone(d: int) -> Callable[[], None]:
    import nevergrad as ng

    optimizer = ng.optimizers.OnePlusOne(parametrization=d, budget=10**9)
    rng = np.random.default_rng(0)

    def round() -> None:
        optimizer.tell(optimizer.ask(), rng.standard_normal())

    return round


def best(contestants: dict[str, Callable[[], None]], calls: int, repetitions: int) -> dict[str, float]:
    """Seconds per call, the best of interleaved repetitions."""
    found = dict.fromkeys(contestants, np.inf)
    for repetition in range(repetitions + 1):
        for name, call in contestants.items():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            if repetition:  # the first one only warms up
                found[name] = min(found[name], (time.perf_counter() - start) / calls)
    return found


def memory(rounds: int) -> tuple[float, float]:
    """Resident MB after a tenth of the rounds, and after all of them, at d = 10."""
    call, process = tuner(10, residual(tt.Gaussian())), psutil.Process()
    sizes = []
    for k in range(rounds):
        call()
        if k + 1 in (rounds // 10, rounds):
            sizes.append(process.memory_info().rss / 2**20)
    return sizes[0], sizes[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and rounds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    repetitions = 15 if options.quick else 60

    print(f"trimtab {tt.__version__}, numpy {np.__version__}; ask + tell of one round, times the floor in brackets\n")
    print(f"{'d':>8} {'floor':>12} {'residual':>20} {'limit':>6} {'Rademacher':>20} {'limit':>6} {'auto/residual':>22}")
    rows, failures = [], []
    for d, limit in LIMITS.items():
        contestants = {
            "floor": floor(d),
            "residual": tuner(d, residual(tt.Gaussian())),
            "Rademacher": tuner(d, residual(tt.Rademacher())),
        }
        if d == 10:
            contestants |= {"cmaes SepCMA": sepcma(d), "nevergrad OnePlusOne": oneplusone(d)}
        seconds = best(contestants, max(2, int(2e4 / (d + 80))), repetitions)
        ratio = {name: s / seconds["floor"] for name, s in seconds.items()}
        signs, own = RADEMACHER_LIMIT if d == 10**6 else None, AUTO_LIMITS.get(d)
        pair = {"auto": tuner(d, tt.auto(radius=0.05)), "residual": tuner(d, residual(tt.Gaussian()))}
        own_seconds = best(pair, max(2, int(2e4 / (d + 80))), repetitions)
        seconds["auto"], times = own_seconds["auto"], own_seconds["auto"] / own_seconds["residual"]
        print(
            f"{d:>8} {_time(seconds['floor'])} {_time(seconds['residual'])} ({ratio['residual']:4.2f}x) {limit:>5}x"
            f" {_time(seconds['Rademacher'])} ({ratio['Rademacher']:4.2f}x) {f'{signs}x' if signs else '':>6}"
            f" {_time(seconds['auto'])} ({times:4.2f}x) {f'{own}x' if own else ''}"
        )
        failures += [f"auto at d={d}: {times:.2f}x residual"] if own and times > own else []
        failures += [f"residual at d={d}: {ratio['residual']:.2f}x the floor"] if ratio["residual"] > limit else []
        failures += (
            [f"Rademacher at d={d}: {ratio['Rademacher']:.2f}x"] if signs and ratio["Rademacher"] > signs else []
        )
        rows.append({"d": d, "seconds": seconds, "times_floor": ratio})

    print("\nBeside other libraries, at d = 10, per evaluation:")
    for name, least in PEERS.items():
        times = rows[0]["seconds"][name] / rows[0]["seconds"]["residual"]
        package = name.split()[0]
        print(f"  {name} ({version(package)}): {_time(rows[0]['seconds'][name]).strip()}, {times:.1f}x trimtab's")
        failures += [f"{name} only {times:.1f}x slower"] if times < least else []

    rounds = 10**5 if options.quick else 10**6
    before, after = memory(rounds)
    print(
        f"\nResident memory at d = 10: {before:.1f} MB after {rounds // 10:,} rounds, {after:.1f} MB after {rounds:,}"
    )
    failures += [f"memory grew by {after - before:.1f} MB"] if after - before > 1 else []
    if options.json:
        options.json.write_text(
            json.dumps({"rows": rows, "memory_mb": [before, after], "failures": failures}, indent=1)
        )
    print("\nAll within limits." if not failures else "\nBEYOND LIMITS: " + "; ".join(failures))
    return bool(failures)


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:9.1f} us"


if __name__ == "__main__":
    sys.exit(main())
