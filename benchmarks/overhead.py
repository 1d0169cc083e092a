"""Time per round: ask + tell of `auto` and of residual feedback against the floor, and other libraries.

The floor is what no such method can avoid: d standard normals (SFC64, the fastest generator of NumPy) and one daxpy.
All contestants of one dimension run interleaved in one process; each figure is the processor time of the best of many
short repetitions, so that other users of the machine do not count. Many systems in lanes, the import and the memory
are measured beside it; so is the belief, against other libraries for few knobs. Run it with `make bench`, or

    python benchmarks/overhead.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import psutil
from scipy.linalg.blas import daxpy

import trimtab as tt

RESIDUAL = {10: 5.5, 576: 2.2, 10**4: 1.35, 10**6: 1.3}  # times the floor
AUTO = {10: 18.0}  # times the floor
AUTO_TO_RESIDUAL = {576: 2.3, 10**4: 1.15}
RADEMACHER = {10**6: 0.8}
PEERS = {"cmaes SepCMA": 2.0, "nevergrad OnePlusOne": 20.0}  # times slower than residual, at least, at d = 10
LANES = {(200, 10): {"residual": 15.0, "auto": 15.0}, (950, 36): {"residual": 40.0, "auto": 40.0}}  # times one system
BELIEF = {  # times `auto` at d = 10
    "d=2": 7.0,
    "d=5": 7.0,
    "d=10": 7.0,
    "a context, d=5": 23.0,
    "a limit, d=5": 46.0,
    "each of 100 in lanes, d=10": 0.7,
}
IMPORT = 1.5  # times `import numpy`


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


def optuna_tpe(d: int) -> Callable[[], None]:
    """Optuna's default sampler over limits, with 100 trials in memory at the start."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(d)}
    study, rng = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0)), np.random.default_rng(0)

    def round() -> None:
        study.tell(study.ask(space), rng.standard_normal())

    for _ in range(100):
        round()
    return round


def belief(d: int, *, context: bool = False, limit: bool = False, count: int = 0) -> Callable[[], None]:
    """A round of the belief between limits; count: systems in lanes."""
    shape = (count, d) if count else (d,)
    tuner = tt.Tuner(
        np.full(shape, 0.3),
        tt.belief(radius=0.05),
        domain=tt.Box(0.0, 1.0),
        seed=0,
        context=["load"] if context else None,
        limits={"temperature": {"max": 80.0}} if limit else None,
    )
    rng = np.random.default_rng(0)

    def round() -> None:
        trial = tuner.ask(context={"load": rng.random()}) if context else tuner.ask()
        cost = np.square(trial.x - 0.6).sum(axis=-1) + 0.01 * rng.standard_normal(shape[:-1])
        tuner.tell(trial, cost, limits={"temperature": 70.0 + cost} if limit else None)

    return round


def few_knobs(judge: Callable[..., str], repetitions: int) -> dict[str, float]:
    """Print seconds of the belief, of SepCMA and of Optuna for few knobs."""
    seconds = best(
        {
            "auto, d=10": tuner(10, tt.auto(radius=0.05)),
            "cmaes SepCMA": sepcma(10),
            "optuna TPE": optuna_tpe(10),
            **{f"d={d}": belief(d) for d in (2, 5, 10)},
            "a context, d=5": belief(5, context=True),
            "a limit, d=5": belief(5, limit=True),
        },
        20,
        repetitions,
    )
    name, others = "each of 100 in lanes, d=10", ("cmaes SepCMA", "optuna TPE")
    seconds[name] = best({name: belief(10, count=100)}, 2, repetitions)[name] / 100
    print("\nFew knobs: a round of the belief, and an evaluation of others at d = 10, times a round of auto at d = 10:")
    for name in (*BELIEF, *others):
        times = seconds[name] / seconds["auto, d=10"]
        print(f"  {name:>26} {_time(seconds[name])} {judge(f'belief, {name}', times, BELIEF.get(name))}")
    return seconds


def oneplusone(d: int) -> Callable[[], None]:
    import nevergrad as ng

    optimizer = ng.optimizers.OnePlusOne(parametrization=d, budget=10**9)
    rng = np.random.default_rng(0)

    def round() -> None:
        optimizer.tell(optimizer.ask(), rng.standard_normal())

    return round


def best(contestants: dict[str, Callable[[], None]], calls: int, repetitions: int) -> dict[str, float]:
    """CPU seconds per call, the best of interleaved repetitions."""
    found = dict.fromkeys(contestants, np.inf)
    for repetition in range(repetitions + 1):
        for name, call in contestants.items():
            start = time.thread_time()
            for _ in range(calls):
                call()
            if repetition:  # the first one only warms up
                found[name] = min(found[name], (time.thread_time() - start) / calls)
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


