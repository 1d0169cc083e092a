"""A temporarily unavailable store: `tune` waits, reports it, and then stores the value that it has measured."""

import contextlib
import json
import signal
import socket
import sqlite3
import threading

import pytest

from trimtab.live import Study, Taken, Unavailable
from trimtab.store.retry import delays, retry_while_unavailable

from ..factories import ONE_KNOB
from ..program import start

STUDY = '''
name = "{name}"
store = "{store}"
command = ["sh", "-c", """
  echo $TRIMTAB_ROUND >> measured; sleep 0.05
  test $TRIMTAB_SEQ = 1 || until test -e go; do sleep 0.02; done
  echo $TRIMTAB_ROUND.5
"""]
seed = 1
{more}
[knobs.x]
low = 0
high = 1
start = 0.5
[guard]
leave_at = "query"
'''


# From its second round on the command waits for the file `go`, so that it cannot end before the disturbance.


def tune(folder, store, name, *words, more=""):
    (folder / "study.toml").write_text(STUDY.format(store=store, name=name, more=more))
    return start("tune", "study.toml", *words, cwd=folder)


def check(folder, store, name):
    """Check that every round was measured once, and stored with the value that was measured."""
    with Study.open_unlocked(store, name) as study:
        events = [event for event in study.events() if event.kind in ("tell", "baseline")]
    told = [(event.round, event.value) for event in events]
    rounds = [event.round for event in events if event.kind == "tell"]
    measured = [int(line) for line in (folder / "measured").read_text().split()]
    assert measured == [round for round, _ in told]
    assert rounds == list(range(len(rounds)))  # a baseline round has the number of the next round
    assert all(value == round + 0.5 for round, value in told)
    return len(told)


def test_a_locked_file(tmp_path):
    store = f"sqlite:///{tmp_path}/t.db?timeout=0.1"
    with tune(tmp_path, store, "a", "--rounds", "12") as running:
        running.stdout.readline()
        other = sqlite3.connect(tmp_path / "t.db", isolation_level=None, timeout=300)
        other.execute("BEGIN IMMEDIATE")
        (tmp_path / "go").touch()
        assert "waiting for the store: " in (said := running.stderr.readline())
        assert "database is locked" in said
        other.execute("ROLLBACK")
        other.close()
        assert "the store is back after " in running.stderr.readline()
        running.communicate(timeout=300)
    assert running.returncode == 0
    assert check(tmp_path, tmp_path / "t.db", "a") == 12


def test_the_wait_ends_after_store_patience(tmp_path):
    store = f"sqlite:///{tmp_path}/t.db?timeout=0.1"
    with tune(tmp_path, store, "a", more="store_patience = 1") as running:
        running.stdout.readline()
        other = sqlite3.connect(tmp_path / "t.db", isolation_level=None, timeout=300)
        other.execute("BEGIN IMMEDIATE")
        (tmp_path / "go").touch()
        _, err = running.communicate(timeout=300)
        other.execute("ROLLBACK")
        other.close()
    assert running.returncode == 5
    assert "database is locked" in err.splitlines()[-3]
    with Study.open(tmp_path / "t.db", "a") as study:
        assert study.round >= 1


def test_signals_during_the_wait(tmp_path):
    store = f"sqlite:///{tmp_path}/t.db?timeout=0.1"
    with tune(tmp_path, store, "a") as running:
        running.stdout.readline()
        other = sqlite3.connect(tmp_path / "t.db", isolation_level=None, timeout=300)
        other.execute("BEGIN IMMEDIATE")
        (tmp_path / "go").touch()
        running.stderr.readline()
        running.send_signal(signal.SIGTERM)
        assert "finishing this round" in running.stderr.readline()  # and it keeps waiting
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=300)
        other.close()
    assert running.returncode == 5


def test_an_unavailable_store_at_the_start_is_distinguished_from_bad_input(tmp_path):
    """systemd restarts the first, and leaves the second to a person."""
    Study.open(tmp_path / "t.db", "a", ONE_KNOB).close()
    other = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    nobody = socket.create_server(("127.0.0.1", 0))
    port = nobody.getsockname()[1]
    nobody.close()
    stores = {
        f"sqlite:///{tmp_path}/t.db?timeout=0.1": (5, "database is locked"),
        f"postgresql://me@127.0.0.1:{port}/none": (5, "check that the server is running"),
        f"postgresql://me@127.0.0.1:{port}/none?timeout=1": (2, "invalid URI query parameter"),
        "no-folder/t.db": (2, "is not a folder"),
    }
    for store, (status, why) in stores.items():
        with tune(tmp_path, store, "a", "--rounds", "1") as running:
            _, err = running.communicate(timeout=300)
        assert running.returncode == status, err
        assert why in err
        assert len(err.splitlines()) == 1
    other.close()
    assert not (tmp_path / "measured").exists()


@pytest.mark.parametrize("way", ["fast", "immediate"])
def test_a_server_that_restarts(server, tmp_path, way):
    url, control = server
    with tune(tmp_path, url, f"restart-{way}", "--rounds", "25") as running:
        running.stdout.readline()
        control("-m", way, "stop")
        (tmp_path / "go").touch()
        assert "waiting for the store: " in running.stderr.readline()
        control("start")
        assert "the store is back after " in running.stderr.readline()
        running.communicate(timeout=300)
    assert running.returncode == 0
    assert check(tmp_path, url, f"restart-{way}") == 25


