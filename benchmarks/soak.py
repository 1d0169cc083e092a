"""Leave `trimtab serve` and `trimtab tune` on PostgreSQL under a steady load, and see that nothing grows.

`python benchmarks/soak.py --minutes 20` starts its own PostgreSQL, a service with two workers, a `trimtab tune` with a
command, and clients: `--rate` rounds per second on `--studies` studies, now and then a page, a correction, and a stream
of events that is hung up on. Every few seconds it notes the memory (anonymous resident pages), open files and threads
of each process, and the connections of the database. The first quarter of the time is for caches to fill. After it,
the straight line through the memory of a process may rise by at most `MEMORY` per hour, and files, threads and
connections may exceed the most of the first quarter by at most `SPARE`. The exit status is 1 if one of them grows.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MEMORY = 8.0  # MB per hour that a process may grow by
SPARE = {"files": 4, "threads": 2, "connections": 2}  # more than the most that was open while caches filled
STUDY = """
name = "soaked"
store = "{store}"
command = ["sh", "-c", "echo $(( (KNOB_N - 300) * (KNOB_N - 300) / 90 + TRIMTAB_ROUND % 7 ))"]
pause = "{pause}"
seed = 1
[knobs.n]
type = "integer"
low = 1
high = 900
start = 400
"""
KNOBS = [{"name": f"x{k}", "low": 0.0, "high": 1.0, "start": 0.5} for k in range(4)]


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
    options = f"-k {folder} -c listen_addresses='' -c max_connections=60"
    call("pg_ctl", "-D", folder / "data", "-w", "-o", options, "-l", folder / "log", "start")
    try:
        yield f"postgresql://me@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")


class Load:
    """Clients at a steady rate; each keeps its connection for some requests, and hangs up then, answered or not."""

    def __init__(self, port: int, studies: int, rate: float, clients: int = 4) -> None:
        self.port, self.studies, self.pause = port, studies, clients / rate
        self.rounds, self.wrong, self.stop = [0] * clients, list[str](), threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(clients)]

    def make(self) -> None:
        """The studies."""
        for n in range(self.studies):
            with self.connected() as one:
                self.send(one, "PUT", f"/v1/studies/s{n}", {"knobs": KNOBS, "seed": n})

    def connected(self) -> contextlib.closing[http.client.HTTPConnection]:
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60))

    def send(self, one: http.client.HTTPConnection, method: str, path: str, body: object = None) -> Any:
        one.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = one.getresponse()
        text = answer.read()
        if answer.status not in (200, 201, 409):  # 409: another client was faster
            self.wrong.append(f"{method} {path}: {answer.status} {text[:200]!r}")
        return json.loads(text) if path.startswith("/v1/") else text

    def work(self, number: int) -> None:
        chance, due = random.Random(number), time.monotonic()
        try:
            while not self.stop.is_set():
                with self.connected() as one:
                    for _ in range(chance.randint(1, 200)):
                        due = max(due + self.pause, time.monotonic() - 5.0)
                        if self.stop.wait(max(due - time.monotonic(), 0.0)):
                            return
                        self.round(one, chance)
                        self.rounds[number] += 1
                    if chance.random() < 0.5:  # gone before it is answered
                        one.request("GET", f"/v1/events?study=s{chance.randrange(self.studies)}", headers=STREAM)
        except Exception as error:
            self.wrong.append(f"client {number}: {error!r}")

    def round(self, one: http.client.HTTPConnection, chance: random.Random) -> None:
        study = f"s{chance.randrange(self.studies)}"
        trial = self.send(one, "POST", f"/v1/studies/{study}/trials:ask", {})
        value = sum((x - 0.7) ** 2 for x in trial["knobs"].values()) + chance.gauss(0, 0.01)
        path = f"/v1/studies/{study}/trials/{trial['id']}/result"
        self.send(one, "PUT", path, {"value": value})
        if chance.random() < 0.02:
            for page in ("/", f"/studies/{study}", "/metrics", f"/v1/studies/{study}"):
                self.send(one, "GET", page)
        if chance.random() < 0.01:
            self.send(one, "PATCH", f"/v1/studies/{study}", {"changes": {"radius": chance.uniform(0.03, 0.07)}})


STREAM = {"Accept": "text/event-stream"}


def children(pid: int) -> list[int]:
    """A process and all that it started and that live."""
    found = [pid]
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += children(int(child))
    return found


def figures(pid: int) -> dict[str, float]:
    """Memory of its own in MB, open files, threads."""
    said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        "memory": float(said["RssAnon"].split()[0]) / 1024,
        "files": float(len(os.listdir(f"/proc/{pid}/fd"))),
        "threads": float(said["Threads"]),
    }


def slope(times: list[float], values: list[float]) -> float:
    """Of the straight line through them, per hour."""
    middle, mean = sum(times) / len(times), sum(values) / len(values)
    square = sum((t - middle) ** 2 for t in times)
    return 3600 * sum((t - middle) * (v - mean) for t, v in zip(times, values, strict=True)) / square


Noted = dict[tuple[str, str], list[tuple[float, float]]]


def judged(noted: Noted, since: float) -> list[tuple[str, str, float, float, float, bool]]:
    """Of each process and figure: the most until `since`, the last, the growth per hour, whether that is too much."""
    found = []
    for (process, what), points in noted.items():
        before = [value for t, value in points if t < since]
        times, values = zip(*(point for point in points if point[0] >= since), strict=True)
        growth = slope(list(times), list(values))
        grows = growth > MEMORY if what == "memory" else max(values) > max(before) + SPARE[what]
        found.append((process, what, max(before), values[-1], growth, grows))
    return found


def watch(processes: dict[str, int], where: str, minutes: float, load: Load) -> Noted:
    """What was noted until the end, or until something is wrong."""
    import psycopg

    noted: Noted = defaultdict(list)
    began, every = time.monotonic(), min(5.0, minutes * 60 / 200)
    with psycopg.connect(where, autocommit=True) as database:
        while (now := time.monotonic() - began) < minutes * 60 and not load.wrong:
            for name, pid in processes.items():
                for what, value in figures(pid).items():
                    noted[name, what].append((now, value))
            counted = database.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
            ((connections,),) = counted.fetchall()
            noted["database", "connections"].append((now, float(connections)))
            time.sleep(every)
    return noted


def wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    while running.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            one = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            one.request("GET", "/readyz")
            if one.getresponse().status == 200:
                return one.close()
        time.sleep(0.1)
    sys.exit("the service did not start")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=20.0, help="rounds per second over HTTP")
    parser.add_argument("--studies", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write all that was noted there")
    options = parser.parse_args()
    trimtab = [sys.executable, "-c", "from trimtab.cli import main; main()"]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trimtab-soak-")))
        (folder / "pg").mkdir()
        folder.chmod(0o755)
        where = stack.enter_context(postgres(folder / "pg"))
        words = [*trimtab, "serve", "--store", where, "--port", str(port), "--workers", str(options.workers), "--quiet"]
        with open(folder / "log", "wb") as log:
            serving = started(stack, subprocess.Popen(words, stderr=log))
            wait_for(port, serving)
            (folder / "study.toml").write_text(STUDY.format(store=where, pause="500ms"))
            words = [*trimtab, "tune", "study.toml", "--plain"]
            tuning = started(stack, subprocess.Popen(words, cwd=folder, stdout=log, stderr=log))
        load = Load(port, options.studies, options.rate)
        load.make()
        for thread in load.threads:
            thread.start()
        stack.callback(load.stop.set)
        spawned = [
            pid for pid in children(serving.pid)[1:] if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        processes = {f"worker {n}": pid for n, pid in enumerate(spawned, 1)} or {"worker": serving.pid}
        noted = watch({**processes, "tune": tuning.pid}, where, options.minutes, load)
        load.stop.set()
        for thread in load.threads:
            thread.join()
        lines = (folder / "log").read_bytes().count(b" tell ")
    if options.json:
        options.json.write_text(json.dumps([[*key, points] for key, points in noted.items()]))
    print(f"{options.minutes:g} minutes: {sum(load.rounds)} rounds over HTTP, {lines} of trimtab tune")
    if load.wrong:
        print(*load.wrong, sep="\n")
        return 1
    found = judged(noted, options.minutes * 60 / 4)
    print(f"{'':<10} {'':<12} {'most at first':>13} {'at the end':>10} {'per hour':>9}")
    for process, what, first, last, growth, grows in found:
        print(f"{process:<10} {what:<12} {first:13.1f} {last:10.1f} {growth:+9.2f}{'  grows' if grows else ''}")
    return int(any(grows for *_, grows in found))


def started(stack: contextlib.ExitStack, running: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """To be ended, and waited for, with everything else."""
    stack.callback(running.wait, 120)
    stack.callback(running.terminate)
    return running


if __name__ == "__main__":
    sys.exit(main())
