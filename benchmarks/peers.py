"""Other optimisers on drifting problems: one evaluation per time step for everybody.

Contestants: trimtab's `auto` (nothing tuned) and residual feedback; cmaes (CMA, SepCMA); nevergrad (OnePlusOne, TBPSA,
SPSA); Xopt's extremum seeking. The main scale of each (step size, σ, oscillation) is tuned on other seeds: the best
median of what was played. Problems: LQR (T = 100), LQR with zero-mean drift, a quadratic with d = 20, DEAP's moving
peaks (a change every 50 rounds, and every 1000), resource allocation. Two numbers each, as means over the run, medians
over trials: the cost that was played, and the cost at the centre, the point that the method would recommend (looked at
without being paid for). Run it with `make peers`, or

    python benchmarks/peers.py [--quick] [--only PROBLEM] [--out out/peers]
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import trimtab as tt
from trimtab.problems import make

SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the problem's radius
STEPS = tuple(np.geomspace(1e-6, 1.0, 13).tolist())
LOOKS = 50  # how often the centre is looked at
LOST = 1e6  # a cost beyond this many times that at the start counts as lost


# --- problems: cost(t, x) of one trial, where to start, how far to probe


@dataclass(frozen=True)
class Arena:
    name: str
    rounds: int
    radius: float
    limits: tuple[float, float] | None
    build: Callable[[int], Any]
    """seed → an object with `start`, `measure(t, x)` and `cost(t, x)`."""


class Simulated:
    """One trial of a problem of trimtab."""

    def __init__(self, id: str, seed: int, **parameters: Any) -> None:
        problem = make(id, **parameters)
        self.world, self.start = problem.world(seed, 1), problem.start(seed, 1)[0]

    def measure(self, t: int, x: np.ndarray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.world.measure(t, x[None, None])[0, 0])

    def cost(self, t: int, x: np.ndarray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.world.cost(t, x[None, None])[0, 0])


class DeapPeaks:
    """DEAP's own moving peaks (scenario 2, d = 5), which change every so many rounds; a cost, so the sign is turned."""

    def __init__(self, seed: int, every: int = 50) -> None:
        from deap.benchmarks import movingpeaks

        options = {**movingpeaks.SCENARIO_2, "period": 0}
        self.peaks = movingpeaks.MovingPeaks(dim=5, random=random.Random(seed), **options)
        self.start = np.random.default_rng(seed).uniform(0.0, 100.0, 5)
        self.changed, self.every = 0, every

    def cost(self, t: int, x: np.ndarray) -> float:
        while self.changed < t // self.every:
            self.peaks.changePeaks()
            self.changed += 1
        return -float(self.peaks(np.clip(x, 0.0, 100.0), count=False)[0])

    measure = cost


def arenas(quick: bool) -> dict[str, Arena]:
    found = [
        Arena("lqr", 100, 0.05, None, lambda seed: Simulated("lqr-v1", seed)),
        Arena("lqr-zero-mean", 300, 0.1, None, lambda seed: Simulated("lqr-zero-mean-v1", seed)),
        Arena("quadratic-d20", 500, 0.1, None, lambda seed: Simulated("quadratic-v1", seed, dim=20, noise=0.01)),
        Arena("deap-peaks", 500, 2.0, (0.0, 100.0), DeapPeaks),
        Arena("deap-peaks-rare", 2000, 2.0, (0.0, 100.0), lambda seed: DeapPeaks(seed, every=1000)),
        Arena("allocation", 300, 0.03, None, lambda seed: Simulated("allocation-v1", seed)),
    ]
    return {a.name: Arena(a.name, min(a.rounds, 100), *_rest(a)) if quick else a for a in found}


def _rest(a: Arena) -> tuple[Any, ...]:
    return a.radius, a.limits, a.build


# --- contestants: ask() → x, tell(y), centre


class Trimtab:
    def __init__(self, x0: np.ndarray, method: tt.Method, arena: Arena, seed: int) -> None:
        domain = tt.Box(*arena.limits) if arena.limits else tt.Everywhere()
        self.tuner = tt.Tuner(x0, method, domain=domain, seed=seed)

    def ask(self) -> np.ndarray:
        self.trial = self.tuner.ask()
        return self.trial.x

    def tell(self, y: float) -> None:
        self.tuner.tell(self.trial, y)

    @property
    def centre(self) -> np.ndarray:
        return self.tuner.centre


