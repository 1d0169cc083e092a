"""Difficult cases for a method: outliers, other scales, heavy tails, jumps, noise, a wrong radius.

Prints the tables under "Where it is rough" in docs/auto.md and docs/belief.md: the regret at the centre and of what is
played of quadratics whose optimum walks; noise of k times the change that a probe makes at the start, relative to
standing still; a radius that is wrong by four, relative to the one that fits, over the cells for choosing; and how many
trials of LQR diverge.

    python benchmarks/rough.py [--method belief] [--most-knobs 10] [--lanes 40] [--trials 10]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

import trimtab as tt
from trimtab import lab
from trimtab.lab.sim.record import quantiles
from trimtab.lab.suites.drift import DRIFT, sensible_radius
from trimtab.problems import make

SPEED, NOISE, ROUNDS = 0.01, 0.003, 1000
UNUSED = 101, 102, 103  # seeds that nothing was chosen on
Array = np.ndarray
Change = Callable[[int, Array, np.random.Generator], Array]
"""(round, values, random numbers) → what is measured."""

DISTURBANCES: dict[str, tuple[Change, float]] = {
    "a value of 10⁵ too much every 50 rounds": (lambda t, y, rng: y + 1e5 * (t % 50 == 49), 0.0),
    "f × 1000 from round 300 on": (lambda t, y, rng: y * (1000.0 if t >= 300 else 1.0), 0.0),
    "Student's t noise, 1.5 degrees of freedom, scale 0.02": (
        lambda t, y, rng: y + 0.02 * rng.standard_t(1.5, y.shape),
        0.0,
    ),
    "jumps of 10 probes every 100 rounds": (lambda t, y, rng: y, 10.0),
    "jumps of 100 probes every 100 rounds": (lambda t, y, rng: y, 100.0),
}


def regrets(method: str, dim: int, lanes: int, change: Change, jump: float) -> tuple[float, float]:
    """Σ f at the centre and of what is played, medians over lanes."""
    rng, radius = np.random.default_rng(5), sensible_radius(dim)
    start = rng.standard_normal((lanes, dim))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    tuner, best = tt.Tuner(start, tt.methods[method](radius=radius), seed=0), np.zeros((lanes, dim))
    centre = played = np.zeros(lanes)
    for t in range(ROUNDS):
        best = best + SPEED / math.sqrt(dim) * rng.standard_normal(best.shape)
        if jump and t % 100 == 99:
            way = rng.standard_normal(best.shape)
            best = best + jump * radius * math.sqrt(dim) * way / np.linalg.norm(way, axis=1, keepdims=True)
        trial = tuner.ask()
        centre = centre + 0.5 * np.square(tuner.centre - best).sum(1)
        values = 0.5 * np.square(trial.x - best).sum(1)
        played = played + values
        tuner.tell(trial, change(t, values + NOISE * rng.standard_normal(lanes), rng))
    return float(np.median(centre)), float(np.median(played))


def in_noise(method: str, dim: int, times: float, lanes: int, rounds: int = 500) -> tuple[float, float]:
    """Relative to standing still, where the optimum stands still, too."""
    rng, radius = np.random.default_rng(6), sensible_radius(dim)
    tuner = tt.Tuner(np.full((lanes, dim), 1 / math.sqrt(dim)), tt.methods[method](radius=radius), seed=0)
    sigma = times * radius  # ⟨∇f, δu⟩ has the rms δ at a unit's distance
    centre = played = np.zeros(lanes)
    for _ in range(rounds):
        trial = tuner.ask()
        centre = centre + 0.5 * np.square(tuner.centre).sum(1)
        values = 0.5 * np.square(trial.x).sum(1)
        played = played + values
        tuner.tell(trial, values + sigma * rng.standard_normal(lanes))
    return float(np.median(centre)) / (0.5 * rounds), float(np.median(played)) / (0.5 * rounds)


def wrong_radius(method: str, most: int, trials: int) -> dict[float, tuple[float, float, int]]:
    """times → centre and played relative to the radius of the cell, and diverged trials."""
    found: dict[float, list[tuple[float, float, int]]] = {1.0: [], 4.0: [], 0.25: []}
    for place in [p for p in DRIFT if p.parameters.get("dim", 1) <= most and "allocation" not in p.problem][::2]:
        problem = make(place.problem, **place.parameters)
        for times, rows in found.items():
            record = lab.run(
                problem,
                tt.methods[method](radius=times * problem.radius),
                rounds=place.rounds,
                trials=trials,
                seed=17,
            )
            medians = (float(quantiles(record.score(of), (0.5,))[0]) for of in ("centre", "played"))
            rows.append((*medians, int(record.diverged.sum())))
    tables = {times: np.array(rows) for times, rows in found.items()}
    means = {times: np.exp(np.log(rows[:, :2] / tables[1.0][:, :2]).mean(0)) for times, rows in tables.items()}
    return {times: (*map(float, means[times]), int(tables[times][:, 2].sum())) for times in tables}


def diverged(name: str, problem: str, rounds: int, times: float, trials: int, **parameters: object) -> int:
    there = make(problem, **parameters)
    method = tt.methods[name](radius=times * there.radius)
    runs = (lab.run(there, method, rounds=rounds, trials=trials, seed=seed) for seed in UNUSED)
    return sum(int(run.diverged.sum()) for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=list(tt.methods), default="auto")
    parser.add_argument("--most-knobs", type=int, default=100, help="leave out what has more")
    parser.add_argument("--lanes", type=int, default=40)
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    method, lanes = options.method, options.lanes
    dims = [dim for dim in (2, 10, 100) if dim <= options.most_knobs]
    heads = " | ".join(f"d = {dim}" for dim in dims)
    print(f"| centre / played | {heads} |\n|---|{'---|' * len(dims)}")
    for name, (change, jump) in DISTURBANCES.items():
        cells = (" / ".join(f"{v:.3g}" for v in regrets(method, dim, lanes, change, jump)) for dim in dims[:2])
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n| k | {heads} |\n|---|{'---|' * len(dims)}")
    for times in (10.0, 50.0, 200.0):
        cells = (" / ".join(f"{v:.2f}" for v in in_noise(method, dim, times, 3 * lanes)) for dim in dims)
        print(f"| {times:g} | {' | '.join(cells)} |", flush=True)
    print("\nA radius that is wrong, centre / played relative to the one of the cell:")
    for times, (centre, played, lost) in wrong_radius(method, options.most_knobs, options.trials).items():
        print(f"  × {times:g}: {centre:.2f} / {played:.2f}, {lost} diverged", flush=True)
    many = 20 * options.trials
    print(f"\nDiverged of {many * len(UNUSED)} trials:")
    for problem, rounds in (("lqr-v1", 50), ("lqr-zero-mean-v1", 200), ("lqr-noisy-v1", 40)):
        print(f"  {problem} at × 4: {diverged(method, problem, rounds, 4.0, many)}", flush=True)
    print(f"  lqr-noisy-v1, x0 redrawn: {diverged(method, 'lqr-noisy-v1', 40, 1.0, many, redraw=True)}")


if __name__ == "__main__":
    main()
