"""Tables, sentences and a picture of the results of `peers.py`.

`python benchmarks/peers_shown.py RESULTS.json PAGE.md` writes tables and words between the two marks of a page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SCORES = ("played", "centre")
MARKS = ("<!-- what was found: benchmarks/peers_shown.py -->", "<!-- end of what was found -->")

Row = dict[str, Any]
Results = dict[str, dict[str, Row]]

ABOUT = {
    "lqr": "36 gains of a plant that becomes unstable at round 49 unless they follow: a test of survival, 100 rounds.",
    "lqr-zero-mean": "The same plant with zero-mean drift, 300 rounds.",
    "quadratic-d20": "A valley whose minimum and level follow random walks, with noise; 20 dimensions, 500 rounds.",
    "deap-peaks": "DEAP's moving peaks: ten peaks in five bounded dimensions that change every 50 rounds; 500 rounds.",
    "deap-peaks-rare": "The same peaks, changing once in 1000 rounds; 2000 rounds.",
    "allocation": "Resource allocation on a network of 16 agents, with noise; 576 dimensions, 300 rounds.",
    "pendulum": "Three gains from −20 to 20 of a controller that holds Gymnasium's pendulum under changing gravity and "
    "mass; each of the 400 rounds is an episode from a random angle.",
    "zlib-shipper": "Real compression of changing data: level, chunk size and threads; ms per 128 kB, 100 rounds.",
    "queue-server": "A real server under a changing load: batch size and workers; ms per request plus 2 per worker, "
    "60 rounds.",
}
WHEN = {
    "lqr": "a plant is about to become unstable",
    "lqr-zero-mean": "the drift of many gains has zero mean",
    "quadratic-d20": "one smooth valley moves",
    "deap-peaks": "peaks jump every few dozen rounds",
    "deap-peaks-rare": "valleys differ in depth and change rarely (hundreds of rounds apart)",
    "allocation": "there are hundreds of knobs and few rounds",
    "pendulum": "a few gains are far from the best, in wide ranges, measured from random starts",
    "zlib-shipper": "the value is a measured time",
    "queue-server": "there are a few integer knobs and a few dozen rounds",
}


def overview(results: Results) -> str:
    """Return evaluated cost / cost at the centre as a Markdown table, with the number of lost trials."""
    names = list(dict.fromkeys(name for entries in results.values() for name in entries))
    lines = ["| | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]
    for name in names:
        cells = [_cell(entries.get(name), entries) for entries in results.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Row | None, entries: dict[str, Row]) -> str:
    if row is None:
        return ""
    if np.isinf(row["played"]["median"]):
        return f"{row['lost']} of {len(row['played_each'])} lost"
    best = {score: min(each[score]["median"] for each in entries.values()) for score in SCORES}
    words = [f"{row[score]['median']:.3g}" for score in SCORES]
    both = " / ".join(f"**{w}**" if row[s]["median"] == best[s] else w for w, s in zip(words, SCORES, strict=True))
    return both + (f", {row['lost']} lost" if row["lost"] else "")


def details(entries: dict[str, Row]) -> str:
    """Return the table of one arena, with intervals and differences from `auto`."""
    lines = [
        "| | evaluated | centre | evaluated, minus `auto` | centre, minus `auto` | lost | setting |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in entries.items():
        beyond = ["", ""] if name == "auto" else [_interval(row[f"{score}_to_auto"]) for score in SCORES]
        cells = [
            *(_interval(row[score]) for score in SCORES),
            *beyond,
            str(row["lost"] or ""),
            _setting(row),
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _interval(of: dict[str, float]) -> str:
    median, low, high = (f"{of[k]:.3g}".replace("inf", "∞").replace("-", "−") for k in ("median", "low", "high"))
    return median if low == high == median else f"{median} ({low} to {high})"


def _setting(row: Row) -> str:
    setting = row["setting"]
    parts = setting if isinstance(setting, tuple | list) else [] if setting is None else [setting]
    return ", ".join(f"{s:.2g}" for s in parts)


def verdict(arena: str, entries: dict[str, Row]) -> str:
    """State which methods cost less than `auto`, about as much, or more, and which one to use."""
    less, same, more = _sides(entries, "played")
    better, *_ = _sides(entries, "centre")
    words = []
    if less:
        words.append(f"{_names(less)} {_cost(less)} less than `auto`.")
    if same:
        words.append(f"{_names(same)} {_cost(same)} about as much as `auto`.")
    if more:
        words.append(f"All others cost more{' than `auto`' * (not less and not same)}.")
    has = "have" if len(better) > 1 else "has"
    words.append(f"{_names(better)} {has} a better centre than `auto`." if better else "No method has a better centre.")
    if less:
        first = min(less, key=lambda name: entries[name]["played"]["median"])
        words.append(f"**Where {WHEN[arena]}, {'keep the knobs fixed' if first == 'still' else f'use {first}'}.**")
    return " ".join(words)


def _sides(entries: dict[str, Row], score: str) -> tuple[list[str], list[str], list[str]]:
    """Divide the methods by the interval of their difference from `auto`: below 0, around 0, above 0."""
    to = {name: row[f"{score}_to_auto"] for name, row in entries.items() if name != "auto"}
    below = sorted((n for n in to if to[n]["high"] < 0), key=lambda n: entries[n][score]["median"])
    above = [n for n in to if to[n]["low"] > 0]
    return below, [n for n in to if n not in below and n not in above], above


def _cost(names: list[str]) -> str:
    return "cost" if len(names) > 1 else "costs"


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def shown(results: Results) -> str:
    """Return everything between the marks of the page."""
    parts = [overview(results)]
    for arena, entries in results.items():
        parts += [f"### {arena}", ABOUT[arena], verdict(arena, entries), details(entries)]
    return "\n\n".join(parts)


def refresh(page: Path, results: Any, marks: tuple[str, str] = MARKS, shown: Callable[[Any], str] = shown) -> None:
    """Write it between the marks of a page."""
    first, last = marks
    between = re.compile(re.escape(first) + ".*?" + re.escape(last), re.S)
    text = page.read_text(encoding="utf-8")
    if not between.search(text):
        raise SystemExit(f"{page} has no place for the results: write {first} and {last} where they should stand")
    page.write_text(between.sub(lambda _: f"{first}\n\n{shown(results)}\n\n{last}", text), encoding="utf-8")


def _whisker(ax: Any, low: float, high: float, y: float, colour: str) -> None:
    """An interval; without an upper end, an arrow to the edge."""
    if np.isfinite(high):
        ax.plot([low, high], [y, y], color=colour, lw=1.2)
        return
    arrow = {"arrowstyle": "->", "color": colour, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
    ax.plot(low, y, color=colour)  # the axis reaches so far at least
    ax.annotate("", (1.0, y), (low, y), xycoords=ax.get_yaxis_transform(), textcoords="data", arrowprops=arrow)


def draw(results: Results, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from trimtab import plotting

    plt.rcParams.update(plotting.STYLE)

    columns = min(len(results), 2)
    rows = -(-len(results) // columns)
    size = (plotting.WIDTH / 2 * columns, 2.9 * rows)
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
                    _whisker(ax, of["low"], of["high"], k + offset, colour)
                    ax.plot(of["median"], k + offset, mark, color=colour, ms=6 if mark == "o" else 9, mew=2)
            if row["lost"]:
                ax.text(1.01, k, f"{row['lost']} lost", transform=ax.get_yaxis_transform(), va="center", fontsize=7)
        ax.set_yticks(range(len(names)), names)
        ax.set_title(arena)
        ax.set_xlabel("mean cost: ● played, | centre")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    refresh(Path(sys.argv[2]), json.loads(Path(sys.argv[1]).read_text()))
