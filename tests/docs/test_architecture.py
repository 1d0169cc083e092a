"""ARCHITECTURE.md names every room, only files that exist, and the order in which rooms may import each other."""

import re
import tomllib
from itertools import pairwise

import pytest
from pages import ROOT, blocks, text

SOURCE = ROOT / "src" / "trimtab"
PAGE = text("ARCHITECTURE.md")
PATHS = set(re.findall(r"`([\w./-]+(?:\.\w+|/))`", PAGE))
ROWS = re.findall(r"^\| (`.*?) \|", PAGE[: PAGE.index("## Five ways")], flags=re.M)
CONTRACTS = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
(LAYERS,) = (contract["layers"] for contract in CONTRACTS if contract.get("containers") == ["trimtab"])


def packages():
    """Folders with modules, as they stand on the page."""
    return {f"{file.parent.relative_to(SOURCE)}/" for file in SOURCE.glob("*/**/__init__.py")}


def test_every_path_exists():
    assert len(PATHS) > 80
    assert [path for path in PATHS if not (SOURCE / path).exists() and not (ROOT / path).exists()] == []


def test_every_room_is_named():
    table = {path for line in PAGE.splitlines() if line.startswith("|") for path in re.findall(r"`([\w./]+)`", line)}
    assert packages() - table == set()
    assert {file.name for file in SOURCE.glob("*.py")} - table == {"__init__.py"}


def test_every_package_is_in_the_picture():
    (picture,) = blocks("ARCHITECTURE.md", "mermaid")
    assert {folder.split("/")[0] for folder in packages()} - set(re.findall(r"\w+", picture)) == set()


def test_the_table_has_the_order_of_the_import_layers():
    row_of = {name: n for n, row in enumerate(ROWS) for name in re.findall(r"`(\w+)(?:\.py|/)`", row)}
    rows = [[row_of[room] for room in layer.split(" | ")] for layer in reversed(LAYERS)]
    assert all(max(below) <= min(above) for below, above in pairwise(rows))


@pytest.mark.parametrize("record", sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")), ids=lambda path: path.stem)
def test_a_decision_is_short_and_says_what_follows(record):
    page = record.read_text(encoding="utf-8")
    assert page.count("\n") <= 30
    assert page.startswith(f"# {record.stem.partition('-')[0]}. ")
    assert re.findall(r"^\*\*(\w+)\.\*\*", page, flags=re.M) == ["Context", "Decision", "Consequences"]
