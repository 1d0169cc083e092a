"""kill -9 of workers and of PostgreSQL under load: what was acknowledged is there, once, and is what it leads to."""

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import trimtab as tt
from trimtab.client import Refused
from trimtab.live import Study
from trimtab.store.shared_store import SharedStore
from trimtab.study.verify import check_study

from ..databases import server  # noqa: F401
from ..factories import KNOBS
from .processes import PROGRAM, end, service, workers

STUDIES = 3


def price(knobs, round):
    return (knobs["gain"] - 6) ** 2 + knobs["size"] % 7 + round % 3


class Clients:
    """Threads that tune, each a study of its own, and write down what was acknowledged."""

    def __init__(self, url):
        self.url, self.told, self.wrong, self.stop = url, [{} for _ in range(STUDIES)], [], False
        self.late = {}
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(STUDIES)]
        self.threads.append(threading.Thread(target=self.work_late))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        for thread in self.threads:
            thread.join(90)

    def work(self, n):
        try:
            with tt.Client(self.url, patience=60) as client:
                study = client.study(f"s{n}", KNOBS, seed=n, baseline={"every": 5})
                while not self.stop:
                    trial = study.ask()
                    value = price(trial.knobs, trial.round)
                    study.tell(trial, value)
                    assert trial.id not in self.told[n]
                    self.told[n][trial.id] = value
        except Exception as error:
            self.wrong.append(error)

    def work_late(self):
        """One study whose values come late, in any order; a trial whose answer was lost is the oldest one again."""
        chance, open_here = random.Random(5), {}
        try:
            with tt.Client(self.url, patience=60) as client:
                study = client.study("late", KNOBS, seed=9, max_pending=3, baseline={"every": 0})
                while not self.stop:
                    try:
                        trial = study.ask(another=len(open_here) > 0)
                    except Refused:  # 409: no more may be open
                        trial = study.ask()
                    open_here[trial.id] = trial
                    if len(open_here) > 2 or chance.random() < 0.5:
                        told = open_here.pop(chance.choice(list(open_here)))
                        study.tell(told, price(told.knobs, told.round))
                        assert told.id not in self.late
                        self.late[told.id] = price(told.knobs, told.round)
        except Exception as error:
            self.wrong.append(error)

    def go_on(self, rounds, until):
        """Wait for this many values more, or for what is wrong."""
        wanted = sum(map(len, self.told)) + rounds
        until(lambda: self.wrong or sum(map(len, self.told)) >= wanted, 120)


def check(where, clients, folder):
    """Each acknowledged value is there, once, and leads to the state of a study that nothing disturbed."""
    assert clients.wrong == []
    check_late(where, clients.late)
    with SharedStore(where) as store:
        for n, told in enumerate(clients.told):
            saved = store.load(f"s{n}")
            assert check_study(store, saved) == []
            events = store.events(saved)
            assert [event.seq for event in events] == list(range(len(events)))
            stored = {event.seq: event.value for event in events if event.query is not None}
            assert told.items() <= stored.items()
            assert len(stored) - len(told) <= 1  # the last one may not have been acknowledged
            with Study.open(folder / "undisturbed.db", f"s{n}", KNOBS, seed=n, baseline=5) as study:
                for _ in stored:
                    trial = study.ask()
                    study.tell(trial, price(trial.knobs, trial.round))
                assert [e._replace(time=0.0) for e in store.events(saved)] == [
                    e._replace(time=0.0) for e in study._store.events(study._saved)
                ]


def check_late(where, told):
    """Each acknowledged value is there once, under the trial that was handed out, and leads to the state that is."""
    with SharedStore(where) as store:
        saved = store.load("late")
        assert check_study(store, saved) == []
        events = store.events(saved)
        assert [event.seq for event in events] == list(range(len(events)))
        rounds = {event.seq: event.round for event in events if event.kind == "ask"}
        values = [(event.round, event.value) for event in events if event.kind == "tell"]
        assert len({round for round, _ in values}) == len(values)
        assert {(rounds[id], value) for id, value in told.items()} <= set(values)
        assert len(values) - len(told) <= 1


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
def test_workers_and_the_database_are_killed(server, tmp_path, until):  # noqa: F811
    where, control = server
    running, url = service(where, 2)
    chance = random.Random(1)
    try:
        with Clients(url) as clients:
            for kill in range(6):
                clients.go_on(15, until)
                if kill == 3:
                    control("-m", "immediate", "restart")  # as kill -9 of PostgreSQL
                else:
                    until(lambda: workers(running.pid))
                    os.kill(chance.choice(workers(running.pid)), signal.SIGKILL)
            clients.go_on(15, until)
    finally:
        end(running)
    check(where, clients, tmp_path)


def test_a_service_on_sqlite_is_killed(tmp_path, until):
    where, chance = str(tmp_path / "t.db"), random.Random(2)
    running, url = service(where, 1)
    port = url.rpartition(":")[2]
    try:
        with Clients(url) as clients:
            for _ in range(3):
                clients.go_on(10, until)
                time.sleep(chance.random() * 0.02)
                running.kill()
                running.wait(300)
                words = [PROGRAM, "serve", "--store", where, "--port", port, "--quiet"]
                running = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    finally:
        end(running)
    check(where, clients, tmp_path)
