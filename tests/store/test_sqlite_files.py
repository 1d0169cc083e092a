"""The files of a store when deleted, replaced, copied or read by others; exports and the files they overwrite."""

import json
import os
import pwd
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trimtab.live import Study, Taken
from trimtab.util.files import write_atomically

from ..factories import ONE_KNOB
from ..program import start, trimtab

STUDY = """
name = "a"
command = ["sh", "-c", "echo $TRIMTAB_SEQ >> seen; test -e slow && sleep 0.05; echo {x}"]
seed = 1
[knobs.x]
low = 0
high = 1
start = 0.5
"""


def tell(file, *values):
    with Study.open(file, "a", ONE_KNOB, seed=1) as study:
        for value in values:
            study.tell(study.ask(), value)


def tuning(folder):
    (folder / "study.toml").write_text(STUDY)
    (folder / "slow").touch()
    return start("tune", "study.toml", cwd=folder)


ATTACKS = {
    "deleted": lambda file, _: file.unlink(),
    "replaced": lambda file, other: os.replace(other, file),
    "log deleted": lambda file, _: Path(f"{file}-wal").unlink(),
    "emptied": lambda file, _: os.truncate(file, 0),
    "cut off": lambda file, _: os.truncate(file, 8192),
    "noise": lambda file, _: file.write_bytes(os.urandom(100_000)),
    "another store": lambda file, other: shutil.copy(other, file),
    "a backup": lambda file, _: shutil.copy(file.with_name("copy.db"), file),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_missing_file_is_detected_before_a_value_is_acknowledged(tmp_path, attack):
    tell(tmp_path / "other.db", *map(float, range(300)))
    with tuning(tmp_path) as running:
        lines = [running.stdout.readline() for _ in range(5)]
        trimtab(tmp_path, "backup", "copy.db")
        ATTACKS[attack](tmp_path / "trimtab.db", tmp_path / "other.db")
        out, err = running.communicate(timeout=300)
    assert running.returncode == 5
    gone = attack in ("deleted", "replaced", "log deleted")
    assert f"was {'deleted or replaced' if gone else 'written over in place'} while in use" in err
    if attack == "replaced":  # by a store that the old log cannot damage
        assert "no damage found" in trimtab(tmp_path, "check")
        (log,) = tmp_path.glob("trimtab.db-wal.rescued-*")
        assert f"its log is now {log}" in err
    (rescued,) = [file for file in tmp_path.glob("trimtab.db.rescued-*") if not file.name.endswith(("-wal", "-shm"))]
    assert str(rescued) in err
    with Study.open_unlocked(rescued, "a") as study:
        kept = [event.round for event in study.events() if event.kind == "tell"]
    printed = [int(line.split()[2]) for line in (*lines, *out.splitlines()) if " tell " in line]
    assert len(printed) >= 5
    assert set(printed) <= set(kept)  # the copy contains everything that was acknowledged


WRITE = """
import sys
from trimtab.live import Study
with Study.open(sys.argv[1], "b") as study:
    study._store._db.execute("PRAGMA wal_autocheckpoint=1")
    for n in range(100):
        study.tell(study.ask(), float(n))
        if n % 20 == 10:
            study._store._db.execute("VACUUM")
"""


def test_regular_use_by_other_processes_raises_no_alarm(tmp_path, monkeypatch):
    """Two writers, checkpoints by both, VACUUM and a short-lived connection: all of them continue."""
    file = tmp_path / "t.db"
    for name in "ab":
        Study.open(file, name, ONE_KNOB, seed=1).close()
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE trimtab_ballast AS SELECT zeroblob(1000000)")
    db.close()
    size = file.stat().st_size
    monkeypatch.setattr("trimtab.store.backends.sqlite.CHECKPOINT", 0.0)
    with Study.open(file, "a") as study:
        with sqlite3.connect(file) as db:
            db.execute("DROP TABLE trimtab_ballast")
        db.close()
        with subprocess.Popen([sys.executable, "-c", WRITE, file]) as other:
            rounds = 0
            while other.poll() is None or rounds < 100:
                study.tell(study.ask(), 1.0)
                rounds += 1
        assert other.returncode == 0
        assert Path(f"{file}-wal").exists()  # reading the header drops no lock: the log was not removed
        study.tell(study.ask(), 1.0)
    assert file.stat().st_size < size
    assert "no damage found" in trimtab(tmp_path, "check", "--store", file)


def test_a_removed_lock_file_is_locked_again_or_the_study_is_lost(tmp_path):
    lock = tmp_path / "t.db.a.lock"
    with Study.open(tmp_path / "t.db", "a", ONE_KNOB, seed=1) as first:
        lock.unlink()
        first.tell(first.ask(), 1.0)
        with pytest.raises(Taken, match="is in use by"):
            Study.open(tmp_path / "t.db", "a")
        trial = first.ask()
        lock.unlink()
        with Study.open(tmp_path / "t.db", "a") as second:
            for _ in range(2):
                with pytest.raises(Taken, match=r"a\.lock was removed, and another process uses the study now"):
                    first.tell(trial, 2.0)
            second.tell(second.ask(), 2.0)
            first.close()
            with Study.open_unlocked(tmp_path / "t.db", "a") as study:
                assert study._saved.holder is not None  # still the second one
                assert [event.kind for event in study.events()] == ["start", "tell", "tell"]


def test_an_event_of_another_process_is_not_mistaken_for_its_own(tmp_path):
    """The same round with the same value, stored by a process that had the lock meanwhile."""
    with Study.open(tmp_path / "t.db", "a", ONE_KNOB, seed=1) as first:
        trial = first.ask()
        (tmp_path / "t.db.a.lock").unlink()
        with Study.open(tmp_path / "t.db", "a") as second:
            second.tell(second.ask(), 2.0)
        with pytest.raises(Taken, match="was changed by another process meanwhile"):
            first.tell(trial, 2.0)


def test_a_plain_copy_contains_all_rounds_older_than_a_minute(tmp_path, monkeypatch):
    """`cp trimtab.db` of a running study is never empty, and has all but the last rounds."""
    monkeypatch.setattr("trimtab.store.backends.sqlite.CHECKPOINT", 0.0)
    with Study.open(tmp_path / "t.db", "a", ONE_KNOB, seed=1) as study:
        shutil.copy(tmp_path / "t.db", tmp_path / "fresh.db")
        for value in range(10):
            study.tell(study.ask(), float(value))
        shutil.copy(tmp_path / "t.db", tmp_path / "later.db")
    with Study.open_unlocked(tmp_path / "fresh.db", "a") as study:
        assert study.round == 0
    with Study.open_unlocked(tmp_path / "later.db", "a") as study:
        assert study.round == 10


def test_backup_during_tuning(tmp_path):
    with tuning(tmp_path) as running:
        for _ in range(3):
            running.stdout.readline()
        for n in range(5):
            assert "written: " in trimtab(tmp_path, "backup", f"copy{n}.db")
            assert "no damage found" in trimtab(tmp_path, "check", "--store", f"copy{n}.db")
        assert "no damage found" in trimtab(tmp_path, "check")
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)
    rounds = []
    for n in range(5):
        with Study.open(tmp_path / f"copy{n}.db", "a") as study:
            rounds.append(study.round)
            study.tell(study.ask(), 1.0)
    assert rounds == sorted(rounds)
    assert rounds[0] >= 3
    assert "already exists: give another name, or --force" in trimtab(tmp_path, "backup", "copy0.db", status=2)
    trimtab(tmp_path, "backup", "copy0.db", "--force")
    assert not [file for file in tmp_path.iterdir() if ".tmp" in file.name]


