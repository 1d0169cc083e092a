"""Errors about unwritable files name the place and the remedy, without error numbers of the system."""

import errno
import os
from pathlib import Path

import pytest

from trimtab.live import Study
from trimtab.util import files

from ..program import run

COMMANDS = [
    ("show", "a", "--plot", "{}/a.png"),
    ("show", "a", "--html", "{}/a.html"),
    ("export", "a", "{}/a.json"),
    ("backup", "{}/a.db"),
    ("init", "{}/study.toml"),
    ("init", "{}/study.toml", "--from", "a"),
    ("compare", "quadratic-v1", "--methods", "still", "--rounds", "3", "--trials", "2", "--out", "{}/out"),
    ("paper", "--quick", "--out", "{}/out"),
]


@pytest.fixture
def store(tmp_path):
    knobs = [{"name": "x", "low": 0.0, "high": 1.0, "start": 0.5}]
    with Study.open(tmp_path / "trimtab.db", "a", knobs, seed=0) as study:
        study.tell(study.ask(), 1.0)
    return tmp_path


def refusal(folder, words, place):
    environment = {**os.environ, "TRIMTAB_CACHE": str(folder / "cache"), "COLUMNS": "120"}
    environment.pop("TRIMTAB_STORE", None)
    done = run(*(word.format(place) for word in words), cwd=folder, env=environment)
    assert done.returncode == 2, done.stderr + done.stdout
    (line,) = done.stderr.splitlines()
    assert "Errno" not in line
    assert place in line
    return line


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_folder_that_is_a_file(store, words):
    (store / "file").write_text("not a folder")
    line = refusal(store, words, "file")
    assert "cannot be written" in line
    assert any(remedy in line for remedy in ("create it first", "name another folder", "use another path"))
    assert (store / "file").read_text() == "not a folder"


@pytest.mark.parametrize("words", COMMANDS[:6], ids=" ".join)
def test_a_folder_that_is_missing(store, words):
    assert "missing is not a folder: create it first" in refusal(store, words, "missing")
    assert not (store / "missing").exists()


@pytest.mark.parametrize("words", COMMANDS[:6], ids=" ".join)
def test_a_folder_in_which_nothing_can_be_made(store, words):
    """Not even by root."""
    assert "cannot be written" in refusal(store, words, "/proc")


def test_a_read_only_folder_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(PermissionError, match=f"^a.db cannot be written: {Path.cwd()} is read-only"):
        files.check_destination(Path("a.db"))
    with pytest.raises(PermissionError, match=r"a\.db cannot be written: .* is read-only: use a path where you can"):
        files.check_destination(tmp_path / "a.db")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.EROFS, "use a path where you can write"),
        (errno.EACCES, "use a path where you can write"),
        (errno.ENOSPC, "free some space, or use another path"),
        (errno.EIO, "use another path"),
    ],
)
def test_a_failure_while_writing_names_what_was_to_be_written(tmp_path, monkeypatch, code, remedy):
    def fail(place, *_):
        raise OSError(code, os.strerror(code), place)

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(OSError, match="cannot be written") as caught:
        files.write_atomically(tmp_path / "a.json", b"{}")
    assert str(caught.value) == f"{tmp_path / 'a.json'} cannot be written ({os.strerror(code)}): {remedy}"
    assert caught.value.errno == code


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "study.toml").mkdir()
    line = refusal(tmp_path, ("tune", "{}"), "study.toml")
    assert "study.toml cannot be read (Is a directory)" in line or "cannot be read: Is a directory" in line
