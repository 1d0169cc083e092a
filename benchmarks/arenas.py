"""The systems of `peers.py`: simulated ones, two real ones, and a control task, all of them drifting.

An arena says how many rounds to play, how far a probe is sensible, and between which limits (None: anywhere). It builds
an object with `start`, `measure(t, points)` (what is paid and seen, of each), `cost(t, points)` (looked at, not paid)
and `close()`. One object serves all who play in a heat: what one of them does changes nothing for the others.
"""

from __future__ import annotations

import asyncio
import math
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trimtab.problems import make

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))


Points = list[np.ndarray]
Values = list[float]


class System(Protocol):
    start: np.ndarray

    def measure(self, t: int, points: Points) -> Values: ...
    def cost(self, t: int, points: Points) -> Values: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Arena:
    name: str
    rounds: int
    radius: float
    limits: tuple[float, float] | None
    build: Callable[[int], System]
    looks: int = 50
    """How often the centre is looked at."""
    real: bool = False
    """Measured in real time: all contestants of a trial take turns, round by round, and trials do not run at once."""
    made: str = ""
    """What it is made of, if that may change."""

    @property
    def signature(self) -> str:
        """What a play depends on: with another one it is played anew."""
        return f"{self.name}, {self.rounds} rounds, {self.looks} looks, {self.radius} in {self.limits}, {self.made}"


class Simulated:
    """One trial of a problem of trimtab."""

    def __init__(self, id: str, seed: int, **parameters: Any) -> None:
        problem = make(id, **parameters)
        self.world, self.start = problem.world(seed, 1), problem.start(seed, 1)[0]

    def measure(self, t: int, points: Points) -> Values:
        with np.errstate(over="ignore", invalid="ignore"):
            return list(map(float, self.world.measure(t, np.array(points)[None])[0]))

    def cost(self, t: int, points: Points) -> Values:
        with np.errstate(over="ignore", invalid="ignore"):
            return list(map(float, self.world.cost(t, np.array(points)[None])[0]))

    def close(self) -> None:
        pass


class DeapPeaks:
    """DEAP's own moving peaks (scenario 2, d = 5), which change every so many rounds; a cost, so the sign is turned."""

    def __init__(self, seed: int, every: int = 50) -> None:
        from deap.benchmarks import movingpeaks

        options = {**movingpeaks.SCENARIO_2, "period": 0}
        self.peaks = movingpeaks.MovingPeaks(dim=5, random=random.Random(seed), **options)
        self.start = np.random.default_rng(seed).uniform(0.0, 100.0, 5)
        self.changed, self.every = 0, every

    def cost(self, t: int, points: Points) -> Values:
        while self.changed < t // self.every:
            self.peaks.changePeaks()
            self.changed += 1
        return [-float(self.peaks(np.clip(x, 0.0, 100.0), count=False)[0]) for x in points]

    measure = cost

    def close(self) -> None:
        pass


