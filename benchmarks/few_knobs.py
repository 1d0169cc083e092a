"""Excess cost of methods on eight drifting systems with two to eight knobs.

    python benchmarks/few_knobs.py [--seeds reporting] [--trials 10] [--arenas pump …] [--methods belief …] [--out FILE]

Arenas (few_knobs_arenas.py): six services and two plants with one-sided walls, 300 or 400 rounds each, with a start
far off. Contenders (few_knobs_contenders.py): trimtab's methods, Nelder–Mead, and, if the package cmaes is installed,
SepCMA and CMA. All of a trial meet the same drift and noise; each is played with several seeds of its own directions.

Two scores: the mean excess over the moving optimum, without noise, of every setting that was tried ("played"), and of
the setting that was recommended in each round ("centre"). Choose constants on the seeds "choosing"; "reporting" is for
figures in the documentation, and "reserve" has not been used for anything.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from few_knobs_arenas import ARENAS, World
from few_knobs_contenders import BASE, STILL, contenders
from few_knobs_shown import Results, refresh, shown
from rich.console import Console
from rich.progress import track

SEEDS = {"choosing": range(100, 200), "reporting": range(500, 520), "reserve": range(600, 620)}
APART = 10_000  # between the seeds of a contender on one world


@dataclass(frozen=True)
class Trial:
    """A world, all who play in it, and how often."""

    arena: str
    seed: int
    methods: tuple[str, ...]
    directions: int = 1
    rounds: int | None = None

    def play(self) -> dict[str, list[tuple[float, float]]]:
        """Each contender's mean excess, played and centre, one pair for each seed of its directions."""
        world = World(ARENAS[self.arena], self.seed, self.rounds)
        own = [self.seed + APART * k for k in range(self.directions)]
        return {name: [excess(world, name, seed) for seed in own] for name in self.methods}


def excess(world: World, name: str, seed: int) -> tuple[float, float]:
    """The mean excess over the moving optimum of the settings that were played, and of the centres."""
    contender = contenders()[name](world.arena, seed)
    played, centres = [], []
    for t in range(world.rounds):
        centres.append(contender.centre)
        played.append(contender.ask())
        contender.tell(world.measure(t, played[-1]))
    optimum = world.optima.mean()
    means = [world.costs(np.array(settings)).mean() - optimum for settings in (played, centres)]
    return float(f"{means[0]:.6g}"), float(f"{means[1]:.6g}")


def compete(trials: list[Trial], jobs: int) -> Results:
    """Arena → contender → pairs by trial and direction."""
    found: Results = {}
    with ProcessPoolExecutor(jobs) as pool:
        plays = pool.map(Trial.play, trials)
        bar = track(zip(trials, plays, strict=True), "playing", len(trials), console=Console(stderr=True))
        for trial, scores in bar:
            for name, pairs in scores.items():
                found.setdefault(trial.arena, {}).setdefault(name, []).append(pairs)
    return found


def main() -> None:
    known = contenders()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=[*SEEDS], default="choosing", help="the worlds to play in")
    parser.add_argument("--trials", type=int, default=10, help="the number of worlds for each arena")
    parser.add_argument("--directions", type=int, default=2, help="runs of each contender in each world")
    parser.add_argument("--arenas", nargs="+", choices=[*ARENAS], default=[*ARENAS])
    parser.add_argument("--methods", nargs="+", choices=[*known], default=[*known], help=f"beside {STILL} and {BASE}")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    parser.add_argument("--page", type=Path, help="a page whose tables are to be replaced")
    options = parser.parse_args()
    methods = tuple(name for name in known if name in (STILL, BASE, *options.methods))
    seeds = SEEDS[options.seeds][: options.trials]
    if len(seeds) < options.trials:
        parser.error(f"--trials {options.trials}: there are only {len(seeds)} seeds for {options.seeds}")
    trials = [Trial(arena, seed, methods, options.directions) for arena in options.arenas for seed in seeds]
    results = compete(trials, options.jobs)
    print(shown(results))
    if options.out:
        options.out.write_text(json.dumps({"seeds": options.seeds, "excess": results}) + "\n", encoding="utf-8")
    if options.page:
        refresh(options.page, results)


if __name__ == "__main__":
    main()
