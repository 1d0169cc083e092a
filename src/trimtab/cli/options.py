"""Options and formats that several commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trimtab.live.text import clean, word

if TYPE_CHECKING:
    from trimtab.live.knobs import Knob

StoreOption = Annotated[
    str, typer.Option("--store", envvar="TRIMTAB_STORE", help="A SQLite file, or postgresql://user@host/database.")
]
Name = Annotated[str | None, typer.Argument(help="The study (default: the only one in the store).")]
StudyOption = Annotated[str | None, typer.Option("--study", help="The study (default: the only one in the store).")]


def short(value: Any, digits: int = 5) -> str:
    """A number in five digits, a choice or a switch as a command is given it, or a dash."""
    if isinstance(value, str | bool):
        return clean(word(value), 60)
    return "-" if value is None else f"{value:.{digits}g}"


def ends(knob: Knob) -> tuple[str, str]:
    """Where a knob's range begins and ends, or what there is to choose from."""
    if knob.choices is None:
        return short(knob.low), short(knob.high)
    return "one of", ", ".join(map(short, knob.choices))
