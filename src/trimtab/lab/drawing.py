"""Pictures of comparisons: colour-blind safe, medians with quartile bands, diverged trials counted in the legend."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trimtab.extras import pip_install
from trimtab.lab.comparing import Comparison
from trimtab.lab.outcomes import SCORES
from trimtab.lab.record import Record, quantiles
from trimtab.lab.standings import Standings
from trimtab.types import Array, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours; a method keeps its own in every picture.
COLOURS = {
    "residual": "#0072B2",
    "two-point": "#E69F00",
    "two-point-forward": "#CC79A7",
    "one-point": "#009E73",
    "auto": "#D55E00",
    "high-pass": "#56B4E9",
    "reszo": "#882255",
    "hlf-szo": "#56B4E9",
    "pbgd": "#117733",
    "still": "#666666",
    "oracle": "#F0E442",
}
OTHERS = ("#000000", "#882255", "#44AA99", "#AA4499")
DASHES = {"still": ":", "two-point": "--", "two-point-forward": "--"}
COMMON = "-common"  # a method whose two queries meet the same noise: its own colour, dash-dotted


def draw_comparison(comparison: Comparison, folder: str | Path) -> list[Path]:
    """regret, played and (where it was resampled) variance, as SVG and PNG files in a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    records = comparison.records
    known = any(not np.isnan(r.optimum).all() for r in records.values())
    files = []
    for of, title in (("centre", "at the centre"), ("played", "of what was played")):
        curves = {name: r.regret(of=of) if known else _running_mean(r, of) for name, r in records.items()}
        label = "accumulated regret" if known else "mean cost so far"
        figure, axis = _figure(comparison, f"{label.capitalize()} {title}")
        for name, values in curves.items():
            band(axis, np.arange(1, values.shape[1] + 1), values, records[name], name)
        axis.set(xlabel="round", ylabel=f"{label}, median and quartiles", yscale=_scale(curves))
        axis.legend(frameon=False)
        files += save(figure, folder / ("regret" if of == "centre" else "played"))
    varying = {name: record for name, record in records.items() if record.variance.any()}
    if varying:
        figure, axis = _figure(comparison, "Variance of the gradient estimate (trace), at each method's own iterate")
        for name, record in varying.items():
            band(axis, record.variance_rounds, record.variance, record, name)
        axis.set(xlabel="round", ylabel="variance, median and quartiles", yscale="log")
        axis.legend(frameon=False)
        files += save(figure, folder / "variance")
    return files


def draw_standings(standings: Standings, folder: str | Path, reference: str = "residual") -> list[Path]:
    """ratios: every cell's median score to that of the reference, by group, at the centre and of what was played."""
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
            x = [min(max(ratio, 0.05), 50.0) for ratio in ratios]
            y = [groups.index(standings.places[n].group) + 0.16 * (k - len(names) / 2) for n in cells]
            axis.scatter(x, y, s=22, lw=0.9, label=name, facecolors="none", edgecolors=colour_of(name))
            mean = standings.mean(name, reference, score)
            axis.plot([mean.value], [len(groups)], "D", color=colour_of(name), ms=6)
        axis.axvline(1.0, color="black", lw=0.8)
        axis.set(xscale="log", xlabel=f"{score}: median / that of {reference} tuned for it (beyond 50: at the edge)")
    axes[0].set_yticks(range(len(groups) + 1), [*groups, "geometric mean"])
    axes[0].invert_yaxis()
    axes[0].legend(frameon=False, ncols=len(names), loc="lower left", bbox_to_anchor=(0.0, 1.0))
    folder.mkdir(parents=True, exist_ok=True)
    return save(figure, folder / "ratios")


def band(axis: Axes, x: Integers | Array, values: Array, record: Record, name: str) -> None:
    """Median line and quartile band over trials; where they are infinite, the line ends."""
    low, middle, high = (np.where(np.isfinite(q), q, np.nan) for q in quantiles(values))
    colour = colour_of(name)
    out = int(record.diverged.sum())
    label = f"{name}: {out} of {record.trials} diverged" if out else name
    dash = "-." if name.endswith(COMMON) else DASHES.get(name, "-")
    axis.plot(x, middle, dash, color=colour, lw=1.8, label=label)
    top = np.where(np.isnan(high) & ~np.isnan(middle), np.nanmax([*high, *middle, 0.0]) * 10, high)
    axis.fill_between(x, low, top, color=colour, alpha=0.18, lw=0)


def colour_of(name: str) -> str:
    """The colour of a method, in every picture the same."""
    return COLOURS.get(name.removesuffix(COMMON)) or OTHERS[sum(map(ord, name)) % len(OTHERS)]


def _running_mean(record: Record, of: str) -> Array:
    return np.asarray(np.cumsum(record.costs(of), axis=1) / np.arange(1, record.rounds + 1))


def _scale(curves: dict[str, Array]) -> str:
    """Logarithmic where the medians lie decades apart."""
    ends = np.array([quantiles(values[:, -1], (0.5,))[0] for values in curves.values()])
    ends = ends[np.isfinite(ends)]
    return "log" if ends.size and (ends > 0).all() and ends.max() > 8 * ends.min() else "linear"


def _figure(comparison: Comparison, title: str) -> tuple[Figure, Axes]:
    figure, (axis,) = panels(1, (7, 4.4))
    any_record = next(iter(comparison.records.values()))
    axis.set_title(f"{title}\n{comparison.problem.id}, {any_record.trials} trials", fontsize=11)
    return figure, axis


def panels(columns: int, size: tuple[float, float], rows: int = 1, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: {pip_install('lab')}") from error
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel())
    for axis in axes:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, path: Path) -> list[Path]:
    """The figure as .svg and .png."""
    files = [path.with_suffix(suffix) for suffix in (".svg", ".png")]
    for file in files:
        figure.savefig(file, dpi=150)
    return files
