"""The examples of docs/theory.md run, and its table of constants names every argument."""

import inspect
import re
from pathlib import Path

from trimtab import theory

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


def test_the_examples_run(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.S):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "lipschitz=Estimate" in printed
    assert "contraction" in printed


def test_every_theorem_and_every_constant_is_explained():
    for make_plan in theory.theorems.values():
        assert f"`{make_plan.__name__}`" in PAGE
        for name in inspect.signature(make_plan).parameters:
            assert f"`{name}`" in PAGE or name in ("exponent", "setting"), name
    assert "setting=" in PAGE
