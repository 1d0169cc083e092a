"""Durable rounds per second of `trimtab serve` and of Optuna's RDB storage, on the same PostgreSQL.

Starts its own PostgreSQL (fsync on, in a temporary folder), fills a store with studies, starts services with 1, 2 and
4 workers, and sends them load in steps, open loop: requests start when they are due, whatever became of those before,
and latency counts from then. A round is one request: the value of a trial, answered with the next one when it is on the
disk; a tenth of the requests are sent twice. Then the same through /v1/tells, 500 studies a request. Beside it, in the
same run, on the same server, before and after, Optuna's ask + tell of as many knobs. CPU is that of the service, or of
Optuna's processes, and of the database, per round: it says what the machine could do if nobody else used it. Last, what
a round costs, part by part.

    python benchmarks/service.py [--quick] [--studies 100000] [--seconds 5] [--workers 1 2 4] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import glob
import itertools
import json
import math
import multiprocessing
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import psutil

from trimtab.serve.api import ask_tell
from trimtab.serve.api.ask_tell import Result
from trimtab.serve.api.tell_batch import response_to, to_json_text
from trimtab.spec.knob_encoding import Knobs
from trimtab.state import Key
from trimtab.store.pool import Pool
from trimtab.store.shared_store import SharedStore
from trimtab.store.tables import (
    EVENT_COLUMNS,
    Marks,
    marks_checksum,
    read_study,
    row_checksum,
    snapshot_row,
    sort_columns,
)
from trimtab.study import create
from trimtab.study.packed_state import packed
from trimtab.study.unlocked import CachedStudy, UnlockedStudy, load, of_row
from trimtab.util.checksums import canonical

DIM = 10
BATCH = 500
TIMES = 15
PARTS = (
    "read the rows: one query",
    "checksums, and states from them",
    "tell: core, figures, event",
    "the next trial, and the answer",
    "store: one statement, with the wait for the disk",
)
SEEDS = 1000  # of the studies
DUPLICATES = 0.1
KEPT = 0.95  # of the offered rate: a step that serves less is a miss
TOO_LATE, TOO_LATE_BATCH = 1.0, 2.0  # seconds of p99: so is one that is slower
MISSES = 2  # in a row are the end; one may be somebody else's, on a machine that is shared
LEAST = 50.0  # times Optuna's rate, one study a request or many


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server of our own, on a socket in a folder."""
    found = [os.path.dirname(shutil.which("pg_ctl") or ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"))[::-1]]
    programs = next((f for f in found if f and os.path.exists(f"{f}/initdb")), None)
    if programs is None:
        sys.exit("no PostgreSQL here: install it, so that initdb and pg_ctl are on the PATH")
    user = "nobody" if os.geteuid() == 0 else None  # it refuses to be root
    if user:
        shutil.chown(folder, user)

    def call(program: str, *words: object) -> None:
        with open(folder / "said", "ab") as said:
            command = [f"{programs}/{program}", *map(str, words)]
            subprocess.run(command, user=user, cwd="/", stdout=said, stderr=said, check=True)

    call("initdb", "-D", folder / "data", "-U", "me", "-A", "trust", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c max_connections=100 -c shared_buffers=2GB -c max_wal_size=4GB"
    call("pg_ctl", "-D", folder / "data", "-w", "-o", options, "-l", folder / "log", "start")
    try:
        yield f"postgresql://me@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")


def spent(pid: int) -> float:
    """CPU seconds of a process and of all that it started, so far."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


def database_of(where: str) -> int:
    """The process of the server, of which all others are children."""
    return int(Path(where.rpartition("=")[2], "data", "postmaster.pid").read_text().split()[0])


def name_of(n: int) -> str:
    return f"s{n:07d}"


def fill(where: str, count: int) -> None:
    """So many studies that have just begun: one is made, the others are its copies, with names and seeds their own."""
    knobs = [{"name": f"x{k}", "low": 0.0, "high": 1.0, "start": 0.5} for k in range(DIM)]
    with SharedStore(where) as store:
        first = create.create(store, name_of(0), Knobs.of(knobs), None, False, 1, {}, 0, None)
        (known,) = load(store, [first.name])
        assert isinstance(known, CachedStudy)
        status = canonical(first.status)
        begun = [
            known.position._replace(state=known.position.state._replace(key=Key(n))) for n in range(min(SEEDS, count))
        ]
        store.execute("SET statement_timeout = 0")
        cursor = store._db._db.cursor()  # type: ignore[attr-defined]
        columns = "uid, name, created, setup, seq, status, failures, advised, told, checksum, marked, state"
        with cursor.copy(f"COPY trimtab_studies ({columns}) FROM STDIN") as rows:
            for n in range(1, count):
                uid, name, described = f"{n:016x}", name_of(n), first.described
                about = (uid, name, first.created, described, 0, status, *sort_columns(first.status))
                state = packed(known.shape, uid, begun[n % SEEDS], 0, 0)
                rows.write_row((*about, row_checksum(*about), marks_checksum(uid, Marks()), state))
        theirs = ", ".join(f"t.{column}" for column in EVENT_COLUMNS.split(", "))
        store.execute(
            f"INSERT INTO trimtab_events (study, {EVENT_COLUMNS}) SELECT s.id, {theirs}"
            " FROM trimtab_studies s, trimtab_events t WHERE t.study = ? AND s.id <> t.study",
            first.id,
        )
        ids = store.execute("SELECT id, name FROM trimtab_studies WHERE id <> ?", first.id)
        snapshots = [snapshot_row(0, at.snapshot(0))[1:] for at in begun]
        with cursor.copy("COPY trimtab_snapshots (study, seq, state, diagnostics, checksum) FROM STDIN") as rows:
            for id, name in ids:
                rows.write_row((id, *snapshots[int(name[1:]) % SEEDS]))
        store.execute("VACUUM ANALYZE")
        store.execute("CHECKPOINT")  # what it took to fill it is nobody's work that is measured


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        found: int = one.getsockname()[1]
    return found


@contextlib.contextmanager
def service(where: str, workers: int) -> Iterator[tuple[int, list[int]]]:
    """A running service; gives its port, and whose work it is: its own and the database's."""
    port = free_port()
    words = [sys.executable, "-c", "from trimtab.cli import main; main()", "serve", "--store", where, "--quiet"]
    words += ["--port", str(port), "--workers", str(workers), "--connections", "6"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as running:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as one:
                    one.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    if b" 200 " in one.recv(200):
                        break
                time.sleep(0.1)
            yield port, [running.pid, database_of(where)]
        finally:
            running.terminate()
            running.wait(30)


class Load:
    """Requests over kept connections, as light as they can be: the load must not be what limits."""

    next_trial: ClassVar[dict[int, int]] = {}  # of every study, for the whole run

    def __init__(self, port: int, studies: int, seed: int) -> None:
        self.port, self.count, self.chance = port, studies, random.Random(seed)
        self.busy: set[int] = set()
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.waits: list[float] = []
        self.told = self.failed = self.active = 0
        self.why = b""

    async def send(self, method: str, path: str, body: str) -> tuple[int, bytes]:
        """A request; once more, where a connection that nothing was said on for long is closed at the same moment."""
        try:
            return await self._send(*(self.idle.pop() if self.idle else await self._connect()), method, path, body)
        except (ConnectionError, asyncio.IncompleteReadError):
            return await self._send(*await self._connect(), method, path, body)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def _send(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: str
    ) -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        place = answer.lower().index(b"content-length:") + 15
        text = await reader.readexactly(int(answer[place : answer.index(b"\r\n", place)]))
        self.idle.append((reader, writer))
        return int(answer[9:12]), text

    def pick(self, many: int) -> list[int]:
        """Studies that nobody tells just now, from anywhere in the store."""
        found: set[int] = set()
        while len(found) < many:
            n = self.chance.randrange(self.count)
            if n not in self.busy:
                found.add(n)
        self.busy |= found
        return list(found)

    async def one(self, due: float, many: int) -> None:
        """One request: a value of each of these studies, and perhaps the same again."""
        studies = self.pick(many)
        trials = [self.next_trial.get(n, 1) for n in studies]
        values = [self.chance.random() for _ in studies]
        if many == 1:
            path = f"/v1/studies/{name_of(studies[0])}/trials/{trials[0]}/result?next=true"
            method, body = "PUT", f'{{"value":{values[0]}}}'
        else:
            rows = zip(studies, trials, values, strict=True)
            results = [{"study": name_of(n), "trial": trial, "value": value} for n, trial, value in rows]
            method, path, body = "POST", "/v1/tells", json.dumps({"results": results, "next": True})
        try:
            status, text = await self.send(method, path, body)
            self.waits.append(time.perf_counter() - due)
            good = status == 200 and (many == 1 or text.count(b'"status":200') == many)
            if not good:
                self.failed += 1
                self.why = text[:300]
                return
            self.told += many
            for n, trial in zip(studies, trials, strict=True):
                self.next_trial[n] = trial + 1
            if self.chance.random() < DUPLICATES:
                status, text = await self.send(method, path, body)
                self.failed += status != 200 or text.count(b'"again":true') != many
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.failed += 1
            self.why = repr(error).encode()
        finally:
            self.busy -= set(studies)
            self.active -= 1

    async def step(self, rate: float, seconds: float, many: int) -> dict[str, float]:
        """So many requests per second, evenly and whatever happens."""
        self.waits, self.told, self.failed, began = [], 0, 0, time.perf_counter()
        tasks: list[asyncio.Task[None]] = []
        n = 0
        while (now := time.perf_counter() - began) < seconds:
            while n < now * rate and self.active < 250 and len(self.busy) + many <= 0.7 * self.count:
                self.active += 1
                tasks.append(asyncio.create_task(self.one(began + n / rate, many)))
                n += 1
            await asyncio.sleep(max(0.0005, (n / rate) - (time.perf_counter() - began)))
        await asyncio.wait(tasks, timeout=20)
        waits = sorted(self.waits) or [math.inf]
        # what a request takes that nobody is before is no delay
        took = max(time.perf_counter() - began - min(waits[0], seconds), seconds)
        p50, p99 = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
        return {"offered": rate * many, "told": self.told / took, "p50": p50, "p99": p99, "failed": self.failed}


def climb(
    served: tuple[int, list[int]], studies: int, seconds: float, many: int, first: float, seed: int
) -> list[dict[str, float]]:
    """Steps of growing load, until they are not served in time."""

    port, processes = served

    async def run() -> list[dict[str, float]]:
        load, found, rate, missed = Load(port, studies, seed), list[dict[str, float]](), first, 0
        await load.step(rate / 2, min(seconds, 2.0), many)  # the first ones warm up
        while True:
            before, own = [spent(pid) for pid in processes], time.process_time()
            step = await load.step(rate, seconds, many)
            step["cpu_load"] = (time.process_time() - own) / max(load.told, 1)
            cost = [(spent(pid) - b) / max(load.told, 1) for pid, b in zip(processes, before, strict=True)]
            step |= {"cpu": cost[0], "cpu_database": cost[1]}
            found.append(step)
            print(
                f"    offered {step['offered']:8.0f}/s   told {step['told']:8.0f}/s   p50 {step['p50'] * 1e3:7.1f} ms"
                f"   p99 {step['p99'] * 1e3:7.1f} ms   CPU {cost[0] * 1e3:.2f} + {cost[1] * 1e3:.2f} ms"
                f" (load {step['cpu_load'] * 1e3:.2f})"
                f"   failed {step['failed']:.0f} {load.why.decode(errors='replace')}",
                flush=True,
            )
            late = step["p99"] > (TOO_LATE if many == 1 else TOO_LATE_BATCH)
            missed = missed + 1 if late or step["told"] < KEPT * step["offered"] else 0
            if missed == MISSES or step["failed"]:
                return found
            rate *= 1.4

    return asyncio.run(run())


def optuna_rounds(where: str, sampler: str, seconds: float, seed: int, out: Any) -> None:
    """Ask + tell for some seconds, in a process of its own."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kind = {"random": optuna.samplers.RandomSampler, "TPE": optuna.samplers.TPESampler}[sampler]
    storage = optuna.storages.RDBStorage(_for_optuna(where))
    study = optuna.create_study(storage=storage, sampler=kind(seed=seed))
    space = {f"x{k}": optuna.distributions.FloatDistribution(0.0, 1.0) for k in range(DIM)}
    study.tell(study.ask(space), 1.0)
    done, end, cpu = 0, time.perf_counter() + seconds, time.process_time()
    while time.perf_counter() < end:
        trial = study.ask(space)
        study.tell(trial, sum((x - 0.3) ** 2 for x in trial.params.values()))
        done += 1
    out.put((done, done / seconds, time.process_time() - cpu))


def _for_optuna(where: str) -> str:
    return where.replace("postgresql://", "postgresql+psycopg://")


def optuna_rate(where: str, sampler: str, processes: int, seconds: float) -> dict[str, float]:
    import optuna

    optuna.storages.RDBStorage(
        _for_optuna(where)
    ).remove_session()  # the tables are there before anybody races for them
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    running = [
        context.Process(target=optuna_rounds, args=(where, sampler, seconds, seed, out)) for seed in range(processes)
    ]
    before = spent(database_of(where))
    for one in running:
        one.start()
    done, rates, cpu = zip(*(out.get(timeout=60 + 10 * seconds) for _ in running), strict=True)
    database = (spent(database_of(where)) - before) / sum(done)
    for one in running:
        one.join()
    return {"told": sum(rates), "cpu": sum(cpu) / sum(done), "cpu_database": database}


def optuna_rates(where: str, workers: list[int], seconds: float, when: str) -> dict[str, dict[str, float]]:
    """By sampler and number of processes; before and after the services, because a machine may be busier at times."""
    figures: dict[str, dict[str, float]] = {}
    for processes, sampler in itertools.product(workers, ("random", "TPE")):
        found = figures[f"{sampler}, {processes}, {when}"] = optuna_rate(where, sampler, processes, max(seconds, 4.0))
        print(
            f"Optuna, RDB storage, {sampler} sampler, {processes} processes: {found['told']:.1f} ask + tell per"
            f" second, CPU {found['cpu'] * 1e3:.1f} + {found['cpu_database'] * 1e3:.1f} ms",
            flush=True,
        )
    return figures


def parts(where: str, many: int) -> dict[str, float]:
    """Time the parts of a round of studies that are not cached, in µs; the median of several batches of this size."""
    pool, found = Pool(where, 1), dict[str, list[float]]()
    with pool.store() as store:
        count = store.execute("SELECT COUNT(*) FROM trimtab_studies")[0][0]
        for n in range(TIMES):
            names = [name_of(k) for k in random.Random(n).sample(range(count), many)]
            ticks = [time.perf_counter()]
            raw = store.rows(names)
            ticks.append(time.perf_counter())
            known = [study for one in raw if (study := of_row(read_study(one, store.where), one.state)) is not None]
            studies = [UnlockedStudy(store, one) for one in known]
            ticks.append(time.perf_counter())
            told = [ask_tell.tell(study, study.open_id, Result(0.5)) for study in studies]
            ticks.append(time.perf_counter())
            to_json_text({"results": [response_to(*pair, next=True) for pair in zip(told, studies, strict=True)]})
            ticks.append(time.perf_counter())
            stored = store.commit_if([study.move for study in studies if study.move])
            ticks.append(time.perf_counter())
            assert len(stored) == len(studies) == many
            for part, (begin, end) in zip(PARTS, itertools.pairwise(ticks), strict=True):
                found.setdefault(part, []).append((end - begin) / many)
    pool.close()
    return {part: statistics.median(costs) * 1e6 for part, costs in found.items()}


def work(found: dict[str, float]) -> float:
    """CPU seconds of a round: what does not depend on who else uses the machine."""
    return found["cpu"] + found["cpu_database"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1000 studies, 2 s a step, 1 and 2 workers")
    parser.add_argument("--studies", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each step")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--folder", type=Path, help="where to put the database (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if options.quick:
        options.studies, options.seconds, options.workers = 1000, 2.0, [1, 2]
    figures: dict[str, Any] = {"studies": options.studies, "tells": {}, "batches": {}, "optuna": {}}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="trimtab-pg-") as name, postgres(Path(name)) as where:
        began = time.perf_counter()
        fill(where, options.studies)
        print(f"{options.studies:,} studies of {DIM} knobs in one store, filled in {time.perf_counter() - began:.0f} s")
        figures["optuna"] = optuna_rates(where, options.workers, options.seconds, "before")
        for workers in options.workers:
            with service(where, workers) as served:
                print(f"trimtab serve --workers {workers}: one study a request")
                figures["tells"][workers] = climb(served, options.studies, options.seconds, 1, 100.0, workers)
                print(f"trimtab serve --workers {workers}: {BATCH} studies a request")
                figures["batches"][workers] = climb(served, options.studies, options.seconds, BATCH, 2.0, -workers)
        figures["optuna"] |= optuna_rates(where, options.workers, options.seconds, "after")
        figures["parts"] = {many: parts(where, many) for many in (1, 10, BATCH)}
    print(f"What a round is made of, in µs, among 1, 10 and {BATCH} in a process that does nothing else:")
    for part in PARTS:
        print(f"  {part:<60}", *(f"{figures['parts'][many][part]:8.0f}" for many in figures["parts"]))
    peers = list(figures["optuna"].values())
    steps = [[step for found in figures[key].values() for step in found] for key in ("tells", "batches")]
    peer, (single, many) = max(one["told"] for one in peers), (max(one["told"] for one in found) for found in steps)
    ours = f"trimtab {single:.0f} ({single / peer:.0f}x), by /tells {many:.0f} ({many / peer:.0f}x)"
    print(f"\nMost rounds per second: Optuna {peer:.1f}, {ours}")
    cost, one, all = (min(map(work, found)) for found in (peers, *steps))
    ours = f"trimtab {one * 1e3:.2f} ({cost / one:.0f}x), by /tells {all * 1e3:.2f} ({cost / all:.0f}x)"
    print(f"Least CPU of a round, database included, in ms: Optuna {cost * 1e3:.1f}, {ours}")
    figures["most"] = {"optuna": peer, "tells": single, "batches": many}
    figures["least"] = {"optuna": cost, "tells": one, "batches": all}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    if min(single, many) < LEAST * peer:
        print(f"BELOW THE GOAL of {LEAST:.0f}x")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
