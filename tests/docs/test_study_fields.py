"""The tables of study.toml in docs/live.md, which the reference includes, have every field that is read."""

import re
from dataclasses import fields

import pytest
from pages import text

from trimtab.knobs import Knob
from trimtab.live import Config, Guard
from trimtab.recipes import methods
from trimtab.tune.config import UNFIT
from trimtab.tune.context_source import ContextSource

PAGE = text("docs/live.md")
SECTIONS = {"[knobs.NAME]", "[baseline]", "[limits]", "[context]", "[guard]"}


def table(after):
    """The names in the first column of the table that follows these words."""
    rows = re.search(r"\| field \|.*?\n\|[-|]+\n(.*?)\n\n", PAGE[PAGE.index(after) :], flags=re.S)[1]
    return {name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}


@pytest.mark.parametrize(
    ("after", "kind", "apart"),
    [
        ("## study.toml, field by field", Config, {"knobs", "guard", "baseline", "limits", "context", "folder"}),
        ("`[knobs.NAME]`, one for each knob", Knob, {"name"}),
        ("`[context]` names numbers", ContextSource, {"contexts"}),
        ("`[guard]`, all optional", Guard, set()),
    ],
    ids=["study", "knob", "context", "guard"],
)
def test_every_field_has_its_row(after, kind, apart):
    assert table(after) == {field.name for field in fields(kind)} - apart


def test_the_methods_are_those_that_can_be_had():
    row = re.search(r"^\| `method` \|.*$", PAGE, flags=re.M)[0]
    assert set(re.findall('`"([a-z-]+)"`', row)) == set(methods) - set(UNFIT)


def test_the_sections_are_there():
    assert all(f"`{section}`" in PAGE for section in SECTIONS)
