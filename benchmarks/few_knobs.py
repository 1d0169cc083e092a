"""What the defaults are worth on services with few knobs: excess evaluated cost above the moving optimum.

    python benchmarks/few_knobs.py [--seeds 12] [--first 7000] [--rounds 400]

Seven simulated services drift while they are tuned. "default" is `tt.Tuner(knobs=…)`: probes no wider than the radius,
and a radius of at least one step for knobs with few positions. "wide" is the same method with 5 % of every range as the
radius and probes of up to four times that, "widest=1" the same without the wider probes. All meet the same drift and
noise. "fixed" leaves the knobs at their start.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np

import trimtab as tt

Cost = Callable[[dict[str, np.ndarray], np.ndarray], np.ndarray]  # (setting, phases in units of 2π) → cost


@dataclass(frozen=True)
class Service:
    """Knobs, the cost of a setting at the drifting phases of a round, and the noise of a measurement."""

    knobs: tuple[tt.Knob, ...]
    cost: Cost
    noise: float
    periods: tuple[float, ...]
    grid: int = 40
    """Values of each knob that can be anything, where the optimum is looked for."""

    def optima(self, phases: np.ndarray) -> np.ndarray:
        """The least cost of each round, on a grid of settings."""
        axes = [self.axis(knob) for knob in self.knobs]
        columns = list(zip(*product(*axes), strict=True))
        setting = {knob.name: np.array(column) for knob, column in zip(self.knobs, columns, strict=True)}
        return np.array([self.cost(setting, row).min() for row in phases])

    def axis(self, knob: tt.Knob) -> list[object]:
        if knob.choices or knob.type == "bool":
            return list(knob.choices or (False, True))
        if knob.step:
            return list(np.arange(knob.low, knob.high + knob.step / 2, knob.step))
        spaced = np.geomspace if knob.scale == "log" else np.linspace
        values = spaced(knob.low, knob.high, self.grid)
        return sorted({round(v) for v in values}) if knob.type == "integer" else list(values)


def swing(phase: float, size: float = 1.0) -> float:
    return size * math.sin(2 * math.pi * phase)


def server(s, p):
    """Latency of batches under a load that swings; overload costs dearly."""
    load = 55 * (1 + swing(p[0], 0.45))
    service = s["workers"] * s["batch"] / (0.05 + 0.012 * s["batch"])
    use = np.minimum(load / service, 0.98)
    return 1000 * (0.05 + 0.012 * s["batch"]) / (1 - use) * 0.2 + 400 * s["batch"] / load / 2 * 0.2 + 2 * s["workers"]


def pump(s, p):
    miss = (s["valve"] - 60 - swing(p[0], 15)) / 100, np.log(s["speed"] / (900 * 1.5 ** swing(p[1]))) / math.log(30)
    return 3 + 10 * (miss[0] ** 2 + miss[1] ** 2)


def price(s, p):
    base, cross = 100 * (1 + swing(p[0], 0.3)), 0.3
    best = 6 + swing(p[1], 2)
    first = base * np.exp(-s["basic"] / best) * (1 + cross * s["plus"] / 20)
    second = 0.5 * base * np.exp(-s["plus"] / (1.6 * best))
    return -(first * s["basic"] + second * s["plus"])


def beam(s, p):
    far = [(s[f"q{k}"] - swing(p[k % 2] + 0.2 * k, 0.6)) ** 2 for k in range(4)]
    return 1 - np.exp(-sum(far) / 1.2)


def cache(s, p):
    """Hit rate against memory and staleness; which policy is best depends on the traffic."""
    scan = 0.5 + swing(p[0], 0.5)
    bonus = np.where(
        np.array(s["policy"]) == "lru", 0.25 * (1 - scan), np.where(np.array(s["policy"]) == "lfu", 0.2 * scan, 0.1)
    )
    hits = (
        0.7 * (1 - np.exp(-np.asarray(s["size"], float) / 6))
        + bonus
        + 0.05 * np.array(s["prefetch"]) * np.sign(0.5 - scan)
    )
    stale = 0.15 * np.log(s["ttl"] / (60 * 2 ** swing(p[1]))) ** 2 / 4
    return 100 * (1 - hits) + 1.5 * s["size"] + 100 * stale


def compress(s, p):
    redundancy = 0.55 + swing(p[0], 0.4)
    ratio = 1 - redundancy * (1 - np.exp(-s["level"] / 2.5))
    cpu = 2.5 * 1.32 ** s["level"] / s["threads"] ** 0.8
    return 40 * ratio + cpu + 1.2 * s["threads"] * (1 + swing(p[1], 0.5))


def heating(s, p):
    best = 35 - swing(p[0], 8)
    return (
        2
        + 0.02 * (s["flow"] - best) ** 2
        + 6 * (s["stage"] / 3 - 0.5 - swing(p[1], 0.35)) ** 2
        + 0.3 * (s["stage"] != 0)
    )


SERVICES = {
    "server": Service(
        (
            tt.Knob("batch", 1, 256, 8, type="integer", scale="log"),
            tt.Knob("workers", 1, 32, 16, type="integer"),
        ),
        server,
        4.0,
        (300,),
    ),
    "pump": Service(
        (tt.Knob("valve", 0, 100, 20), tt.Knob("speed", 100, 3000, 200, scale="log")),
        pump,
        0.05,
        (500, 350),
    ),
    "price": Service(
        (tt.Knob("basic", 1, 20, 3), tt.Knob("plus", 1, 40, 10)),
        price,
        5.0,
        (250, 400),
    ),
    "beam": Service(tuple(tt.Knob(f"q{k}", -2, 2, 1.0) for k in range(4)), beam, 0.01, (400, 600), grid=9),
    "cache": Service(
        (
            tt.Knob("size", 1, 16, 2, type="integer"),
            tt.Knob("ttl", 1, 3600, 600, scale="log"),
            tt.Knob("policy", choices=["lru", "lfu", "fifo"], start="fifo", type="choice"),
            tt.Knob("prefetch", type="bool", start=False),
        ),
        cache,
        1.0,
        (600, 350),
    ),
    "compress": Service(
        (
            tt.Knob("level", 1, 9, 8, type="integer"),
            tt.Knob("threads", 1, 4, 3, type="integer"),
        ),
        compress,
        0.5,
        (300, 450),
    ),
    "heating": Service(
        (tt.Knob("flow", 20, 55, 50), tt.Knob("stage", 0, 3, 3, step=1)),
        heating,
        0.2,
        (400, 550),
    ),
}


def excess(name: str, seed: int, rounds: int, variant: str) -> float:
    """The mean excess of what was measured, without its noise, above the optimum of the round."""
    service, rng = SERVICES[name], np.random.default_rng([seed, 1])
    phases = np.arange(rounds)[:, None] / np.array(service.periods) + rng.random(len(service.periods))
    noise = service.noise * rng.standard_normal(rounds)
    tuner = None if variant == "fixed" else VARIANTS[variant](service.knobs, seed)
    start, paid = {knob.name: knob.start for knob in service.knobs}, []
    for t in range(rounds):
        trial = tuner and tuner.ask()
        paid.append(float(service.cost(trial.knobs if trial else start, phases[t])))
        if tuner:
            tuner.tell(trial, paid[-1] + noise[t])
    return float(np.mean(paid) - service.optima(phases).mean())


VARIANTS: dict[str, Callable[[tuple[tt.Knob, ...], int], tt.Tuner]] = {
    "wide": lambda knobs, seed: tt.Tuner(knobs=knobs, method=tt.auto(radius=0.05), seed=seed),
    "widest=1": lambda knobs, seed: tt.Tuner(knobs=knobs, method=tt.auto(radius=0.05, widest=1), seed=seed),
    "default": lambda knobs, seed: tt.Tuner(knobs=knobs, seed=seed),
}


def one(task: tuple[str, int, int, str]) -> float:
    return excess(*task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=7000)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--variants", nargs="+", default=["fixed", *VARIANTS])
    options = parser.parse_args()
    tasks = [
        (name, options.first + n, options.rounds, variant)
        for name in SERVICES
        for variant in options.variants
        for n in range(options.seeds)
    ]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(tasks, pool.map(one, tasks, chunksize=2), strict=True))
    print("service   " + "".join(f"{v:>10}" for v in options.variants))
    logs = {v: [] for v in options.variants}
    for name in SERVICES:
        medians = {
            v: np.median([found[name, options.first + n, options.rounds, v] for n in range(options.seeds)])
            for v in options.variants
        }
        print(f"{name:10}" + "".join(f"{m:10.3g}" for m in medians.values()))
        for v in options.variants:
            logs[v].append(np.log(medians[v] / medians["wide"]))
    print("ratio     " + "".join(f"{np.exp(np.mean(logs[v])):10.2f}" for v in options.variants))


if __name__ == "__main__":
    main()