class Cmaes:
    """Generations in their order, one member per round."""

    def __init__(self, x0: np.ndarray, kind: str, sigma: float, arena: Arena, seed: int) -> None:
        import cmaes

        bounds = np.tile(arena.limits, (len(x0), 1)) if arena.limits else None
        self.optimizer = getattr(cmaes, kind)(mean=x0.copy(), sigma=sigma, bounds=bounds, seed=seed % 2**31)
        self.told: list[tuple[np.ndarray, float]] = []

    def ask(self) -> np.ndarray:
        self.x = self.optimizer.ask()
        return self.x

    def tell(self, y: float) -> None:
        self.told.append((self.x, y))
        if len(self.told) == self.optimizer.population_size:
            self.optimizer.tell(self.told)
            self.told = []

    @property
    def centre(self) -> np.ndarray:
        return self.optimizer._mean


class Nevergrad:
    def __init__(self, x0: np.ndarray, kind: str, sigma: float, arena: Arena, seed: int) -> None:
        import nevergrad as ng

        array = ng.p.Array(init=x0.copy())
        array = array.set_bounds(*arena.limits) if arena.limits else array
        array.set_mutation(sigma=sigma)
        array.random_state.seed(seed % 2**31)
        self.optimizer = ng.optimizers.registry[kind](parametrization=array, budget=arena.rounds)
        if kind != "SPSA":  # which knows no first point but its own
            self.optimizer.suggest(x0)

    def ask(self) -> np.ndarray:
        self.candidate = self.optimizer.ask()
        return np.asarray(self.candidate.value, dtype=float)

    def tell(self, y: float) -> None:
        self.optimizer.tell(self.candidate, y)

    @property
    def centre(self) -> np.ndarray:
        return np.asarray(self.optimizer.provide_recommendation().value, dtype=float)


class ExtremumSeeking:
    """Xopt's; it needs limits: where the problem has none, 20 oscillations to each side. Its centre: a mean of 20."""

    def __init__(self, x0: np.ndarray, size: float, gain: float, arena: Arena, seed: int) -> None:
        import pandas
        from xopt.generators.sequential.extremumseeking import ExtremumSeekingGenerator
        from xopt.vocs import VOCS

        self.frame = pandas.DataFrame
        self.names = [f"x{j}" for j in range(len(x0))]
        spans = [arena.limits or (v - 20 * arena.radius, v + 20 * arena.radius) for v in x0]
        vocs = VOCS(variables=dict(zip(self.names, map(list, spans), strict=True)), objectives={"f": "MINIMIZE"})
        half = (spans[0][1] - spans[0][0]) / 2
        self.generator = ExtremumSeekingGenerator(vocs=vocs, oscillation_size=size / half, k=gain)
        self.x, self.recent = x0, deque([x0], maxlen=20)
        self.started = False

    def ask(self) -> np.ndarray:
        if self.started:
            found = self.generator.generate(1)[0]
            self.x = np.array([found[name] for name in self.names])
        return self.x

    def tell(self, y: float) -> None:
        self.generator.add_data(self.frame({**dict(zip(self.names, self.x[:, None], strict=True)), "f": [y]}))
        self.started = True
        self.recent.append(self.x)

    @property
    def centre(self) -> np.ndarray:
        return np.mean(self.recent, axis=0)


class Still:
    def __init__(self, x0: np.ndarray) -> None:
        self.centre = x0

    def ask(self) -> np.ndarray:
        return self.centre

    def tell(self, y: float) -> None:
        pass


Settings = list[Any]
Entry = tuple[Settings, Callable[[np.ndarray, Any, Arena, int], Any]]


def contestants(arena: Arena) -> dict[str, Entry]:
    """name → (the scales to choose from, how to build it with one)."""
    sizes: Settings = [s * arena.radius for s in SCALES]

    def cma(kind: str) -> Entry:
        return sizes, lambda x0, s, a, seed: Cmaes(x0, kind, s, a, seed)

    def nevergrad(kind: str) -> Entry:
        return sizes, lambda x0, s, a, seed: Nevergrad(x0, kind, s, a, seed)

    return {
        "still": ([None], lambda x0, s, a, seed: Still(x0)),
        "auto": ([None], lambda x0, s, a, seed: Trimtab(x0, tt.auto(radius=a.radius), a, seed)),
        "residual": (
            list(STEPS),
            lambda x0, s, a, seed: Trimtab(x0, tt.residual(radius=a.radius, step=s), a, seed),
        ),
        "cmaes CMA": cma("CMA"),
        "cmaes SepCMA": cma("SepCMA"),
        "nevergrad OnePlusOne": nevergrad("OnePlusOne"),
        "nevergrad TBPSA": nevergrad("TBPSA"),
        "nevergrad SPSA": nevergrad("SPSA"),
        "Xopt extremum seeking": (
            list(itertools.product(sizes[:4], (0.1, 1.0, 10.0))),
            lambda x0, s, a, seed: ExtremumSeeking(x0, s[0], s[1], a, seed),
        ),
    }


