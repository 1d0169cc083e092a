"""`trimtab init`, `tune`, `approve`: tune a running system from the shell."""

from __future__ import annotations

import os
import shlex
import time
from collections import deque
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trimtab.cli.console import app, err, out
from trimtab.cli.studies import Name, StoreOption, only_study
from trimtab.live.config import Config, read_config
from trimtab.live.example import write_example
from trimtab.live.knobs import Knob, Setting
from trimtab.live.runner import Report, Runner, Stopped, dry_run, stops_on_signals
from trimtab.live.study import Study

BARS = "▁▂▃▄▅▆▇█"


@app.command("init", epilog="Example: trimtab init && trimtab tune study.toml --rounds 300")
def init_study(
    file: Annotated[Path, typer.Argument(help="Where to write the study; simulator.py goes beside it.")] = Path(
        "study.toml"
    ),
) -> None:
    """Write a commented example study, and a drifting simulator to try it on at once."""
    for path in write_example(file):
        out.print(f"written: {path}", highlight=False, soft_wrap=True, markup=False)
    out.print(f"Now: trimtab tune {shlex.quote(str(file))}", highlight=False, soft_wrap=True, markup=False)


@app.command("tune", epilog="Example: trimtab tune study.toml --rounds 300")
def tune(
    file: Annotated[Path, typer.Argument(help="The study: see trimtab init.")],
    rounds: Annotated[int | None, typer.Option(min=1, help="Stop after so many rounds (default: never).")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="One line per round, also in a terminal.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print the commands (5, or --rounds), and run none.")] = False,
) -> None:
    """Run the rounds of a study until told to stop, from where it was.

    Ctrl-C or SIGTERM finishes the round that runs. Killed, it goes on where it was, with the same query.
    """
    config = read_config(file)
    if dry or config.guard.dry_run:
        for round, words in dry_run(config, rounds or 5):
            print(f"round {round}: {shlex.join(words)}")
        return
    config.check_program()
    with config.open() as study:
        _run(config, study, rounds, live=out.is_terminal and not plain)


@app.command("approve", epilog="Example: trimtab approve demo")
def approve(
    name: Name = None,
    reject: Annotated[bool, typer.Option("--reject", help="Skip what is proposed.")] = False,
    store: StoreOption = "trimtab.db",
) -> None:
    """Let a study with `approval = true` run the setting it proposes."""
    with Study.look(store, only_study(store, name)) as study:
        trial = study.decide(approve=not reject)
        word = "rejected" if reject else "approved"
        print(f"{study.name}: round {trial.id} {word}: {_settings(study, trial.knobs)}")


def _run(config: Config, study: Study, rounds: int | None, *, live: bool) -> None:
    runner = Runner(config, study)
    began = study.round
    seen: deque[float] = deque(maxlen=60)
    with stops_on_signals(runner.stop, lambda text: os.write(2, f"{text}\n".encode())):  # safe in a signal handler
        try:
            with Live(console=out, auto_refresh=False) if live else nullcontext() as display:
                for report in runner.rounds(rounds):
                    seen.extend([] if report.value is None else [report.value])
                    if display is None:
                        _line(study, report)
                    else:
                        display.update(_display(study, report, seen), refresh=True)
        except Stopped as why:
            err.print(f"[bold red]stopped:[/] {why}", highlight=False, soft_wrap=True)
            raise typer.Exit(3) from None
        except KeyboardInterrupt:
            err.print(f"ended within round {study.round}: it is asked again next time", highlight=False)
            raise typer.Exit(130) from None
    centre = _settings(study, study.centre)
    err.print(
        f"{study.round - began} rounds run, {study.round} in all; centre: {centre}", highlight=False, soft_wrap=True
    )
    for finding in study.findings().values():
        if finding.advice:
            err.print(f"advice: {finding.advice}", highlight=False, soft_wrap=True)


def _line(study: Study, report: Report) -> None:
    value = "-" if report.value is None else f"{report.value:.6g}"
    parts = [time.strftime("%T"), f"round {report.round}", f"{report.kind} {value}"]
    if report.kind == "tell":
        parts.append(f"mean {study.diagnostics.fast:.5g}")
    if report.setting:
        parts.append(_settings(study, report.setting))
    if report.note:
        parts.append(report.note)
    print("  ".join(parts), flush=True)


def _settings(study: Study, setting: Setting) -> str:
    return ", ".join(f"{knob.name} {_value(knob, setting[knob.name])}" for knob in study.knobs.all)


def _value(knob: Knob, value: float) -> str:
    return f"{value:.5g}" + (f" {knob.unit}" if knob.unit else "")


def _display(study: Study, report: Report, seen: deque[float]) -> Any:
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
        low, high = f"{knob.low:g}", f"{knob.high:g}"
        table.add_row(knob.name, _value(knob, centre), Text(low, "dim"), bar(knob.share(centre)), Text(high, "dim"))
    found = study.findings()
    figures = "  ".join(f"{name} {finding.value:.3g}" for name, finding in found.items())
    moves = f"moves {100 * running.moved**0.5:.2g} % of the ranges"
    counts = f"skipped {running.skipped}  failures in a row {running.failures}  rounds at a limit {running.at_edge}"
    advice = [Text(finding.advice, "yellow") for finding in found.values() if finding.advice]
    note = [Text(f"{report.kind}: {report.note}", "red")] if report.note else []
    return Group(head, table, Text(figures, "dim"), Text(f"{moves}  {counts}", "dim"), *advice, *note)


def spark(values: Any) -> str:
    """The last values as a line of bars."""
    last = list(islice(values, max(len(values) - 40, 0), None))
    if not last:
        return ""
    low, span = min(last), (max(last) - min(last)) or 1.0
    return "".join(BARS[min(int((v - low) / span * len(BARS)), len(BARS) - 1)] for v in last)


def bar(share: float, width: int = 30) -> str:
    """Where a knob is in its range."""
    place = min(max(round(share * (width - 1)), 0), width - 1)
    return "─" * place + "●" + "─" * (width - 1 - place)
