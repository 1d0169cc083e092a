"""Other optimisers on drifting systems: one evaluation per time step for everybody, the same budget for each.

Contestants (contestants.py): trimtab's `auto` (nothing tuned), residual feedback, RESZO, HLF-SZO and PBGD; cmaes (CMA,
SepCMA); nevergrad (OnePlusOne, TBPSA, SPSA); Xopt's extremum seeking. Who has a main scale may try 8 settings of it on
4 seeds that are not reported, and keeps the one with the best median of what was played; on real systems, which are
dear, the worse half of everybody's settings is not tried on the next seed.

Arenas (arenas.py): LQR (T = 100), LQR with zero-mean drift, a quadratic with d = 20, DEAP's moving peaks (a change
every 50 rounds, and every 1000), resource allocation; Gymnasium's pendulum under changing gravity and mass; and two
real systems: a queue server under a changing load, and a shipper of compressed data.

Two numbers each, means over the run, medians over 20 trials, with bootstrap intervals (95 %): the cost that was played,
and the cost at the centre, the point that the method would recommend (looked at without being paid for); beside it the
difference to `auto`, trial by trial. Run it with `make peers`, or

    python benchmarks/peers.py [--quick] [--only ARENA] [--again CONTESTANT] [--trials 9] [--tuning 2] [--jobs 2]

What was played is kept in peers-plays.jsonl beside the results and not played again, unless its arena, its setting or
the version of its package is another one. trimtab's own methods are known by their constants, not by their code: after
a change there, say `--again auto`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from arenas import Arena, arenas
from contestants import contestants
from heats import Heat, Kept
from peers_shown import SCORES, Results, overview, refresh

from trimtab.lab.bootstrap import bootstrap

TRIALS, TUNING = 20, 4
FIRST_TUNING_SEED = 10_000
GONE = 1e300  # an infinite cost, with which differences can be taken


Player = tuple[str, Any]
"""A contestant and its setting."""


@dataclass(frozen=True)
class Field:
    """All who compete in an arena."""

    arena: Arena
    kept: Kept
    jobs: int
    quick: bool

    def compete(self, trials: int, tuning: int) -> dict[str, dict[str, Any]]:
        """Everybody tuned on seeds of their own, and reported on 0, 1, …"""
        settings = {name: entry.settings[:: 7 if self.quick else 1] for name, entry in contestants(self.arena).items()}
        players = [(name, setting) for name, choice in settings.items() for setting in choice]
        best = dict(self.tuned([player for player in players if len(settings[player[0]]) > 1], tuning))
        found = self.scores("trials", [(name, best.get(name, settings[name][0])) for name in settings], range(trials))
        return {name: row(setting, of, found["auto", None]) for (name, setting), of in found.items()}

    def tuned(self, players: list[Player], tuning: int) -> list[Player]:
        """Everybody with the setting that paid least; on real systems, in rounds that halve the settings."""
        seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + tuning)
        stages = [seeds[k : k + 1] for k in range(tuning)] if self.arena.real else [seeds]
        paid: dict[Player, list[float]] = {player: [] for player in players}
        for stage in stages:
            for player, found in self.scores("tuning", players, stage).items():
                paid[player] += found[:, 0].tolist()
            ranked = sorted(players, key=lambda player: float(np.median(paid[player])))
            players = []
            for name in dict.fromkeys(name for name, _ in paid):
                own = [player for player in ranked if player[0] == name]
                players += own[: max(2, len(own) // 2)] if stage != stages[-1] else own[:1]
        return players

    def scores(self, what: str, players: list[Player], seeds: range) -> dict[Player, np.ndarray]:
        """Scores of each method, evaluated and at the centre, by seed."""
        groups = [players] if self.arena.real else [[player] for player in players]
        heats = [Heat(self.arena.name, seed, tuple(group), self.quick) for group in groups for seed in seeds]
        random.Random(0).shuffle(heats)  # so that the time which is left can be told from that which went by
        heats.sort(key=lambda heat: ("auto", None) in heat.players)  # what changes most comes last
        found = {player: np.empty((len(seeds), 2)) for player in players}
        for heat, pairs in zip(heats, self.kept.of(heats, f"{self.arena.name}, {what}", self.jobs), strict=True):
            for player, pair in zip(heat.players, pairs, strict=True):
                found[player][heat.seed - seeds[0]] = pair
        return found


def row(setting: Any, found: np.ndarray, auto: np.ndarray) -> dict[str, Any]:
    """Describe the result of a contestant; found and auto: evaluated cost and cost at the centre, by trial."""
    differences = np.minimum(found, GONE) - np.minimum(auto, GONE)
    return {
        "setting": setting,
        "lost": int(np.isinf(found[:, 0]).sum()),
        **{score: interval(found[:, k]) for k, score in enumerate(SCORES)},
        **{f"{score}_to_auto": interval(differences[:, k]) for k, score in enumerate(SCORES)},
        **{f"{score}_each": found[:, k].tolist() for k, score in enumerate(SCORES)},
    }


def interval(values: np.ndarray) -> dict[str, float]:
    """The median, and the middle 95 % of the medians of resampled trials."""
    values = np.clip(values, -GONE, GONE)
    median, *middles = bootstrap(values, lambda drawn: np.median(drawn, axis=1), seed=0)
    middles.sort()
    tail = len(middles) // 40
    found = {"median": median, "low": middles[tail], "high": middles[-1 - tail]}
    return {name: float(v if abs(v) < GONE / 10 else np.sign(v) * np.inf) for name, v in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="20 rounds, 2 trials, 2 settings: to see that everything works"
    )
    parser.add_argument("--only", action="append", choices=[*arenas(False)], help="an arena; repeatable")
    parser.add_argument("--again", action="append", default=[], help="a contestant to be played anew; repeatable")
    parser.add_argument("--fresh", action="store_true", help="play everything anew")
    parser.add_argument("--trials", type=int, default=TRIALS, help="that are reported (default: %(default)s)")
    parser.add_argument("--tuning", type=int, default=TUNING, help="others, to choose settings on (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, for simulated arenas")
    parser.add_argument("--out", type=Path, default=Path("out/peers"))
    parser.add_argument("--page", type=Path, help="whose tables and verdicts are to be those of the results")
    options = parser.parse_args()
    names = options.only or [*arenas(False)]
    if unknown := set(options.again) - set(contestants(arenas(False)["lqr"])):
        parser.error(f"--again: there is no contestant {', '.join(sorted(unknown))}")
    trials, tuning = (2, 1) if options.quick else (options.trials, options.tuning)
    options.out.mkdir(parents=True, exist_ok=True)
    kept = Kept(options.out / "peers-plays.jsonl")
    for name in [None] if options.fresh else options.again:
        kept.forget(name, names)
    file = options.out / "peers.json"
    results: Results = json.loads(file.read_text()) if options.only and file.exists() else {}
    for name, arena in arenas(options.quick).items():
        if name in names:
            field = Field(arena, kept, 1 if arena.real else options.jobs, options.quick)
            results[name] = field.compete(trials, tuning)
    results = {name: results[name] for name in arenas(False) if name in results}
    file.write_text(json.dumps(results, indent=1) + "\n")
    print(overview(results))
    print(f"in {file}; `python docs/draw peers.png` draws docs/results/peers.json")
    if options.page:
        refresh(options.page, results)


if __name__ == "__main__":
    main()
