"""Options and formats that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

StoreOption = Annotated[
    str, typer.Option("--store", envvar="TRIMTAB_STORE", help="A SQLite file, or postgresql://user@host/database.")
]
Name = Annotated[str | None, typer.Argument(help="The study (default: the only one in the store).")]
StudyOption = Annotated[str | None, typer.Option("--study", help="The study (default: the only one in the store).")]


def short(number: float | None) -> str:
    """Five digits, or a dash."""
    return "-" if number is None else f"{number:.5g}"
