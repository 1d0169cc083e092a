"""Shell completion offers names of studies at once, and nothing after an error."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.live import Study

from ..factories import ONE_KNOB

PROGRAM = Path(sys.executable).with_name("trimtab")


@pytest.fixture
def folder(tmp_path):
    for store, name in (("trimtab.db", "press"), ("trimtab.db", "pump"), ("trimtab.db", "oven"), ("b.db", "pipe")):
        with Study.open(tmp_path / store, name, ONE_KNOB, seed=0):
            pass
    return tmp_path


def offered(folder, *words, **more):
    """The completions in bash for these words, the last one incomplete."""
    environment = {name: value for name, value in os.environ.items() if name != "TRIMTAB_STORE"}
    asked = {"COMP_WORDS": " ".join(("trimtab", *words)), "COMP_CWORD": str(len(words)), **more}
    environment |= {"_TRIMTAB_COMPLETE": "complete_bash", **asked}
    done = subprocess.run([PROGRAM], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("command", ["show", "set", "export", "approve", "undo"])
def test_names_of_studies_are_offered(folder, command):
    assert offered(folder, command, "p") == ["press", "pump"]


def test_of_the_store_that_is_named(folder):
    assert offered(folder, "show", "--store", "b.db", "p") == ["pipe"]
    assert offered(folder, "show", "p", TRIMTAB_STORE="b.db") == ["pipe"]
    assert offered(folder, "reset-to", "start", "--study", "o") == ["oven"]
    assert offered(folder, "init", "--from", "o") == ["oven"]


def test_a_name_is_no_pattern(folder):
    assert offered(folder, "show", "p%") == offered(folder, "show", "*") == []


@pytest.mark.parametrize("store", ["postgresql://127.0.0.1:9/none", "missing.db", "folder", "text.db", "bare.db"])
def test_where_there_is_nothing_to_read_nothing_is_offered(folder, store):
    (folder / "folder").mkdir()
    (folder / "text.db").write_text("no database")
    sqlite3.connect(folder / "bare.db").execute("CREATE TABLE a (b)").connection.close()
    assert offered(folder, "show", "--store", store, "p") == []
    assert not (folder / "missing.db").exists()


def test_it_needs_no_numpy():
    code = "import sys, trimtab.cli.completion; print(sorted({'numpy', 'sqlite3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
