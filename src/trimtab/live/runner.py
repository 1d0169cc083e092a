"""The loop behind `trimtab tune`: ask, run the command, tell; with pauses, guard rails, and a clean end on a signal."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from trimtab.live.config import Config
from trimtab.live.knobs import Setting
from trimtab.live.study import Study

GRACE = 2.0  # seconds between asking a command to end and ending it
POLL = 0.2  # seconds between two looks for an approval, or at the clock


class Report(NamedTuple):
    """One round, or something said in between (then `kind` is "note")."""

    kind: str
    round: int
    setting: Setting
    value: float | None
    note: str | None


class Stopped(Exception):
    """A guard rail ended the run."""


class Runner:
    """Runs the rounds of one study; `rounds` gives a report of each, after it is on the disk."""

    def __init__(self, config: Config, study: Study) -> None:
        self.config, self.study = config, study
        self.stop = threading.Event()

    def rounds(self, most: int | None = None) -> Iterator[Report]:
        """Until told to stop, or `most` rounds; raises `Stopped` where a guard rail ends it."""
        done = 0
        while not self.stop.is_set() and (most is None or done < most):
            if done and self.stop.wait(self.config.pause):
                break
            yield from self._wait_for_quiet_hours()
            held, setting = self._plan()
            approved = yield from self._wait_for_approval(setting)
            if self.stop.is_set():
                break
            report = self._round(held, setting, approved)
            done += 1
            yield report
            if report.value is not None and (why := self.config.guard.beyond(report.value)):
                self._leave()
                raise Stopped(f"{why}: the run has ended; look at the system, then start again")
        self._leave()

    def _plan(self) -> tuple[bool, Setting]:
        """What to set next: a probe; or after too many failures in a row, to hold still until one succeeds."""
        guard, study = self.config.guard, self.study
        failures = study.diagnostics.failures
        if guard.failures is None or failures < guard.failures:
            return False, study.ask().knobs
        if guard.on_failures == "hold":
            return True, study.centre
        if failures == guard.failures:
            study.reset(failures=failures)
        return True, study.start

    def _round(self, held: bool, setting: Setting, approved: bool) -> Report:
        study, round = self.study, self.study.round
        value, note = self.measure(setting, round) if approved else (None, "rejected")
        if held:
            study.held(setting, value, note)
        else:
            study.tell(round, value, note)
        return Report("hold" if held else "skip" if value is None else "tell", round, setting, value, note)

    def _wait_for_quiet_hours(self) -> Iterator[Report]:
        said = False
        while self.config.guard.quiet(datetime.datetime.now().time()):
            if not said:
                yield Report("note", self.study.round, {}, None, "quiet hours: waiting")
            said = True
            if self.stop.wait(POLL):
                return

    def _wait_for_approval(self, setting: Setting) -> Generator[Report, None, bool]:
        """Whether the round may be run: at once, unless a person has to say so."""
        if not self.config.guard.approval:
            return True
        said = False
        while (decision := self.study.decision()) is None:
            if not said:
                self.study.propose(setting)
                how = f"proposed: waiting for trimtab approve {self.study.name}"
                yield Report("note", self.study.round, setting, None, how)
            said = True
            if self.stop.wait(POLL):
                return False
        return decision

    def _leave(self) -> None:
        """Where the system stays when nobody tunes it."""
        where = self.config.guard.leave_at
        if where != "query" and self.study.round:
            self.measure(self.study.centre if where == "centre" else self.study.start, self.study.round)

    def measure(self, setting: Setting, round: int) -> tuple[float | None, str | None]:
        """Run the command: a value, or none and the reason."""
        knobs = {f"KNOB_{name.upper()}": repr(value) for name, value in setting.items()}
        about = {"TRIMTAB_ROUND": str(round), "TRIMTAB_STUDY": self.study.name}
        try:
            child = subprocess.Popen(
                self.config.words(setting),
                cwd=self.config.folder,
                env={**os.environ, **knobs, **about},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # a Ctrl-C in the terminal is for us; the round is finished first
            )
        except OSError as error:
            return None, f"the command cannot be run: {error}"
        try:
            out, complaint = child.communicate(timeout=self.config.timeout)
        except subprocess.TimeoutExpired:
            _end(child)
            return None, f"no answer within {self.config.timeout:g} s"
        except BaseException:
            _end(child)
            raise
        if child.returncode:
            last = complaint.strip().splitlines()[-1:] or ["it printed no error"]
            return None, f"exit status {child.returncode}: {last[0][:200]}"
        return read_value(out, self.config.value)


def _end(child: subprocess.Popen[str]) -> None:
    """End a command and its own children: first politely."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=GRACE)
            return


@contextlib.contextmanager
def stops_on_signals(stop: threading.Event, say: Callable[[str], Any]) -> Iterator[None]:
    """The first SIGINT or SIGTERM finishes the round that runs; the second ends it at once: it is asked again."""

    def handle(number: int, _: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say(f"{signal.Signals(number).name}: finishing this round; once more ends it at once, to be asked again")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read_value(out: str, key: str | None = None) -> tuple[float | None, str | None]:
    """The last number that stands by itself, or the one under a key of the last JSON line; or none, and why.

    >>> read_value("took 3 tries\\nlatency = 12.5 ms\\n")
    (12.5, None)
    >>> read_value('{"latency": {"p99": 7.25}}', "latency.p99")
    (7.25, None)
    >>> read_value("all is well")
    (None, "no number in the output: 'all is well'")
    """
    if key is None:
        numbers = [number for word in re.split(r"[\s,;:=()\[\]{}\"']+", out) if (number := _number(word)) is not None]
        if not numbers:
            return None, f"no number in the output: {_shown(out)}"
        value = numbers[-1]
    else:
        found = _under(key, out)
        if found is None:
            return None, f"no number under {key!r} in the output: {_shown(out)}"
        value = found
    if not math.isfinite(value):
        return None, f"the value is {value}"
    return value, None


def _number(word: str) -> float | None:
    try:
        return float(word) if word.isascii() and "_" not in word else None  # float() knows digits of all scripts
    except ValueError:
        return None


def _under(key: str, out: str) -> float | None:
    for text in (*reversed(out.strip().splitlines()), out):
        try:
            found = json.loads(text)
            for part in key.split("."):
                found = found[part]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(found, int | float) and not isinstance(found, bool):
            return float(found)
    return None


def _shown(out: str) -> str:
    text = out.strip()
    return repr(text if len(text) <= 60 else "…" + text[-60:])


def dry_run(config: Config, rounds: int) -> Iterator[tuple[int, list[str]]]:
    """The commands of the next rounds, as they would be if every one failed; nothing is run and nothing is kept."""
    with tempfile.TemporaryDirectory() as folder:
        copy = str(Path(folder) / "copy.db")
        if Study.exists(config.where, config.name):
            with Study.look(config.where, config.name) as study:
                Study.adopt(copy, study.export())
        with replace(config, store=copy).open() as study:
            for _ in range(rounds):
                trial = study.ask()
                yield trial.id, config.words(trial.knobs)
                study.skip(trial)
