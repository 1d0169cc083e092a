"""What of a study is to be looked at: where it is, how it goes, what it saves, and what happened."""

from __future__ import annotations

import threading
from abc import ABC
from collections.abc import Iterator
from typing import Any

from trimtab.monitor.baseline import Baseline
from trimtab.monitor.diagnostics import Diagnostics
from trimtab.monitor.savings import Saving
from trimtab.setup import Setup
from trimtab.spec.constraints import Limits
from trimtab.spec.current_settings import RunSettings
from trimtab.spec.knob_encoding import Knobs, decode
from trimtab.state import State
from trimtab.store.store import Store
from trimtab.store.tables import Event, Setting, StudyRow
from trimtab.study import core_calls
from trimtab.study.advice import Finding, findings
from trimtab.study.position import Position
from trimtab.study.summary import counted, summary
from trimtab.types import Document
from trimtab.util.reprs import Brief, Facts


class StudyReads(Brief, ABC):
    """A position in the history of a study that is in a store."""

    name: str
    seq: int
    _store: Store
    _saved: StudyRow
    _position: Position
    _lock: threading.RLock

    def _facts(self) -> Facts:
        values = self.diagnostics.values
        return [
            ("", self.name),
            ("round", self.round),
            ("centre", self.centre),
            ("value", values[-1] if values else None),
        ]

    @property
    def setup(self) -> Setup:
        """What only a correction changes, of the tuner."""
        return self._position.setup

    @property
    def state(self) -> State:
        """What every value changes."""
        return self._position.state

    @property
    def diagnostics(self) -> Diagnostics:
        """The running figures."""
        return self._position.diagnostics

    @property
    def knobs(self) -> Knobs:
        """What can be set, and its limits now."""
        return self._position.terms.knobs

    @property
    def settings(self) -> RunSettings:
        """What of the run may be corrected, as it is now: `settings["pause"]`, `settings["guard.failures"]`, …."""
        return self._position.terms

    @property
    def round(self) -> int:
        """The number of the next trial's round; after an undo, one that was there before."""
        return self.state.round

    @property
    def centre(self) -> Setting:
        """The operating point now: the nearest setting the system can take."""
        return self.knobs.setting(core_calls.centre(self.state))

    center = centre

    @property
    def start(self) -> Setting:
        """Where the system was when the study began; inside the limits of now."""
        return self.knobs.setting(self.knobs.start)

    @property
    def baseline(self) -> Baseline:
        """How often the reference is measured, which one it is, and when the next time is."""
        return self._position.baseline

    @property
    def saving(self) -> Saving:
        """What tuning saves against the baseline, with an interval, and a sentence that says it."""
        return self._position.saving

    @property
    def counted(self) -> str:
        """How many rounds there were, in words; those of the baseline apart, as far as they had a value."""
        return counted(self.round, self.saving.baseline_rounds)

    @property
    def limits(self) -> Limits:
        """The limits of other numbers, and by how much they were exceeded in the mean."""
        return self._position.limits

    @property
    def probes(self) -> dict[str, float]:
        """How far probes go at present, by knob, in its units (the rms); of a choice, a share of a weight."""
        return core_calls.probes(self.knobs, self.setup, self.state)

    def events(self, after: int = -1) -> Iterator[Event]:
        """The history, oldest first; thinned where it is old."""
        with self._lock:
            found = self._store.events(self._saved, after, self.seq)
        for event in found:
            yield self._in_units(event)

    def describe(self, event: Event) -> Document:
        """An event with its knobs by name, for JSON."""
        names = [knob.name for knob in self.knobs.all]
        query = None if event.query is None else dict(zip(names, event.query, strict=True))
        told = {key: getattr(event, key) for key in ("seq", "time", "round", "kind", "value", "note")}
        told |= {} if event.limits is None else {"limits": dict(zip(self.limits.names, event.limits, strict=True))}
        return {**told, "query": query, "centre": dict(zip(names, event.centre, strict=True))}

    def _in_units(self, event: Event) -> Event:
        """As people read it: whole numbers as ints, choices by their names."""
        query = None if event.query is None else decode(self.knobs, event.query, whole=True)
        return event._replace(query=query, centre=decode(self.knobs, event.centre, whole=False))

    def findings(self) -> dict[str, Finding]:
        """The diagnostics, with advice where it is wanted."""
        return findings(self.name, self._position)

    def summary(self) -> Document:
        """What `trimtab list --json` says of the study."""
        with self._lock:
            return summary(self._store.load(self.name))

    def to_frame(self) -> Any:
        """The history as a data frame, of pandas or else of polars; a column per knob, for query and centre."""
        from trimtab.study.plots.data_frame import to_frame

        return to_frame(self)

    def figure(self) -> Any:
        """The history as a Plotly figure."""
        from trimtab.study.plots.plotly_figures import figure

        return figure(self)
