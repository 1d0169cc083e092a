"""Output of `trimtab tune`: a live display in a terminal, else one line per round, or a log."""

from __future__ import annotations

import contextlib
import errno
import logging
import sys
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TextIO

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from trimtab.cli.console import discard, err, out, say
from trimtab.cli.options import ends, limits_in_words, short
from trimtab.spec.knob_encoding import Knob
from trimtab.store.tables import Setting
from trimtab.study.study import Study
from trimtab.tune.loop import Report, Runner
from trimtab.util.advice_warning import AdviceWarning
from trimtab.util.logs import log, log_to
from trimtab.util.text import clean, plural

ROUNDS = TaskID(0)
BARS = "▁▂▃▄▅▆▇█"


class Display:
    """Show reports. If the output goes away (closed terminal or pipe), the run is stopped.

    If the disk that receives the output is full, the run continues without output.
    """

    def __init__(self, study: Study, runner: Runner, logs: str | None, live: Live | None, most: int | None) -> None:
        self._study, self._runner, self._logs, self._live, self._most = study, runner, logs, live, most
        self._progress = rounds_bar(most)
        self._seen: deque[float] = deque(maxlen=60)

    def show(self, report: Report) -> None:
        """Show the report of a round."""
        self._seen.extend([] if report.value is None or report.kind in ("baseline", "leave") else [report.value])
        if self._logs:
            if report.kind in ("note", "leave"):  # rounds and advice are logged by the runner
                log(logging.INFO, f"{report.kind}: {report.note or ''}", round=report.round, setting=report.setting)
            return
        with self._guard_output(sys.stdout):
            if self._live is None:
                print(line(self._study, report, self._count()), flush=True)
            elif report.kind != "advice":  # advice is part of the picture
                self._progress.update(ROUNDS, completed=self._run)
                shown = [self._progress] if self._most else []
                self._live.update(Group(*shown, picture(self._study, report, self._seen)), refresh=True)

    @property
    def _run(self) -> int:
        """Rounds run by this process."""
        return self._runner.told + self._runner.failed

    def _count(self) -> str | None:
        return f"{self._run}/{self._most}" if self._most else None

    def say(self, head: str, text: str = "") -> None:
        """Print a message to stderr, or log it."""
        with self._guard_output(sys.stderr):
            if self._logs:
                log(logging.ERROR, f"{head} {text}".strip())
            else:
                say(head, text)

    def sum_up(self) -> None:
        """Print the final position and advice."""
        study = self._study
        text = f"{plural(self._run, 'round')} run; {study.counted} in total; centre: {settings(study, study.centre)}"
        advice = [f"advice: {finding.advice}" for finding in study.findings().values() if finding.advice]
        with self._guard_output(sys.stderr):
            for words in (study.saving.sentence, text, *advice):
                if self._logs:
                    log(logging.INFO, words)
                else:
                    err.print(Text(words), highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def _guard_output(self, stream: TextIO) -> Iterator[None]:
        """Discard a stream after a failed write; a closed one stops the run, a full disk does not."""
        try:
            yield
        except OSError as error:
            self._live = None
            discard(stream)
            if error.errno in (errno.EPIPE, errno.EIO):
                self._runner.stop.set()
            elif stream is sys.stdout:
                self.say("warning:", f"output stops, tuning continues: {error.strerror}; free some space")


@contextlib.contextmanager
def display(
    study: Study, runner: Runner, logs: str | None, *, live: bool, most: int | None = None
) -> Iterator[Display]:
    """Show a run of at most `most` rounds; without `logs`, only warnings are logged."""
    handler = log_to(sys.stderr, logs or "text")
    handler.setLevel(logging.INFO if logs else logging.WARNING)
    try:
        shown = Live(console=out, auto_refresh=False) if live else contextlib.nullcontext()
        with shown as picture, warnings.catch_warnings(action="ignore", category=AdviceWarning):  # the display shows it
            yield Display(study, runner, logs, picture, most)
    finally:
        logging.getLogger("trimtab.live").removeHandler(handler)


def rounds_bar(most: int | None) -> Progress:
    """Create a progress bar of rounds, with the time left."""
    columns = MofNCompleteColumn(), BarColumn(), TextColumn("left:"), TimeRemainingColumn()
    bar = Progress(*columns, console=out, auto_refresh=False)
    bar.add_task("rounds", total=most)
    return bar


def line(study: Study, report: Report, count: str | None = None) -> str:
    """Format a round as one line; count: its number in this run."""
    value = "-" if report.value is None else f"{report.value:.6g}"
    parts = [time.strftime("%T"), f"round {report.round}", f"{report.kind} {value}"]
    if report.kind == "tell":
        parts.append(f"mean {study.diagnostics.fast:.5g}")
    if report.limits:
        parts.append(", ".join(f"{name} {number:.5g}" for name, number in report.limits.items()))
    if report.context:
        parts.append(_named(report.context))
    if report.setting:
        parts.append(settings(study, report.setting))
    parts += [text for text in (count, report.note) if text]
    return clean("  ".join(parts), 2000)


def _named(context: Mapping[str, float | None]) -> str:
    """Format a context; a dash for a number that is not known."""
    return clean(", ".join(f"{name} {short(number)}" for name, number in context.items()), 2000)


def settings(study: Study, setting: Setting) -> str:
    """Format a setting with units."""
    return clean(", ".join(f"{knob.name} {_value(knob, setting[knob.name])}" for knob in study.knobs.all), 2000)


def _value(knob: Knob, value: object) -> str:
    return short(value) + (f" {knob.unit}" if knob.unit else "")


def _size(knob: Knob, probes: dict[str, float]) -> str:
    """Format the size of a knob's probes."""
    return f"±{short(probes[knob.name], 3)}" + (f" {knob.unit}" if knob.unit and knob.choices is None else "")


def picture(study: Study, report: Report, seen: deque[float]) -> Any:
    """Build the live display: value, trend, knobs in their ranges, diagnostics and advice."""
    running = study.diagnostics
    head = Text.assemble(
        (f"{study.name}  ", "bold"),
        f"round {report.round}  value ",
        ("-" if report.value is None else f"{report.value:.5g}", "bold"),
        f"  mean {running.fast:.5g}  trend {running.trend:+.3g}  {spark(seen)}",
    )
    table = Table(box=None, padding=(0, 1), show_header=False)
    for knob in study.knobs.all:
        centre = study.centre[knob.name]
        low, high = (Text(end, "dim") for end in ends(knob))
        where = bar(knob.share(centre)) if knob.choices is None else ""
        table.add_row(knob.name, Text(clean(_value(knob, centre))), low, where, high)
    found = study.findings()
    diagnostics = "  ".join(f"{name} {finding.value:.3g}" for name, finding in found.items())
    moves = f"moves {100 * running.moved**0.5:.2g} % of the ranges"
    probes = ", ".join(f"{knob.name} {_size(knob, study.probes)}" for knob in study.knobs.all)
    counts = f"skipped {running.skipped}  failures in a row {running.failures}  rounds at a limit {running.at_edge}"
    advice = [Text(finding.advice, "yellow") for finding in found.values() if finding.advice]
    note = [Text(clean(f"{report.kind}: {report.note}"), "red")] if report.note else []
    limits = limits_in_words(study.describe_limits())
    known = [Text(f"context: {_named(report.context)}", "dim")] if report.context else []
    dimmed = [
        Text(words, "dim") for words in (diagnostics, f"{moves}  {counts}", clean(f"probes: {probes}", 2000), *limits)
    ]
    return Group(Text(study.saving.sentence, "bold green"), head, *known, table, *dimmed, *advice, *note)


def spark(values: Any) -> str:
    """Draw the last values as a sparkline."""
    last = list(islice(values, max(len(values) - 40, 0), None))
    if not last:
        return ""
    low, span = min(last), (max(last) - min(last)) or 1.0
    return "".join(BARS[min(int((v - low) / span * len(BARS)), len(BARS) - 1)] for v in last)


def bar(share: float, width: int = 30) -> str:
    """Draw a knob's position in its range."""
    place = min(max(round(share * (width - 1)), 0), width - 1)
    return "─" * place + "●" + "─" * (width - 1 - place)