def test_connections_that_are_dropped_repeatedly(url, tmp_path):
    import psycopg

    (tmp_path / "go").touch()
    with tune(tmp_path, url, "dropped", "--rounds", "30") as running, psycopg.connect(url, autocommit=True) as admin:
        for _ in range(6):
            for _ in range(3):
                running.stdout.readline()
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        running.communicate(timeout=300)
    assert running.returncode == 0
    assert check(tmp_path, url, "dropped") == 30


class Proxy:
    """Proxy between a client and the server's socket; `hang` drops everything, as a dead network does."""

    def __init__(self, to):
        self.to, self.hang, self.taken = to, False, 0
        self.door = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return  # the listening socket is closed
            self.taken += 1
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.to)
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(a, b, self.taken), daemon=True).start()

    def carry(self, a, b, number):
        with contextlib.suppress(OSError), a, b:
            while data := a.recv(65536):
                if not (self.hang and number == 1):
                    b.sendall(data)


def test_a_connection_that_hangs_half_open(server, tmp_path, monkeypatch, until):
    """No answer and no error: after the timeout a new connection takes over, with the lock."""
    url, _ = server
    folder = url.rpartition("host=")[2]
    proxy = Proxy(f"{folder}/.s.PGSQL.5432")
    where = f"postgresql://me@127.0.0.1:{proxy.door.getsockname()[1]}/postgres"
    monkeypatch.setattr("trimtab.store.backends.postgres.Connection.patience", 1.0)
    with Study.open(where, "half-open", ONE_KNOB, seed=1) as study:
        study.tell(study.ask(), 1.0)
        trial, said = study.ask(), []
        proxy.hang = True
        retry_while_unavailable(lambda: study.tell(trial, 2.0), patience=60, wait=lambda s: False, say=said.append)
        assert "no answer within 1 s" in said[0]
        assert proxy.taken > 1
        study.tell(study.ask(), 3.0)
        with pytest.raises(Taken, match="is in use by"):
            Study.open(url, "half-open")
        assert [event.value for event in study.events()] == [None, 1.0, 2.0, 3.0]
    proxy.door.close()


def test_another_process_took_the_study_meanwhile(url):
    """The lock was lost with the connection, and another process has it now: stop, rather than write concurrently."""
    import psycopg

    study = Study.open(url, "taken", ONE_KNOB, seed=1)
    study.tell(study.ask(), 1.0)
    trial = study.ask()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with Study.open(url, "taken") as other:
        other.tell(other.ask(), 2.0)
        with pytest.raises(Unavailable):
            study.tell(trial, 3.0)
        with pytest.raises(Taken, match="is in use by"):
            study.tell(trial, 3.0)
    with pytest.raises(Taken, match="was changed by another process meanwhile"):
        study.tell(trial, 3.0)
    study.close()
    with Study.open_unlocked(url, "taken") as study:
        assert [event.value for event in study.events()] == [None, 1.0, 2.0]


def test_a_commit_with_a_lost_acknowledgement_is_not_stored_twice(tmp_path, monkeypatch):
    with Study.open(tmp_path / "t.db", "a", ONE_KNOB, seed=1) as study:
        verify = type(study._store._db).verify
        monkeypatch.setattr(type(study._store._db), "verify", lambda self: (_ for _ in ()).throw(Unavailable("gone")))
        trial = study.ask()
        with pytest.raises(Unavailable):
            study.tell(trial, 5.0)  # stored, but the acknowledgement was lost
        monkeypatch.setattr(type(study._store._db), "verify", verify)
        study.tell(trial, 5.0)
        assert study.round == 1
        study.tell(study.ask(), 6.0)
        assert [event.value for event in study.events()] == [None, 5.0, 6.0]


def test_delays_double_up_to_a_limit():
    found = [delay for delay, _ in zip(delays(0.1, 10.0), range(12), strict=False)]
    assert all(0.8 * min(0.1 * 2**n, 10) <= delay <= 1.2 * min(0.1 * 2**n, 10) for n, delay in enumerate(found))


def test_log_lines_contain_round_value_commit_and_retries(tmp_path):
    store = f"sqlite:///{tmp_path}/t.db?timeout=0.1"
    with tune(tmp_path, store, "a", "--rounds", "4", "--log", "json") as running:
        first = json.loads(running.stderr.readline())
        other = sqlite3.connect(tmp_path / "t.db", isolation_level=None, timeout=300)
        other.execute("BEGIN IMMEDIATE")
        (tmp_path / "go").touch()
        while "waiting for the store" not in running.stderr.readline():
            pass
        other.execute("ROLLBACK")
        other.close()
        out, err = running.communicate(timeout=300)
    assert out == ""
    assert (first["round"], first["value"], first["retries"], first["level"]) == (0, 0.5, 0, "info")
    assert first["commit"] > 0
    assert first["seconds"] > 0.04
    lines = [json.loads(line) for line in err.splitlines()]
    assert max(line.get("retries", 0) for line in lines) >= 1
