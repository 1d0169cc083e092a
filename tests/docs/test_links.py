"""Links within the project lead somewhere, and pictures are there."""

import re

import pytest
from pages import NAMES, ROOT, anchors, blocks, text, without_code

from trimtab.problems import registry

LINK = re.compile(r"\]\(([^)\s]+)\)")
BUILT = {"gallery/index.rst"}
"""Files that are generated when the site is built."""


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    wrong = []
    for link in LINK.findall(without_code(name)):
        path, _, anchor = link.partition("#")
        if link.startswith(("http://", "https://", "mailto:")) or path in BUILT:
            continue
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists():
            wrong.append(f"{link}: there is no such file")
        elif anchor and anchor not in anchors(str(target.resolve().relative_to(ROOT))):
            wrong.append(f"{link}: there is no such heading")
    assert not wrong


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for name in NAMES:
        for entries in blocks(name, r"\{toctree\}"):
            folder = (ROOT / name).parent
            for entry in entries.splitlines():
                if entry and not entry.startswith(":"):
                    listed |= {path.resolve() for path in folder.glob(f"{entry}.*")}
    listed |= {path.resolve() for path in ROOT.glob("docs/adapters/*.md")}  # reference/adapters.rst has them
    pages = {path.resolve() for path in ROOT.glob("docs/**/*.md") if "gallery" not in path.parts}
    assert pages - listed == {ROOT / "docs" / "index.md"}


def test_every_picture_is_drawn_anew_by_make_pictures():
    drawn = set(re.findall(r'"([\w-]+\.(?:png|svg))":', text("docs/draw/__main__.py")))
    drawn |= {f"problem-{id}.png" for id in registry}
    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} == drawn


def test_every_picture_is_shown():
    shown = {match for name in NAMES for match in re.findall(r"pictures/([\w.-]+)", text(name))}
    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} - shown == set()
