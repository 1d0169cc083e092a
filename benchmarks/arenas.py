"""The systems of `peers.py`: simulated ones, two real ones, and a control task, all of them drifting.

An arena says how many rounds to play, how far a probe is sensible, and between which limits (None: anywhere). It builds
an object with `start`, `measure(t, x)` (what is paid and seen), `cost(t, x)` (looked at, not paid) and `close()`.
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
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trimtab.problems import make

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))


class System(Protocol):
    start: np.ndarray

    def measure(self, t: int, x: np.ndarray) -> float: ...
    def cost(self, t: int, x: np.ndarray) -> float: ...
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
    """A real system is measured alone, not beside others."""


class Simulated:
    """One trial of a problem of trimtab."""

    def __init__(self, id: str, seed: int, **parameters: Any) -> None:
        problem = make(id, **parameters)
        self.world, self.start = problem.world(seed, 1), problem.start(seed, 1)[0]

    def measure(self, t: int, x: np.ndarray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.world.measure(t, x[None, None])[0, 0])

    def cost(self, t: int, x: np.ndarray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.world.cost(t, x[None, None])[0, 0])

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

    def cost(self, t: int, x: np.ndarray) -> float:
        while self.changed < t // self.every:
            self.peaks.changePeaks()
            self.changed += 1
        return -float(self.peaks(np.clip(x, 0.0, 100.0), count=False)[0])

    measure = cost

    def close(self) -> None:
        pass


class QueueServer:
    """examples/queue_server.py: a real server under a load that changes; two knobs, each from 0 to 1."""

    WINDOW, PACE = 0.1, 4  # seconds of requests a round; rounds of its load that go by in one of ours

    def __init__(self, seed: int) -> None:
        import queue_server

        queue_server.WINDOW = self.WINDOW
        self.example, self.seed = queue_server, seed
        script = str(EXAMPLES / "queue_server.py")
        self.server = subprocess.Popen([sys.executable, script, "serve"], stdout=subprocess.PIPE, text=True)
        self.port = int(self.server.stdout.readline()) if self.server.stdout else 0
        batch, workers = queue_server.START["batch"], queue_server.START["workers"]
        self.start = np.array([math.log(batch, 64), math.log(workers, 16)])

    def measure(self, t: int, x: np.ndarray) -> float:
        batch, workers = round(64 ** np.clip(x[0], 0, 1)), round(16 ** np.clip(x[1], 0, 1))
        round_ = self.PACE * t + 37 * self.seed
        return float(asyncio.run(self.example.measure(self.port, batch, workers, round_)))

    cost = measure

    def close(self) -> None:
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()


class ZlibShipper:
    """examples/zlib_shipper.py: real compression of data that change; level, chunk and threads, each from 0 to 1."""

    def __init__(self, seed: int) -> None:
        import zlib_shipper

        self.example, self.shipper = zlib_shipper, zlib_shipper.Shipper(seed)
        self.start = np.array(zlib_shipper.START)

    def measure(self, t: int, x: np.ndarray) -> float:
        return float(self.shipper.ship(t, *self.example.decode(x)))

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

        self.env = gymnasium.make("Pendulum-v1", max_episode_steps=self.STEPS)
        self.seed, rng = seed, np.random.default_rng(seed)
        self.phases, self.start = rng.uniform(0, 2 * math.pi, 2), np.array([4.0, 0.5, 0.0])

    def measure(self, t: int, x: np.ndarray) -> float:
        inner: Any = self.env.unwrapped
        inner.g = 10.0 * (1 + 0.4 * math.sin(2 * math.pi * t / 300 + self.phases[0]))
        inner.m = 1.0 + 0.3 * math.sin(2 * math.pi * t / 170 + self.phases[1])
        seen, _ = self.env.reset(seed=1000 * self.seed + t, options={"x_init": 0.25, "y_init": 0.25})
        total = 0.0
        for _ in range(self.STEPS):
            angle = math.atan2(seen[1], seen[0])
            torque = float(np.clip(-(x[0] * angle + x[1] * seen[2] + x[2]), -2.0, 2.0))
            seen, reward, *_ = self.env.step(np.array([torque], dtype=np.float32))
            total -= float(reward)
        return total / self.STEPS

    cost = measure

    def close(self) -> None:
        self.env.close()


def arenas(quick: bool) -> dict[str, Arena]:
    unit = (0.0, 1.0)
    found = [
        Arena("lqr", 100, 0.05, None, lambda seed: Simulated("lqr-v1", seed)),
        Arena("lqr-zero-mean", 300, 0.1, None, lambda seed: Simulated("lqr-zero-mean-v1", seed)),
        Arena("quadratic-d20", 500, 0.1, None, lambda seed: Simulated("quadratic-v1", seed, dim=20, noise=0.01)),
        Arena("deap-peaks", 500, 2.0, (0.0, 100.0), DeapPeaks),
        Arena("deap-peaks-rare", 2000, 2.0, (0.0, 100.0), lambda seed: DeapPeaks(seed, every=1000)),
        Arena("allocation", 300, 0.03, None, lambda seed: Simulated("allocation-v1", seed)),
        Arena("pendulum", 400, 0.3, (-20.0, 20.0), Pendulum),
        Arena("zlib-shipper", 200, 0.08, unit, ZlibShipper, looks=20, real=True),
        Arena("queue-server", 60, 0.08, unit, QueueServer, looks=6, real=True),
    ]
    return {a.name: replace(a, rounds=min(a.rounds, 20), looks=min(a.looks, 4)) if quick else a for a in found}
