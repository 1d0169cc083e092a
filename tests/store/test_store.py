"""Full, locked, damaged, newer and unwritable stores: clear errors, and no loss of data."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trimtab.live import NoStore, Store, StoreError, Study
from trimtab.store import tables

from ..factories import ONE_KNOB, one_knob_store


@pytest.fixture
def file(tmp_path):
    return one_knob_store(tmp_path / "t.db")


def refused(file, reason):
    """Opening fails with this reason and leaves every byte unchanged."""
    before = file.read_bytes()
    for call in (
        lambda: Study.open(file, "a"),
        lambda: Study.open(file, "b", ONE_KNOB),
        lambda: Study.open_unlocked(file, "a"),
    ):
        with pytest.raises(StoreError, match=reason):
            call()
    assert file.read_bytes() == before


def test_writes_are_durable(file):
    with Study.open(file, "a") as study:
        db = study._store._db
        assert db.execute("PRAGMA journal_mode") == [("wal",)]
        assert db.execute("PRAGMA synchronous") == [(2,)]  # FULL


def test_a_newer_store_is_refused(file):
    with sqlite3.connect(file) as db:
        db.execute("UPDATE trimtab_meta SET version = 99")
    db.close()
    refused(file, f"has version 99, but this trimtab reads up to {tables.VERSION}: upgrade trimtab")


def test_a_file_that_is_not_a_store_is_refused(tmp_path):
    file = tmp_path / "notes.db"
    file.write_bytes(b"dear diary, " * 1000)
    refused(file, "not a database: this file is not a store, or is damaged")


def test_the_database_of_another_program_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE customers (name TEXT)")
    db.close()
    refused(tmp_path / "other.db", "is not a store of trimtab: choose another file")


def test_a_damaged_store_is_refused(file):
    data = bytearray(file.read_bytes())
    data[4096 + 8 : 4096 + 3000] = os.urandom(2992)
    file.write_bytes(data)
    refused(file, "damaged")


def test_a_truncated_store_is_refused(file):
    file.write_bytes(file.read_bytes()[: 3 * 4096 + 100])
    refused(file, "damaged")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE trimtab_studies SET status = replace(status, 'round', 'rounds')",
        "UPDATE trimtab_studies SET seq = seq - 1",
        "UPDATE trimtab_studies SET setup = replace(setup, '1.0', '2.0')",
        "UPDATE trimtab_snapshots SET state = substr(state, 1, 40)",
        "UPDATE trimtab_snapshots SET state = replace(state, '0.05', '0.06')",
        "UPDATE trimtab_snapshots SET diagnostics = '{}'",
        "DELETE FROM trimtab_snapshots",
    ],
)
def test_a_mutated_study_is_refused(file, change):
    """A tuner that differs from the saved one is never loaded."""
    with sqlite3.connect(file) as db:
        assert db.execute(change).rowcount > 0
    db.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"is damaged|has no state left"):
        Study.open_unlocked(file, "a")
    assert file.read_bytes() == before


@pytest.mark.parametrize("column", ["value = value + 1", "round = round + 1", "note = 'x'", "query = zeroblob(8)"])
def test_a_mutated_event_is_refused(file, column):
    with sqlite3.connect(file) as db:
        db.execute("DELETE FROM trimtab_snapshots WHERE seq > 0")
        assert db.execute(f"UPDATE trimtab_events SET {column} WHERE seq = 3").rowcount == 1
    db.close()
    with pytest.raises(StoreError, match=r"event 3 in .* is damaged"):
        Study.open(file, "a")


def test_a_migration_is_all_or_nothing(file, monkeypatch):
    before, after = tables.VERSION, tables.VERSION + 1
    monkeypatch.setattr(tables, "VERSION", after)
    good = "ALTER TABLE trimtab_studies ADD COLUMN owner TEXT"
    monkeypatch.setattr(tables, "MIGRATIONS", {after: (good, "ALTER TABLE missing ADD COLUMN x TEXT")})
    with pytest.raises(StoreError, match="no such table"):
        Study.open(file, "a")
    with sqlite3.connect(file) as db:
        assert "owner" not in {row[1] for row in db.execute("PRAGMA table_info(trimtab_studies)")}
        assert db.execute("SELECT version FROM trimtab_meta").fetchall() == [(before,)]
    db.close()
    with pytest.raises(StoreError, match="open it once for writing"):
        Study.open_unlocked(file, "a")
    monkeypatch.setattr(tables, "MIGRATIONS", {after: (good,)})
    store = Store(file)
    assert store.names() == ["a"]
    store.close()
    with sqlite3.connect(file) as db:
        assert "owner" in {row[1] for row in db.execute("PRAGMA table_info(trimtab_studies)")}
        assert db.execute("SELECT version FROM trimtab_meta").fetchall() == [(after,)]
    db.close()


def test_a_locked_database_loses_nothing(file):
    with Study.open(f"sqlite:///{file}?timeout=0.1", "a") as study:
        trial, state = study.ask(), study.state
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="database is locked: another program"):
            study.tell(trial, 7.0)
        assert study.state is state
        other.execute("ROLLBACK")
        other.close()
        study.tell(trial, 7.0)
    with Study.open_unlocked(file, "a") as study:
        assert [event.value for event in study.events()][-1] == 7.0


def fill(study):
    for told in range(1000):
        try:
            study.tell(study.ask(), 1.0)
        except StoreError as error:
            return told, str(error)
    raise AssertionError("it was never full")


def test_a_full_database_loses_nothing(file):
    with Study.open(file, "a") as study:
        db = study._store._db
        db.execute(f"PRAGMA max_page_count={db.execute('PRAGMA page_count')[0][0]}")
        told, why = fill(study)
        assert "is full: free some space, nothing that was acknowledged is lost" in why
        assert study.baseline.slot == 5 + told
        trial = study.ask()
        db.execute("PRAGMA max_page_count=100000")
        study.tell(trial, 2.0)  # there is space again
    with Study.open(file, "a") as study:
        assert study.baseline.slot == 6 + told
        assert len(list(study.events())) == 7 + told


FILL = """
import resource, signal, sys
from trimtab.live import Study, StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
study = Study.open(sys.argv[1], "a")
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
try:
    while True:
        study.tell(study.ask(), 1.0)
        print(study.round, flush=True)
