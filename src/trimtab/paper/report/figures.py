"""The four figures of the paper and further ones, as SVG and PNG: safe for the colour-blind, readable in print.

Formulas are plain text, which renders ten times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trimtab.lab import Record
from trimtab.lab.plots import band
from trimtab.lab.sim.simulate import Progress
from trimtab.paper.experiments import ILLUSTRATION, LITERAL, PAPER, Experiment
from trimtab.paper.intervals import value
from trimtab.paper.report.panels import colour_of, idea, keep, legend, panel, regret, variance
from trimtab.paper.result_types import Comparison, ExperimentResult, Map, MethodResult, Number, Results, TheoremRow, Toy
from trimtab.paper.results import NETWORKS, AllRuns, over_zeta, zetas
from trimtab.types import Array, Integers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = dict[str, Record]
Part = Callable[[], "Figure | list[Figure]"]
"""Function that draws one or more panels."""


@dataclass(frozen=True)
class Picture:
    """A figure to be drawn, possibly in another process: the functions that draw its panels, with their data."""

    path: Path
    parts: Sequence[Part]
    suffixes: tuple[str, ...]


class Drawn(NamedTuple):
    """The files of a figure."""

    files: list[Path]

    def save(self, path: Path) -> None:
        """Do nothing: the files are already in place."""


def paint(picture: Picture, progress: Progress | None = None) -> Drawn:
    """Draw the panels of a figure and save them."""
    panels: list[Figure] = []
    for part in picture.parts:
        some = part()
        panels += some if isinstance(some, list) else [some]
    return Drawn(keep(panels, picture.path, picture.suffixes))


def planned_pictures(
    folder: Path, experiments: dict[str, Experiment], runs: AllRuns, results: Results
) -> dict[str, Picture]:
    """All figures by name; in quick mode, as SVG only."""
    own, shared = (
        {id: {name: getattr(both, kind) for name, both in found.items()} for id, found in runs.items()}
        for kind in ("own", "shared")
    )
    suffixes = (".svg",) if results["mode"] == "quick" else (".svg", ".png")
    found = results["experiments"]

    def conventions(id: str) -> list[Part]:
        e = experiments[id]
        return [
            partial(regret, shared[id], e.rounds, f"δ = {e.radius:g} for all methods"),
            partial(regret, own[id], e.rounds, "each method with its own δ"),
        ]

    def spreads(id: str, common: str) -> list[Part]:
        words = ("at each method's own iterate", common)
        kinds = ("variance", "common_variance")
        return [partial(variance, shared[id], kind, where) for kind, where in zip(kinds, words, strict=True)]

    parts: dict[str, list[Part]] = {
        "idea": [partial(idea, results["seed"])],
        "figure-1a": conventions("lqr-r1"),
        "figure-1b": spreads("lqr-r1", "at one point for all: the optimum"),
        "figure-1a-noisy": conventions(LITERAL),
        "figure-1b-noisy": spreads(LITERAL, "at one point for all: the optimum"),
        "figure-2a": [partial(_allocation, own["allocation"])],
        "figure-2b": spreads("allocation", "at one point for all: the offline optimum"),
        "networks": [partial(_networks, results)],
        "lqr-r2": conventions("lqr-r2"),
        "played": [partial(_played, found[id]) for id in ("lqr-r1-t40", "lqr-r2", "allocation")],
        "sensitivity": [partial(_sensitivity, name, results["maps"]) for name in PAPER],
        "limits": [partial(_limits, found)],
        "theorems": [partial(_theorems, results["checks"]["theorems"]["rows"])],
        "toy": [partial(_toy, results["checks"]["toy"])],
    }
    return {name: Picture(folder / name, some, suffixes) for name, some in parts.items()}


def _allocation(records: Records) -> list[Figure]:
    """Figure 2(a): J_t(θ_t), and J_t/ζ_t, free of the drift common to all methods."""
    zeta = zetas(records["still"])
    rounds = records["still"].rounds
    width = max(1, rounds // 100)
    at = np.arange(width, rounds + 1, width)
    figures = []
    for divided in (False, True):
        figure, axis = panel((5.4, 4.6))
        for name, record in records.items():
            if name != "still" or not divided:
                band(axis, at, _means(over_zeta(record, zeta) if divided else record.cost, at, width), record, name)
        if divided:
            uniform, best = (
                float(np.median(v)) for v in (over_zeta(records["still"], zeta), records["still"].optimum / zeta)
            )
            axis.axhline(uniform, color="#666666", ls=":", lw=1.5, label="uniform policy")
            axis.axhline(best, color="#000000", ls="--", lw=1.2, label="offline optimum")
        axis.set(xlabel="episode", ylabel="Jₜ(θₜ)/ζₜ" if divided else "Jₜ(θₜ)", ylim=(0, None))
        axis.set_title(f"network {ILLUSTRATION}: cost" + (", divided by its sensitivity" if divided else ""))
        legend(figure, axis)
        figures.append(figure)
    return figures


def _means(values: Array, at: Integers, width: int) -> Array:
    return np.asarray(values[:, : len(at) * width].reshape(len(values), len(at), width).mean(2))


def _networks(results: Results) -> list[Figure]:
    """Ratios with their intervals, for each network and for all together."""
    ids = [f"network-{one['network']}" for one in results["experiments"]["allocation"]["networks"]]
    places = [*ids, NETWORKS]
    labels = [*(id.replace("-", " ") for id in ids), "all together"]
    rivals = ("one-point", "two-point", "two-point-forward", "still")
    wanted = (
        ("regret of residual feedback, divided by that of …", "residual", "regret", rivals),
        ("played cost, divided by that without tuning", None, "played", ("residual", "auto")),
    )  # fmt: skip
    figures = []
    for title, of, what, names in wanted:
        figure, axis = panel((5.4, 4.6))
        for k, name in enumerate(names):
            a, b = (of, name) if of else (name, "still")
            for n, place in enumerate(places):
                for c in _compared(results, place, what, a, b):
                    y = n + 0.16 * (k - (len(names) - 1) / 2)
                    axis.plot([value(c["low"]), value(c["high"])], [y, y], color=colour_of(name), lw=1.2)
                    label = name if place == NETWORKS else None
                    axis.plot(
                        value(c["ratio"]),
                        y,
                        "D" if place == NETWORKS else "o",
                        color=colour_of(name),
                        ms=5,
                        label=label,
                    )
        axis.axvline(1.0, color="#000000", lw=0.8)
        axis.set_yticks(range(len(places)), labels)
        axis.invert_yaxis()
        axis.set(xscale="log", xlabel="ratio of medians, bootstrap interval")
        axis.set_title(title, fontsize=10)
        legend(figure, axis)
        figures.append(figure)
    return figures


def _compared(results: Results, place: str, what: str, a: str, b: str) -> list[Comparison]:
    key = (place, what, "own", a, b)
    some = results["comparisons"]
    return [c for c in some if (c["experiment"], c["what"], c["convention"], c["a"], c["b"]) == key]


def _played(found: ExperimentResult) -> Figure:
    """Regret at the queries, beside that of the centre."""
    figure, axis = panel((5.4, 4.6))
    names = list(found["methods"])
    for k, name in enumerate(names):
        both = found["methods"][name]
        for one, offset, alpha in ((both["regret"], -0.18, 1.0), (both["played"], 0.18, 0.45)):
            middle, low, high = (value(one[key]) for key in ("median", "low", "high"))
            if np.isfinite(middle):
                axis.barh(k + offset, middle, 0.34, color=colour_of(name), alpha=alpha)
                axis.plot([low, high if np.isfinite(high) else middle], [k + offset] * 2, color="#222222", lw=0.9)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="regret: centre (full), played (light); bootstrap interval")
    axis.set_title(found["title"], fontsize=10)
    return figure


def _sensitivity(name: str, maps: dict[str, Map]) -> Figure:
    """Median regret by δ and η; hatched if a quarter of the trials or more diverge."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    floor = min(np.min(_numbers(table["regret"])) for table in maps.values())
    norm, table = LogNorm(floor, floor * 1e3), maps[name]
    figure, axis = panel((5.4, 3.8))
    x, y = (np.log10(np.array(table[key], dtype=float)) for key in ("steps", "radii"))
    found = np.clip(_numbers(table["regret"]), floor, floor * 1e3)
    mesh = axis.pcolormesh(x, y, found, norm=norm, cmap="viridis_r", shading="nearest", rasterized=True)
    lost = np.array(table["diverged"]) >= table["trials"] / 4
    half = np.array([x[1] - x[0], y[1] - y[0]]) / 2
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    squares = [(x[j], y[i]) + half * corners for i, j in np.argwhere(lost)]
    axis.add_collection(PolyCollection(squares, facecolor="none", edgecolor="#D55E00", hatch="////", lw=0))
    i, j = np.unravel_index(np.argmin(np.where(lost, np.inf, found)), found.shape)
    axis.plot(x[j], y[i], "w*", ms=11, mec="#000000")
    axis.grid(False)
    axis.set(xlabel="log₁₀ of the step η", ylabel="log₁₀ of the radius δ", title=f"{name}, R1")
    figure.colorbar(mesh, ax=axis, label="median regret, T = 50")
    return figure


