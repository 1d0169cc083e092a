"""`trimtab list`, `show`, `export`, `import`, `undo`, `reset-to`: what is in a store."""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from trimtab.cli.console import app, out
from trimtab.files import write_atomically
from trimtab.live.drawing import draw_study
from trimtab.live.store import Event, Store
from trimtab.live.study import Study

StoreOption = Annotated[
    str, typer.Option("--store", envvar="TRIMTAB_STORE", help="A SQLite file, or postgresql://user@host/database.")
]
Name = Annotated[str | None, typer.Argument(help="The study (default: the only one in the store).")]
StudyOption = Annotated[str | None, typer.Option("--study", help="The study (default: the only one in the store).")]


def only_study(store: str, name: str | None) -> str:
    """The name given, or that of the only study."""
    if name is not None:
        return name
    names = _names(store)
    if len(names) != 1:
        raise ValueError(
            f"there are {len(names)} studies in {store}: name one of them: {', '.join(names) or 'none yet'}"
        )
    return names[0]


@app.command("list", epilog="Example: trimtab list --json")
def list_studies(
    store: StoreOption = "trimtab.db",
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects, and nothing else.")] = False,
) -> None:
    """All studies of a store."""
    found = [_look(store, name) for name in _names(store)]
    if as_json:
        print(json.dumps(found, indent=1))
        return
    table = Table("study", "rounds", "value", "mean", "trend", "centre", "skipped", "goal")
    for study in found:
        centre = ", ".join(f"{name} {value:.4g}" for name, value in study["centre"].items())
        numbers = (_short(study[key]) for key in ("value", "mean", "trend"))
        table.add_row(study["name"], str(study["rounds"]), *numbers, centre, str(study["skipped"]), study["goal"])
    out.print(table)


@app.command("show", epilog="Example: trimtab show demo --plot demo.png")
def show(
    name: Name = None,
    last: Annotated[
        int | None, typer.Option(min=1, help="Only the last events (default: 10 in the table, else all).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, and nothing else.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the history as CSV, and nothing else.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw value, knobs, moves and skipped rounds (.png, .svg).")] = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """One study: where it is, how it goes, what happened."""
    with Study.look(store, only_study(store, name)) as study:
        if plot is not None:
            draw_study(study, plot)
            print(f"drawn: {plot}")
            return
        count = last or (study.seq + 1 if as_json or as_csv else 10)
        events = list(study.events(after=study.seq - count))
        if as_json:
            findings = {key: finding._asdict() for key, finding in study.findings().items()}
            history = [_flat(study, event) for event in events]
            print(json.dumps({**study.summary(), "diagnostics": findings, "events": history}, indent=1))
        elif as_csv:
            _write_csv(study, events)
        else:
            _print_study(study, events)


@app.command("export", epilog="Example: trimtab export demo demo.json")
def export(
    name: Annotated[str, typer.Argument(help="The study.")],
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
    store: StoreOption = "trimtab.db",
) -> None:
    """Write a study with its history to one file, for another machine or store."""
    with Study.look(store, name) as study:
        write_atomically(file, study.export().encode())
    print(f"written: {file}")


@app.command("import", epilog="Example: trimtab import demo.json --store postgresql://me@host/tuning")
def import_study(
    file: Annotated[Path, typer.Argument(help="What trimtab export wrote.")],
    name: Annotated[str | None, typer.Option("--as", help="Another name for it.")] = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Put an exported study into a store; it goes on there, exactly where it was."""
    found = Study.adopt(store, file.read_text(errors="replace"), name)
    print(f"imported: {found}")


@app.command("undo", epilog="Example: trimtab undo 250 --study demo")
def undo(
    round: Annotated[int, typer.Argument(min=0, help="The round that shall be the next one again.")],
    study: StudyOption = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Back to the state before a round; recorded in the history, which is kept."""
    with Study.open(store, only_study(store, study)) as held:
        held.undo(round)
        print(f"{held.name}: the next round is {held.round}; centre: {_centre(held)}")


@app.command("reset-to", epilog="Example: trimtab reset-to start --study demo")
def reset_to(
    where: Annotated[str, typer.Argument(help="start: where the system was when the study began.")],
    study: StudyOption = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Back to the start, with nothing learnt; recorded in the history, which is kept."""
    if where != "start":
        raise ValueError(f"reset-to {where!r} is unknown: write trimtab reset-to start, or trimtab undo ROUND")
    with Study.open(store, only_study(store, study)) as held:
        held.reset()
        print(f"{held.name}: the next round is {held.round}; centre: {_centre(held)}")


def _names(store: str) -> list[str]:
    found = Store(store, create=False)
    try:
        return found.names()
    finally:
        found.close()


def _look(store: str, name: str) -> dict[str, Any]:
    with Study.look(store, name) as study:
        return study.summary()


def _flat(study: Study, event: Event) -> dict[str, Any]:
    names = [knob.name for knob in study.knobs.all]
    query = None if event.query is None else dict(zip(names, event.query, strict=True))
    centre = dict(zip(names, event.centre, strict=True))
    told = {key: getattr(event, key) for key in ("seq", "time", "round", "kind", "value", "note")}
    return {**told, "query": query, "centre": centre}


def _write_csv(study: Study, events: list[Event]) -> None:
    names = [knob.name for knob in study.knobs.all]
    write = csv.writer(sys.stdout, lineterminator="\n").writerow
    write(["seq", "time", "round", "kind", "value", *names, *(f"centre_{name}" for name in names), "note"])
    for event in events:
        when = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(event.time))
        query: list[Any] = [""] * len(names) if event.query is None else [*event.query]
        write([event.seq, when, event.round, event.kind, event.value, *query, *event.centre, event.note])


def _print_study(study: Study, events: list[Event]) -> None:
    about = study.summary()
    table = Table("knob", "centre", "low", "high", "unit", title=f"{study.name}: {study.round} rounds, {about['goal']}")
    for knob in study.knobs.all:
        table.add_row(knob.name, _short(about["centre"][knob.name]), _short(knob.low), _short(knob.high), knob.unit)
    out.print(table)
    counts = ", ".join(f"{key} {_short(about[key])}" for key in ("value", "mean", "trend", "skipped", "failures"))
    out.print(counts, highlight=False)
    table = Table("diagnostic", "now", "advice", title="How it goes")
    for name, finding in study.findings().items():
        table.add_row(name, _short(finding.value), finding.advice or "")
    out.print(table)
    table = Table("time", "round", "event", "value", "set", "note", title="Last events")
    for event in events:
        when = time.strftime("%F %T", time.localtime(event.time))
        query = "" if event.query is None else ", ".join(map(_short, event.query))
        table.add_row(when, str(event.round), event.kind, _short(event.value), query, event.note or "")
    out.print(table)


def _centre(study: Study) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in study.centre.items())


def _short(number: float | None) -> str:
    return "-" if number is None else f"{number:.5g}"
