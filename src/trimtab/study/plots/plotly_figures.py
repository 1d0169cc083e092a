"""Figures of a study with Plotly, for notebooks, files and the dashboard; and a sparkline.

Names and notes are escaped, because Plotly renders some HTML tags.
"""

from __future__ import annotations

import datetime
import html
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimtab.plotting import DARK, LIGHT, SANS, Ink
from trimtab.spec.knob_encoding import Knob, Knobs, level
from trimtab.store.tables import ROUNDS, ROUTINE, Event
from trimtab.study import core_calls
from trimtab.study.plots.matplotlib_figures import smooth, span
from trimtab.types import Array, Document
from trimtab.util.extras import pip_install
from trimtab.util.text import clean

if TYPE_CHECKING:
    from trimtab.study.bases.read import StudyReads

LARGEST = 1e140  # values are drawn up to this, so that their squares are finite
MARKS = 30  # the latest events other than rounds, each marked with a vertical line
TOP, ROW = 260, 130  # heights in pixels of the value plot and of each row below


def figure(
    study: StudyReads,
    events: Sequence[Event] | None = None,
    *,
    knobs: int | None = None,
    dark: bool = False,
    gl: bool = True,
) -> Any:
    """Plot the value with trend, spread and baseline; every knob in its range; and the moves with their cap.

    events: part of `study.events()`; by default, all. knobs: the number of knobs to draw, from the first. gl: use
    WebGL, for many points; it does not work on a page whose policy forbids eval.
    """
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError(f"figures need Plotly: {pip_install('live')}") from error
    told = list(study.events() if events is None else events)
    shown = study.knobs.all[:knobs]
    rows, ink = 2 + len(shown), DARK if dark else LIGHT
    heights = [TOP, *[ROW] * (rows - 1)]
    found = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.22 / rows, row_heights=heights)
    draw = _Drawing(found, told, ink, "scattergl" if gl else "scatter")
    draw.values("maximise" if study.setup.maximise else "minimise")
    for k, knob in enumerate(shown):
        draw.knob(k + 2, k, knob)
    draw.moves(rows, study.knobs, core_calls.longest_move(study.setup))
    draw.marks()
    found.update_xaxes(gridcolor=ink.grid, zeroline=False, type="date")
    found.update_xaxes(row=rows, col=1, title_text=f"time ({draw.zone.tzname(None)})", title_standoff=4)
    found.update_yaxes(gridcolor=ink.grid, zeroline=False, automargin=True)
    found.update_layout(
        title={
            "text": f"{study.name}: {study.counted}; {_words(study.saving.sentence)}",
            "x": 0,
            "xref": "paper",
            "font": {"size": 15},
        },
        template="none",
        paper_bgcolor="rgba(0, 0, 0, 0)" if dark else "white",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        font={"color": ink.text, "family": SANS, "size": 12},
        hoverlabel={"font": {"family": SANS}},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
        margin={"l": 70, "r": 12, "t": 56, "b": 40},
        hovermode="x",
        height=100 + sum(heights),
        uirevision=study.name,
    )
    return found