def _numbers(rows: Sequence[Sequence[Number]]) -> Array:
    return np.array([[np.inf if v is None else float(v) for v in row] for row in rows])


def _limits(experiments: dict[str, ExperimentResult]) -> list[Figure]:
    """Limits of the claims: noise, x₀ redrawn, δ too small."""
    names = (*PAPER, "auto", "still")
    noisy = [id for id in experiments if id.startswith("lqr-r3-sigma-")]
    first, axis = panel((5.4, 4.6))
    for name in names:
        found = [experiments[id]["methods"][name]["regret"] for id in noisy]
        middle, low, high = ([value(one[key]) for one in found] for key in ("median", "low", "high"))
        axis.plot(range(len(noisy)), middle, "o:" if name == "still" else "o-", color=colour_of(name), label=name, ms=4)
        axis.fill_between(range(len(noisy)), low, high, color=colour_of(name), alpha=0.15, lw=0)
    axis.set_xticks(range(len(noisy)), [id.removeprefix("lqr-r3-sigma-") for id in noisy])
    axis.set(
        xlabel="process noise, standard deviation",
        ylabel="median regret, T = 40",
        yscale="log",
        title="noise in the rollouts",
    )
    legend(first, axis)
    second, axis = panel((5.4, 4.6))
    redrawn = experiments["lqr-r3-redrawn"]["methods"]
    for k, (name, one) in enumerate(redrawn.items()):
        spread = one["regret"]
        axis.barh(k, value(spread["median"]), color=colour_of(name), alpha=0.5 if name.endswith("-common") else 0.9)
        axis.plot([value(spread["low"]), value(spread["high"])], [k, k], color="#222222", lw=1)
    axis.set_yticks(range(len(redrawn)), list(redrawn), fontsize=8)
    axis.invert_yaxis()
    axis.set(xlabel="median regret, T = 40, 95 % interval", title="x₀ redrawn in every rollout")
    figures = [first, second]
    for id, title in (("lqr-r1", "δ too small: exact values"), (LITERAL, "δ too small: noise 0.1")):
        figure, axis = panel((5.4, 4.2))
        for name in PAPER:
            radii, best = _by_radius(experiments[id]["methods"][name])
            axis.plot(radii, best, "o-", color=colour_of(name), ms=4, label=name)
        axis.set(xscale="log", yscale="log", xlabel="radius δ, each with its best η", title=title)
        axis.set_ylabel("median regret")
        legend(figure, axis)
        figures.append(figure)
    return figures


