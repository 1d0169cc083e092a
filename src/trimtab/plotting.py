"""How every picture looks: colours, fonts and sizes in one place, readable on a light page and on a dark one.

The background is transparent, and text and axes have the grey that stands out as well from white as from the dark of
GitHub and of the site (4.3 : 1). Colours are Okabe and Ito's and others that the colour-blind can tell apart, all of
them 2.2 : 1 and more from both; a method keeps its own in every picture.
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
"""Ends the name of a method whose two queries meet the same noise: its own colour, dash-dotted."""

WIDTH = 8.0
"""Inches, of a picture as wide as a page."""
DPI = 130
SANS = "system-ui, sans-serif"
"""Of pictures that a browser draws."""
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
"""For matplotlib: `plt.rcParams.update(STYLE)` in a script, `with style():` in a library."""


class Ink(NamedTuple):
    """The colours of a figure that knows what it stands on."""

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
    """Within it, matplotlib draws as all pictures here look; a decorator, too: `@style()`.

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
    """The figure as .svg and .png."""
    files = [path.with_suffix(suffix) for suffix in (".svg", ".png")]
    for file in files:
        figure.savefig(file, dpi=150)
    return files


def colour_of(name: str) -> str:
    """The colour of a method, in every picture the same.

    >>> colour_of("residual"), colour_of("two-point-common") == colour_of("two-point")
    ('#0072B2', True)
    """
    return METHODS.get(name.removesuffix(COMMON)) or OTHERS[sum(map(ord, name)) % len(OTHERS)]


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: {pip_install('lab')}") from error
    return Figure