def test_a_backup_over_a_store_whose_writer_was_killed(tmp_path):
    """A log left beside the overwritten database must not be replayed into the copy."""
    store, copy, log = (tmp_path / name for name in ("trimtab.db", "copy.db", "copy.db-wal"))
    tell(store, *map(float, range(20)))
    trimtab(tmp_path, "backup", "copy.db")
    with Study.open(copy, "a") as study:
        for value in range(50):
            study.tell(study.ask(), float(value))
        kept = {file: file.read_bytes() for file in (copy, log)}
    for file, data in kept.items():
        file.write_bytes(data)
    tell(store, *map(float, range(200)))
    trimtab(tmp_path, "backup", "copy.db", "--force")
    assert "no damage found" in trimtab(tmp_path, "check", "--store", "copy.db")
    with Study.open_unlocked(copy, "a") as study, Study.open_unlocked(store, "a") as original:
        assert study.round == original.round
    assert sorted(file.name for file in tmp_path.glob("copy*")) == ["copy.db", "copy.db.a.lock"]


def test_a_backup_does_not_overwrite_a_file_in_use(tmp_path):
    tell(tmp_path / "trimtab.db", 1.0)
    trimtab(tmp_path, "backup", "copy.db")
    (tmp_path / "link.db").symlink_to("trimtab.db")
    for name in ("trimtab.db", "link.db"):
        assert "is the store itself" in trimtab(tmp_path, "backup", name, "--force", status=2)
    with Study.open(tmp_path / "copy.db", "a") as study:
        assert "is a store in use (a)" in trimtab(tmp_path, "backup", "copy.db", "--force", status=2)
        study.tell(study.ask(), 2.0)
    (tmp_path / "notes").write_text("no store")
    for name in ("copy.db", "notes"):
        trimtab(tmp_path, "backup", name, "--force")
        assert "no damage found" in trimtab(tmp_path, "check", "--store", name)


