"""`trimtab show`, `set`, `export`, `import`, `undo`, `reset-to`, `approve`: commands for one study."""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.cli.completion import studies
from trimtab.cli.console import app, cell, new_table, out, whole_bar, working
from trimtab.cli.options import Force, Name, RequiredName, StoreOption, StudyOption, ends, limits_in_words, short
from trimtab.cli.stores import only_study
from trimtab.monitor.planning import in_words
from trimtab.types import Document
from trimtab.util.files import check_destination, read_file, writable, write_atomically
from trimtab.util.text import moment

if TYPE_CHECKING:
    from trimtab.store.tables import Event
    from trimtab.study.study import Study


@app.command("show", epilog="Example: trimtab show demo --html demo.html")
def show(
    name: Name = None,
    last: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of events (default: 10 in the table, otherwise all)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON only.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the history as CSV only.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw value, knobs, moves and skipped rounds (.png, .svg).")] = None,
    html: Annotated[Path | None, typer.Option(help="Write an interactive page that needs no network.")] = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Show one study: its settings, diagnostics and recent events."""
    from trimtab.study.study import Study

    with Study.open_unlocked(store, only_study(store, name)) as study:
        if plot is not None or html is not None:
            _draw(study, plot, html)
            return
        count = last or (study.seq + 1 if as_json or as_csv else 10)
        events = list(study.events(after=study.seq - count))
        if as_json:
            findings = {key: finding._asdict() for key, finding in study.findings().items()}
            history = [study.describe(event) for event in events]
            document = {**study.summary(), "probes": study.probes, "baseline": study.baseline._asdict()}
            document |= (
                {"context": {n: h._asdict() for n, h in study.context_beliefs.items()}} if study.contexts else {}
            )
            print(json.dumps({**document, "diagnostics": findings, "events": history}, indent=1))
        elif as_csv:
            _write_csv(study, events)
        else:
            _print_study(study, events)


@app.command("why", epilog="Example: trimtab why demo --round 250")
def why(
    name: Name = None,
    round: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Explain the study as it was before this round.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON only.")] = False,
    store: StoreOption = "trimtab.db",
) -> None:
    """Explain a study: which knobs matter, and why it moves.

    A study whose method is the belief explains itself. For another method a belief listens to the recorded rounds once
    more, at most to the last 2000 events, which takes some seconds; nothing is stored.
    """
    from trimtab.study.study import Study

    with Study.open_unlocked(store, only_study(store, name)) as study:
        with whole_bar("listening", show=True) as report:
            found = study.explain(round, report=None if report is None else lambda share: report("listening", share))
        print(json.dumps(found.to_dict()) if as_json else found)


@app.command("plan-baseline", epilog="Example: trimtab plan-baseline demo --every 10")
def plan_baseline(
    name: Name = None,
    every: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="One baseline round in N (default: as the study has it now).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plans as JSON only.")] = False,
    store: StoreOption = "trimtab.db",
) -> None:
    """Show how many rounds it takes until a saving can be told.

    For savings of 5, 10 and 20 %, from the noise seen so far.
    """
    from trimtab.study.study import Study

    with Study.open_unlocked(store, only_study(store, name)) as study:
        found = study.plan_baseline(every)
        if as_json:
            print(json.dumps([plan._asdict() for plan in found]))
            return
        spacing = every or study.baseline.spacing
        if not spacing:
            raise ValueError(f"study {study.name!r} has no baseline rounds: plan with --every 20")
        print(f"{study.name}: with one baseline round in {spacing}, {in_words(found)}")


@app.command("approve", epilog="Example: trimtab approve demo --round 7")
def approve(
    name: Name = None,
    reject: Annotated[bool, typer.Option("--reject", help="Skip the proposed setting instead.")] = False,
    round: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Decide only if this round is the one proposed.")
    ] = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Approve or reject the setting that a study proposes.

    This is for studies with `approval = true`. The first decision on a round is final.
    """
    from trimtab.study.study import Study

    with Study.open_unlocked(store, only_study(store, name), mode="write") as study:
        proposal = study.decide(approve=not reject, round=round)
        word = "rejected" if reject else "approved"
        print(f"{study.name}: round {proposal.round} {word}: {_named(proposal.setting)}")


@app.command("export", epilog="Example: trimtab export demo demo.json")
def export(
    name: RequiredName,
    file: Annotated[Path, typer.Argument(help="File to write.")],
    store: StoreOption = "trimtab.db",
    force: Force = False,
) -> None:
    """Write a study and its history to one file, for another store."""
    from trimtab.study.study import Study

    check_destination(file)
    if writable(file) is not None and not force:
        raise ValueError(f"{file} already exists: give another name, or --force")
    with Study.open_unlocked(store, name) as study, working("exporting"):
        write_atomically(file, study.export().encode())
    print(f"written: {file}")


@app.command("import", epilog="Example: trimtab import demo.json --store postgresql://me@host/tuning")
def import_study(
    file: Annotated[Path, typer.Argument(help="File written by trimtab export.")],
    name: Annotated[str | None, typer.Option("--as", help="Import it under this name.")] = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Add an exported study to a store, where it continues."""
    from trimtab.study.export_import import import_text

    with whole_bar("importing", show=True) as report:
        found = import_text(store, read_file(file).decode(errors="replace"), name, report)
    print(f"imported: {found}")


@app.command("set", epilog="Example: trimtab set demo knobs.valve.high=80 radius=0.02 --why 'the pump rattles'")
def set_fields(
    name: RequiredName,
    changes: Annotated[list[str], typer.Argument(help="FIELD=VALUE as in study.toml; the value none clears a field.")],
    why: Annotated[str | None, typer.Option(help="Reason, recorded in the history.")] = None,
    who: Annotated[str | None, typer.Option(help="Author, recorded in the history (default: you).")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the old and new value of each field as JSON only.")
    ] = False,
    store: StoreOption = "trimtab.db",
) -> None:
    """Change settings of a study, even while it runs.

    The fields are radius, narrowest, widest, keep, pause and timeout; low, high and radius of a knob (knobs.NAME.high);
    and those of the guard and the baseline (guard.failures). Either all changes apply or none. A running study takes
    them before its next round, without a restart, and keeps what it has learnt. `trimtab undo` reverts the last change.
    """
    from trimtab.study.changes.queue import correct, read_change
    from trimtab.study.changes.rules import sentence

    changed, taken = correct(store, name, dict(map(read_change, changes)), who=who, why=why)
    if as_json:
        print(json.dumps(changed))
    elif not changed:
        print(f"{name}: nothing to change")
    else:
        head = "set" if taken else "requested; the running study applies it before its next round"
        print(f"{name}: {head}: {sentence(changed)}")


@app.command("undo", epilog="Example: trimtab undo demo, or trimtab undo demo 250")
def undo(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[name] [round]", help="Name of the study, and the round to return to.", autocompletion=studies
        ),
    ] = None,
    study: StudyOption = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Undo the last change, or return to the state before a round.

    Given a round, the study returns to its state before that round, and changed settings stay changed. Without one,
    the last change of settings is undone, and what the study has learnt since is kept. The history keeps everything.
    """
    from trimtab.study.study import Study

    name, round = _study_and_round(what or [], study)
    with Study.open(store, only_study(store, name)) as held:
        held.undo(round)
        for text in held.news():
            print(f"{held.name}: {text}")
        print(f"{held.name}: the next round is {held.round}; centre: {_named(held.centre)}")


@app.command("reset-to", epilog="Example: trimtab reset-to start --study demo")
def reset_to(
    where: Annotated[str, typer.Argument(help="start: the setting at which the study began.")],
    study: StudyOption = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Return a study to its start and discard what it has learnt.

    The history is kept and records the reset.
    """
    from trimtab.study.study import Study

    if where != "start":
        raise ValueError(f"reset-to {where!r} is unknown: write trimtab reset-to start, or trimtab undo ROUND")
    with Study.open(store, only_study(store, study)) as held:
        held.reset()
        print(f"{held.name}: the next round is {held.round}; centre: {_named(held.centre)}")


def _study_and_round(what: list[str], study: str | None) -> tuple[str | None, int | None]:
    """Parse the arguments of undo: a name, a round, or both."""
    *names, last = what or [""]
    round = int(last) if last.isdecimal() else None
    names += [last] if last and round is None else []
    names += [] if study is None else [study]
    if len(names) > 1:
        raise ValueError(f"undo {' '.join(what)} is unclear: write trimtab undo NAME, or trimtab undo NAME ROUND")
    return (names[0] if names else None), round


def _draw(study: Study, plot: Path | None, html: Path | None) -> None:
    for file in filter(None, (plot, html)):
        check_destination(file)
    if plot is not None:
        from trimtab.study.plots.matplotlib_figures import draw_study

        with working("drawing"):
            draw_study(study, plot)
        print(f"drawn: {plot}")
    if html is not None:
        from trimtab.study.plots.plotly_figures import to_html

        with working("drawing"):
            write_atomically(html, to_html(study).encode())
        print(f"drawn: {html}")


def _write_csv(study: Study, events: list[Event]) -> None:
    names = [knob.name for knob in study.knobs.all]
    write = csv.writer(sys.stdout, lineterminator="\n").writerow
    limits = study.limits.names
    centres = (f"centre_{name}" for name in names)
    beside = [*(f"limit_{name}" for name in limits), *(f"context_{each.name}" for each in study.contexts)]
    write(["seq", "time", "round", "kind", "value", *names, *centres, *beside, "note"])
    for event in events:
        when = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(event.time))
        query: list[object] = [""] * len(names) if event.query is None else [*event.query]
        limit_values = [""] * len(limits) if event.limits is None else event.limits
        known = [""] * len(study.contexts) if event.context is None else event.context
        row = [event.seq, when, event.round, event.kind, event.value, *query, *event.centre, *limit_values, *known]
        write([*row, event.note])


def _print_study(study: Study, events: list[Event]) -> None:
    summary, probes = study.summary(), study.probes
    out.print(cell(f"{study.name}: {study.saving.sentence}"), highlight=False, soft_wrap=True)
    if planned := study.plan_baseline():
        out.print(cell(in_words(planned)), highlight=False, soft_wrap=True)
    table = new_table("knob", "centre", "probe", "low", "high", "unit", title=f"{study.name}: {summary['goal']}")
    for knob in study.knobs.all:
        low, high = map(cell, ends(knob))
        probe = f"±{short(probes[knob.name], 3)}"
        table.add_row(knob.name, cell(short(summary["centre"][knob.name])), probe, low, high, cell(knob.unit))
    out.print(table)
    counts = ", ".join(f"{key} {short(summary[key])}" for key in ("value", "mean", "trend", "skipped", "failures"))
    for line in (f"{study.counted}: {counts}", *limits_in_words(study.describe_limits())):
        out.print(cell(line))
    table = new_table("diagnostic", "now", "advice", title="Diagnostics")
    for name, finding in study.findings().items():
        table.add_row(name, short(finding.value), finding.advice or "")
    out.print(table)
    if study.contexts:
        table = new_table("context", "low", "high", "share of the belief that depends on it", title="Context")
        for name, about in study.context_beliefs.items():
            share = "not known yet" if about.share is None else f"{about.share:.0%}"
            table.add_row(cell(name), short(about.low), short(about.high), share)
        out.print(table)
    context = ["context"] if study.contexts else []
    table = new_table("time", "round", "event", "value", *context, "set", "note", title="Last events")
    for event in events:
        when = moment(event.time)
        query = "" if event.query is None else ", ".join(map(short, event.query))
        known = study.describe(event).get("context", {})
        words = [cell(_named(known))] if study.contexts else []
        table.add_row(when, str(event.round), event.kind, short(event.value), *words, cell(query), cell(event.note))
    out.print(table)


def _named(setting: Document) -> str:
    return ", ".join(f"{name} {short(value)}" for name, value in setting.items())
