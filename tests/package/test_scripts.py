"""Benchmarks and examples can be imported: what they need of the package, and of each other, is there."""

import runpy
from pathlib import Path

import pytest

from trimtab.live import Store, Study

ROOT = Path(__file__).parents[2]
SCRIPTS = [path for folder in ("benchmarks", "examples") for path in sorted((ROOT / folder).glob("*.py"))]
HOSTS = {"torch_digits": "torch", "torch_stream": "torch"}
"""Packages that only `make hosts` installs."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_script_can_be_imported(script, monkeypatch):
    if script.stem in HOSTS:
        pytest.importorskip(HOSTS[script.stem])
    monkeypatch.syspath_prepend(script.parent)  # as where it is run
    monkeypatch.chdir(script.parent)
    before = set(script.parent.iterdir())
    runpy.run_path(str(script), run_name="imported")
    assert {path for path in script.parent.iterdir() if path.name != "__pycache__"} <= before


def test_there_are_scripts():
    assert {path.parent.name for path in SCRIPTS} == {"benchmarks", "examples"}


def test_a_store_that_a_benchmark_has_aged_is_whole(tmp_path, monkeypatch):
    """It writes rows by itself, as they are stored now."""
    pytest.importorskip("optuna")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    runpy.run_path(str(ROOT / "benchmarks" / "live.py"), run_name="imported")["age"](tmp_path, 300)
    (name,) = Store(tmp_path / "trimtab.db", "read").names()
    with Study.open(tmp_path / "trimtab.db", name) as study:
        study.tell(study.ask(), 1.0)
        assert study.seq == 301
