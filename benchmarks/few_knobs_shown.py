"""Tables of `few_knobs.py`: medians, bootstrap intervals, and means over the arenas relative to `auto`.

`python benchmarks/few_knobs_shown.py RESULTS.json PAGE.md` writes them between the two marks of a page.
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import peers_shown
from few_knobs_arenas import ARENAS, SERVICES, WALLS
from few_knobs_contenders import BASE, STILL

from trimtab.lab.bootstrap import bootstrap, interval

Array = np.ndarray
Results = dict[str, dict[str, list[list[tuple[float, float]]]]]
"""Arena → contender → by trial and direction: excess played, excess of the centre."""
MARKS = ("<!-- figures: benchmarks/few_knobs_shown.py -->", "<!-- end of the figures -->")
SCORES = ("played", "centre")


def medians(found: list[list[tuple[float, float]]]) -> Array:
    """The medians over runs of (played, centre): of all trials, then of each resample of the trials."""
    runs = np.array(found)  # (trials, directions, scores)
    return bootstrap(runs, lambda drawn: np.median(drawn.reshape(len(drawn), -1, 2), axis=1), seed=0)


def relative(results: Results, name: str, arenas: tuple[str, ...]) -> Array:
    """The geometric mean over arenas of medians relative to `auto`, of the same resamples."""
    ratios = [np.log(medians(results[a][name]) / medians(results[a][BASE])) for a in arenas]
    return np.exp(np.mean(ratios, axis=0))


def worse(results: Results, name: str) -> tuple[int, int]:
    """The number of runs that pay more than standing still in the same world, and the number of runs."""
    pairs = [np.array(found[name])[..., 0] > np.array(found[STILL])[..., 0] for found in results.values()]
    return sum(int(pair.sum()) for pair in pairs), sum(pair.size for pair in pairs)


def with_interval(values: Array) -> str:
    """The first of the values, and the middle 95 % of the others."""
    low, high = interval(values[1:])
    return f"{values[0]:.3g} ({low:.3g} to {high:.3g})".replace("-", "−")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def overview(results: Results) -> str:
    """Each contender relative to `auto`, over all arenas, services and walls."""
    groups = {"all": (*SERVICES, *WALLS), "services": SERVICES, "walls": WALLS}
    groups = {group: tuple(a for a in arenas if a in results) for group, arenas in groups.items()}
    groups = {group: arenas for group, arenas in groups.items() if arenas}
    rows = []
    for name in next(iter(results.values())):
        means = [relative(results, name, arenas) for arenas in groups.values()]
        more, runs = worse(results, name)
        rows.append([name, *(with_interval(m[:, k]) for k in range(2) for m in means), f"{more} of {runs}"])
    head = [f"{score}, {group}" for score in SCORES for group in groups]
    return table(["", *head, "worse than still"], rows)


def details(results: Results, score: int) -> str:
    """The median excess in each arena; the least one is bold."""
    found = {arena: {name: medians(runs)[:, score] for name, runs in of.items()} for arena, of in results.items()}
    least = {arena: min(values[0] for values in of.values()) for arena, of in found.items()}
    rows = []
    for name in next(iter(found.values())):
        cells = [(with_interval(of[name]), of[name][0] == least[arena]) for arena, of in found.items()]
        rows.append([name, *(re.sub(r"^\S+", r"**\g<0>**", cell) if best else cell for cell, best in cells)])
    return table(["", *found], rows)


def described() -> str:
    """The arenas."""
    rows = [[a.name, a.about, str(len(a.knobs)), str(a.rounds)] for a in ARENAS.values()]
    return table(["arena", "system", "knobs", "rounds"], rows)


def shown(results: Results) -> str:
    """All tables."""
    trials, directions, _ = np.shape(next(iter(next(iter(results.values())).values())))
    many = f"{trials} worlds" if directions == 1 else f"{trials} worlds, {directions} runs in each"
    parts = [
        described(),
        f"Relative to `auto`, geometric mean over the arenas ({many}):",
        overview(results),
        "Excess played, median over the runs:",
        details(results, 0),
        "Excess of the centre, median over the runs:",
        details(results, 1),
    ]
    return "\n\n".join(parts)


refresh = partial(peers_shown.refresh, marks=MARKS, shown=shown)


if __name__ == "__main__":
    refresh(Path(sys.argv[2]), json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["excess"])
