"""
A real server under a changing load
===================================

A small HTTP server collects requests into batches and hands each to a worker, which waits 10 ms a batch and 0.5 ms a
request (it stands for a database). Small batches choke under a high load, large ones let requests wait for company,
and every worker has its price. trimtab sets both knobs: one round is a fifth of a second of real requests over real
connections, and the value is their mean latency in ms plus 2 for each worker. As it is measured, a page built on a busy
machine is noisier than one built on a quiet one.

``examples/queue_server.py`` is the same through ``trimtab tune``, with separate processes and a longer run:
:doc:`/live` shows its picture.
"""

import asyncio
import contextlib
import math
import random

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab.plotting import BLUE, GREY

ROUNDS, WINDOW, START = 70, 0.2, {"batch": 24, "workers": 6}


def load(round):
    """Requests per second: a slow wave, and a rush in the middle."""
    return 200 * 2 ** math.sin(2 * math.pi * round / 60) + (350 if 35 <= round < 55 else 0)


class Server:
    """A queue, batches, and so many of them at once."""

    def __init__(self):
        self.knobs, self.busy, self.queue, self.changed = dict(START), 0, asyncio.Queue(), asyncio.Event()

    async def dispatch(self):
        """Fill a batch, wait at most 50 ms for company, hand it on when a worker is free."""
        while True:
            while self.busy >= self.knobs["workers"]:
                self.changed.clear()
                await self.changed.wait()
            jobs = [await self.queue.get()]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    while len(jobs) < self.knobs["batch"]:
                        jobs.append(await self.queue.get())
            self.busy += 1
            asyncio.get_running_loop().create_task(self.work(jobs))

    async def work(self, jobs):
        """The backend."""
        await asyncio.sleep(0.010 + 0.0005 * len(jobs))
        for job in jobs:
            job.set_result(None)
        self.busy -= 1
        self.changed.set()

    async def answer(self, reader, writer):
        """One connection, for as many requests as it likes."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await reader.readuntil(b"\r\n\r\n"):
                job = asyncio.get_running_loop().create_future()
                self.queue.put_nowait(job)
                await job
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()


async def measure(port, idle, round, workers):
    """The mean latency of requests at random times, in ms, and the price of the workers."""
    loop, chance, latencies, tasks, due = asyncio.get_running_loop(), random.Random(round), [], [], 0.0

    async def request(at):
        await asyncio.sleep(at - loop.time())
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /work HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\nok")
        latencies.append(loop.time() - at)
        idle.append((reader, writer))

    start = loop.time() + 0.01
    while (due := due + chance.expovariate(load(round))) < WINDOW:
        tasks.append(loop.create_task(request(start + due)))
    await asyncio.gather(*tasks)
    return 1000 * sum(latencies) / len(latencies) + 2 * workers


async def run(tuner):
    """What each round cost, and the settings; without a tuner, the knobs are left alone."""
    server, idle = Server(), []
    dispatcher = asyncio.create_task(server.dispatch())
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    values, settings = [], []
    for round in range(ROUNDS):
        if tuner is not None:
            trial = tuner.ask()
            server.knobs.update(trial.knobs)
            server.changed.set()
        settings.append(dict(server.knobs))
        values.append(await measure(port, idle, round, server.knobs["workers"]))
        if tuner is not None:
            tuner.tell(trial, values[-1])
    dispatcher.cancel()
    for _, writer in idle:
        writer.close()
    listening.close()
    return np.array(values), settings


knobs = [
    tt.Knob(name="batch", type="integer", scale="log", low=1, high=64, start=START["batch"], radius=0.08),
    tt.Knob(name="workers", type="integer", scale="log", low=1, high=16, start=START["workers"], radius=0.08),
]
tuned, settings = asyncio.run(run(tt.Tuner(knobs=knobs, seed=1)))
still, _ = asyncio.run(run(None))
print(f"mean after round 10: {tuned[10:].mean():.1f} with trimtab, {still[10:].mean():.1f} left alone")

# %%
# The same rounds, the same requests at the same times, with and without trimtab.

figure, axes = plt.subplots(4, 1, sharex=True, layout="constrained", height_ratios=[1, 2, 1, 1], figsize=(8, 7))
axes[0].plot([load(t) for t in range(ROUNDS)], color=GREY)
axes[0].set_ylabel("requests/s")
axes[1].plot(still, color=GREY, label="knobs left alone")
axes[1].plot(tuned, color=BLUE, label="trimtab, as played")
axes[1].set(ylabel="latency (ms) + 2 a worker", ylim=(0, 1.1 * np.quantile(np.concatenate([still, tuned]), 0.98)))
axes[1].legend()
for axis, name in zip(axes[2:], START, strict=True):
    axis.semilogy([setting[name] for setting in settings], ".", color=BLUE)
    axis.set_ylabel(name)
axes[-1].set_xlabel("round (a fifth of a second of requests each)")