except StoreError as error:
    print(error, file=sys.stderr)
"""


def test_a_full_disk_loses_nothing(file):
    """The operating system stops the files from growing; acknowledged values are still there afterwards."""
    done = subprocess.run([sys.executable, "-c", FILL, file], capture_output=True, text=True, timeout=300)
    assert "nothing that was acknowledged is lost" in done.stderr, done.stderr
    acknowledged = int(done.stdout.split()[-1])
    with Study.open(file, "a") as study:
        assert study.round == acknowledged > 5
        study.tell(study.ask(), 1.0)


def test_a_folder_that_cannot_be_written(tmp_path):
    """Run as another user, because root may write anywhere; imports come first."""
    other = f"os.setuid({pwd.getpwnam('nobody').pw_uid})" if os.geteuid() == 0 else ""
    code = f"import os, sys; from trimtab.live import Study; Study.open(sys.argv[2], 'a', {ONE_KNOB}).close(); "
    code += f"{other or 'pass'}; Study.open(sys.argv[1], 'a', {ONE_KNOB})"
    folder = Path(tempfile.mkdtemp(prefix="trimtab-test-"))
    try:
        folder.chmod(0o555)
        words = [sys.executable, "-c", code, folder / "t.db", tmp_path / "t.db"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        assert "unable to open database file: give read and write permission on the file and its folder" in done.stderr
        assert list(folder.iterdir()) == []
    finally:
        shutil.rmtree(folder)


def test_places_that_cannot_be_stores(tmp_path):
    for where, error, reason in [
        (tmp_path / "no" / "t.db", StoreError, "is not a folder: create it first"),
        ("sqlite://", ValueError, "a study that must survive needs one"),
        ("sqlite:///t.db?timeout=abc", ValueError, "timeout=abc is not a duration: give seconds"),
        ("sqlite:///t.db?timeout=nan", ValueError, "timeout=nan is not a duration: give seconds"),
        ("sqlite:///t.db?timeout=-1", ValueError, "timeout=-1 is not a duration: give seconds"),
        ("mysql://me@host/db", ValueError, "use sqlite or postgresql"),
        ("://", ValueError, "cannot be read"),
    ]:
        with pytest.raises(error, match=reason):
            Study.open(where, "a", ONE_KNOB)
    for where in (tmp_path / "t.db", ":memory:"):  # in Python and in a shell
        with pytest.raises(NoStore, match=r"does not exist: give its path|holds no study") as error:
            Study.open(where, "a")
        assert str(error.value).endswith("trimtab init && trimtab tune study.toml (in Python: give knobs)")
    assert not (tmp_path / "t.db").exists()
    odd = tmp_path / "a b#c?%20.db"
    Study.open(odd, "a", ONE_KNOB).close()
    Study.open(odd, "a").close()
    assert odd.exists()


def test_passwords_are_not_shown():
    with pytest.raises(StoreError) as error:
        Study.open("postgresql://me:secret@127.0.0.1:1/db?connect_timeout=1", "a", ONE_KNOB)
    assert "secret" not in str(error.value)
    assert "check that the server is running" in str(error.value)
    for rest in ("secret@[::1]x/db", "secret%zz@127.0.0.1:1/db"):  # the driver quotes addresses that it cannot parse
        with pytest.raises(ValueError, match="write postgresql://user@host/database") as error:
            Study.open(f"postgresql://me:{rest}", "a", ONE_KNOB)
        assert "secret" not in str(error.value)


def test_a_damaged_schema_is_refused_in_one_line(file):
    """SQLite quotes bytes that need not be valid text."""
    whole, refusals = file.read_bytes(), []
    for place in range(100, 4096, 23):
        data = bytearray(whole)
        data[place] = 0xFF
        file.write_bytes(data)
        try:
            with Store(file, "read") as store:
                store.all()
        except StoreError as error:
            refusals.append(str(error))
    assert any("is damaged (its tables cannot be read)" in text for text in refusals)
    assert not any("\n" in text for text in refusals)
