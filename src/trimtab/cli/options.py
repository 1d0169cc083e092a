"""Options and formats that several commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.cli.completion import studies
from trimtab.util.text import clean, word

if TYPE_CHECKING:
    from trimtab.spec.constraints import Limits
    from trimtab.spec.knob_encoding import Knob

StoreOption = Annotated[str, typer.Option("--store", envvar="TRIMTAB_STORE", help="SQLite file or PostgreSQL URL.")]
Name = Annotated[
    str | None,
    typer.Argument(help="Name of the study (default: the only one in the store).", autocompletion=studies),
]
Named = Annotated[str, typer.Argument(help="Name of the study.", autocompletion=studies)]
StudyOption = Annotated[
    str | None,
    typer.Option("--study", help="Name of the study (default: the only one in the store).", autocompletion=studies),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


def short(value: object, digits: int = 5) -> str:
    """A number in five digits, a choice or a switch as a command is given it, or a dash."""
    if isinstance(value, str | bool):
        return clean(word(value), 60)
    return "-" if value is None else f"{value:.{digits}g}"


def limits_in_words(limits: Limits) -> list[str]:
    """A line for each: where it is, and by how much it was exceeded in the mean."""
    return [
        clean(f"limit: {one['name']} {short(one['value'])}, {one['side']} {short(one['bound'])}")
        + f"; long-run violation {short(one['violation'], 3)}"
        for one in limits.describe()
    ]


def ends(knob: Knob) -> tuple[str, str]:
    """Where a knob's range begins and ends, or what there is to choose from."""
    if knob.choices is None:
        return short(knob.low), short(knob.high)
    return "one of", ", ".join(map(short, knob.choices))
