"""The class `Study`: knobs, a tuner and its history, in a store. Values are durable before `tell` returns."""

from __future__ import annotations

import logging
import operator
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from trimtab.context import Context, contexts_of
from trimtab.monitor.baseline import BaselineSpec, baseline_fields, read_baseline
from trimtab.monitor.diagnostics import Diagnostics
from trimtab.monitor.savings import Ledger
from trimtab.recipes import BaseMethod, informed
from trimtab.spec import constraints as limiting
from trimtab.spec.constraints import Limits
from trimtab.spec.current_settings import check
from trimtab.spec.knob_encoding import Knob, Knobs
from trimtab.state import State
from trimtab.store import approvals
from trimtab.store.errors import NoStore, StoreError
from trimtab.store.store import Store
from trimtab.store.tables import Event, Setting, StudyRow
from trimtab.study import core_calls, create, export_import
from trimtab.study.advice import LIMITS
from trimtab.study.bases.change_settings import StudySettingChanges
from trimtab.study.changes.pause import pause_of
from trimtab.study.changes.rules import corrected, moved
from trimtab.study.position import Position
from trimtab.types import Document, Fields
from trimtab.util.advice_warning import AdviceWarning
from trimtab.util.durations import in_seconds
from trimtab.util.logs import FIELDS

LOG = logging.getLogger("trimtab.live")
CAUTIOUS = 0.1  # share of the ranges that counts as the largest move of a study without a limit
SMALLEST_MOVE = 1e-3  # share of the ranges below which `Study.step_back` does not limit moves further
Callback = Callable[["Study", Event], object]


class Trial(NamedTuple):
    """A setting to apply, and the `id` to tell its value under. An id is never reused, even after an undo."""

    id: int
    knobs: Setting
    round: int
    kind: str = "probe"
    """Or "baseline": the reference setting, which the tuner does not learn from; it serves to compute the saving."""
    context: dict[str, float | None] | None = None
    """The context that the trial is for, by name, if the study has contexts; None in place of a number not known."""

    def to_json(self) -> Document:
        """Return the fields by name; the context only if there is one."""
        return {name: value for name, value in self._asdict().items() if name != "context" or value is not None}


