"""Other optimisers on drifting systems: one evaluation per time step for everybody, the same budget for each.

Contestants (contestants.py): trimtab's `auto` (nothing tuned), residual feedback and, where they are registered, RESZO,
HLF-SZO and PBGD; cmaes (CMA, SepCMA); nevergrad (OnePlusOne, TBPSA, SPSA); Xopt's extremum seeking. PyNOL's bandit
learners are not among them: it could not be installed. Who has a main scale may try 8 settings of it on 4 seeds that
are not reported, and keeps the one with the best median of what was played.

Arenas (arenas.py): LQR (T = 100), LQR with zero-mean drift, a quadratic with d = 20, DEAP's moving peaks (a change
every 50 rounds, and every 1000), resource allocation; Gymnasium's pendulum under changing gravity and mass; and two
real systems: a queue server under a changing load, and a shipper of compressed data.

Two numbers each, means over the run, medians over 20 trials, with bootstrap intervals (95 %): the cost that was played,
and the cost at the centre, the point that the method would recommend (looked at without being paid for); beside it the
difference to `auto`, trial by trial. Run it with `make peers`, or

    python benchmarks/peers.py [--quick] [--only ARENA] [--without CONTESTANT] [--trials 9] [--tuning 2] [--jobs 2]
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from arenas import Arena, arenas
from contestants import Entry, contestants
from joblib import Parallel, delayed
from peers_shown import SCORES, table

TRIALS, TUNING = 20, 4
FIRST_TUNING_SEED = 10_000
LOST = 1e6  # a cost beyond this many times that at the start counts as lost
RESAMPLES, LEVEL = 2000, 0.95


def play(arena: Arena, entry: Entry, setting: Any, seed: int) -> tuple[float, float]:
    """Mean cost played, mean cost at the centre; infinite if it is lost on the way."""
    warnings.simplefilter("ignore")  # the peers' own
    system = arena.build(seed)
    try:
        player = entry[1](system.start, setting, arena, seed)
        every = max(1, arena.rounds // arena.looks)
        limit = LOST * (1 + abs(system.cost(0, system.start)))
        played, centres = [], []
        for t in range(arena.rounds):
            if t % every == 0:
                centres.append(system.cost(t, np.asarray(player.centre, dtype=float)))
            y = system.measure(t, player.ask())
            if not (abs(y) <= limit and abs(centres[-1]) <= limit):
                return np.inf, np.inf
            player.tell(y)
            played.append(y)
        return float(np.mean(played)), float(np.mean(centres))
    finally:
        system.close()


def play_by_name(quick: bool, arena: str, name: str, setting: Any, seed: int) -> tuple[float, float]:
    """The same, of names that another process understands."""
    there = arenas(quick)[arena]
    return play(there, contestants(there)[name], setting, seed)


def compete(arena: Arena, names: list[str], *, trials: int, tuning: int, jobs: int, quick: bool) -> dict[str, Any]:
    """Every contestant: tuned on seeds of their own, reported on 0, 1, …"""
    entries = contestants(arena)
    crew = Parallel(n_jobs=1 if arena.real else jobs)

    def plays(name: str, pairs: list[tuple[Any, int]]) -> np.ndarray:
        work = (delayed(play_by_name)(quick, arena.name, name, setting, seed) for setting, seed in pairs)
        return np.array(crew(work)).reshape(len(pairs), 2)

    rows: dict[str, Any] = {}
    for name in names:
        settings = entries[name][0][:: 7 if quick else 1]
        best = settings[0]
        if len(settings) > 1:
            pairs = [(s, FIRST_TUNING_SEED + k) for s in settings for k in range(tuning)]
            scores = np.median(plays(name, pairs)[:, 0].reshape(len(settings), tuning), axis=1)
            best = settings[int(np.argmin(scores))]
        found = plays(name, [(best, seed) for seed in range(trials)])
        rows[name] = {
            "setting": best,
            "lost": int(np.isinf(found[:, 0]).sum()),
            **{score: interval(found[:, k]) for k, score in enumerate(SCORES)},
            **{f"{score}_each": found[:, k].tolist() for k, score in enumerate(SCORES)},
        }
        for k, score in enumerate(SCORES):
            if "auto" in rows:
                with np.errstate(invalid="ignore"):
                    difference = found[:, k] - np.array(rows["auto"][f"{score}_each"])
                rows[name][f"{score}_to_auto"] = interval(np.nan_to_num(difference, nan=0.0, posinf=np.inf))
        print(f"  {name:24s} {_line(rows[name], trials)}", flush=True)
    return rows


def interval(values: np.ndarray) -> dict[str, float]:
    """The median, and the middle 95 % of the medians of resampled trials."""
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    middles = np.sort(np.median(values[drawn], axis=1))
    tail = int((1 - LEVEL) / 2 * RESAMPLES)
    return {"median": float(np.median(values)), "low": float(middles[tail]), "high": float(middles[-1 - tail])}


def _line(row: dict[str, Any], trials: int) -> str:
    words = [f"{score} {_number(row[score])}" for score in SCORES]
    if "played_to_auto" in row:
        to = row["played_to_auto"]
        words.append(
            "pays less than auto" if to["high"] < 0 else "pays more" if to["low"] > 0 else "pays about the same"
        )
    return "   ".join([*words, f"lost {row['lost']}/{trials}", f"setting {_short(row['setting'])}"])


def _number(of: dict[str, float]) -> str:
    return f"{of['median']:.4g} ({of['low']:.4g} to {of['high']:.4g})"


def _short(setting: Any) -> str:
    if setting is None:
        return "-"
    return ", ".join(f"{s:.2g}" for s in setting) if isinstance(setting, tuple | list) else f"{setting:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="20 rounds, 2 trials, 2 settings: to see that everything works"
    )
    parser.add_argument("--only", action="append", help="an arena; repeatable")
    parser.add_argument("--without", action="append", default=[], help="a contestant to leave out; repeatable")
    parser.add_argument("--trials", type=int, default=TRIALS, help="that are reported (default: %(default)s)")
    parser.add_argument("--tuning", type=int, default=TUNING, help="others, to choose settings on (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, for simulated arenas")
    parser.add_argument("--out", type=Path, default=Path("out/peers"))
    options = parser.parse_args()
    trials, tuning = (2, 1) if options.quick else (options.trials, options.tuning)
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    file = options.out / "peers.json"
    if options.only and file.exists():  # arena by arena
        results = json.loads(file.read_text())
    for name, arena in arenas(options.quick).items():
        if not options.only or name in options.only:
            names = [n for n in contestants(arena) if n not in options.without]
            print(f"{name}: {arena.rounds} rounds, {trials} trials, settings tuned on {tuning} others", flush=True)
            some = {"trials": trials, "tuning": tuning, "jobs": options.jobs, "quick": options.quick}
            results[name] = compete(arena, names, **some)
            file.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    print(f"in {file}; `make pictures` draws docs/results/peers.json")


if __name__ == "__main__":
    main()
