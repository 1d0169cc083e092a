"""A study: knobs, a tuner and its history, in a store. Every value is on the disk before `tell` returns."""

from __future__ import annotations

import logging
import math
import operator
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from trimtab.monitor.baseline import BaselineSpec, baseline_fields, read_baseline
from trimtab.monitor.diagnostics import Diagnostics
from trimtab.recipes import Method
from trimtab.spec import constraints as limiting
from trimtab.spec.constraints import Limits
from trimtab.spec.current_settings import check
from trimtab.spec.knob_encoding import Knob, Knobs
from trimtab.store import approvals
from trimtab.store.errors import NoStore, StoreError
from trimtab.store.store import Store
from trimtab.store.tables import Event, Setting, StudyRow
from trimtab.study import core_calls, create, export_import
from trimtab.study.advice import LIMITS
from trimtab.study.bases.change_settings import StudySettingChanges
from trimtab.study.changes.pause import pause_of
from trimtab.study.changes.rules import moved
from trimtab.study.position import Position
from trimtab.types import Fields
from trimtab.util.advice_warning import AdviceWarning
from trimtab.util.durations import in_seconds
from trimtab.util.logs import FIELDS

LOG = logging.getLogger("trimtab.live")
Callback = Callable[["Study", Event], object]


class Trial(NamedTuple):
    """What to set, and the `id` to tell the value under: a number that never comes again, also after an undo."""

    id: int
    knobs: Setting
    round: int
    kind: str = "probe"
    """Or "baseline": the reference setting, from which nothing is learnt but what tuning saves."""


