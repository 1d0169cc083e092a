"""The history of a study as a data frame of pandas, or of polars if pandas is missing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.study.bases.read import StudyReads


def columns(study: StudyReads) -> dict[str, list[Any]]:
    """Return columns by name: seq, time (Unix), round, kind, value, queries, centres, limits, context, note."""
    events = list(study.events())
    found: dict[str, list[object]] = {
        name: [getattr(event, name) for event in events] for name in ("seq", "time", "round", "kind", "value")
    }
    for k, knob in enumerate(study.knobs.all):
        found[knob.name] = [None if event.query is None else event.query[k] for event in events]
    for k, knob in enumerate(study.knobs.all):
        found[f"centre_{knob.name}"] = [event.centre[k] for event in events]
    for k, name in enumerate(study.limits.names):
        found[f"limit_{name}"] = [None if event.limits is None else event.limits[k] for event in events]
    for k, context in enumerate(study.contexts):
        found[f"context_{context.name}"] = [None if event.context is None else event.context[k] for event in events]
    return {**found, "note": [event.note for event in events]}


def to_frame(study: StudyReads) -> Any:
    """Return a frame with a row per event; times are UTC."""
    for name in ("pandas", "polars"):
        try:
            library: Any = importlib.import_module(name)
        except ImportError:
            continue
        table = columns(study)
        if name == "pandas":
            return library.DataFrame(table).assign(time=library.to_datetime(table["time"], unit="s", utc=True))
        when = library.from_epoch(library.Series("time", [int(t * 1e6) for t in table["time"]]), time_unit="us")
        return library.DataFrame(table, strict=False).with_columns(when.dt.replace_time_zone("UTC").alias("time"))
    raise ImportError("to_frame() needs pandas or polars: pip install pandas")
