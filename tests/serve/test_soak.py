"""The service and `trimtab tune` on one PostgreSQL, for long: memory, open files and connections do not grow.

Twenty minutes with TRIMTAB_LONG=1 (`make long`), else a few seconds.
"""

import os
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx
import pytest

import trimtab as tt
from trimtab.live import Study

from ..databases import server  # noqa: F401
from ..program import start as start_program
from .conftest import KNOBS
from .processes import end, service

LONG = bool(os.environ.get("TRIMTAB_LONG"))
SECONDS = 1200 if LONG else 6
WARM = 0.25  # share of the time in which caches fill and nothing is compared
GROWTH = 16.0 if LONG else 64.0  # MB; within seconds the service fills its caches and collects no cyclic garbage
STUDIES = 60
STREAM = {"Accept": "text/event-stream"}
STUDY = """
name = "soak"
command = ["sh", "-c", "echo $((KNOB_N * KNOB_N / 9 + TRIMTAB_ROUND % 7))"]
store = "{store}"
pause = 0.01
[knobs.n]
type = "integer"
low = 1
high = 900
start = 400
"""


class Use(NamedTuple):
    """Resources of two programs and the server at one moment."""

    serve: float
    """Megabytes of memory, as `tune`."""
    tune: float
    serve_files: int
    tune_files: int
    connections: int


def memory(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Load:
    """Threads that tune over HTTP, and one that does what a dashboard does."""

    def __init__(self, url):
        self.url, self.stop, self.told, self.wrong = url, False, [0, 0], []
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(len(self.told))]
        self.threads.append(threading.Thread(target=self.look))
        for thread in self.threads:
            thread.start()

    def work(self, n):
        try:
            with tt.Client(self.url, patience=60) as client:
                studies = [client.study(f"s{n}-{k}", KNOBS, seed=k, baseline={"every": 9}) for k in range(STUDIES)]
                while not self.stop:
                    study = studies[self.told[n] % STUDIES]
                    trial = study.ask()
                    study.tell(trial, (trial.knobs["gain"] - 6) ** 2 + trial.id % 3)
                    self.told[n] += 1
        except Exception as error:
            self.wrong.append(error)

    def look(self):
        """Read pages, hang up streams and correct a study."""
        paths = ("/v1/studies", "/v1/studies/s0-0", "/v1/events?study=s0-1", "/", "/studies/s0-0", "/metrics")
        try:
            while not (self.stop or self.wrong or self.told[0]):  # there are no studies yet
                time.sleep(0.1)
            with httpx.Client(base_url=self.url, timeout=60) as http:
                while not self.stop:
                    for path in paths:
                        assert http.get(path).status_code == 200, path
                    with http.stream("GET", "/v1/events?study=s0-1", headers=STREAM) as events:
                        assert next(events.iter_lines())
                    keep = {"changes": {"keep": 1000 + self.told[0] % 5}}
                    assert http.patch("/v1/studies/s0-1", json=keep).status_code == 200
                    time.sleep(0.2)
        except Exception as error:
            self.wrong.append(repr(error))

    def join(self):
        self.stop = True
        for thread in self.threads:
            thread.join(90)


def check_flat(uses):
    """Resources at the end of the run equal those after the warm-up."""
    quarter = len(uses) // 4
    before, after = uses[:quarter], uses[-quarter:]
    for name in Use._fields:
        usual, most = (median, GROWTH) if name in ("serve", "tune") else (min, 1)  # a command that runs has files, too
        was, now = (usual(getattr(use, name) for use in some) for some in (before, after))
        assert now - was <= most, f"{name}: {was:.1f} at first, {now:.1f} at the end"


@pytest.mark.parametrize("name", Use._fields)
def test_growth_is_noticed(name):
    flat = [Use(100.0, 60.0, 20, 9, 6)] * 40
    check_flat(flat)
    grown = [use._replace(**{name: getattr(use, name) + 4 * n}) for n, use in enumerate(flat)]
    with pytest.raises(AssertionError, match=f"{name}: "):
        check_flat(grown)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to measure other processes")
def test_memory_files_and_connections_stay_flat(server, tmp_path, until):  # noqa: F811
    import psycopg

    where, _ = server
    (tmp_path / "study.toml").write_text(STUDY.format(store=where))
    running, url = service(where, 1, "--connections", "4")
    load, uses, said, complaints = Load(url), [], [], []
    try:
        with start_program("tune", "study.toml", "--plain", cwd=tmp_path) as tuning, psycopg.connect(where) as watching:
            threads = [
                threading.Thread(target=lambda: said.extend(tuning.stdout)),
                threading.Thread(target=lambda: complaints.extend(tuning.stderr)),
            ]
            for thread in threads:
                thread.start()
            until(lambda: load.wrong or (min(load.told) > STUDIES and len(said) > 20))
            watching.autocommit = True
            began = time.monotonic()
            while (spent := time.monotonic() - began) < SECONDS and not load.wrong and tuning.poll() is None:
                count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                ((connections,),) = watching.execute(count).fetchall()
                if spent > WARM * SECONDS:
                    pids = (running.pid, tuning.pid)
                    uses.append(Use(*map(memory, pids), *map(files, pids), connections))
                time.sleep(SECONDS / 400)
            assert load.wrong == []
            assert tuning.poll() is None, "tune ended by itself"
            tuning.terminate()
            assert tuning.wait(60) == 0, (complaints, said[-5:])
            for thread in threads:
                thread.join(60)
    finally:
        load.join()
        end(running)
    assert load.wrong == []
    with Study.open_unlocked(where, "soak") as study:
        rounds = study.seq
    assert rounds > SECONDS
    print(
        f"{SECONDS} s, {sum(load.told)} results over HTTP, {rounds} rounds of tune",
        *uses[:: max(len(uses) // 12, 1)],
        sep="\n",
    )
    check_flat(uses)
