"""docs/problems.md tells of every problem, with its parameters, their reference values and a picture."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from trimtab.problems import Moving, make, registry

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "problems.md").read_text(encoding="utf-8")
SECTIONS = dict(section.split("\n", 1) for section in re.split("^## ", PAGE, flags=re.M)[1:])


def rows(text: str, column: int = 0) -> dict[str, str]:
    """The parameters of a section's table, and the reference values in one of its columns."""
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `"))
    return {row[0].strip("`"): row[1 + column].strip("`") for row in cells}


@pytest.mark.parametrize("id", sorted(registry))
def test_every_problem_has_its_section(id):
    title = next((title for title in SECTIONS if f"`{id}`" in title.split(", ")), None)
    assert title is not None
    assert f"pictures/problem-{id}.png" in SECTIONS[title]
    assert (DOCS / "pictures" / f"problem-{id}.png").exists()
    assert f"`{id}`" in PAGE.split("\n## ")[0]
    try:
        problem = make(id)
    except ImportError as error:
        pytest.skip(str(error))
    several = f"| `{id}` |" in SECTIONS[title]
    column = title.split(", ").index(f"`{id}`") if several else 0
    told = rows(SECTIONS["The moving landscapes"]) if isinstance(problem, Moving) else {}
    told |= rows(SECTIONS[title], column)
    assert told == {f.name: repr(getattr(problem, f.name)) for f in fields(problem) if f.init}


def test_the_examples_run():
    for example in re.findall("```python\n(.*?)```", PAGE, flags=re.S):
        exec(compile(example, "docs/problems.md", "exec"), {})
