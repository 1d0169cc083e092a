"""Whatever is public has a place in the reference and an example, which is run."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

import examples
import pytest

import trimtab
from trimtab import adapters, domains, registry


def test_no_public_name_is_without_an_example():
    assert examples.without_example() == []


def test_a_name_without_an_example_is_found(monkeypatch):
    monkeypatch.setattr(examples, "public", lambda: {"trimtab.Tuner", "trimtab.lab.sweep", "trimtab.kernel._points"})
    assert examples.without_example() == ["trimtab.kernel._points"]


def test_what_an_adapter_or_a_user_registers_is_not_public(monkeypatch):
    before = examples.public()
    pytest.importorskip("scipy")
    assert adapters.scipy.Ranges.__name__ in dir(trimtab)
    monkeypatch.setattr(registry, "parts", dict(registry.parts))

    @registry.part
    @dataclass(frozen=True)
    class Mine(domains.Ball):
        pass

    assert "Mine" in dir(trimtab)
    assert examples.public() == before


def test_no_public_name_is_missing_from_the_reference():
    assert examples.undocumented() == []


def test_a_name_that_the_reference_lacks_is_found(tmp_path):
    for page in examples.REFERENCE.glob("*.rst"):
        text = page.read_text(encoding="utf-8").replace(".. autofunction:: trimtab.part\n", "")
        (tmp_path / page.name).write_text(
            text.replace("trimtab.theory\n   :members:", "trimtab.theory"), encoding="utf-8"
        )
    missing = examples.undocumented(tmp_path)
    assert "trimtab.part" in missing
    assert "trimtab.theory.diagnose" in missing
    assert "trimtab.Tuner" not in missing
