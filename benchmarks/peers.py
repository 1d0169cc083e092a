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

    python benchmarks/peers.py [--quick] [--only ARENA] [--without CONTESTANT] [--jobs 2] [--out out/peers]
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

TRIALS, TUNING = 20, 4
FIRST_TUNING_SEED = 10_000
LOST = 1e6  # a cost beyond this many times that at the start counts as lost
RESAMPLES, LEVEL = 2000, 0.95
SCORES = ("played", "centre")


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


def table(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Played / centre, in Markdown; where trials were lost, how many."""
    names = list(dict.fromkeys(name for entries in results.values() for name in entries))
    lines = ["| | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]
    for name in names:
        cells = [_cell(entries.get(name), entries) for entries in results.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: dict[str, Any] | None, entries: dict[str, dict[str, Any]]) -> str:
    if row is None:
        return ""
    if row["lost"]:
        return f"{row['lost']} of {len(row['played_each'])} lost"
    best = {score: min(each[score]["median"] for each in entries.values()) for score in SCORES}
    words = [f"{row[score]['median']:.3g}" for score in SCORES]
    return " / ".join(f"**{w}**" if row[s]["median"] == best[s] else w for w, s in zip(words, SCORES, strict=True))


def draw(results: dict[str, dict[str, dict[str, Any]]], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from trimtab import plotting

    plt.rcParams.update(plotting.STYLE)

    columns = min(len(results), 5)
    rows = -(-len(results) // columns)
    size = (3.4 * columns, 3.8 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.ravel()[len(results) :]:
        ax.set_axis_off()
    for ax, (arena, entries) in zip(axes.ravel(), results.items(), strict=False):
        names = list(entries)[::-1]
        for k, name in enumerate(names):
            row = entries[name]
            colour = plotting.GREY if " " in name or name == "still" else plotting.colour_of(name)
            for score, offset, mark in (("played", 0.15, "o"), ("centre", -0.15, "|")):
                of = row[score]
                if np.isfinite(of["median"]):
                    ends = [v if np.isfinite(v) else of["median"] for v in (of["low"], of["high"])]
                    ax.plot(ends, [k + offset] * 2, color=colour, lw=1.2)
                    ax.plot(of["median"], k + offset, mark, color=colour, ms=6 if mark == "o" else 9, mew=2)
            if row["lost"]:
                ax.text(0.99, k, f"{row['lost']} lost", transform=ax.get_yaxis_transform(), ha="right", fontsize=7)
        finite = [v for r in entries.values() for v in (r["played"]["median"], r["centre"]["median"]) if np.isfinite(v)]
        if finite and min(finite) > 0 and max(finite) > 10 * min(finite):
            ax.set_xscale("log")
        ax.set_yticks(range(len(names)), names)
        ax.set_title(arena)
        ax.set_xlabel("mean cost: ● played, | centre")
    figure.savefig(file, dpi=110)


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