def test_check_finds_damage(tmp_path):
    file = tmp_path / "trimtab.db"
    tell(file, *map(float, range(250)))
    found = json.loads(trimtab(tmp_path, "check", "--json"))
    assert found == {"store": str(file), "studies": 1, "wrong": []}
    for change, reason in [
        ("UPDATE trimtab_events SET value = 7 WHERE seq = 50", "event 50 in"),
        ("UPDATE trimtab_snapshots SET state = replace(state, '5', '6') WHERE seq = 100", "the state after event 100"),
        ("DELETE FROM trimtab_events WHERE seq = 250", "the last event, 250, is missing"),
        ("UPDATE trimtab_studies SET seq = 3", "the checksum does not match"),
    ]:
        shutil.copy(file, tmp_path / "bad.db")
        with sqlite3.connect(tmp_path / "bad.db") as db:
            db.execute(change)
        db.close()
        assert reason in trimtab(tmp_path, "check", "--store", "bad.db", status=1)
    data = bytearray(file.read_bytes())
    data[-4000:-100] = bytes(3900)
    (tmp_path / "torn.db").write_bytes(data)
    trimtab(tmp_path, "check", "--store", "torn.db", status=1)


READ = """
import os, sys
from trimtab.cli.stores import list_studies
from trimtab.cli.studies import show
import trimtab.study.study
os.setuid(int(sys.argv[2]))
list_studies(sys.argv[1], as_json=True)
show("a", None, True, False, None, None, sys.argv[1])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("end", ["killed", "closed"])
def test_another_user_reads_a_store_whose_holder_is_gone(end):
    folder = Path(tempfile.mkdtemp(prefix="trimtab-test-"))
    try:
        folder.chmod(0o755)
        file = folder / "t.db"
        finish = "os.kill(os.getpid(), 9)" if end == "killed" else "study.close()"
        code = "import os; from trimtab.live import Study\n"
        code += f"study = Study.open({str(file)!r}, 'a', {ONE_KNOB}, seed=1)\n"
        code += f"for v in (3.0, 4.0): study.tell(study.ask(), v)\n{finish}"
        subprocess.run([sys.executable, "-c", code], timeout=300)
        for there in folder.iterdir():
            there.chmod(0o644)  # readable only by the owner until then
        user = str(pwd.getpwnam("nobody").pw_uid)
        done = subprocess.run([sys.executable, "-c", READ, file, user], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count('"rounds": 2') == 4  # of the list and of the study, each with its saving
        with Study.open(file, "a") as study:
            assert study.round == 2
    finally:
        shutil.rmtree(folder)


def test_exports_keep_the_mode_and_overwrite_only_regular_files(tmp_path):
    tell(tmp_path / "trimtab.db", 1.0, 2.0)
    file = tmp_path / "a.json"
    trimtab(tmp_path, "export", "a", "a.json")
    file.chmod(0o600)
    before = file.read_bytes()
    assert "already exists: give another name, or --force" in trimtab(tmp_path, "export", "a", "a.json", status=2)
    assert file.read_bytes() == before
    trimtab(tmp_path, "export", "a", "a.json", "--force")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "link.json").symlink_to(file)
    trimtab(tmp_path, "export", "a", "link.json", "--force")
    assert (tmp_path / "link.json").is_symlink()
    (tmp_path / "null").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    for name in ("null", "pipe", "/dev/full", "."):
        for command in (["export", "a", name, "--force"], ["backup", name, "--force"], ["import", name]):
            assert "is a device, a pipe or a folder" in trimtab(tmp_path, *command, status=2)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_writing_keeps_the_mode(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"old")
    for mode in (0o600, 0o640, 0o755):
        file.chmod(mode)
        write_atomically(file, b"new")
        assert stat.S_IMODE(file.stat().st_mode) == mode
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "g", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "g").stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["f", "g"]


def test_stores_and_their_copies_are_private_to_their_owner(tmp_path):
    def modes():
        return {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in tmp_path.glob("*.db*")}

    before = os.umask(0o022)
    try:
        with Study.open(tmp_path / "t.db", "a", ONE_KNOB, seed=1) as study:
            study.tell(study.ask(), 1.0)
            study._store.backup(tmp_path / "copy.db")
            assert set(modes()) == {"t.db", "t.db-wal", "t.db-shm", "t.db.a.lock", "copy.db"}
            assert {mode for name, mode in modes().items() if not name.endswith(".lock")} == {"0o600"}
        trimtab(tmp_path, "backup", "other.db", "--store", "t.db")
        assert modes()["other.db"] == "0o600"
        (tmp_path / "copy.db").chmod(0o660)  # shared on purpose
        with Study.open(tmp_path / "copy.db", "a") as study:
            study.tell(study.ask(), 1.0)
            assert {modes()[name] for name in ("copy.db", "copy.db-wal", "copy.db-shm")} == {"0o660"}
    finally:
        os.umask(before)
