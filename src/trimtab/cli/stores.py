"""`trimtab list`, `backup`, `check`: commands for a whole store."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.console import DAMAGED, app, err, out, say, whole_bar
from trimtab.cli.options import Force, StoreOption, short
from trimtab.store.errors import Damaged, StoreError
from trimtab.store.store import Store
from trimtab.study.summary import counted, summary
from trimtab.types import Document
from trimtab.util.files import check_destination, writable, writing
from trimtab.util.text import clean, plural

SIDE_FILES = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database."""
COLUMNS = ("study", "saving", "rounds", "last", "value", "mean", "trend", "skipped", "goal", "centre", "pending")
LEFT_OUT = ("trend", "skipped", "goal", "value", "rounds", "centre", "mean")
"""Columns that a narrow terminal does not show, least important first."""


@app.command("list", epilog="Example: trimtab list --json")
def list_studies(
    store: StoreOption = "trimtab.db",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list only.")] = False,
) -> None:
    """List the studies in a store.

    Shows the saving, the settings, the age of the last round and what awaits approval.
    """
    with Store(store, "read") as opened:
        found = opened.all()
    if as_json:
        listed = [{"name": n, "error": str(s)} if isinstance(s, Damaged) else summary(s) for n, s in found.items()]
        print(json.dumps(listed, indent=1))
        return
    if not found:
        print(f"No studies in {opened.where} yet. To start one: trimtab init && trimtab tune study.toml")
        return
    rows = [list(COLUMNS)]
    for name, study in found.items():
        if isinstance(study, Damaged):
            rows.append([clean(name), "damaged", *["-"] * 8, "trimtab check"])
            continue
        fields = summary(study)
        numbers = (short(fields[key]) for key in ("value", "mean", "trend"))
        proposal, saving = fields["waits"], fields["saving"] or {}
        approval = None if proposal is None else f"approve round {proposal['round']}: {_settings(proposal['setting'])}"
        advice = f"advice on {', '.join(fields['advice'])}: trimtab show {name}" if fields["advice"] else None
        what = "; ".join(filter(None, (approval, advice)))
        words = (str(fields["skipped"]), fields["goal"], _settings(fields["centre"]), what)
        rows.append(
            [
                name,
                clean((saving.get("sentence") or "-").partition("; ")[0]),
                counted(fields["rounds"], saving.get("baseline_rounds", 0)),
                _age(fields["age"]),
                *numbers,
                *words,
            ]
        )
    print("\n".join(table_lines(rows, out.width if out.is_terminal else None)))


def table_lines(rows: list[list[str]], room: int | None) -> list[str]:
    """Format a table whose first row is COLUMNS; leave out the least important columns if it does not fit."""
    columns = list(zip(*rows, strict=True))  # plain padding: a Rich table is slow with thousands of rows
    widths = {column[0]: max(map(len, column)) for column in columns}
    for name in LEFT_OUT:
        if room is None or sum(widths.values()) + 2 * (len(widths) - 1) <= room:
            break
        del widths[name]
    shown = [[word.ljust(widths[column[0]]) for word in column] for column in columns if column[0] in widths]
    return ["  ".join(row).rstrip() for row in zip(*shown, strict=True)]


@app.command("backup", epilog="Example: trimtab backup copies/monday.db")
def backup(
    file: Annotated[Path, typer.Argument(help="File to write.")],
    store: StoreOption = "trimtab.db",
    force: Force = False,
) -> None:
    """Copy a store to one file, even while it is being written to.

    The copy is itself a store that every command can open.
    """
    check_destination(file)
    if writable(file) is not None and not force:
        raise ValueError(f"{file} already exists: give another name, or --force")
    temporary = file.with_name(f".{file.name}.{os.urandom(6).hex()}.tmp")
    try:
        with Store(store, "read") as opened:
            _check_replaceable(file, opened.where)
            with writing(file):
                temporary.touch(0o600)  # fail here, with a clear message, if the place is not writable
            opened.backup(temporary)
        with Store(temporary, "read", thorough=True):
            pass
        with writing(file):
            with open(temporary, "rb") as written:
                os.fsync(written.fileno())
            for ending in SIDE_FILES:  # left over from a replaced store: SQLite would apply them to the copy
                Path(f"{file}{ending}").unlink(missing_ok=True)
            os.replace(temporary, file)
    finally:
        for ending in ("", *SIDE_FILES):
            Path(f"{temporary}{ending}").unlink(missing_ok=True)
    with Store(file, "read", thorough=True) as copy:
        print(f"written: {file}, {plural(len(copy.names()), 'study')}")


@app.command("check", epilog="Example: trimtab check --store copies/monday.db")
def check(
    store: StoreOption = "trimtab.db",
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON only.")] = False,
) -> None:
    """Verify a store: the file and every study, event and checksum.

    Exit status: 0 all is well; 1 something is damaged; 2 bad input.
    """
    from trimtab.study.verify import check_study

    with Store(store, "read") as opened, whole_bar("checking", show=not as_json or err.is_terminal) as bar:
        wrong: Document = {"": opened.check()}
        found = opened.all()
        for n, (name, study) in enumerate(found.items()):

            def report(share: float, n: int = n, name: str = name) -> None:
                if bar:
                    bar(clean(name), (n + share) / len(found))

            wrong[name] = [str(study)] if isinstance(study, Damaged) else check_study(opened, study, report)
    bad = [f"{name}: {line}" if name else line for name, lines in wrong.items() for line in lines]
    if as_json:
        print(json.dumps({"store": opened.where, "studies": len(wrong) - 1, "wrong": bad}, indent=1))
    elif not bad:
        print(f"{opened.where}: {plural(len(wrong) - 1, 'study')}, no damage found")
    for line in [] if as_json else bad:
        say("wrong:", line)
    if bad:
        raise typer.Exit(DAMAGED)


def _check_replaceable(file: Path, where: str) -> None:
    """Refuse to overwrite the store being copied, or a store in use."""
    if not file.exists():
        return
    if os.path.exists(where) and os.path.samefile(file, where):
        raise ValueError(f"{file} is the store itself: give the copy another name")
    try:
        with Store(file, "read") as there:
            held = there.held()
    except StoreError:
        return  # not a store, or damaged: not in use
    if held:
        raise ValueError(
            f"{file} is a store in use ({', '.join(held)}): give the copy another name, or stop those studies first"
        )


def only_study(store: str, name: str | None) -> str:
    """Return the given name, or the name of the only study."""
    if name is not None:
        return name
    with Store(store, "read") as opened:
        names = opened.names()
    if len(names) != 1:
        raise StoreError(
            f"{store} has {plural(len(names), 'study')}: name one of them: {', '.join(names) or 'none yet'}"
        )
    return names[0]


def _settings(setting: Document) -> str:
    return ", ".join(f"{name} {short(value, 4)}" for name, value in setting.items())


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
