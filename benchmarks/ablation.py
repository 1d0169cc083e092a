"""What each part of the default method is for: remove one, and see what happens.

Over the cells for choosing of the suite `drift`, one of so many, at the radius of the cell, at four
times and at a quarter of it: the geometric mean of the median regret, at the centre and of what is played, divided by
that of the whole method at the same radius, and the number of diverged trials. Run it with

    python benchmarks/ablation.py [--trials 10] [--every 2] [--jobs 2] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import trimtab as tt
from trimtab import lab
from trimtab.lab.sim.record import quantiles
from trimtab.lab.suites.drift import DRIFT
from trimtab.problems import make
from trimtab.tracker import doubts, fit, following, pace

RADII = (1.0, 4.0, 0.25)
NEVER = 10**9
HOMES = fit, doubts, pace, following


def whole(radius: float) -> tt.Method:
    return tt.auto(radius=radius)


def with_estimator(**changes: object) -> Callable[[float], tt.Method]:
    return lambda radius: replace(tt.auto(radius=radius), estimator=tt.Plane(**changes))


def with_directions(law: object) -> Callable[[float], tt.Method]:
    return lambda radius: replace(tt.auto(radius=radius), directions=law)


@contextmanager
def changed(**constants: float) -> Iterator[None]:
    """The constants, in every file of the method that has them, as long as this lasts."""
    before = [(home, name, getattr(home, name)) for home in HOMES for name in constants if hasattr(home, name)]
    if missing := set(constants) - {name for _, name, _ in before}:
        raise LookupError(f"no file of the method has {', '.join(sorted(missing))}")
    for home, name, _ in before:
        setattr(home, name, constants[name])
    try:
        yield
    finally:
        for home, name, value in before:
            setattr(home, name, value)


PARTS: dict[str, tuple[Callable[[float], tt.Method], dict[str, float]]] = {
    "nothing": (whole, {}),
    "the radius that follows the moves": (whole, {"RATIO": 1e9}),
    "the curvature (Newton's step, the reach, the compensation)": (whole, {"PROOF": 1e30}),
    "widths that waver (the curvature of the opening alone)": (whole, {"WAVER": 0.0}),
    "the reach (probe at most 0.23 of the distance)": (whole, {"REACH": 1e9}),
    "care at a cliff (surprises up larger than down)": (whole, {"EDGE": 0.0, "CLIFFS": 0.0}),
    "care in many dimensions (wider probes, cliffs)": (whole, {"MANY": 1e9, "CLIFFS": 0.0}),
    "the level's gain (0.5 in every round)": (whole, {"HASTE": 0.0}),
    "asking again": (with_estimator(clip=1e9), {}),
    "the whiteness of the pace": (whole, {"WHITENESS": 0.0, "SURE": 0.0}),
    "looks along the course": (whole, {"AHEAD": NEVER}),
    "following an optimum that goes on": (whole, {"DOUBTED": -1e9}),
    "echoes": (with_estimator(every=NEVER, first=NEVER), {}),
    "limits on how fast the width changes": (whole, {"RISE": 1e9, "BEYOND": 1e9, "FALL": 1e-9}),
    "the longest move": (whole, {"LONGEST": 1e9}),
    "orthogonal blocks (independent signs instead)": (with_directions(tt.Rademacher()), {}),
}


def scores(method: Callable[[float], tt.Method], every: int, trials: int) -> dict[float, np.ndarray]:
    """radius → (cells, 3): centre, played, diverged."""
    found: dict[float, list[tuple[float, float, int]]] = {times: [] for times in RADII}
    for place in DRIFT[::every]:
        problem = make(place.problem, **place.parameters)
        for times in RADII:
            record = lab.run(problem, method(times * problem.radius), rounds=place.rounds, trials=trials, seed=17)
            medians = (float(quantiles(record.score(of), (0.5,))[0]) for of in ("centre", "played"))
            found[times].append((*medians, int(record.diverged.sum())))
    return {times: np.array(rows) for times, rows in found.items()}


def without(name: str, every: int, trials: int) -> dict[float, np.ndarray]:
    """The scores of the method without this part; constants are changed in this process alone."""
    method, constants = PARTS[name]
    with changed(**constants):
        return scores(method, every, trials)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--every", type=int, default=2, help="take one of so many cells")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    table, reference = {}, None
    print("| without | at the radius | four times | a quarter |\n|---|---|---|---|")
    work = (delayed(without)(name, options.every, options.trials) for name in PARTS)
    for name, found in zip(PARTS, Parallel(options.jobs, return_as="generator")(work), strict=True):
        reference = reference or found
        row = {}
        for times in RADII:
            ratios = np.minimum(found[times][:, :2], 1e12) / reference[times][:, :2]
            centre, played = np.exp(np.log(np.clip(ratios, 1e-3, 1e3)).mean(0))
            row[times] = (float(centre), float(played), int(found[times][:, 2].sum()))
        table[name] = row
        cells = (f"{c:.2f}/{p:.2f}" + (f" ({d} diverged)" if d else "") for c, p, d in row.values())
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    return 0 if all(math.isfinite(v) for row in table.values() for entry in row.values() for v in entry) else 1


if __name__ == "__main__":
    sys.exit(main())
