"""The loop of `trimtab tune`: ask, run the command, tell; with pauses, guard settings, and a clean end on signals."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import logging
import math
import signal
import time
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, TypeVar

from trimtab.store.errors import StoreError
from trimtab.store.retry import retry_while_unavailable
from trimtab.store.tables import Event, Setting
from trimtab.study.study import Study
from trimtab.tune import command
from trimtab.tune.config import Config
from trimtab.tune.context_source import Known, missing_words
from trimtab.tune.parse_value import read_values
from trimtab.tune.systemd import Heartbeat, notify
from trimtab.tune.terminal import rendered
from trimtab.util.files import reason
from trimtab.util.logs import log
from trimtab.util.text import clean, word

TICK = 0.1  # seconds between checks of the flags that signals set
REFRESH = 1.0  # seconds between checks for changed settings during a long pause
POLL = 0.2  # seconds between checks for an approval, or of the clock
FIRST_WAIT, LONGEST_WAIT = 0.1, 60.0  # seconds after the second consecutive failure; doubled with each further one
NO_INTERPRETER = ": begin the file with a line such as #!/usr/bin/env python3"
T = TypeVar("T")


class Flag:
    """Flag that a signal handler can set safely: unlike `threading.Event`, it takes no lock."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Set the flag; it stays set."""
        self._set = True

    def is_set(self) -> bool:
        """Whether the flag was set."""
        return self._set


class Report(NamedTuple):
    """One round, or a message between rounds (`kind` is then "note" or "advice")."""

    kind: str
    round: int
    setting: Setting
    value: float | None
    note: str | None
    seconds: float = 0.0
    """Duration of the command."""
    commit: float = 0.0
    """Seconds until the value was durable."""
    retries: int = 0
    """Number of retries to store it."""
    limits: dict[str, float] | None = None
    """The numbers that the study has limits on, by name."""
    context: dict[str, float | None] | None = None
    """The context of the round, by name."""


class Measured(NamedTuple):
    """Result of a command: a value or the reason for none, and the numbers that the study has limits on."""

    value: float | None
    note: str | None
    limits: dict[str, float] | None = None


class Stopped(Exception):
    """A guard setting ended the run."""


