"""The pages of the adapters: their examples run, and the versions they name are those that are tested."""

import re
from importlib.metadata import version
from pathlib import Path

import optuna
import pytest

DOCS = Path(__file__).parents[2] / "docs" / "adapters"
LIGHT = {
    "gest-api": "gest",
    "Optuna": "optuna",
    "optuna-dashboard": "optuna",
    "OptunaHub": "optuna",
    "SciPy": "scipy",
    "Gymnasium": "gymnasium",
}


@pytest.mark.parametrize("page", sorted(set(LIGHT.values())))
def test_the_examples_run(page):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    examples = re.findall("```python\n(.*?)```", text, flags=re.S)
    assert examples
    for example in examples:
        exec(compile(example, f"{page}.md", "exec"), {})
    for heading in ("## What is kept of the promises", "## What the host"):
        assert heading in text


@pytest.mark.parametrize("host", LIGHT)
def test_the_table_names_the_version_that_is_tested(host):
    row = re.search(rf"^\| \[{host}\]\({LIGHT[host]}\.md\) \|.*$", (DOCS / "index.md").read_text(), flags=re.M)
    assert row is not None
    pinned = (DOCS.parents[1] / "constraints.txt").read_text().lower().splitlines()
    told = row[0].split("|")[3].strip()
    assert f"{host.lower()}=={told}" in pinned
    assert told == version(host)