class Study(StudySettingChanges):
    """A tuner that lives in a store under a name; made with `Study.open`.

    `ask`, `tell` and `skip` are those of `Tuner`, with named knobs, and may be called from several threads: all who
    ask before a value is told get the same trial, and the first to tell it is taken. `tell` returns when the value
    and the new state are on the disk, together; if it raises, the trial is still open and may be told again (also
    after the store was away for a while). Killed at any moment and opened again, a study asks the interrupted trial
    again, with the same knobs.

    When a kind of advice first appears, `tell` warns of it once, by an `AdviceWarning` and a line of the log; the value
    is on the disk by then.
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
        method: Method | None = None,
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
    ) -> Study:
        """The study of that name; with knobs, a new one if there is none yet.

        where: a path of a SQLite file, a URL (`postgresql://user@host/database`), or ":memory:".
        method, maximise (or maximize), seed: as for `Tuner`. For a study that exists they, and knobs, are compared with
        what was said last: what can be corrected (see `set`) and has changed since then is, and anything else refused.
        keep: how many of the last rounds are kept in full (by default 100000); see docs/live.md for the rule.
        settings: other fields that can be corrected, by their dotted names; source: who says all this.
        baseline: every so many rounds the reference setting is measured, by default in a new study every 20th, 0 for
        never: or {"every": 20, "knobs": {...}}, where the reference is not the start. It may change on the way.
        limits: {"temperature": {"max": 80}}: numbers told beside the value that are to stay within, in the long run;
        the method is then `tt.primal_dual(radius=…, step=…, limits=how many)`. Bounds may change on the way.
        callbacks: called with (study, event) after each event is on the disk; what they raise is logged, not raised.

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
        limited = None if limits is None else Limits.of(limits)
        store = Store(where, "write" if wanted is None else "create", thorough=True)
        try:
            found = None if wanted is None else store.find(name)
            if wanted is None:
                found = store.load(name)
            if found is None:
                assert wanted is not None
                found = create.create(store, name, wanted, method, maximise, seed, settings, baseline, limited)
            study = cls(store, found, callbacks=callbacks)
            create.compare(name, study.knobs, study.setup, wanted, method, maximise, seed)
            study.refresh()
            plan = {} if baseline is None else baseline_fields(read_baseline(baseline, study.knobs))
            study._hear(wanted, method, {**settings, **plan}, source)
            if limited is not None:
                study._limit(limited)
            return study
        except BaseException:
            store.close()
            raise

    @classmethod
    def look(cls, where: str | os.PathLike[str], name: str, *, mode: str = "read") -> Study:
        """The study as it is now, to read only: whoever holds it goes on undisturbed. Mode "write" is for `decide`."""
        store = Store(where, mode)
        try:
            return cls(store, store.load(name), held=False)
        except BaseException:
            store.close()
            raise

    @staticmethod
    def exists(where: str | os.PathLike[str], name: str) -> bool:
        """Whether there is a study of that name; makes nothing."""
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
        """Let others have the study."""
        with self._lock:
            if self._held and self._snapshot_at < self.seq:
                with suppress(StoreError, ValueError):  # only a courtesy: the values since the last one are there
                    self._store.snapshot(self._saved, self._position.snapshot(self.seq))
            self._held = False
            self._store.close()

    def ask(self) -> Trial:
        """The next trial; the same one until it is told or skipped. Its `kind` says if it measures the baseline.

        Corrections that others asked for come first.
        """
        with self._lock:
            if self._open is None:
                if self._held:
                    self._overhear()
                self._open = self._next(self._turn + 1, self._position)
            return self._open._replace(knobs=dict(self._open.knobs))

    def tell(
        self,
        trial: Trial | int,
        value: float | None,
        note: str | None = None,
        limits: Mapping[str, float | None] | None = None,
    ) -> None:
        """The measured value; None or NaN if there is none. On the disk when this returns.

        limits: the numbers beside it that the study has limits on, by name; without one of them there is no value.
        """
        with self._lock:
            asked = self._asked_for(trial)
            if type(value) is float:
                value += 0.0  # not every database knows −0
            beside = [] if value is None else self._position.limits.read(limits)
            excesses = self._position.limits.excesses(beside) if beside else None
            state = core_calls.tell(self.setup, self.state, value, excesses, asked.round)
            number = None if value is None or any(map(math.isnan, (value, *beside))) else float(value)
            told = beside if beside and number is not None else None
            kind = "skip" if number is None else "tell"
            if asked.kind == "baseline":
                kind, state = "baseline", self.state
            after = self._position.after(self.knobs, kind, number, state, told, asked.round)
            self._record(kind, after, asked.round, number, list(asked.knobs.values()), note, told)
            fresh = self._appeared()
        for sentence in fresh:
            warnings.warn(f"study {self.name!r}: {sentence}", AdviceWarning, stacklevel=2)

    def _appeared(self) -> list[str]:
        """The sentences of advice that have not been said of this study yet."""
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
        """The sentences of advice that appeared since this was asked last; each is a warning and a log line, too."""
        with self._lock:
            found, self._fresh_advice = self._fresh_advice, []
            return found

    def skip(self, trial: Trial | int, note: str | None = None) -> None:
        """There is no value: the round passes and nothing moves. The note says why."""
        self.tell(trial, None, note)

    def held(self, setting: Setting, value: float | None, note: str | None = None, *, kind: str = "hold") -> None:
        """A measurement at rest instead of a probe: recorded, but nothing is learnt; ends a row of failures.

        kind: "leave" for the last one, where the system then stays; a failure of that is none of the study's.
        """
        with self._lock:
            after = self._position.after(self.knobs, kind, value, self.state)
            self._record(kind, after, self.round, value, list(setting.values()), note)

    def undo(self, round: int | None = None) -> None:
        """Back to the state in which `round` was the next one; recorded, and itself to be undone.

        Corrections stay as they are: what was learnt is carried over to the limits and radii of now. Without a round,
        the last correction is taken back, and what was learnt since is kept; with nothing since, it never was.
        """
        with self._lock:
            if round is None:
                self._take_back()
                return
            event = self._store.before_round(self._saved, round, late=self.setup.max_pending > 1)
            try:
                if event is None:
                    raise LookupError
                _, there = self._position_after(event.seq)
            except LookupError:
                kept = min(self.settings["keep"], self.round)
                raise ValueError(
                    f"the state before round {round} is no longer kept: choose one of the last {kept} of {self.round}"
                    f" rounds, or an earlier 100th, 1000th, … that trimtab show {self.name} --csv lists"
                ) from None
            there = moved(there, self.knobs, self.setup.method)
            if there.baseline[:2] != self.baseline[:2]:  # what a person has changed since then stays
                there = there.planned(*self.baseline[:2])
            there = there._replace(
                setup=self.setup,
                state=there.state._replace(open=()),
                terms=self._position.terms,
                diagnostics=replace(there.diagnostics, failures=0),
                limits=there.limits.corrected(Limits(self.limits.all)),
            )
            self._record("undo", there, round, note=f"from round {self.round}")

    def reset(self, failures: int = 0) -> None:
        """Back to where the system was at first, with nothing learnt; the round numbers go on."""
        with self._lock:
            state = core_calls.restart(self.setup, self.state, self.knobs.start)
            fresh = Diagnostics(failures=failures, skipped=self.diagnostics.skipped)
            self._record("reset", self._position._replace(state=state, diagnostics=fresh), self.round, note="to start")

    def note(self, kind: str, words: str) -> None:
        """Something that a person did ("pause", "resume", …), and that changes nothing of what was learnt."""
        with self._lock:
            self._record(kind, self._position, self.round, note=words)

    def paused(self) -> str | None:
        """Who asked that nothing new is set, and why; None if nobody did."""
        with self._lock:
            found = self._store.load(self.name).paused
        return None if found is None else pause_of(found)

    def ahead(self, rounds: int) -> Iterator[Trial]:
        """The next trials as they could be: as they would if every value were the same; nothing is kept."""
        there, values = self._position, self.diagnostics.values
        value = values[-1] if values else 0.0
        for n in range(rounds):
            trial = self._next(self._turn + 1 + n, there)
            yield trial
            if trial.kind == "baseline":
                there = there.after(self.knobs, "baseline", None, there.state)
            else:
                excesses = [0.0] * len(self.limits.all)
                state = core_calls.tell(self.setup, there.state, value, excesses or None)
                there = there.after(self.knobs, "tell", value, state)

    def _next(self, id: int, there: Position) -> Trial:
        """The trial at some position."""
        round = there.state.round
        if there.baseline.is_due:
            return Trial(id, dict(there.baseline.setting or self.start), round, "baseline")
        return Trial(id, self.knobs.probe(core_calls.ask(there.setup, there.state), there.setup.seed, round), round)

    def propose(self, setting: Setting) -> None:
        """Say what would be set next, for a person to decide on; once is enough."""
        with self._lock:
            approvals.propose(self._store, self._saved, self._proposal(setting))

    def decision(self, setting: Setting) -> approvals.Decision | None:
        """A person's word on this very setting, at this very point of the study, if there is one."""
        with self._lock:
            return approvals.decision(self._store.load(self.name), self._proposal(setting))

    def decide(self, *, approve: bool, round: int | None = None) -> approvals.Proposal:
        """A person's word on what is proposed (for `round`, if given); whoever runs the study waits for it."""
        with self._lock:
            return approvals.decide(self._store, self.name, approve, round)

    def _proposal(self, setting: Setting) -> approvals.Proposal:
        return approvals.Proposal(self.seq, self.round, setting)

    def export(self) -> str:
        """The whole study as it was when it was opened, or told last, as one JSON text; for `adopt` elsewhere."""
        with self._lock:
            snapshots = [s for s in self._store.snapshots(self._saved, self.seq) if s.seq < self.seq]
            snapshots.append(self._position.snapshot(self.seq))
            return export_import.write(self._saved, self._store.events(self._saved, until=self.seq), snapshots)

    @staticmethod
    def adopt(where: str | os.PathLike[str], text: str, name: str | None = None) -> str:
        """Put what `export` wrote into another store; gives the study's name there."""
        return export_import.adopt(where, text, name)

    def _asked_for(self, trial: Trial | int) -> Trial:
        """The open trial, if this is the one."""
        given: object = getattr(trial, "id", trial)
        if isinstance(given, bool) or not hasattr(given, "__index__"):
            raise TypeError(f"trial={trial!r} is neither a Trial nor its id: tell(trial, value)")
        id, now = operator.index(given), self._turn + 1
        if id != now:
            why = "it was told, skipped or undone before" if 0 <= id < now else "it was never asked"
            raise ValueError(f"trial {id} is not open: {why}; the open one is {now}")
        return self.ask()

    def _limit(self, wanted: Limits) -> None:
        """Other bounds from now on, if they are others."""
        after = self._position._replace(limits=self.limits.corrected(Limits(wanted.all)))
        if after.limits.all != self.limits.all:
            bounds = ", ".join(f"{limit.name} {limit.side} {limit.bound:g}" for limit in wanted.all)
            self._record("set", after, self.round, note=f"limits: {bounds}")