def lanes(count: int, d: int, method: tt.Method) -> Callable[[], None]:
    tuner = tt.Tuner(np.zeros((count, d)), method, seed=0)
    values = itertools.cycle(np.random.default_rng(0).standard_normal((64, count)))

    def round() -> None:
        tuner.tell(tuner.ask(), next(values))

    return round


def imports() -> float:
    """CPU time of `import trimtab` with numpy, divided by that of numpy alone: the best of several fresh processes."""
    code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def seconds(name: str) -> float:
        command = [sys.executable, "-c", code.format(name)]
        return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)

    times = [(seconds("numpy"), seconds("trimtab")) for _ in range(8)]
    return min(t for _, t in times) / min(n for n, _ in times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and rounds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    repetitions = 15 if options.quick else 60
    failures: list[str] = []

    def judge(what: str, times: float, limit: float | None, least: bool = False) -> str:
        if limit is None:
            return f"{times:5.2f}x        "
        if (times < limit) if least else (times > limit):
            failures.append(f"{what}: {times:.2f}x, limit {limit}x")
        return f"{times:5.2f}x ({'>' if least else '<'} {limit:g}) "

    print(f"trimtab {tt.__version__}, numpy {np.__version__}; ask + tell of one round, times the floor\n")
    print(f"{'d':>8} {'floor':>12} {'auto':>15} {'residual':>15} {'auto/residual':>15} {'Rademacher':>15}")
    rows = []
    for d in RESIDUAL:
        contestants = {
            "floor": floor(d),
            "auto": tuner(d, tt.auto(radius=0.05)),
            "residual": tuner(d, residual(tt.Gaussian())),
            "Rademacher": tuner(d, residual(tt.Rademacher())),
        }
        if d == 10:
            contestants |= {"cmaes SepCMA": sepcma(d), "nevergrad OnePlusOne": oneplusone(d)}
        seconds = best(contestants, max(6, int(4e4 / (d + 80))), repetitions)
        ratio = {name: s / seconds["floor"] for name, s in seconds.items()}
        print(
            f"{d:>8} {_time(seconds['floor'])}",
            judge(f"auto at d={d}", ratio["auto"], AUTO.get(d)),
            judge(f"residual at d={d}", ratio["residual"], RESIDUAL[d]),
            judge(f"auto/residual at d={d}", seconds["auto"] / seconds["residual"], AUTO_TO_RESIDUAL.get(d)),
            judge(f"Rademacher at d={d}", ratio["Rademacher"], RADEMACHER.get(d)),
        )
        rows.append({"d": d, "seconds": seconds, "times_floor": ratio})

    print("\nBeside other libraries, at d = 10, per evaluation, times residual feedback:")
    for name, least in PEERS.items():
        times = rows[0]["seconds"][name] / rows[0]["seconds"]["residual"]
        print(f"  {name} ({version(name.split()[0])}): {judge(name, times, least, least=True)}")

    print("\nMany systems at once, times a round of one alone:")
    methods = {"auto": tt.auto(radius=0.05), "residual": residual(tt.Gaussian())}
    for (count, d), limits in LANES.items():
        alone = {name: tuner(d, method) for name, method in methods.items()}
        together = {f"{name} in lanes": lanes(count, d, method) for name, method in methods.items()}
        seconds = best({**alone, **together}, 20, repetitions)
        times = {name: seconds[f"{name} in lanes"] / seconds[name] for name in methods}
        told = (f"{name} {judge(f'{name} in {count} lanes', times[name], limits[name])}" for name in methods)
        print(f"  {count} x {d}: {' '.join(told)}")
        rows.append({"lanes": count, "d": d, "seconds": seconds})

    rows.append({"few_knobs": few_knobs(judge, repetitions)})

    imported = imports()
    print(f"\nimport trimtab: {judge('import', imported, IMPORT)} times import numpy (CPU)")
    rounds = 10**5 if options.quick else 10**6
    before, after = memory(rounds)
    print(f"Resident memory at d = 10: {before:.1f} MB after {rounds // 10:,} rounds, {after:.1f} MB after {rounds:,}")
    failures += [f"memory grew by {after - before:.1f} MB"] if after - before > 1 else []
    if options.json:
        figures = {"rows": rows, "import": imported, "memory_mb": [before, after], "failures": failures}
        options.json.write_text(json.dumps(figures, indent=1))
    print("\nAll within limits." if not failures else "\nBEYOND LIMITS: " + "; ".join(failures))
    return bool(failures)


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:9.1f} us"


if __name__ == "__main__":
    sys.exit(main())