class Study(StudySettingChanges):
    """A tuner that is kept in a store under a name; create it with `Study.open`.

    `ask`, `tell` and `skip` work as in `Tuner`, with named knobs, and are thread-safe: all calls of `ask` before the
    next `tell` return the same trial, and only the first `tell` of it is accepted. `tell` stores the value and the new
    state together and returns when they are durable. If it raises, the trial stays open and may be told again, for
    example after the store was unavailable. A study that was killed and is opened again returns the interrupted trial
    again, with the same knobs.

    When a kind of advice first appears, `tell` issues an `AdviceWarning` and logs it, after the value is stored.
    """

    def __init__(
        self,
        store: Store,
        saved: StudyRow,
        *,
        held: bool = True,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        if held:
            store.hold(saved)
            saved = store.load(saved.name)
        self._store, self._saved, self._held = store, saved, held
        self._lock = threading.RLock()
        self.callbacks = list(callbacks)
        self.name, self.uid, self.seq = saved.name, saved.uid, saved.seq
        self._turn: int = saved.status["turn"]
        self._snapshot_at, self._position = self._last_position()
        self._open: Trial | None = None
        self._asked, self._news = [], []
        self._known_advice = set(saved.status.get("advice", ()))
        self._fresh_advice: list[str] = []

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        name: str,
        knobs: Iterable[Knob | Fields] | None = None,
        method: BaseMethod | None = None,
        *,
        maximise: bool | None = None,
        maximize: bool | None = None,
        seed: int | None = None,
        keep: int | None = None,
        settings: Fields | None = None,
        source: str = "Study.open",
        callbacks: Sequence[Callback] = (),
        baseline: BaselineSpec | None = None,
        limits: limiting.LimitsSpec | None = None,
        context: Iterable[str | Context] | None = None,
    ) -> Study:
        """Open the study of that name; with knobs, create it if it does not exist.

        where: the path of a SQLite file, a URL (`postgresql://user@host/database`), or ":memory:".
        method, maximise (or maximize), seed: as for `Tuner`. For an existing study these and knobs are compared with
        the last definition: changes that `set` allows are applied, any other is refused.
        keep: number of latest rounds that are stored in full (default 100000); docs/live.md explains the thinning.
        settings: other fields that `set` allows, by dotted names; source: named in messages and the history.
        baseline: measure the reference setting once in this number of rounds (default 20; 0: never), or
        {"every": 20, "knobs": {...}} if the reference is not the start; {"share": [0.02, 0.125]} lets the share of such
        rounds adapt between these limits. It may change later.
        limits: {"temperature": {"max": 80, "risk": 0.01}}: measured numbers to keep within limits, as for `Tuner`; the
        method is then `belief`. With `tt.primal_dual(radius=…, step=…, limits=1)` and their number, limits are kept in
        the long run only, and have a `scale` instead of a risk. Bounds and risks may change later.
        context: names of numbers that are known before each trial, such as a load, or `trimtab.Context`s, as for
        `Tuner`; `ask(context={"load": 0.7})` then asks for the best setting under that load. Fixed with the study.
        callbacks: called with (study, event) after each event is stored; their exceptions are logged, not raised.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> knobs = [dict(name="workers", low=1, high=64, start=4, type="integer", scale="log")]
        >>> with Study.open(folder.name + "/trimtab.db", "queue", knobs, seed=0) as study:
        ...     trial = study.ask()
        ...     study.tell(trial, 12.5)
        >>> with Study.open(folder.name + "/trimtab.db", "queue") as study:
        ...     study.round
        1
        >>> folder.cleanup()
        """
        create.check_name(name)
        maximise = maximise if maximize is None else maximize
        settings = {**in_seconds(settings or {}), **({} if keep is None else {"keep": keep})}
        check(settings)
        wanted = None if knobs is None else Knobs.of(knobs)
        declared = None if context is None else contexts_of(context)
        limited = None
        store = Store(where, "write" if wanted is None else "create", thorough=True)
        try:
            found = None if wanted is None else store.find(name)
            if wanted is None:
                found = store.load(name)
            if found is None:
                assert wanted is not None
                if limits is not None:
                    limited = Limits.with_risk(limits) if _keeps_risks(method) else Limits.of(limits)
                method = informed(method) if method and (declared or (limited and limited.has_risk)) else method
                about = (settings, baseline, limited)
                found = create.create(store, name, wanted, method, maximise, seed, *about, contexts=declared or ())
            study = cls(store, found, callbacks=callbacks)
            method = informed(method) if method and (declared or study.limits.has_risk) else method
            if limits is not None and limited is None:
                limited = (Limits.with_risk if study.limits.has_risk else Limits.of)(limits)
            create.compare(name, study.knobs, study.setup, study.state, wanted, method, maximise, seed, declared)
            study.refresh()
            plan = {} if baseline is None else baseline_fields(read_baseline(baseline, study.knobs))
            if plan and "baseline.share" in study.settings.said:
                plan.setdefault("baseline.share", None)  # removed from the definition
            study._apply_definition(wanted, method, {**settings, **plan}, source)
            if limited is not None:
                study._change_limits(limited)
            return study
        except BaseException:
            store.close()
            raise

    @classmethod
    def open_unlocked(cls, where: str | os.PathLike[str], name: str, *, mode: str = "read") -> Study:
        """Open the study without its lock, read-only, also beside its holder. Mode "write" allows `decide`, `set`."""
        store = Store(where, mode)
        try:
            return cls(store, store.load(name), held=False)
        except BaseException:
            store.close()
            raise

    look = open_unlocked
    """The former name of `open_unlocked`."""

    @staticmethod
    def exists(where: str | os.PathLike[str], name: str) -> bool:
        """Whether a study of that name exists; creates nothing."""
        try:
            with Store(where, "read") as store:
                return store.find(name) is not None
        except NoStore:
            return False

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the study and close the store."""
        with self._lock:
            if self._held and self._snapshot_at < self.seq:
                with suppress(StoreError, ValueError):  # only speeds up the next start: the events are stored
                    self._store.snapshot(self._saved, self._position.snapshot(self.seq))
            self._held = False
            self._store.close()

    def ask(self, context: Mapping[str, float | None] | None = None) -> Trial:
        """Return the next trial; the same one until it is told or skipped. Its `kind` marks baseline rounds.

        Changes of settings requested by others are applied first. context: by name, the numbers that the study was
        opened with as its `context`; None, or left out, where one is not known. Another context asks anew, under the
        same id: tell the trial itself rather than its id, because it has its context.
        """
        with self._lock:
            row = None if context is None else core_calls.read_context(self.setup, context)
            if self._open is None:
                if self._held:
                    self._apply_requests_if_available()
                self._open = self._next(self._turn + 1, self._position, row)
            elif row is not None and core_calls.named(self.setup, row) != self._open.context:
                self._open = self._next(self._turn + 1, self._position, row)
            found, known = self._open, self._open.context
            return found._replace(knobs=dict(found.knobs), context=None if known is None else dict(known))

    def tell(
        self,
        trial: Trial | int,
        value: float | None,
        note: str | None = None,
        limits: Mapping[str, float | None] | None = None,
    ) -> None:
        """Record the measured value, durably; None or NaN if there is none.

        limits: the numbers that the study has limits on, by name; None, or left out, where one was not measured. With
        `primal_dual` all are needed: if one is None, the round has no value.
        """
        with self._lock:
            asked = self._asked_for(trial)
            if type(value) is float:
                value += 0.0  # not every database stores −0
            limited = self._position.limits
            beside = [] if value is None and not limited.has_risk else limited.read(limits)
            excesses = limited.beside(beside) if beside else None
            reference, row = asked.kind == "baseline", self._row(asked)
            before = self._position if reference else self._position.opened(asked.round, row)
            state = core_calls.tell(self.knobs, self.setup, before.state, value, excesses, asked.round)
            number, numbers = limited.recorded(value, beside)
            kind = "skip" if number is None else "tell"
            if reference:
                kind, state = "baseline", self.state
            after = before.after(self.knobs, kind, number, state, numbers, asked.round)
            self._record(kind, after, asked.round, number, list(asked.knobs.values()), note, numbers, context=row)
            fresh = self._announce_advice()
        for sentence in fresh:
            warnings.warn(f"study {self.name!r}: {sentence}", AdviceWarning, stacklevel=2)

    def _announce_advice(self) -> list[str]:
        """Log and return the advice that has not been given on this study before."""
        kinds = [kind for kind in self._saved.status.get("advice", ()) if kind not in self._known_advice]
        self._known_advice.update(kinds)
        found = self.findings() if kinds else {}
        fresh = []
        for kind in kinds:
            if sentence := found[kind].advice:
                level = logging.WARNING if kind == LIMITS else logging.INFO
                LOG.log(level, "advice for study %s: %s", self.name, sentence, extra={FIELDS: {"study": self.name}})
                fresh.append(sentence)
        self._fresh_advice += fresh
        return fresh

    def new_advice(self) -> list[str]:
        """Return the advice that appeared since the last call; each was also a warning and a log line."""
        with self._lock:
            found, self._fresh_advice = self._fresh_advice, []
            return found

    def skip(self, trial: Trial | int, note: str | None = None) -> None:
        """End the round without a value: nothing moves. The note says why."""
        self.tell(trial, None, note)

    def record_hold(
        self, setting: Setting, value: float | None, note: str | None = None, *, kind: str = "hold"
    ) -> None:
        """Record a measurement without a probe: nothing is learnt, but it ends a series of failures.

        kind: "leave" for the setting at which the system is left; its failure does not count.
        """
        with self._lock:
            after = self._position.after(self.knobs, kind, value, self.state)
            self._record(kind, after, self.round, value, list(setting.values()), note)

    held = record_hold
    """The former name of `record_hold`."""

    def undo(self, round: int | None = None) -> None:
        """Return to the state before `round`; an event that can be undone itself.

        Changed settings stay: the earlier state is converted to the present limits and radii. Without a round, revert
        the last change of settings instead, and keep what was learnt since; with no round since, restore the state
        before it exactly.
        """
        with self._lock:
            if round is None:
                self._undo_change()
                return
            event = self._store.before_round(self._saved, round, late=self.setup.max_pending > 1)
            try:
                if event is None:
                    raise LookupError
                _, there = self._position_after(event.seq)
            except LookupError:
                if round > self.round:
                    raise ValueError(
                        f"round {round} has not been run, or is no longer kept: the next round is {self.round}"
                    ) from None
                kept = min(self.settings["keep"], self.round)
                raise ValueError(
                    f"the state before round {round} is no longer kept: choose one of the last {kept} of {self.round}"
                    f" rounds, or an earlier 100th, 1000th, … that trimtab show {self.name} --csv lists"
                ) from None
            there = moved(there, self.knobs, self.setup.method)
            if there.baseline.plan != self.baseline.plan:  # keep the present baseline
                there = there.planned(*self.baseline.plan)
            there = there._replace(
                setup=self.setup,
                state=there.state._replace(open=()),
                terms=self._position.terms,
                diagnostics=replace(there.diagnostics, failures=0),
                limits=there.limits.corrected(Limits(self.limits.all)),
            )
            self._record("undo", there, round, note=f"from round {self.round}")

    def reset(self, failures: int = 0) -> None:
        """Return to the start with nothing learnt; round numbers continue."""
        with self._lock:
            state = core_calls.restart(self.setup, self.state, self.knobs.start)
            fresh = Diagnostics(failures=failures, skipped=self.diagnostics.skipped)
            self._record("reset", self._position._replace(state=state, diagnostics=fresh), self.round, note="to start")

    def step_back(self, why: str) -> None:
        """Return to the baseline with nothing learnt, and begin the saving anew.

        With `guard.on_revert = "restart"`, moves are limited to half of what they were (0.05 of the ranges without a
        limit), also if it happens again.
        """
        with self._lock:
            position, after = self._position, self._position
            if self.settings["guard.on_revert"] == "restart":
                largest = self.settings["guard.largest_move"]
                smaller = max((CAUTIOUS if largest is None else largest) / 2, SMALLEST_MOVE)
                after, _ = corrected(self.name, position, {"guard.largest_move": smaller})
            reference = self.baseline.setting or self.start
            begin = self.knobs.coordinates(reference)
            after = after._replace(
                state=core_calls.restart(after.setup, after.state, begin),
                diagnostics=Diagnostics(skipped=self.diagnostics.skipped),
                ledger=Ledger(),
            ).planned(*after.baseline.plan)
            self._record("reset", after, self.round, note=f"to the baseline: {why}")

    def note(self, kind: str, words: str) -> None:
        """Record an action ("pause", "resume", …) that leaves the tuner unchanged."""
        with self._lock:
            self._record(kind, self._position, self.round, note=words)

    def paused(self) -> str | None:
        """Return who paused the study and why; None if it is not paused."""
        with self._lock:
            found = self._store.load(self.name).paused
        return None if found is None else pause_of(found)

    def ahead(self, rounds: int, context: Mapping[str, float | None] | None = None) -> Iterator[Trial]:
        """Preview the next trials, as if every value were equal to the last one; nothing is stored."""
        row = core_calls.read_context(self.setup, context)
        there, values = self._position, self.diagnostics.values
        value = values[-1] if values else 0.0
        for n in range(rounds):
            trial = self._next(self._turn + 1 + n, there, row)
            yield trial
            if trial.kind == "baseline":
                there = there.after(self.knobs, "baseline", None, there.state)
            else:
                excesses = [] if self.limits.has_risk else [0.0] * len(self.limits.all)
                there = there.opened(trial.round, row)
                state = core_calls.tell(self.knobs, self.setup, there.state, value, excesses or None, trial.round)
                there = there.after(self.knobs, "tell", value, state, None, trial.round)

    def _next(self, id: int, there: Position, row: core_calls.Row | None = None) -> Trial:
        """Return the next trial at a position, for a context."""
        round = core_calls.next_round(there.setup, there.state)
        if there.baseline.is_due:
            reference = dict(there.baseline.setting or self.start)
            return Trial(id, reference, round, "baseline", core_calls.named(there.setup, row))
        there = there.opened(round, row)
        return self._probe(id, round, there.state)

    def _probe(self, id: int, round: int, state: State) -> Trial:
        """Return the trial of a round, in a state in which it is open or next."""
        knobs = self.knobs.probe(core_calls.ask(self.setup, state, round), state.key.seed, round)
        context = core_calls.named(self.setup, core_calls.context_of(self.setup, state, round))
        return Trial(id, knobs, round, "probe", context)

    def _row(self, trial: Trial) -> core_calls.Row | None:
        """Return the context of a trial in the declared order."""
        return core_calls.read_context(self.setup, trial.context)

    def propose(self, setting: Setting) -> None:
        """Propose the next setting for approval; idempotent."""
        with self._lock:
            approvals.propose(self._store, self._saved, self._proposal(setting))

    def decision(self, setting: Setting) -> approvals.Decision | None:
        """Return the decision on exactly this setting at the present `seq`, if there is one."""
        with self._lock:
            return approvals.decision(self._store.load(self.name), self._proposal(setting))

    def decide(self, *, approve: bool, round: int | None = None) -> approvals.Proposal:
        """Approve or reject the waiting proposal (for `round`, if given)."""
        with self._lock:
            return approvals.decide(self._store, self.name, approve, round)

    def _proposal(self, setting: Setting) -> approvals.Proposal:
        return approvals.Proposal(self.seq, self.round, setting)

    def export(self) -> str:
        """Return the whole study as of its opening or last event, as one JSON text for `import_text`."""
        with self._lock:
            snapshots = [s for s in self._store.snapshots(self._saved, self.seq) if s.seq < self.seq]
            snapshots.append(self._position.snapshot(self.seq))
            return export_import.write(self._saved, self._store.events(self._saved, until=self.seq), snapshots)

    @staticmethod
    def import_text(where: str | os.PathLike[str], text: str, name: str | None = None) -> str:
        """Add the output of `export` to another store; return the study's name there."""
        return export_import.import_text(where, text, name)

    adopt = import_text
    """The former name of `import_text`."""

    def _asked_for(self, trial: Trial | int) -> Trial:
        """Return the open trial if `trial` refers to it; ValueError otherwise."""
        given: object = getattr(trial, "id", trial)
        if isinstance(given, bool) or not hasattr(given, "__index__"):
            raise TypeError(f"trial={trial!r} is neither a Trial nor its id: tell(trial, value)")
        id, now = operator.index(given), self._turn + 1
        if id != now:
            why = "it was told, skipped or undone before" if 0 <= id < now else "it was never asked"
            raise ValueError(f"trial {id} is not open: {why}; the open one is {now}")
        return self.ask(trial.context if isinstance(trial, Trial) else None)

    def _change_limits(self, wanted: Limits) -> None:
        """Change the bounds of the limits, if they differ."""
        after = self._position._replace(limits=self.limits.corrected(Limits(wanted.all)))
        if after.limits.all != self.limits.all:
            if wanted.has_risk:
                after = after._replace(setup=core_calls.limited(self.setup, wanted.declared))
            bounds = ", ".join(map(_bound, wanted.all))
            self._record("set", after, self.round, note=f"limits: {bounds}")


def _keeps_risks(method: BaseMethod | None) -> bool:
    """Whether a new study with limits promises a risk: by default, and with a method that keeps limits itself."""
    return method is None or informed(method).takes_limits


def _bound(limit: limiting.Limit) -> str:
    risk = "" if limit.risk is None else f" (risk {limit.risk:g})"
    return f"{limit.name} {limit.side} {limit.bound:g}{risk}"