class _Drawing:
    """A figure under construction."""

    def __init__(self, found: Any, events: list[Event], ink: Ink, kind: str) -> None:
        self.found, self.events, self.ink, self.kind = found, events, ink, kind
        self.zone = _offset(events[-1].time if events else time.time())

    def add(
        self, row: int, points: Sequence[tuple[Event, object]], name: str, *, legend: bool = False, **more: object
    ) -> None:
        """Add points at the times of events."""
        x = [self.local_time(event) for event, _ in points]
        y = [value for _, value in points]
        self.found.add_trace({"type": self.kind, "x": x, "y": y, "name": name, "showlegend": legend, **more}, row, 1)

    def local_time(self, event: Event) -> str:
        """Return the local time of an event, with the offset from UTC of the last event, so that no hour repeats."""
        local = datetime.datetime.fromtimestamp(event.time, self.zone)
        return local.replace(tzinfo=None).isoformat(" ", "milliseconds")

    def values(self, goal: str) -> None:
        """Draw values, their running mean with one standard deviation, and baseline rounds."""
        ink = self.ink
        valued = [(event, event.value) for event in self.events if event.value is not None]
        told = [pair for pair in valued if pair[0].kind != "baseline"]
        baseline = [pair for pair in valued if pair[0].kind == "baseline"]
        y = np.clip(np.array([value for _, value in told], dtype=float), -LARGEST, LARGEST)
        mean = smooth(y) if told else y
        spread = np.sqrt(np.maximum(smooth((y - mean) ** 2), 0)) if told else y
        whence = [event for event, _ in told]
        none: Document = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        self.add(1, list(zip(whence, (mean - spread).tolist(), strict=True)), "spread", **none)
        band: Document = {"fill": "tonexty", "fillcolor": ink.band, **none}
        self.add(1, list(zip(whence, (mean + spread).tolist(), strict=True)), "spread", legend=True, **band)
        self.add(
            1, told, "measured", legend=True, mode="markers", marker={"size": 4, "color": ink.points, "opacity": 0.6}
        )
        trend = list(zip(whence, mean.tolist(), strict=True))
        self.add(1, trend, "running mean", legend=True, mode="lines", line={"color": ink.line, "width": 2.5})
        line = {"color": ink.other, "width": 1.5, "dash": "dash"}
        marker = {"symbol": "diamond", "size": 6, "color": ink.other}
        self.add(1, baseline, "baseline", legend=bool(baseline), mode="lines+markers", line=line, marker=marker)
        missed = [event for event in self.events if event.kind in ROUNDS and event.value is None]
        lowest = min((value for _, value in valued), default=0.0)
        marker = {"symbol": "x", "size": 7, "color": ink.other}
        notes = [_words(event.note or "") for event in missed]
        points = [(event, lowest) for event in missed]
        self.add(1, points, "no value", legend=bool(missed), mode="markers", marker=marker, text=notes)
        self.found.update_yaxes(row=1, col=1, title_text=f"value ({goal})")

    def knob(self, row: int, k: int, knob: Knob) -> None:
        """Draw the settings of a knob, and its centre."""
        asked = [(event, level(knob, event.query[k])) for event in self.events if event.query is not None]
        marker = {"size": 3, "color": self.ink.points, "opacity": 0.5}
        self.add(row, asked, "setting", mode="markers", marker=marker)
        centres = [(event, level(knob, event.centre[k])) for event in self.events]
        self.add(row, centres, "centre", mode="lines", line={"color": self.ink.line, "width": 2})
        unit = f" ({_words(knob.unit, 20)})" if knob.unit else ""
        low, high = np.log10(span(knob)).tolist() if knob.scale == "log" else span(knob)
        room = 0.04 * (high - low)  # so that points at the ends are visible
        kind = "log" if knob.scale == "log" else "linear"
        self.found.update_yaxes(
            row=row,
            col=1,
            title_text=_words(knob.name, 24) + unit,
            type=kind,
            range=[low - room, high + room],
            nticks=4,
        )
        if knob.choices is not None:
            words = [_words(str(choice), 20) for choice in knob.choices]
            self.found.update_yaxes(row=row, col=1, tickvals=list(range(len(words))), ticktext=words)

    def moves(self, row: int, knobs: Knobs, cap: float) -> None:
        """Draw the move of the centre per round, without choices, of which only the likeliest is stored."""
        numbers = [(k, knob) for k, knob in enumerate(knobs.all) if knob.choices is None]
        lengths = [high - low for low, high in (knobs.extent(knob) for _, knob in numbers)]
        shares = np.array([[knob.share(event.centre[k]) for k, knob in numbers] for event in self.events])
        steps = np.maximum(np.diff([event.seq for event in self.events]), 1)  # a mean between thinned events
        moves: Array = np.empty(0)
        if len(self.events) > 1:
            moves = np.linalg.norm(np.diff(shares, axis=0) * lengths, axis=1) / steps
        points = list(zip(self.events[1:], (100 * moves).tolist(), strict=True))
        self.add(row, points, "move", mode="lines", line={"color": self.ink.line, "width": 1, "shape": "hvh"})
        if np.isfinite(cap) and points:
            line = {"color": self.ink.other, "width": 1.5, "dash": "dot"}
            self.add(row, [(points[n][0], 100 * cap) for n in (0, -1)], "largest move", mode="lines", line=line)
        self.found.update_yaxes(row=row, col=1, title_text="move (%)", rangemode="tozero")

    def marks(self) -> None:
        """Mark events other than rounds."""
        notable = [event for event in self.events if event.kind not in (*ROUTINE, "start")]
        for event in notable[-MARKS:]:
            line = {"color": self.ink.points, "dash": "dash", "width": 1}
            ends = {"x0": self.local_time(event), "x1": self.local_time(event), "y0": 0, "y1": 1, "yref": "paper"}
            self.found.add_shape(type="line", line=line, layer="below", **ends)
            self.found.add_annotation(
                x=self.local_time(event),
                y=0,
                yref="paper",
                yanchor="bottom",
                xanchor="left",
                text=event.kind,
                showarrow=False,
                textangle=-90,
                font={"size": 10},
            )


def sparkline(values: Sequence[float], width: float = 100.0, height: float = 24.0) -> str:
    """Return the points of an SVG polyline, lowest value at the bottom.

    >>> sparkline([1, 3, 2])
    '0.0,22.0 50.0,2.0 100.0,12.0'
    """
    y = np.clip(np.asarray(values, dtype=float), -LARGEST, LARGEST)
    if len(y) < 2:
        return ""
    low, high = float(y.min()), float(y.max())
    room = 2.0
    shares = (y - low) / (high - low) if high > low else np.full(len(y), 0.5)
    heights = height - room - shares * (height - 2 * room)
    return " ".join(f"{x:.1f},{h:.1f}" for x, h in zip(np.linspace(0, width, len(y)), heights, strict=True))


def to_html(study: StudyReads) -> str:
    """Return a self-contained HTML page."""
    page: str = figure(study).to_html(include_plotlyjs=True, full_html=True)
    return page


def _offset(seconds: float) -> datetime.timezone:
    """Return the offset of local time from UTC at this moment, with its name."""
    local = time.localtime(seconds)
    return datetime.timezone(datetime.timedelta(seconds=local.tm_gmtoff), local.tm_zone)


def _words(text: str, longest: int = 120) -> str:
    return html.escape(clean(text, longest), quote=False)