def play(arena: Arena, entry: Entry, scale: Any, seed: int) -> tuple[float, float]:
    """Mean cost played, mean cost at the centre; infinite if it is lost on the way."""
    world = arena.build(seed)
    player = entry[1](world.start, scale, arena, seed)
    every = max(1, arena.rounds // LOOKS)
    limit = LOST * (1 + abs(world.cost(0, world.start)))
    played, centres = [], []
    for t in range(arena.rounds):
        if t % every == 0:
            centres.append(world.cost(t, np.asarray(player.centre, dtype=float)))
        y = world.measure(t, player.ask())
        if not (abs(y) <= limit and abs(centres[-1]) <= limit):
            return np.inf, np.inf
        player.tell(y)
        played.append(y)
    return float(np.mean(played)), float(np.mean(centres))


def compete(arena: Arena, trials: int, tuning: int) -> dict[str, dict[str, Any]]:
    """Every contestant: tuned on seeds from 10_000 on, reported on 0, 1, …"""
    rows = {}
    for name, entry in contestants(arena).items():
        best = entry[0][0]
        if len(entry[0]) > 1:
            scores = [np.median([play(arena, entry, s, 10_000 + k)[0] for k in range(tuning)]) for s in entry[0]]
            best = entry[0][int(np.argmin(scores))]
        found = np.array([play(arena, entry, best, seed) for seed in range(trials)])
        middle = np.median(found, axis=0)
        rows[name] = {
            "scale": best,
            "played": middle[0],
            "centre": middle[1],
            "played_each": found[:, 0].tolist(),
            "centre_each": found[:, 1].tolist(),
            "lost": int(np.isinf(found[:, 0]).sum()),
        }
        print(
            f"  {name:24s} scale {_short(best):>14s}   played {middle[0]:10.4g}   centre {middle[1]:10.4g}"
            f"   lost {rows[name]['lost']}/{trials}",
            flush=True,
        )
    return rows


def _short(scale: Any) -> str:
    if scale is None:
        return "-"
    return ", ".join(f"{s:.2g}" for s in scale) if isinstance(scale, tuple) else f"{scale:.2g}"


def draw(results: dict[str, dict[str, dict[str, Any]]], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(3.4 * len(results), 3.8), sharey=True, layout="constrained")
    for ax, (arena, rows) in zip(np.atleast_1d(axes), results.items(), strict=True):
        names = list(rows)[::-1]
        for k, name in enumerate(names):
            row, own = rows[name], name in ("auto", "residual")
            colour = "#D55E00" if name == "auto" else "#0072B2" if own else "#999999"
            for field, offset, mark in (("played", 0.15, "o"), ("centre", -0.15, "|")):
                each = np.array(row[f"{field}_each"])
                each = each[np.isfinite(each)]
                if each.size and np.isfinite(row[field]):
                    low, high = np.quantile(each, [0.25, 0.75])
                    ax.plot([low, high], [k + offset] * 2, color=colour, lw=1.2)
                    ax.plot(row[field], k + offset, mark, color=colour, ms=6 if mark == "o" else 9, mew=2)
            if row["lost"]:
                ax.text(
                    0.99, k / len(names) + 0.06, f"{row['lost']} lost", transform=ax.transAxes, ha="right", fontsize=7
                )
        finite = [v for r in rows.values() for v in (r["played"], r["centre"]) if np.isfinite(v)]
        if min(finite) > 0 and max(finite) > 10 * min(finite):
            ax.set_xscale("log")
        ax.set_yticks(range(len(names)), names)
        ax.set_title(arena)
        ax.set_xlabel("mean cost: ● played, | centre")
        ax.grid(alpha=0.25)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 rounds, 3 trials")
    parser.add_argument("--only", action="append", help="a problem; repeatable")
    parser.add_argument("--out", type=Path, default=Path("out/peers"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the peers' own
    trials, tuning = (3, 1) if options.quick else (9, 2)
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    file = options.out / "peers.json"
    if options.only and file.exists():  # problem by problem
        results = json.loads(file.read_text())
    for name, arena in arenas(options.quick).items():
        if not options.only or name in options.only:
            print(f"{name}: {arena.rounds} rounds, {trials} trials, scales tuned on {tuning} others", flush=True)
            results[name] = compete(arena, trials, tuning)
            file.write_text(json.dumps(results, indent=1) + "\n")
            draw(results, options.out / "peers.png")
    print(f"in {options.out}: peers.json, peers.png")


if __name__ == "__main__":
    main()
