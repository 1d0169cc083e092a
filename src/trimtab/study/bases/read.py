"""Read-only view of a study: its position, diagnostics, saving and history."""

from __future__ import annotations

import threading
from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trimtab.context import Context
from trimtab.monitor.baseline import RAREST, Baseline
from trimtab.monitor.diagnostics import Diagnostics
from trimtab.monitor.planning import Planned, plans
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
from trimtab.study.why import StudyExplanation, explain
from trimtab.types import Document
from trimtab.util.binomial import share_between
from trimtab.util.reprs import Brief, Facts
from trimtab.util.text import plural
from trimtab.validation import whole


class StudyReads(Brief, ABC):
    """Read-only view of a study in a store, at one position of its history."""

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
        """Setup of the tuner; only a change of settings replaces it."""
        return self._position.setup

    @property
    def state(self) -> State:
        """State of the tuner after the last event."""
        return self._position.state

    @property
    def diagnostics(self) -> Diagnostics:
        """Running statistics of values and moves."""
        return self._position.diagnostics

    @property
    def knobs(self) -> Knobs:
        """The knobs with their present limits."""
        return self._position.terms.knobs

    @property
    def settings(self) -> RunSettings:
        """The present settings that can be changed: `settings["pause"]`, `settings["guard.failures"]`, …"""
        return self._position.terms

    @property
    def round(self) -> int:
        """The round of the next trial; an undo goes back to an earlier one."""
        return self.state.round

    @property
    def centre(self) -> Setting:
        """The operating point, rounded to the nearest possible setting."""
        return self.knobs.setting(core_calls.centre(self.state))

    center = centre

    @property
    def start(self) -> Setting:
        """The setting at the start of the study, moved into the present limits."""
        return self.knobs.setting(self.knobs.start)

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The numbers that are known before each trial, as they were declared."""
        return self.setup.contexts

    @property
    def context_beliefs(self) -> dict[str, core_calls.ContextBelief]:
        """The range of each context so far, and the share of the belief that depends on it; by name."""
        names = [context.name for context in self.contexts]
        return dict(zip(names, core_calls.context_beliefs(self.setup, self.state), strict=True))

    def at(self, context: Mapping[str, float | None] | None = None) -> Setting:
        """Return the operating point for a context, without asking; without one, that for the mean context.

        >>> from trimtab.live import Study
        >>> study = Study.open(":memory:", "a", [dict(name="x", low=0, high=1, start=0.5)], seed=0, context=["load"])
        >>> study.at({"load": 0.7})
        {'x': 0.5}
        >>> study.close()
        """
        if not self.contexts:
            raise ValueError(f"study {self.name!r} has no context: see its centre, or open one with context=[names]")
        row = core_calls.read_context(self.setup, context)
        return core_calls.at(self.knobs, self.setup, self.state, row)

    @property
    def baseline(self) -> Baseline:
        """The reference setting, and the schedule of its measurements."""
        return self._position.baseline

    @property
    def saving(self) -> Saving:
        """The saving against the baseline, with an interval and a sentence."""
        return self._position.saving

    @property
    def worse(self) -> str | None:
        """The reason to step back to the baseline, if `guard.revert` is set and tuning makes matters worse."""
        sums = self._position.ledger.anytime
        if not (sums.is_worse and self.settings["guard.revert"] and self.baseline.every):
            return None
        compared = plural(sums.whole.differences, "comparison")
        return f"tuning makes it worse than the baseline, by {compared} (chance of error at most 1 %)"

    def plan_baseline(self, every: int | None = None) -> list[Planned]:
        """Return the rounds until a saving of 5, 10 and 20 % would show, from the noise seen so far.

        every: rounds per baseline round (default: the present distance). Empty while the noise is unknown.
        """
        spacing = self.baseline.spacing if every is None else whole("every", every, 2, RAREST, why=" of rounds")
        return list(plans(self._position.ledger.anytime, spacing))

    @property
    def counted(self) -> str:
        """The number of rounds in words; baseline rounds with a value are counted separately."""
        return counted(self.round, self.saving.baseline_rounds)

    @property
    def limits(self) -> Limits:
        """The limits on other measured numbers, with their mean excess."""
        return self._position.limits

    def describe_limits(self) -> list[Document]:
        """Return for each limit its number, bound and mean excess.

        With a risk, also the `margin` left at the operating point, the measurements beyond it, and the exact 95 %
        interval of their share, from `share_low` to `share_high`.

        >>> from trimtab.live import Study
        >>> knobs, limits = [dict(name="x", low=0, high=1, start=0.5)], {"heat": {"max": 80}}
        >>> with Study.open(":memory:", "a", knobs, seed=0, limits=limits, baseline=0) as study:
        ...     study.tell(study.ask(), 1.0, limits={"heat": 70.5})
        ...     (limit,) = study.describe_limits()
        >>> limit["value"], limit["measured"], limit["exceeded"], limit["share_low"], round(limit["share_high"], 3)
        (70.5, 1, 0, 0.0, 0.975)
        """
        found = self._position.describe_limits()
        for each in found:
            if "risk" in each:
                each["share_low"], each["share_high"] = share_between(each["exceeded"], each["measured"])
        return found

    @property
    def probes(self) -> dict[str, float]:
        """The present rms length of a probe by knob, in its units; for a choice, as a share of a weight."""
        return core_calls.probes(self.knobs, self.setup, self.state)

    def events(self, after: int = -1) -> Iterator[Event]:
        """Iterate over the history, oldest first; old rounds are thinned."""
        with self._lock:
            found = self._store.events(self._saved, after, self.seq)
        for event in found:
            yield self._in_units(event)

    def describe(self, event: Event) -> Document:
        """Return an event as a dict for JSON, with knobs by name."""
        names = [knob.name for knob in self.knobs.all]
        query = None if event.query is None else dict(zip(names, event.query, strict=True))
        told = {key: getattr(event, key) for key in ("seq", "time", "round", "kind", "value", "note")}
        told |= {} if event.limits is None else {"limits": dict(zip(self.limits.names, event.limits, strict=True))}
        told |= {} if event.context is None else {"context": core_calls.named(self.setup, event.context)}
        return {**told, "query": query, "centre": dict(zip(names, event.centre, strict=True))}

    def _in_units(self, event: Event) -> Event:
        """Return an event in the units of the knobs: integers as ints, choices by name."""
        query = None if event.query is None else decode(self.knobs, event.query, whole=True)
        return event._replace(query=query, centre=decode(self.knobs, event.centre, whole=False))

    def findings(self) -> dict[str, Finding]:
        """Return all diagnostics by name, each with advice or None."""
        return findings(self.name, self._position)

    def explain(self, round: int | None = None, report: Callable[[float], None] | None = None) -> StudyExplanation:
        """Explain the study from a belief: which knobs matter, where the optimum is thought to be, why it moves.

        A study whose method is the belief gives its own. For another method, a belief listens to the recorded rounds
        once more, to the last 2000 events at most, and nothing is stored. The result depends on the history alone.

        round: explain the study as it was before this round. report: called with the share of the history heard.

        >>> from trimtab.live import Study
        >>> study = Study.open(":memory:", "press", [dict(name="heat", low=0, high=100, start=20)], seed=0)
        >>> for _ in range(60):  # three of them measure the baseline
        ...     trial = study.ask()
        ...     study.tell(trial, (trial.knobs["heat"] / 100 - 0.6) ** 2)
        >>> found = study.explain()
        >>> found.listened, found.belief.phase, round(found.belief.knobs[0].optimum)
        (57, 'tracking', 60)
        >>> study.close()
        """
        with self._lock:
            return explain(self._store, self._saved, self._position, self.seq, round, report)

    def summary(self) -> Document:
        """Return the summary of the study as in `trimtab list --json`."""
        with self._lock:
            return summary(self._store.load(self.name))

    def to_frame(self) -> Any:
        """Return the history as a data frame of pandas, or of polars; with two columns per knob, query and centre."""
        from trimtab.study.plots.data_frame import to_frame

        return to_frame(self)

    def figure(self) -> Any:
        """Return the history as a Plotly figure."""
        from trimtab.study.plots.plotly_figures import figure

        return figure(self)
