"""Missing rows, as after a bit flip in a key: each reader reports them in one line, or works without them."""

import sqlite3
from contextlib import closing

import pytest

from trimtab.live import Damaged, Store, Study
from trimtab.study.verify import check_study

from ..factories import ONE_KNOB
from ..program import run


@pytest.fixture
def file(tmp_path):
    """Events 0 to 13, without a snapshot at the last; snapshots after 0, 5 and 10 (resets)."""
    with Study.open(tmp_path / "trimtab.db", "a", ONE_KNOB, seed=1, baseline=0) as study:
        for rounds in (4, 4, 3):
            for value in range(rounds):
                study.tell(study.ask(), float(value))
            if rounds == 4:
                study.reset()
        assert study.seq == 13
    lose(tmp_path / "trimtab.db", "snapshots", "seq = 13")  # as if the process had been killed
    return tmp_path / "trimtab.db"


def lose(file, table, where):
    with closing(sqlite3.connect(file)) as db, db:
        assert db.execute(f"UPDATE trimtab_{table} SET study = study + 64 WHERE {where}").rowcount
    return file.read_bytes()


def said(file, *words):
    """Run the program, which must fail, and return its one line of output."""
    done = run(*words, "--store", file, cwd=file.parent)
    assert done.returncode not in (0, 1), done.stdout
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("event", [11, 12, 13])
def test_an_event_since_the_last_state_is_missing(file, event):
    lost = lose(file, "events", f"seq = {event}")
    for words in (["show", "a"], ["show", "a", "--csv"], ["export", "a", "a.json"]):
        assert "study 'a' is damaged" in said(file, *words)
    for opened in (Study.open_unlocked, Study.open):
        with pytest.raises(Damaged, match="restore"):
            opened(file, "a")
    assert file.read_bytes() == lost


def test_the_last_event_is_missing_beside_its_state(tmp_path, file):
    with Study.open(file, "a") as study:
        study.reset()
    lose(file, "events", "seq = 14")
    for words in (["show", "a"], ["export", "a", "a.json"]):
        assert "study 'a' is damaged (event 14, the last one, is missing)" in said(file, *words)
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("event", [0, 5])
def test_what_import_would_refuse_is_not_exported(tmp_path, file, event):
    """The study itself continues: nothing that it needs is missing."""
    lose(file, "events", f"seq = {event}")
    words = ["export", "a", "a.json"]
    assert f"event {event} is missing, but the state after it is there" in said(file, *words)
    assert not (tmp_path / "a.json").exists()
    with Study.open(file, "a") as study:
        study.tell(study.ask(), 1.0)


def test_a_study_without_any_state_is_checked_to_the_end(file):
    lose(file, "snapshots", "seq >= 0")
    with Store(file, "read") as store:
        assert check_study(store, store.load("a")) == ["no state is stored"]
    done = run("check", "--store", file, cwd=file.parent)
    assert "a: no state is stored" in done.stderr
    assert "Traceback" not in done.stderr
