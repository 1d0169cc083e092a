"""The picture of a study as a Plotly figure: the value, every knob in its range, and the rounds without a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trimtab.extras import pip_install
from trimtab.live.drawing import BLUE, ORANGE, smooth, span
from trimtab.live.knobs import level
from trimtab.live.schema import ROUTINE, Event
from trimtab.live.text import clean

if TYPE_CHECKING:
    from trimtab.live.study import Study

GREY = "#8c8c8c"


def figure(study: Study) -> Any:
    """A row for the value, and one for each knob; over the events."""
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError(f"figures need Plotly: {pip_install('live')}") from error
    events, knobs = list(study.events()), study.knobs.all
    found = make_subplots(rows=1 + len(knobs), cols=1, shared_xaxes=True, vertical_spacing=0.02)
    _add_values(found, events)
    for k, knob in enumerate(knobs):
        row = k + 2
        asked = [(e.seq, level(knob, e.query[k])) for e in events if e.query is not None]
        _add(found, row, asked, "what was set", mode="markers", marker={"size": 3, "color": GREY, "opacity": 0.5})
        _add(
            found,
            row,
            [(e.seq, level(knob, e.centre[k])) for e in events],
            "centre",
            mode="lines",
            line={"color": BLUE},
        )
        unit = f" ({knob.unit})" if knob.unit else ""
        limits = np.log10(span(knob)).tolist() if knob.scale == "log" else span(knob)
        found.update_yaxes(row=row, col=1, title_text=knob.name + unit, type=knob.scale, range=limits)
        if knob.choices is not None:
            words = [clean(str(choice), 20) for choice in knob.choices]
            found.update_yaxes(row=row, col=1, tickvals=list(range(len(words))), ticktext=words)
    for event in events:
        if event.kind not in (*ROUTINE, "start"):
            found.add_vline(x=event.seq, line={"color": GREY, "dash": "dash"}, annotation_text=event.kind)
    goal = "maximise" if study.setup.maximise else "minimise"
    found.update_yaxes(row=1, col=1, title_text=f"value ({goal})")
    found.update_xaxes(row=1 + len(knobs), col=1, title_text="events")
    found.update_layout(
        title_text=f"{study.name}: {study.round} rounds; {study.saving.sentence}",
        template="plotly_white",
        showlegend=False,
        hovermode="x unified",
        height=240 + 180 * (1 + len(knobs)),
    )
    return found


def _add_values(found: Any, events: list[Event]) -> None:
    told = [(e.seq, e.value) for e in events if e.value is not None and e.kind != "baseline"]
    baseline = [(e.seq, e.value) for e in events if e.value is not None and e.kind == "baseline"]
    missed = [e for e in events if e.kind in ROUTINE and e.value is None]
    _add(found, 1, told, "measured", mode="markers", marker={"size": 3, "color": GREY, "opacity": 0.6})
    _add(found, 1, baseline, "baseline", mode="markers", marker={"symbol": "x", "size": 6, "color": ORANGE})
    if told:
        mean = smooth(np.array([value for _, value in told], dtype=float)).tolist()
        pairs = [(seq, value) for (seq, _), value in zip(told, mean, strict=True)]
        _add(found, 1, pairs, "running mean", mode="lines", line={"color": BLUE})
    level = min((value for _, value in told), default=0.0)
    marker = {"symbol": "line-ns-open", "size": 9, "color": ORANGE}
    notes = [e.note or "" for e in missed]
    _add(found, 1, [(e.seq, level) for e in missed], "no value", mode="markers", marker=marker, text=notes)


def _add(found: Any, row: int, points: Any, name: str, **options: Any) -> None:
    x, y = zip(*points, strict=True) if points else ((), ())
    found.add_scattergl(x=list(x), y=list(y), name=name, row=row, col=1, **options)


def to_html(study: Study) -> str:
    """One page that needs no network."""
    page: str = figure(study).to_html(include_plotlyjs=True, full_html=True)
    return page
