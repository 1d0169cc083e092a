"""Options and formats shared by several commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.cli.completion import studies
from trimtab.util.text import clean, word

if TYPE_CHECKING:
    from trimtab.spec.knob_encoding import Knob
    from trimtab.types import Document

StoreOption = Annotated[str, typer.Option("--store", envvar="TRIMTAB_STORE", help="SQLite file or PostgreSQL URL.")]
Name = Annotated[
    str | None,
    typer.Argument(help="Name of the study (default: the only one in the store).", autocompletion=studies),
]
RequiredName = Annotated[str, typer.Argument(help="Name of the study.", autocompletion=studies)]
StudyOption = Annotated[
    str | None,
    typer.Option("--study", help="Name of the study (default: the only one in the store).", autocompletion=studies),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


def short(value: object, digits: int = 5) -> str:
    """Format a value: a number in five digits, a choice or switch as commands take it, None as a dash."""
    if isinstance(value, str | bool):
        return clean(word(value), 60)
    return "-" if value is None else f"{value:.{digits}g}"


def limits_in_words(limits: list[Document]) -> list[str]:
    """Return one line per limit: its value, its bound, and the long-run violation or the exceedances."""
    return [
        clean(f"limit: {one['name']} {short(one['value'])}, {one['side']} {short(one['bound'])}")
        + (_exceedances(one) if "risk" in one else f"; long-run violation {short(one['violation'], 3)}")
        for one in limits
    ]


def _exceedances(one: Document) -> str:
    """Return the margin of a limit, and the measurements beyond it beside the share promised."""
    promised = f"promised at most {100 * one['risk']:.3g} %"
    if not one["measured"]:
        return f": not measured yet; {promised}"
    low, high = (f"{100 * one[end]:.2g} %" for end in ("share_low", "share_high"))
    seen = f"{one['exceeded']} of {one['measured']} measured beyond (95 %: {low} to {high})"
    return f": margin {short(one['margin'], 3)}; {seen}, {promised}"


def ends(knob: Knob) -> tuple[str, str]:
    """Return the ends of a knob's range, or its choices."""
    if knob.choices is None:
        return short(knob.low), short(knob.high)
    return "one of", ", ".join(map(short, knob.choices))
