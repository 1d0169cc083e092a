"""`trimtab serve --demo`: three simulated, drifting systems, each tuned over HTTP by a client of its own."""

from __future__ import annotations

import contextlib
import math
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from trimtab.client import Client
from trimtab.knobs import Setting
from trimtab.tune import simulator
from trimtab.types import Document

WARM_UP = 150  # rounds without a pause, so that there is a history to look at
PAUSE = 0.4  # seconds between rounds after that


class System(NamedTuple):
    """A simulated system: the definition of its study, and its cost in a round."""

    study: Document
    cost: Callable[[int, Setting], float]


def _pump(round: int, knobs: Setting) -> float:
    """Return the energy per litre: the simulator of `trimtab init`."""
    return simulator.cost(round, knobs["valve"], knobs["pump"])


def _press(round: int, knobs: Setting) -> float:
    """Return good parts per hour: speed helps until parts break; the best temperature changes with the material."""
    best = 185 + 12 * math.sin(round / 180)
    broken = 1 / (1 + math.exp(-(knobs["speed"] - 38 + 0.02 * (knobs["heat"] - best) ** 2) / 3))
    return 60.0 * float(knobs["speed"]) * float(1 - broken) * (1 + random.Random(f"press {round}").gauss(0, 0.02))


def _queue(round: int, knobs: Setting) -> float:
    """Return latency plus the price of workers, under a varying load; the cache mostly pays off."""
    load = 30 + 12 * math.sin(round / 90) + 6 * math.sin(round / 17)
    busy = min(load * (0.7 if knobs["cache"] else 1.0) / (2.2 * knobs["workers"]), 0.97)
    wait = 8 / (1 - busy) + 0.15 * knobs["batch"] + 40 / knobs["batch"]
    return float(wait + 1.5 * knobs["workers"]) + random.Random(f"queue {round}").gauss(0, 1.0)


SYSTEMS = {
    "pump": System(
        {
            "knobs": [
                {"name": "valve", "low": 0, "high": 100, "start": 20, "unit": "%"},
                {
                    "name": "pump",
                    "type": "integer",
                    "scale": "log",
                    "low": 100,
                    "high": 3000,
                    "start": 250,
                    "unit": "rpm",
                },
            ]
        },
        _pump,
    ),
    "press": System(
        {
            "goal": "maximise",
            "knobs": [
                {"name": "heat", "low": 150, "high": 220, "start": 165, "unit": "°C"},
                {"name": "speed", "low": 5, "high": 60, "start": 15, "unit": "1/min"},
            ],
        },
        _press,
    ),
    "queue": System(
        {
            "radius": 0.1,
            "knobs": [
                {"name": "workers", "type": "integer", "low": 4, "high": 64, "start": 40},
                {"name": "batch", "type": "integer", "scale": "log", "low": 1, "high": 256, "start": 128},
                {"name": "cache", "type": "bool", "start": False, "radius": 0.2},
            ],
        },
        _queue,
    ),
}


def tune(url: str, name: str, rounds: int | None = None, pause: float = PAUSE) -> None:
    """Tune one system, for ever or for this many rounds."""
    system = SYSTEMS[name]
    with Client(url) as client:
        study = client.study(name, **system.study)
        done = 0
        while rounds is None or done < rounds:
            trial = study.ask()
            if done % 97 == 60:
                study.skip(trial, "the sensor did not respond")
            else:
                study.tell(trial, system.cost(trial.round, trial.knobs))
            done += 1
            time.sleep(0.0 if trial.round < WARM_UP else pause)


@contextlib.contextmanager
def running_demo(port: int) -> Iterator[str]:
    """Tune the three systems in a child process, in a temporary store; yield the path of the store."""
    signal.signal(signal.SIGTERM, _exit)  # Uvicorn raises the signal again after shutting down
    with tempfile.TemporaryDirectory(prefix="trimtab-demo-") as folder:
        command = [sys.executable, "-m", "trimtab.serve.demo", f"http://127.0.0.1:{port}"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tuners:
            try:
                yield str(Path(folder) / "demo.db")
            finally:
                tuners.kill()


def _exit(signum: int, _: object) -> None:
    """Exit by an exception, so that the temporary folder is removed."""
    sys.exit(128 + signum)


def main(url: str) -> None:
    """Tune all three systems until the process is ended."""
    threads = [threading.Thread(target=tune, args=(url, name)) for name in SYSTEMS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
