"""Pictures of comparisons: colour-blind safe, medians with quartile bands, diverged trials counted in the legend."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trimtab.lab.comparison import Comparison
from trimtab.lab.sim.record import Record, quantiles
from trimtab.lab.suites.ratios import SuiteResult
from trimtab.lab.suites.scores import SCORES
from trimtab.plotting import COMMON, GREY, colour_of, panels, save, style
from trimtab.types import Array, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.8  # height of a group's points, relative to the distance between groups
EDGES = 0.05, 50.0  # ratios beyond are drawn at the edge
DASHES = {"still": ":", "two-point": "--", "two-point-forward": "--"}


@style()
def draw_comparison(comparison: Comparison, folder: str | Path) -> list[Path]:
    """Draw regret, evaluated cost ("played") and, if resampled, variance, as SVG and PNG files in a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    records = comparison.records
    known = any(not np.isnan(r.optimum).all() for r in records.values())
    files = []
    for of, title in (("centre", "at the centre"), ("played", "at the queries")):
        curves = {name: r.regret(of=of) if known else _running_mean(r, of) for name, r in records.items()}
        label = "accumulated regret" if known else "mean cost so far"
        figure, axis = _figure(comparison, f"{label.capitalize()} {title}")
        for name, values in curves.items():
            band(axis, np.arange(1, values.shape[1] + 1), values, records[name], name)
        axis.set(xlabel="round", ylabel=f"{label}, median and quartiles", yscale=_scale(curves))
        axis.legend()
        files += save(figure, folder / ("regret" if of == "centre" else "played"))
    varying = {name: record for name, record in records.items() if record.variance.any()}
    if varying:
        figure, axis = _figure(comparison, "Variance of the gradient estimate (trace), at each method's own iterate")
        for name, record in varying.items():
            band(axis, record.variance_rounds, record.variance, record, name)
        axis.set(xlabel="round", ylabel="variance, median and quartiles", yscale="log")
        axis.legend()
        files += save(figure, folder / "variance")
    return files


@style()
def draw_standings(standings: SuiteResult, folder: str | Path, reference: str | None = None) -> list[Path]:
    """Draw "ratios": the median scores of all cells relative to the reference, by group and for both scores."""
    reference = reference or {"context": "belief", "limits": "still"}.get(standings.suite, "residual")
    if reference not in standings.methods:
        return []
    folder = Path(folder)
    groups = standings.groups
    figure, axes = panels(2, (13, 2 + 0.35 * len(groups)), sharey=True)
    names = [name for name in standings.methods if name != reference]
    for axis, score in zip(axes, SCORES, strict=True):
        for k, name in enumerate(names):
            cells = standings.cells(name, reference)
            ratios = [standings.ratio(n, name, reference, score) for n in cells]
            x = np.clip(ratios, *EDGES)
            y = [groups.index(standings.places[n].group) + ROW / len(names) * (k - (len(names) - 1) / 2) for n in cells]
            axis.scatter(x, y, s=22, lw=0.9, label=name, facecolors="none", edgecolors=colour_of(name))
            mean = standings.mean(name, reference, score)
            axis.plot(np.clip([mean.value], *EDGES), [len(groups)], "D", color=colour_of(name), ms=6)
        axis.axvline(1.0, color=GREY, lw=0.8)
        edges = "below {:g} or above {:g}: at the edge".format(*EDGES)
        axis.set(xscale="log", xlabel=f"{score}: median / that of {reference} tuned for it ({edges})")
    axes[0].set_yticks(range(len(groups) + 1), [*groups, "geometric mean"])
    axes[0].invert_yaxis()
    axes[0].legend(ncols=len(names), loc="lower left", bbox_to_anchor=(0.0, 1.0))
    folder.mkdir(parents=True, exist_ok=True)
    return save(figure, folder / "ratios")


def band(axis: Axes, x: Integers | Array, values: Array, record: Record, name: str) -> None:
    """Draw the median over trials and a quartile band; the line ends where they become infinite."""
    low, middle, high = (np.where(np.isfinite(q), q, np.nan) for q in quantiles(values))
    colour = colour_of(name)
    out = int(record.diverged.sum())
    label = f"{name}: {out} of {record.trials} diverged" if out else name
    dash = "-." if name.endswith(COMMON) else DASHES.get(name, "-")
    axis.plot(x, middle, dash, color=colour, lw=1.8, label=label)
    top = np.where(np.isnan(high) & ~np.isnan(middle), np.nanmax([*high, *middle, 0.0]) * 10, high)
    axis.fill_between(x, low, top, color=colour, alpha=0.18, lw=0)


def _running_mean(record: Record, of: str) -> Array:
    return np.asarray(np.cumsum(record.costs(of), axis=1) / np.arange(1, record.rounds + 1))


def _scale(curves: dict[str, Array]) -> str:
    """Choose a logarithmic scale if the final medians differ widely."""
    ends = np.array([quantiles(values[:, -1], (0.5,))[0] for values in curves.values()])
    ends = ends[np.isfinite(ends)]
    return "log" if ends.size and (ends > 0).all() and ends.max() > 8 * ends.min() else "linear"


def _figure(comparison: Comparison, title: str) -> tuple[Figure, Axes]:
    figure, (axis,) = panels(1, (7, 4.4))
    any_record = next(iter(comparison.records.values()))
    axis.set_title(f"{title}\n{comparison.problem.id}, {any_record.trials} trials")
    return figure, axis
