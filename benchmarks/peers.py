"""Other optimisers on drifting systems: one evaluation per time step for everybody, the same budget for each.

Contestants (contestants.py): trimtab's `auto` (nothing tuned), residual feedback, RESZO, HLF-SZO and PBGD; cmaes (CMA,
SepCMA); nevergrad (OnePlusOne, TBPSA, SPSA); Xopt's extremum seeking. Who has a main scale may try 8 settings of it on
4 seeds that are not reported, and keeps the one with the best median of what was played.

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
from pathlib import Path
from typing import Any

import numpy as np
from arenas import arenas
from contestants import contestants
from heats import Heat, Kept
from peers_shown import SCORES, Results, overview, refresh

TRIALS, TUNING = 20, 4
FIRST_TUNING_SEED = 10_000
RESAMPLES, LEVEL = 2000, 0.95
GONE = 1e300  # an infinite cost, with which differences can be taken


def compete(kept: Kept, names: list[str], *, trials: int, tuning: int, jobs: int, quick: bool) -> Results:
    """Everybody in these arenas: tuned on seeds of their own, reported on 0, 1, …"""
    some = {name: arena for name, arena in arenas(quick).items() if name in names}
    settings = {
        name: {c: entry.settings[:: 7 if quick else 1] for c, entry in contestants(arena).items()}
        for name, arena in some.items()
    }

    def scores(what: str, chosen: dict[str, list[tuple[str, Any]]], seeds: range) -> dict[Any, np.ndarray]:
        """(arena, contestant, setting) → played and centre, by seed."""
        heats = [
            Heat(arena, seed, tuple(players), quick)
            for arena, all_players in chosen.items()
            for seed in seeds
            for players in ([all_players] if some[arena].real else [[player] for player in all_players])
            if players
        ]
        random.Random(0).shuffle(heats)  # so that the time which is left can be told from that which went by
        heats.sort(key=lambda heat: ("auto", None) in heat.players)  # what changes most comes last
        found: dict[Any, np.ndarray] = {}
        for real in (False, True):
            these = [heat for heat in heats if some[heat.arena].real == real]
            for heat, of_heat in zip(these, kept.of(these, what, 1 if real else jobs), strict=True):
                for (name, setting), pair in zip(heat.players, of_heat, strict=True):
                    found.setdefault((heat.arena, name, setting), np.empty((len(seeds), 2)))[heat.seed - seeds[0]] = (
                        pair
                    )
        return found

    tried = {
        a: [(c, s) for c, choice in by_name.items() if len(choice) > 1 for s in choice]
        for a, by_name in settings.items()
    }
    tuned = scores("tuning", tried, range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + tuning))

    def best(arena: str, name: str) -> Any:
        choice = settings[arena][name]
        return min(choice, key=lambda s: np.median(tuned[arena, name, s][:, 0])) if len(choice) > 1 else choice[0]

    chosen = {arena: [(name, best(arena, name)) for name in by_name] for arena, by_name in settings.items()}
    found = scores("trials", chosen, range(trials))
    return {
        arena: {name: row(s, found[arena, name, s], found[arena, "auto", None]) for name, s in players}
        for arena, players in chosen.items()
    }


def row(setting: Any, found: np.ndarray, auto: np.ndarray) -> dict[str, Any]:
    """What is told of a contestant in an arena; found and auto: played and centre, by trial."""
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
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    middles = np.sort(np.median(values[drawn], axis=1))
    tail = int((1 - LEVEL) / 2 * RESAMPLES)
    found = {"median": np.median(values), "low": middles[tail], "high": middles[-1 - tail]}
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
    results |= compete(kept, names, trials=trials, tuning=tuning, jobs=options.jobs, quick=options.quick)
    results = {name: results[name] for name in arenas(False) if name in results}
    file.write_text(json.dumps(results, indent=1) + "\n")
    print(overview(results))
    print(f"in {file}; `python docs/draw peers.png` draws docs/results/peers.json")
    if options.page:
        refresh(options.page, results)


if __name__ == "__main__":
    main()