def _by_radius(found: MethodResult) -> tuple[list[float], list[float]]:
    """The best median of each radius in the first rung of the search, without settings in which a trial diverged."""
    rows = [row for row in found["tuning"] if not row["diverged"]]
    radii = sorted({value(row["radius"]) for row in rows})
    return radii, [min(value(row["median"]) for row in rows if value(row["radius"]) == r) for r in radii]


def _theorems(rows: list[TheoremRow]) -> Figure:
    """The bound of each theorem against the observed regret."""
    figure, axis = panel((5.4, 4.8))
    marks = dict(zip(dict.fromkeys(row["theorem"] for row in rows), "os^vDP", strict=False))
    for theorem, mark in marks.items():
        some = [row for row in rows if row["theorem"] == theorem]
        axis.loglog([r["mean"] for r in some], [r["bound"] for r in some], mark, ms=6, alpha=0.8, label=theorem)
    ends = np.array([min(r["mean"] for r in rows) / 2, max(r["bound"] for r in rows) * 2])
    axis.plot(ends, ends, ":", color="#444444", lw=1.2, label="bound = observed")
    axis.set(xlabel="observed (mean)", ylabel="bound", title="every point above the line: the bound holds")
    legend(figure, axis)
    return figure


def _toy(toy: Toy) -> Figure:
    """Section 3: second moments at a fixed point."""
    figure, axis = panel()
    for name in ("one-point", "residual"):
        axis.loglog(toy["round"], toy[name], color=colour_of(name), lw=1.8, label=name)
    t = np.array(toy["round"], dtype=float)
    axis.loglog(t, t / 0.01, ":", color="#444444", lw=1, label="t/δ² and 1/δ²")
    axis.loglog(t, np.full_like(t, 100.0), ":", color="#444444", lw=1)
    axis.set(xlabel="round t", ylabel="E ĝₜ²", title="f₀ = x²/2, fₜ = fₜ₋₁ + nₜ, δ = 0.1")
    legend(figure, axis, columns=3)
    return figure
