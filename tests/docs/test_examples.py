"""Whatever is public is shown in an example, which is run: docstrings, blocks of pages, scripts of the gallery."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

import examples


def test_no_public_name_is_without_an_example():
    assert examples.without_example() == []


def test_a_name_without_an_example_is_found(monkeypatch):
    monkeypatch.setattr(examples, "public", lambda: {"trimtab.Tuner", "trimtab.lab.sweep", "trimtab.kernel._queries"})
    assert examples.without_example() == ["trimtab.kernel._queries"]
