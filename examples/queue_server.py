"""Tune batch size and workers of a real server under a changing load.

    python examples/queue_server.py --out out/queue_server.png

This starts a small HTTP server, and `trimtab tune` sets its two knobs. The server collects requests into batches and
passes each to a backend that takes 10 ms per batch and 0.5 ms per request (a wait that stands for a database). Small
batches choke under a high load, large ones make requests wait under a low load, and each worker has a price. A round is
half a second of real requests, sent at random times at the rate of that round. The value is their mean latency in ms
plus 2 for each worker. Afterwards the same rounds are measured with fixed knobs. The study also measures its own
baseline, one round in twenty, and states what it saves.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = {"batch": 24, "workers": 6}
LINGER = 0.05  # seconds that a batch waits for more requests
PRICE = 2.0  # per worker, in ms
WINDOW = 0.5  # seconds of requests per round


def load(round):
    """Requests per second: a slow wave, and a sudden rush in the middle."""
    wave = 200 * 2 ** math.sin(2 * math.pi * round / 240)
    return wave + (350 if 150 <= round < 230 else 0)


class Server:
    """A queue, served in batches by a number of workers."""

    def __init__(self):
        self.batch, self.workers, self.busy = START["batch"], START["workers"], 0
        self.queue, self.changed = asyncio.Queue(), asyncio.Event()

    async def dispatch(self):
        while True:
            while self.busy >= self.workers:
                self.changed.clear()
                await self.changed.wait()
            jobs = [await self.queue.get()]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while len(jobs) < self.batch:
                        jobs.append(await self.queue.get())
            self.busy += 1
            asyncio.get_running_loop().create_task(self.work(jobs))

    async def work(self, jobs):
        await asyncio.sleep(0.010 + 0.0005 * len(jobs))
        for job in jobs:
            job.set_result(None)
        self.busy -= 1
        self.changed.set()

    async def answer(self, reader, writer):
        """GET /work does a job; GET /set/BATCH/WORKERS sets the knobs."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
                if path.startswith("/set/"):
                    self.batch, self.workers = map(int, path.split("/")[2:])
                    self.changed.set()
                else:
                    job = asyncio.get_running_loop().create_future()
                    self.queue.put_nowait(job)
                    await job
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async def run(self):
        dispatcher = asyncio.get_running_loop().create_task(self.dispatch())
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await dispatcher


class Clients:
    """Connections that are kept open, as many as are needed at once."""

    def __init__(self, port):
        self.port, self.idle = port, []

    async def get(self, path):
        connection = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = connection
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\nok")
        self.idle.append(connection)


async def measure(port, batch, workers, round):
    """Half a second of requests at random times: their mean latency in ms, and the price of the workers."""
    clients, chance, latencies = Clients(port), random.Random(round), []
    await clients.get(f"/set/{batch}/{workers}")
    loop = asyncio.get_running_loop()

    async def request(due):
        await asyncio.sleep(due - loop.time())
        await clients.get("/work")
        latencies.append(loop.time() - due)

    start, due, tasks = loop.time() + 0.01, 0.0, []
    while (due := due + chance.expovariate(load(round))) < WINDOW:
        tasks.append(loop.create_task(request(start + due)))
    await asyncio.gather(*tasks)
    return 1000 * sum(latencies) / len(latencies) + PRICE * workers


STUDY = """
name = "queue"
command = [{python}, {script}, "measure", "{port}", "{{batch}}", "{{workers}}"]
timeout = 20
radius = 0.08
seed = 1
[knobs.batch]
type = "integer"
scale = "log"
low = 1
high = 64
start = {batch}
unit = "requests"
[knobs.workers]
type = "integer"
scale = "log"
low = 1
high = 16
start = {workers}
[guard]
failures = 5
"""


def run(out, rounds):
    """Start the server, tune it, then measure the same rounds with fixed knobs; draw both."""
    script = str(Path(__file__).resolve())
    with subprocess.Popen([sys.executable, script, "serve"], stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline())
            with tempfile.TemporaryDirectory() as folder:
                words = {"python": json.dumps(sys.executable), "script": json.dumps(script), "port": port, **START}
                Path(folder, "study.toml").write_text(STUDY.format(**words))
                trimtab = Path(sys.executable).with_name("trimtab")
                tuning = [trimtab, "tune", "study.toml", "--rounds", str(rounds), "--plain"]
                subprocess.run(tuning, cwd=folder, check=True)
                shown = subprocess.run([trimtab, "show", "--json"], cwd=folder, check=True, capture_output=True)
            study = json.loads(shown.stdout)
            events = [event for event in study["events"] if event["kind"] == "tell"]
            print("now the same rounds with fixed knobs ...")
            still = [asyncio.run(measure(port, *START.values(), event["round"])) for event in events]
        finally:
            server.send_signal(signal.SIGTERM)
    print(f"by its own baseline rounds, one in twenty, the study {study['saving']['sentence']}")
    draw(events, still, out)


def draw(events, still, out):
    import matplotlib.pyplot as plt
    import numpy as np

    from trimtab import plotting

    plt.rcParams.update(plotting.STYLE)
    x = np.array([event["round"] for event in events])
    value = np.array([event["value"] for event in events])
    still = np.array(still)
    figure, axes = plt.subplots(
        4, 1, figsize=(plotting.WIDTH, 7.5), sharex=True, layout="constrained", height_ratios=[1, 2, 1, 1]
    )
    axes[0].plot(x, [load(t) for t in x], color=plotting.GREY)
    axes[0].set(
        ylabel="requests/s", title="A real server under a changing load, tuned by trimtab from one number per round"
    )
    for values, colour, label in ((still, plotting.GREY, "fixed knobs"), (value, plotting.BLUE, "trimtab")):
        axes[1].plot(x, values, ".", ms=3, color=colour, alpha=0.5)
        middle = np.median(np.lib.stride_tricks.sliding_window_view(values, 9), axis=1)
        axes[1].plot(x[4:-4], middle, color=colour, lw=1.8, label=f"{label} (median of 9)")
    axes[1].set(ylabel="latency (ms) + 2 per worker", ylim=(0, 1.3 * np.quantile(np.concatenate([still, value]), 0.98)))
    axes[1].legend(loc="upper left", ncols=2)
    for axis, (name, limits) in zip(axes[2:], {"batch": (1, 64), "workers": (1, 16)}.items(), strict=True):
        axis.plot(x, [event["query"][name] for event in events], ".", ms=3, color=plotting.GREY, alpha=0.6)
        axis.plot(x, [event["centre"][name] for event in events], color=plotting.BLUE)
        axis.set(ylabel=name, yscale="log", ylim=limits)
    axes[-1].set_xlabel("round (half a second of requests each)")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    later = x >= 30
    for name, of in (("mean", np.mean), ("median", np.median)):
        print(f"{name} after round 30: {of(value[later]):.1f} with trimtab, {of(still[later]):.1f} with fixed knobs")
    print(f"drawn: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", nargs="*", help="serve, or measure PORT BATCH WORKERS; by default, everything")
    parser.add_argument("--out", type=Path, default=Path("out/queue_server.png"), help="where to draw")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    if options.role[:1] == ["serve"]:
        asyncio.run(Server().run())
    elif options.role[:1] == ["measure"]:
        now = int(os.environ.get("TRIMTAB_ROUND", time.time()))
        print(asyncio.run(measure(*map(int, options.role[1:]), now)))
    else:
        run(options.out, options.rounds)
