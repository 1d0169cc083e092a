"""Single panels of figures, which a page arranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trimtab.lab import Record
from trimtab.lab.plots import band
from trimtab.lab.sim.record import quantiles
from trimtab.paper.intervals import written
from trimtab.plotting import BLUE, GREEN, GREY, VERMILION, colour_of, panels
from trimtab.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

SIZE = (5.4, 4.0)


def panel(size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """A figure of one panel."""
    figure, (axis,) = panels(1, size)
    figure.set_layout_engine(None)  # `keep` does the layout three times faster
    return figure, axis


def legend(figure: Figure, axis: Axes, columns: int = 2) -> None:
    """Draw the legend below the panel."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False, fontsize=8)


def keep(figures: list[Figure], path: Path, suffixes: Sequence[str] = (".svg", ".png")) -> list[Path]:
    """Save each panel in each format: `name`, or `name-1`, `name-2`, …."""
    files = []
    for n, figure in enumerate(figures, 1):
        name = path.name if len(figures) == 1 else f"{path.name}-{n}"
        for axis in figure.axes:
            _plain_powers(axis.xaxis)
            _plain_powers(axis.yaxis)
            axis.set_title(
                axis.get_title(), fontsize=axis.title.get_fontsize(), y=1.0
            )  # otherwise it is repositioned for each format
        _lay_out(figure)
        for suffix in suffixes:
            files.append(path.with_name(name + suffix))
            figure.savefig(files[-1], dpi=110)
    return files


def _lay_out(figure: Figure) -> None:
    """Set the margins to fit labels, title and legend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    width, height = figure.bbox.size
    below = sum(legend.get_window_extent(renderer).height for legend in figure.legends)
    needed = Bbox.union([box for axis in figure.axes if (box := axis.get_tightbbox(renderer)) is not None])
    now, pad = figure.subplotpars, 0.06 * figure.dpi
    figure.subplots_adjust(
        left=now.left + (pad - needed.x0) / width,
        right=now.right + (width - pad - needed.x1) / width,
        bottom=now.bottom + (pad + below - needed.y0) / height,
        top=now.top + (height - pad - needed.y1) / height,
    )


def _plain_powers(axis: XAxis | YAxis) -> None:
    """Label powers of ten, and fractions of a single one, in plain text, which renders ten times faster."""
    if axis.get_scale() != "log":
        return
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    if decades < 2:
        subs = (1.0, 2.0, 5.0) if decades > 0.7 else tuple(range(1, 10))
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda x, _: written(x)))


def idea(seed: int) -> list[Figure]:
    """Two rounds of a cost whose level drifts, and both estimates over many such rounds."""
    (first, left), (second, right) = panel(), panel()
    x = np.linspace(-1.6, 1.6, 200)
    low, high = 0.5 * x**2 + 1.0, 0.5 * (x - 0.15) ** 2 + 1.25
    left.plot(x, low, "--", color=GREY, lw=1.5)
    left.plot(x, high, color=VERMILION, lw=1.8)
    places = [(0.55, low), (1.15, high)]
    values = [float(np.interp(p, x, f)) for p, f in places]
    for (p, _), y, label, colour in zip(places, values, ("yₜ₋₁", "yₜ"), (GREY, VERMILION), strict=True):
        left.plot(p, y, "o", color=colour, ms=7)
        left.annotate(label, (p, y), textcoords="offset points", xytext=(8, -12) if p < 1 else (-20, 6), fontsize=11)
    left.annotate("", (1.3, values[1]), (1.3, values[0]), arrowprops={"arrowstyle": "<->", "color": BLUE, "lw": 1.6})
    left.text(1.34, float(np.mean(values)), "residual", color=BLUE, va="center")
    left.annotate("", (1.15, values[1]), (1.15, 0), arrowprops={"arrowstyle": "<->", "color": GREEN, "lw": 1.2})
    left.text(1.11, 0.5, "one-point", color=GREEN, ha="right", va="center")
    left.set(
        xlim=(-1.6, 2.0),
        ylim=(0, 2.4),
        xlabel="knob",
        ylabel="cost",
        title="A cost in two rounds, measured once in each",
    )
    rng = np.random.default_rng(seed)
    u, before, level = rng.standard_normal((2, 40_000, 1)), 0.6, 1.25
    f_old, f_new = (0.5 * (before + 0.1 * u[0]) ** 2 + 1.0, 0.5 * (before - 0.15 + 0.1 * u[1]) ** 2 + level)
    span = (-40.0, 40.0)
    for name, estimate in (
        ("one-point", u[1] / 0.1 * f_new),
        ("residual", u[1] / 0.1 * (f_new - f_old)),
    ):
        right.hist(
            estimate[:, 0], bins=120, range=span, density=True, color=colour_of(name), alpha=0.6,
            label=f"{name}: rms {math.sqrt(np.mean(np.square(estimate))):.3g}",
        )  # fmt: skip
    right.axvline(before - 0.15, color=VERMILION, lw=1, ls="--", label=f"true slope {before - 0.15:.2g}")
    right.set(xlabel="estimate of the slope", yticks=[], title="Estimates of the slope, over many rounds")
    legend(second, right, columns=1)
    return [first, second]


def regret(records: dict[str, Record], rounds: int, title: str) -> Figure:
    """Accumulated regret: medians and quartiles."""
    figure, axis = panel((5.4, 4.6))
    at = np.arange(1, rounds + 1)
    for name, record in records.items():
        band(axis, at, np.maximum(record.regret(), 1e-12), record, name)
    low = min(np.nanmin(quantiles(r.regret()[:, max(1, rounds // 50)], (0.5,))) for r in records.values())
    high = max(_top(r.regret()[:, -1]) for r in records.values())
    axis.set(xlabel="episode", yscale="log", ylim=(low / 3, high * 4), ylabel="accumulated regret", title=title)
    legend(figure, axis)
    return figure


def variance(records: dict[str, Record], kind: str, title: str) -> Figure:
    """Trace of the covariance of the estimates, along the run."""
    figure, axis = panel((5.4, 4.6))
    for name, record in records.items():
        values: Array = getattr(record, kind)
        if values.size and not np.isnan(values).all():
            band(axis, record.variance_rounds, np.maximum(values, 1e-12), record, name)
    axis.set(xlabel="episode", yscale="log", ylabel="variance (trace)", title=title)
    legend(figure, axis)
    return figure


def _top(values: Array) -> float:
    """The upper quartile, or the largest finite number below it."""
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, 0.75)) if finite.size else 1.0


__all__ = ["colour_of", "idea", "keep", "legend", "panel", "regret", "variance"]
