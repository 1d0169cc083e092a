"""Style of all figures: colours, fonts and sizes, readable on light and dark pages.

The background is transparent; text and axes are a grey with the same contrast (4.3 : 1) to white and to the dark pages
of GitHub and of the site. Colours are those of Okabe and Ito and others that are safe for the colour-blind, with a
contrast of at least 2.2 : 1 to both. A method has the same colour in every figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trimtab.util.extras import pip_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, AMBER = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PINK, SKY, PURPLE, OLIVE = "#CC79A7", "#56B4E9", "#AA4499", "#A08A00"
GREY = "#7A7A7A"
METHODS = {
    "residual": BLUE,
    "two-point": AMBER,
    "two-point-forward": PINK,
    "one-point": GREEN,
    "auto": VERMILION,
    "high-pass": SKY,
    "hlf-szo": SKY,
    "reszo": PURPLE,
    "pbgd": "#117733",
    "oracle": OLIVE,
    "still": GREY,
}
OTHERS = ("#44AA99", "#A6761D", "#7570B3", PURPLE)
COMMON = "-common"
"""Suffix of a method whose two queries see the same noise: drawn in its usual colour, dash-dotted."""

WIDTH = 8.0
"""Width of a full-page figure in inches."""
DPI = 130
SANS = "system-ui, sans-serif"
"""Font of figures rendered by a browser."""
STYLE: dict[str, object] = {
    "figure.facecolor": "none",
    "figure.dpi": 100,
    "savefig.facecolor": "none",
    "savefig.dpi": DPI,
    "axes.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "figure.titlesize": 10,
    "legend.fontsize": 8,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "trimtab",
}
"""Settings of matplotlib: `plt.rcParams.update(STYLE)` in a script, `with style():` in a library."""


class Ink(NamedTuple):
    """Colours of a figure on a known background."""

    text: str
    grid: str
    points: str
    line: str
    other: str
    band: str


LIGHT = Ink("#24292f", "#e3e6ea", "#767c84", BLUE, VERMILION, "rgba(0, 114, 178, 0.15)")
DARK = Ink("#d7dce2", "#30363d", "#8b949e", SKY, AMBER, "rgba(86, 180, 233, 0.18)")


@contextmanager
def style() -> Iterator[None]:
    """Context manager, and decorator `@style()`, that applies the project's style to matplotlib.

    >>> import matplotlib
    >>> with style():
    ...     matplotlib.rcParams["axes.edgecolor"] == GREY
    True
    """
    _figure_class()
    from matplotlib.style import context

    with context(STYLE):
        yield


def panels(columns: int, size: tuple[float, float], rows: int = 1, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row.

    >>> figure, (left, right) = panels(2, (8, 3))
    """
    figure = _figure_class()(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel())
    for axis in axes:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, path: Path) -> list[Path]:
    """Save the figure as .svg and .png."""
    files = [path.with_suffix(suffix) for suffix in (".svg", ".png")]
    for file in files:
        figure.savefig(file, dpi=150)
    return files


def colour_of(name: str) -> str:
    """The colour of a method, the same in every figure.

    >>> colour_of("residual"), colour_of("two-point-common") == colour_of("two-point")
    ('#0072B2', True)
    """
    return METHODS.get(name.removesuffix(COMMON)) or OTHERS[sum(map(ord, name)) % len(OTHERS)]


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"figures need matplotlib: {pip_install('lab')}") from error
    return Figure
