"""The pages of the adapters: their examples run, and the versions they name are those that are tested."""

import re
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import optuna
import pytest

import trimtab as tt

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


def test_the_pendulum_of_the_example_is_held_at_less_cost_than_by_standing_still(monkeypatch):
    spec = spec_from_file_location("drifting_pendulum", DOCS.parents[1] / "examples" / "drifting_pendulum.py")
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "EPISODES", 250)
    (tuned, gains), (still, _) = example.run(), example.run(tt.still(radius=0.02))
    assert gains.shape == (250, 4)
    assert tuned[150:].mean() < 0.2 * still[150:].mean()
