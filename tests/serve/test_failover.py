"""PostgreSQL fails over to a streaming stand-by: with synchronous commit, every acknowledged value is on it."""

import contextlib
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

import trimtab as tt
from trimtab.store.shared_store import SharedStore
from trimtab.study.verify import check_study

from ..databases import caller, made_folder
from ..program import start as start_program
from .conftest import KNOBS
from .processes import end, service

ROUNDS = 15  # before and after each step
STUDY = """
name = "tuned"
command = ["sh", "-c", "echo $((KNOB_N * KNOB_N / 9 + TRIMTAB_ROUND % 7))"]
store = "{store}"
[knobs.n]
type = "integer"
low = 1
high = 900
start = 400
"""


class Servers:
    """A primary, and a stand-by that has on its disk whatever the primary acknowledges."""

    def __init__(self, folder):
        self.folder, self.call = folder, caller(folder)
        self.first, self.second = folder / "first", folder / "second"
        self.sockets = {self.first: made_folder(folder), self.second: made_folder(folder)}
        hosts = ",".join(map(str, self.sockets.values()))
        self.url = f"postgresql://me@/postgres?host={hosts}&target_session_attrs=read-write"
        self.call("initdb", "-D", self.first, "-U", "me", "-A", "trust", "--no-sync")
        self.start(self.first)
        self.call(
            "pg_basebackup",
            "-h",
            self.sockets[self.first],
            "-U",
            "me",
            "-D",
            self.second,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
        )
        self.start(self.second)

    def start(self, data):
        options = f"-k {self.sockets[data]} -c listen_addresses=''"
        self.call("pg_ctl", "-D", data, "-w", "-o", options, "-l", self.folder / "log", "start")

    def wait_for_standby(self, until):
        """From now on the primary acknowledges what the stand-by has written."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as primary:
            primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.execute("SELECT pg_reload_conf()")
            until(lambda: primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchall())

    def kill_first(self):
        """kill -9 of every process of the primary."""
        main = int((self.first / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        for process in (main, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def promote(self):
        self.call("pg_ctl", "-D", self.second, "-w", "promote")

    def stop(self):
        for data in (self.first, self.second):
            with contextlib.suppress(AssertionError):  # it is stopped already
                self.call("pg_ctl", "-D", data, "-m", "immediate", "stop")


@pytest.fixture
def servers():
    pytest.importorskip("psycopg", reason="no psycopg: it comes with the extra postgres")
    if not Path("/proc/self/task").exists():
        pytest.skip("needs /proc to find the processes of the primary")
    folder, found = made_folder(), None
    try:
        found = Servers(folder)
        yield found
    finally:
        if found is not None:
            found.stop()
        shutil.rmtree(folder)


class Work:
    """A thread that tunes over HTTP, and one that reads what `trimtab tune` prints."""

    def __init__(self, url, tuning):
        self.url, self.tuning, self.told, self.printed, self.wrong, self.stop = url, tuning, {}, {}, [], False
        self.threads = [threading.Thread(target=self.tell), threading.Thread(target=self.read)]
        for thread in self.threads:
            thread.start()

    def tell(self):
        try:
            with tt.Client(self.url, patience=90) as client:
                study = client.study("served", KNOBS, seed=1, baseline={"every": 5})
                while not self.stop:
                    trial = study.ask()
                    value = (trial.knobs["gain"] - 6) ** 2 + trial.round % 3
                    study.tell(trial, value)
                    self.told[trial.id] = value
        except Exception as error:
            self.wrong.append(repr(error))

    def read(self):
        for line in self.tuning.stdout:
            words = line.split()
            if words[3] in ("tell", "baseline"):
                self.printed[words[3], int(words[2])] = words[4]

    def counts(self):
        return len(self.told), len(self.printed)

    def go_on(self, until):
        """Until each has acknowledged some more rounds."""
        before = self.counts()
        until(lambda: self.wrong or all(now >= was + ROUNDS for was, now in zip(before, self.counts(), strict=True)))
        assert self.wrong == []


def check(where, work):
    with SharedStore(where) as store:
        served, tuned = (store.load(name) for name in ("served", "tuned"))
        assert check_study(store, served) == check_study(store, tuned) == []
        stored = {event.seq: event.value for event in store.events(served) if event.query is not None}
        assert work.told.items() <= stored.items()
        assert len(stored) - len(work.told) <= 1  # the answer to the last one may have been lost
        events = [event for event in store.events(tuned) if event.value is not None]
        assert [event.seq for event in store.events(tuned)] == list(range(tuned.seq + 1))
        assert work.printed.items() <= {(event.kind, event.round): f"{event.value:.6g}" for event in events}.items()
    print(f"{len(work.told)} values over HTTP and {len(work.printed)} of tune were acknowledged, and are there")


def test_a_standby_has_all_that_was_acknowledged(servers, tmp_path, until):
    (tmp_path / "study.toml").write_text(STUDY.format(store=servers.url))
    running, url = service(servers.url, 1)
    with start_program("tune", "study.toml", "--plain", cwd=tmp_path) as tuning:
        said = []
        listening = threading.Thread(target=lambda: said.extend(tuning.stderr))
        listening.start()
        work = Work(url, tuning)
        try:
            work.go_on(until)
            servers.wait_for_standby(until)
            work.go_on(until)
            servers.kill_first()
            until(lambda: any("waiting for the store" in line for line in said))
            servers.promote()
            work.go_on(until)
            tuning.terminate()
            assert tuning.wait(120) == 0, said
        finally:
            work.stop = True
            work.threads[0].join(120)
            end(running)
            tuning.kill()
            work.threads[1].join(60)
            listening.join(60)
    assert any("the store is back" in line for line in said)
    check(servers.url, work)