class QueueServer:
    """examples/queue_server.py: a real server under a load that changes; two knobs, each from 0 to 1.

    It mostly waits, so that some can be measured at once, each on a server of its own.
    """

    WINDOW, PACE = 0.1, 4  # seconds of requests a round; rounds of its load that go by in one of ours
    SERVERS, PERIOD = 4, 240  # the wave of its load, with one rush in it

    def __init__(self, seed: int) -> None:
        import queue_server

        queue_server.WINDOW = self.WINDOW
        self.example, self.seed = queue_server, seed
        command = [sys.executable, str(EXAMPLES / "queue_server.py"), "serve"]
        self.servers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(self.SERVERS)]
        self.ports = [int(server.stdout.readline()) for server in self.servers if server.stdout]
        batch, workers = queue_server.START["batch"], queue_server.START["workers"]
        self.start = np.array([math.log(batch, 64), math.log(workers, 16)])

    def measure(self, t: int, points: Points) -> Values:
        groups = np.array_split(np.array(points), -(-len(points) // self.SERVERS))
        return [value for group in groups for value in asyncio.run(self.together(t, group))]

    async def together(self, t: int, points: np.ndarray) -> Values:
        knobs = [(round(64 ** x[0]), round(16 ** x[1])) for x in np.clip(points, 0.0, 1.0)]
        round_ = (self.PACE * t + 37 * self.seed) % self.PERIOD
        pairs = zip(self.ports, knobs, strict=False)
        return await asyncio.gather(*(self.example.measure(port, *knob, round_) for port, knob in pairs))

    cost = measure

    def close(self) -> None:
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
            server.wait()


class ZlibShipper:
    """examples/zlib_shipper.py: real compression of data that change; level, chunk and threads, each from 0 to 1."""

    SIZE, PERIOD = 2**17, 100  # bytes a round; rounds until the data are of the first kind again

    def __init__(self, seed: int) -> None:
        import zlib_shipper

        zlib_shipper.SIZE = self.SIZE
        self.example, self.shipper = zlib_shipper, zlib_shipper.Shipper(seed, self.PERIOD)
        self.start = np.array(zlib_shipper.START)

    def measure(self, t: int, points: Points) -> Values:
        return [float(self.shipper.ship(t, *self.example.decode(x))) for x in points]

    cost = measure

    def close(self) -> None:
        self.shipper.close()


class Pendulum:
    """Gymnasium's Pendulum-v1, held upright by a torque −k·(θ, θ̇, 1), while gravity and mass change; d = 3.

    A round is an episode of 60 steps from a random angle; the value is the mean of minus the reward.
    """

    STEPS = 60

    def __init__(self, seed: int) -> None:
        import gymnasium

        self.env = gymnasium.make("Pendulum-v1", max_episode_steps=self.STEPS, disable_env_checker=True)
        self.seed, rng = seed, np.random.default_rng(seed)
        self.phases, self.start = rng.uniform(0, 2 * math.pi, 2), np.array([4.0, 0.5, 0.0])

    def measure(self, t: int, points: Points) -> Values:
        return [self.episode(t, x) for x in points]

    def episode(self, t: int, x: np.ndarray) -> float:
        inner: Any = self.env.unwrapped
        inner.g = 10.0 * (1 + 0.4 * math.sin(2 * math.pi * t / 300 + self.phases[0]))
        inner.m = 1.0 + 0.3 * math.sin(2 * math.pi * t / 170 + self.phases[1])
        seen, _ = self.env.reset(seed=1000 * self.seed + t, options={"x_init": 0.25, "y_init": 0.25})
        total = 0.0
        for _ in range(self.STEPS):
            angle = math.atan2(seen[1], seen[0])
            torque = float(np.clip(-(x[0] * angle + x[1] * seen[2] + x[2]), -2.0, 2.0))
            seen, reward, *_ = inner.step(np.array([torque], dtype=np.float32))
            total -= float(reward)
        return total / self.STEPS

    cost = measure

    def close(self) -> None:
        self.env.close()


@cache
def arenas(quick: bool) -> dict[str, Arena]:
    unit, hundred = (0.0, 1.0), (0.0, 100.0)
    deap, gym = (f"{name} {version(name)}" for name in ("deap", "gymnasium"))
    queue, ships = f"{QueueServer.WINDOW} s", f"{ZlibShipper.SIZE} bytes"
    found = [
        Arena("lqr", 100, 0.05, None, lambda seed: Simulated("lqr-v1", seed)),
        Arena("lqr-zero-mean", 300, 0.1, None, lambda seed: Simulated("lqr-zero-mean-v1", seed)),
        Arena("quadratic-d20", 500, 0.1, None, lambda seed: Simulated("quadratic-v1", seed, dim=20, noise=0.01)),
        Arena("deap-peaks", 500, 2.0, hundred, DeapPeaks, made=deap),
        Arena("deap-peaks-rare", 2000, 2.0, hundred, lambda seed: DeapPeaks(seed, every=1000), made=deap),
        Arena("allocation", 300, 0.03, None, lambda seed: Simulated("allocation-v1", seed)),
        Arena("pendulum", 400, 0.3, (-20.0, 20.0), Pendulum, made=gym),
        Arena("zlib-shipper", 100, 0.08, unit, ZlibShipper, looks=10, real=True, made=ships),
        Arena("queue-server", 60, 0.08, unit, QueueServer, looks=6, real=True, made=queue),
    ]
    return {a.name: replace(a, rounds=min(a.rounds, 20), looks=min(a.looks, 4)) if quick else a for a in found}