class Runner:
    """Run the rounds of one study; `rounds` yields a report of each, after it is stored.

    `stop` ends the run after the present round; `hurry` ends its command; `abandon` also ends the command of `leave`.
    """

    def __init__(self, config: Config, study: Study) -> None:
        self._file, self._terms = config, study.settings
        self.config, self.study = config.corrected(study.settings), study
        self.stop, self.hurry, self.abandon = Flag(), Flag(), Flag()
        self.told = self.failed = 0
        self._ran = False
        self._missing: str | None = None
        """Which numbers of the context could not be read last time, and why."""
        self._beat = Heartbeat()
        if config.on_round:
            study.callbacks.append(self._call_on_round)

    def rounds(self, most: int | None = None) -> Iterator[Report]:
        """Run until `stop` is set, or for `most` rounds; raise `Stopped` if a guard setting ends the run."""
        left = command.end_leftovers(self.study.uid, self.study.seq + 1)
        if left:
            note = f"ended the command that an earlier run left behind: process {', '.join(map(str, left))}"
            yield Report("note", self.study.round, {}, None, note)
        done = 0
        while not self.stop.is_set() and (most is None or done < most):
            if done and self._wait_between():
                break
            yield from self._wait_for_quiet_hours()
            yield from self._wait_while_paused()
            self._refresh()
            for text in self.study.news():
                yield Report("note", self.study.round, {}, None, text)
            if self.config.guard.dry_run:
                remedy = f"`trimtab set {self.study.name} guard.dry_run=false` ends this"
                raise Stopped(f"guard.dry_run is set: no command is run, and the system is left as it is; {remedy}")
            before, known = self._missing, self._context()
            if self._missing != before:
                yield Report("note", self.study.round, {}, None, self._missing or "context: all of it is known again")
            held, setting = self._plan(known)
            if self._terms is not self.study.settings:
                continue  # the settings have changed meanwhile
            planned = self.study.seq
            approved = yield from self._wait_for_approval(setting)
            if self.stop.is_set():
                break
            if self.study.seq != planned:
                continue  # the settings have changed during the wait for approval
            if self.config.guard.approval and self._store(self.study.paused)[0]:
                continue  # paused during the wait for approval
            report = self._round(held, setting, approved, known)
            done += 1
            yield report
            for sentence in self.study.new_advice():
                yield Report("advice", self.study.round, {}, None, sentence)
            yield from self._step_back()
            if report.value is not None and (why := self.config.guard.beyond(report.value)):
                yield from self.leave()
                raise Stopped(f"{why}: the run has ended; check the system, then restart")
        yield from self.leave()

    def _step_back(self) -> Iterator[Report]:
        """Return to the baseline if tuning makes matters worse; the run ends, or goes on with smaller moves."""
        why, guard = self.study.worse, self.config.guard
        if why is None:
            return
        self._store(lambda: self.study.step_back(why))
        yield Report("note", self.study.round, self.study.centre, None, f"back to the baseline: {why}")
        if guard.on_revert == "stop":
            yield from self.leave("centre")
            raise Stopped(f"{why}: the run has ended at the baseline; check the system, then restart")

    def leave(self, where: str | None = None) -> Iterator[Report]:
        """Apply the setting at which the system stays after the run; once, and only if a command has run."""
        guard = self.config.guard
        where = guard.leave_at if where is None else where
        if where == "query" or not self._ran or guard.approval or guard.dry_run:
            return
        self._ran = False
        setting, round = (self.study.centre if where == "centre" else self.study.start), self.study.round
        try:
            value, note, _ = self.measure(setting, self.abandon)
        except command.Interrupted:
            value, note = None, "interrupted before it finished"
        with contextlib.suppress(StoreError):  # the system matters more than the record
            self.study.record_hold(setting, value, note, kind="leave")
        yield Report("leave", round, setting, value, note)

    def _refresh(self) -> None:
        """Apply the changes of settings that others requested."""
        self._store(self.study.refresh)
        if self._terms is not self.study.settings:
            self._terms = self.study.settings
            self.config = self._file.corrected(self._terms)

    def _wait_between(self) -> bool:
        """Pause between rounds, watching for a changed pause; True if stopped meanwhile."""
        began = time.monotonic()
        while (left := began + self._pause() - time.monotonic()) > 0:
            if self._wait(min(left, REFRESH)):
                return True
            if left > REFRESH:
                self._refresh()
        return self.stop.is_set()

    def _pause(self) -> float:
        """Return the pause between rounds, growing with consecutive failures."""
        failures = self.study.diagnostics.failures
        if failures < 2:
            return self.config.pause
        return max(self.config.pause, min(FIRST_WAIT * 2.0 ** min(failures - 2, 60), LONGEST_WAIT))

    def _wait(self, seconds: float, ends: Flag | None = None) -> bool:
        """Sleep; True if stopped meanwhile."""
        ends, end = ends or self.stop, time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not ends.is_set():
            self._beat()
            time.sleep(min(left, TICK))
        return ends.is_set()

    def _context(self) -> Known | None:
        """Read the context; what cannot be read is missing, and the log says why. None for a study without."""
        source = self.config.context
        if source is None:
            return None
        found, why, out = source.nothing, None, ""
        try:
            if source.file is not None:
                out = (self.config.folder / source.file).read_text(errors="replace")
            else:
                ended = self._command(list(source.command), {}, self.hurry, timeout=source.timeout)
                out = ended.out
                if ended.status is None:
                    why = f"no answer within {source.timeout:g} s"
                elif ended.status:
                    why = f"exit status {ended.status}: {last_line(ended.complaint)}"
        except (OSError, ValueError) as error:
            why = reason(error)
        if why is None:
            found, why = source.parse(out)
        words = missing_words(found, why)
        if words is not None:
            log(logging.WARNING, words, study=self.study.name, round=self.study.round)
        self._missing = words
        return found

    def _plan(self, known: Known | None) -> tuple[bool, Setting]:
        """Return the next setting, and whether to hold it: after too many failures, until a round succeeds."""
        guard, study = self.config.guard, self.study
        failures = study.diagnostics.failures
        if guard.failures is None or failures < guard.failures:
            return False, study.ask(known).knobs
        if guard.on_failures == "hold":
            return True, study.centre if known is None else study.at(known)
        if study.diagnostics.told:  # not again until a probe has succeeded
            self._store(lambda: study.reset(failures=failures))
        return True, study.start

    def _round(self, held: bool, setting: Setting, approved: str | None, known: Known | None) -> Report:
        study, round, began = self.study, self.study.round, time.monotonic()
        self._ran = self._ran or approved is None
        value, note, limits = self.measure(setting, self.hurry) if approved is None else Measured(None, approved)
        measured = time.monotonic()
        if held:
            kind, (_, retries) = "hold", self._store(lambda: study.record_hold(setting, value, note))
        else:
            trial = study.ask()
            kind = trial.kind if trial.kind == "baseline" else "skip" if value is None else "tell"
            _, retries = self._store(lambda: study.tell(trial, value, note, limits))
        commit = time.monotonic() - measured
        self.told, self.failed = self.told + (value is not None), self.failed + (value is None)
        report = Report(kind, round, setting, value, note, measured - began, commit, retries, limits, known)
        words = {key: getattr(report, key) for key in ("round", "kind", "value", "setting", "note", "retries")}
        words |= {} if known is None else {"context": known}
        times = {"seconds": round_to(report.seconds), "commit": round_to(commit)}
        log(logging.INFO, f"round {round}: {kind}", study=study.name, seq=study.seq, **words, **times)
        notify(STATUS=f"round {round}: {kind} {'-' if value is None else f'{value:.6g}'}")
        return report

    def _store(self, call: Callable[[], T]) -> tuple[T, int]:
        """Call a function that uses the store, and retry while the store is unavailable."""
        patience = self.config.store_patience

        def say(text: str) -> None:
            log(logging.WARNING, text, study=self.study.name, round=self.study.round)
            notify(STATUS=clean(text))

        return retry_while_unavailable(
            call,
            patience=math.inf if patience is None else patience,
            wait=lambda seconds: self._wait(seconds, self.hurry),
            say=say,
        )

    def _wait_for_quiet_hours(self) -> Iterator[Report]:
        reported = False
        while self.config.guard.quiet(datetime.datetime.now().time()):
            if not reported:
                yield Report("note", self.study.round, {}, None, "quiet hours: waiting")
            reported = True
            if self._wait(POLL):
                return
            self._refresh()

    def _wait_while_paused(self) -> Iterator[Report]:
        """Wait while the study is paused, for example from the dashboard."""
        who = self._store(self.study.paused)[0]
        if who is None:
            return
        self._store(lambda: self.study.note("pause", who))
        yield Report("note", self.study.round, {}, None, f"held by {who}: waiting")
        while self._store(self.study.paused)[0] is not None:
            if self._wait(POLL):
                return
            self._refresh()
        self._store(lambda: self.study.note("resume", "resumed"))
        yield Report("note", self.study.round, {}, None, "resumed")

    def _wait_for_approval(self, setting: Setting) -> Generator[Report, None, str | None]:
        """Wait for a decision if one is needed; return None to run the round, or the reason against it."""
        if not self.config.guard.approval:
            return None
        proposed, seq = False, self.study.seq
        while True:
            decision, _ = self._store(lambda: self.study.decision(setting))
            if decision is not None:
                return None if decision.approved else f"rejected by {decision.by}"
            self._refresh()
            if self.study.seq != seq:
                return None
            if not proposed:
                self._store(lambda: self.study.propose(setting))
                how = f"proposed: waiting for trimtab approve {self.study.name} --round {self.study.round}"
                yield Report("note", self.study.round, setting, None, how)
            proposed = True
            if self._wait(POLL):
                return "stopped"

    def measure(self, setting: Setting, hurry: Flag) -> Measured:
        """Run the command and read its value."""
        knobs = {f"KNOB_{name.upper()}": word(value) for name, value in setting.items()}
        try:
            ended = self._command(self.config.words(setting), knobs, hurry)
        except (OSError, ValueError) as error:  # such as a choice with a NUL character
            remedy = NO_INTERPRETER if getattr(error, "errno", None) == errno.ENOEXEC else ""
            return Measured(None, f"the command cannot be run: {reason(error)}{remedy}")
        if ended.status is None:
            return Measured(None, f"no answer within {self.config.timeout:g} s")
        if ended.status:
            return Measured(None, f"exit status {ended.status}: {last_line(ended.complaint)}")
        asked = self.study.limits
        value, why, limits = read_values(ended.out, self.config.value, asked.names, required=not asked.has_risk)
        return Measured(value, why, limits or None)

    def _command(
        self, words: list[str], more: dict[str, str], hurry: Flag, given: str = "", timeout: float | None = None
    ) -> command.Ended:
        study, seq = self.study, self.study.seq + 1
        about = {"TRIMTAB_ROUND": str(study.round), "TRIMTAB_STUDY": study.name, "TRIMTAB_SEQ": str(seq)}

        def hurried() -> bool:
            self._beat()
            return hurry.is_set()

        return command.run(
            words,
            folder=self.config.folder,
            environment={**more, **about, command.RUN: command.mark(study.uid, seq)},
            timeout=self.config.timeout if timeout is None else timeout,
            hurry=hurried,
            given=given,
        )

    def _call_on_round(self, study: Study, event: Event) -> None:
        """Run the program `on_round` with the event as JSON on its standard input."""
        text = json.dumps({"study": study.name, **study.describe(event), "saving": study.saving.sentence})
        try:
            ended = self._command(self.config.on_round, {}, self.hurry, text)
            why = None if ended.status == 0 else f"exit status {ended.status}: {clean(ended.complaint.strip(), 200)}"
        except (OSError, command.Interrupted) as error:
            why = reason(error) or "ended"
        if why:
            log(logging.WARNING, f"on_round failed: {why}", study=study.name, round=event.round)


def last_line(complaint: str) -> str:
    """Return the last line that a command wrote to its standard error."""
    return clean(rendered(complaint)[0].strip().split("\n")[-1] or "no error message", 200)


def round_to(seconds: float) -> float:
    """Round to microseconds."""
    return float(f"{seconds:.6f}")


@contextlib.contextmanager
def stops_on_signals(runner: Runner, say: Callable[[str], object]) -> Iterator[None]:
    """On SIGINT, SIGTERM or SIGHUP, finish the present round; on the second, interrupt it, and ask it again next time.

    The third also interrupts the command of `leave`. Handlers only set flags, which every wait polls.
    """
    steps = [
        (runner.stop, "finishing this round; signal again to interrupt it (it is then repeated by the next run)"),
        (runner.hurry, "interrupting this round; signal again to leave the system as it is"),
        (runner.abandon, "leaving the system as it is"),
    ]

    def handle(number: int, _: object) -> None:
        for event, text in steps:
            if not event.is_set():
                event.set()
                say(f"{signal.Signals(number).name}: {text}")
                return
        raise KeyboardInterrupt

    numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
