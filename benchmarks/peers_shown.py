"""What `peers.py` has found: as a table, and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SCORES = ("played", "centre")
Results = dict[str, dict[str, dict[str, Any]]]


def table(results: Results) -> str:
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
