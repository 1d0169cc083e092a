"""Every Python block of README and docs runs as it stands, one after the other on a page, in an empty folder."""

import sys
from types import ModuleType
from unittest.mock import patch

import pytest
from pages import NAMES, SERVED, blocks

from trimtab.problems import registry
from trimtab.recipes import methods
from trimtab.registry import parts
from trimtab.tuner import Tuner as Tuner  # registers all parts before they are patched below

HOSTED = {f"docs/adapters/{name}.md" for name in ("bluesky", "optax", "torch", "xopt")}
"""`make hosts` runs these, where their hosts are installed."""
APART = {f"docs/adapters/{name}.md" for name in ("gest", "gymnasium", "optuna", "scipy")} | {
    *("docs/knobs.md", "docs/problems.md", "docs/theory.md"),
}
"""tests/adapters, tests/unit, tests/problems and tests/theory run these, and look at what comes out."""


@pytest.mark.parametrize(
    "name", [name for name in NAMES if blocks(name, "python") and name not in HOSTED | APART | SERVED]
)
def test_the_blocks_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", page)  # as if it were a script, whose classes can be pickled
    with patch.dict(methods), patch.dict(parts), patch.dict(registry):  # registrations do not reach other tests
        for block in blocks(name, "python"):
            exec(compile(block, name, "exec"), vars(page))


def test_no_page_is_left_out():
    assert set(NAMES) > HOSTED | APART
    assert {name for name in HOSTED | APART if not blocks(name, "python")} == set()
