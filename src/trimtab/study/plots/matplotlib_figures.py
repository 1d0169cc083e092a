"""Figure of a study with Matplotlib: values, every knob in its range, moves, and rounds without a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trimtab.plotting import BLUE, GREY, VERMILION, WIDTH, style
from trimtab.spec.knob_encoding import Knob, level
from trimtab.store.tables import ROUNDS, Event
from trimtab.study.study import Study
from trimtab.types import Array
from trimtab.util.files import writing
from trimtab.util.text import clean


@style()
def draw_study(study: Study, path: str | Path) -> None:
    """Save the figure; the file extension determines the format."""
    from matplotlib.figure import Figure

    events = list(study.events())
    knobs = study.knobs.all
    figure = Figure(figsize=(WIDTH, 2.2 + 1.5 * (len(knobs) + 1)), layout="constrained")
    axes = figure.subplots(len(knobs) + 2, 1, sharex=True, height_ratios=[1.6, *[1.0] * len(knobs), 0.7])
    _draw_values(axes[0], events, study)
    for k, knob in enumerate(knobs):
        _draw_knob(axes[k + 1], events, k, knob)
    _draw_moves(axes[-1], events, knobs)
    for axis in axes:
        for event in events:
            if event.kind in ("undo", "reset", "import", "set", "setup"):
                axis.axvline(event.seq, color=GREY, ls="--", lw=1)
                if axis is axes[0]:
                    axis.annotate(
                        event.kind, (event.seq, 1), xycoords=("data", "axes fraction"), fontsize=8, color=GREY
                    )
    axes[-1].set_xlabel(f"event ({study.counted})")
    try:
        with writing(path):
            figure.savefig(path)
    except ValueError as error:
        raise ValueError(f"{path} cannot be drawn: {error}") from None


def _draw_values(axis: Any, events: list[Event], study: Study) -> None:
    told = [(e.seq, e.value) for e in events if e.value is not None and e.kind != "baseline"]
    baseline = [(e.seq, e.value) for e in events if e.value is not None and e.kind == "baseline"]
    missed = [e.seq for e in events if e.kind in ROUNDS and e.value is None]
    if told:
        x, y = np.array(told).T
        axis.plot(x, y, ".", ms=2.5, color=GREY, alpha=0.6, label="measured")
        axis.plot(x, smooth(y), color=BLUE, lw=1.6, label="running mean")
    if baseline:
        axis.plot(*np.array(baseline).T, "x", ms=4, color=VERMILION, label="baseline")
    if missed:
        at = axis.get_xaxis_transform()
        axis.plot(missed, [0.02] * len(missed), "|", color=VERMILION, ms=9, transform=at, label="no value")
    if told or missed or baseline:
        axis.legend(ncols=2)
    goal = "maximise" if study.setup.maximise else "minimise"
    axis.set(ylabel=f"value ({goal})", title=f"{study.name} {study.saving.sentence}")


def _draw_knob(axis: Any, events: list[Event], k: int, knob: Knob) -> None:
    asked = [(e.seq, level(knob, e.query[k])) for e in events if e.query is not None]
    if asked:
        axis.plot(*np.array(asked).T, ".", ms=2, color=GREY, alpha=0.4)
    axis.plot([e.seq for e in events], [level(knob, e.centre[k]) for e in events], color=BLUE, lw=1.6)
    low, high = span(knob)
    room = 0.02 * (high - low)
    limits = (low, high) if knob.scale == "log" else (low - room, high + room)
    unit = f" ({knob.unit})" if knob.unit else ""
    axis.set(ylabel=f"{knob.name}{unit}", ylim=limits, yscale=knob.scale)
    if knob.choices is not None:
        axis.set_yticks(range(len(knob.choices)), [clean(str(choice), 20) for choice in knob.choices])


def _draw_moves(axis: Any, events: list[Event], knobs: tuple[Knob, ...]) -> None:
    numbers = [k for k, knob in enumerate(knobs) if knob.choices is None]  # for a choice only the likeliest is stored
    centres = np.array([[knobs[k].share(e.centre[k]) for k in numbers] for e in events])
    x = np.array([e.seq for e in events])
    steps = np.maximum(np.diff(x), 1)  # between thinned events, a move is the mean of several
    axis.vlines(x[1:], 0, np.linalg.norm(np.diff(centres, axis=0), axis=1) / steps * 100, color=BLUE, lw=0.6)
    axis.set(ylabel="move (%)")
    axis.set_ylim(bottom=0)


def span(knob: Knob) -> tuple[float, float]:
    """Return the range as numbers, widened if it has a single value."""
    low, high = (knob.low, knob.high) if knob.choices is None else (0, len(knob.choices) - 1)
    return (low, high) if low < high else (0.9 * low, 1.1 * low) if low > 0 else (low - 1, low + 1)


def smooth(y: Array) -> Array:
    """Return the centred running mean; the window is shorter at the ends."""
    width = max(len(y) // 60, 2)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    k = np.arange(len(y))
    low, high = np.maximum(k - width, 0), np.minimum(k + width + 1, len(y))
    return np.asarray((sums[high] - sums[low]) / (high - low))
