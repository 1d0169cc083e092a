"""The heats of `peers.py`: who plays on which system, and the file that keeps what came of it.

On a simulated system every heat is one contestant's; on a real one all of a trial are in one heat, and take turns in
every round, so that a busy moment of the machine hurts all alike.
"""

from __future__ import annotations

import importlib
import json
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from arenas import arenas
from contestants import contestants
from joblib import Parallel, delayed

PACKAGES = ("cmaes", "gymnasium", "nevergrad", "xopt.generators.sequential.extremumseeking")
LOST = 1e6  # a cost beyond this many times that at the start counts as lost
OFTEN = 20.0  # seconds between two lines that say how far it is

Scores = list[tuple[float, float]]
"""Mean evaluated cost and mean cost at the centre of each method; infinite if it diverged."""


@dataclass(frozen=True)
class Heat:
    """Some contestants with their settings, in an arena, on a seed."""

    arena: str
    seed: int
    players: tuple[tuple[str, Any], ...]
    quick: bool = False

    @property
    def key(self) -> str:
        """All that its scores depend on; the code of trimtab's own methods is left out, and their constants are in."""
        arena = arenas(self.quick)[self.arena]
        entries = contestants(arena)
        players = [(name, setting, entries[name].version) for name, setting in self.players]
        return json.dumps([arena.signature, self.seed, players])

    def play(self) -> Scores:
        warnings.simplefilter("ignore")  # the peers' own
        arena = arenas(self.quick)[self.arena]
        entries, system = contestants(arena), arena.build(self.seed)
        try:
            players = [entries[name].build(system.start, setting, arena, self.seed) for name, setting in self.players]
            limit = LOST * (1 + abs(system.cost(0, [system.start])[0]))
            played: list[list[float]] = [[] for _ in players]
            centres: list[list[float]] = [[] for _ in players]
            left = list(range(len(players)))
            for t in range(arena.rounds):
                left = [*left[1:], *left[:1]]  # nobody is always the first
                if t % max(1, arena.rounds // arena.looks) == 0 and left:
                    looks = system.cost(t, [np.asarray(players[k].centre, dtype=float) for k in left])
                    for k, cost in zip(left, looks, strict=True):
                        centres[k].append(cost if abs(cost) <= limit else np.inf)
                left = [k for k in left if centres[k][-1] < np.inf]
                values = system.measure(t, [players[k].ask() for k in left]) if left else []
                for k, y in zip(left, values, strict=True):
                    played[k].append(y if abs(y) <= limit else np.inf)
                    if played[k][-1] < np.inf:
                        players[k].tell(y)
                left = [k for k in left if played[k][-1] < np.inf]
            both = [(float(np.mean(p or np.inf)), float(np.mean(c))) for p, c in zip(played, centres, strict=True)]
            return [(p, c) if k in left else (np.inf, np.inf) for k, (p, c) in enumerate(both)]
        finally:
            system.close()


class Kept:
    """Results, one line per heat, so that an interrupted run can be continued."""

    def __init__(self, file: Path) -> None:
        self.file, self.scores = file, dict[str, Scores]()
        for line in file.read_text().splitlines() if file.exists() else ():
            *key, scores = json.loads(line)
            self.scores[json.dumps(key)] = scores

    def forget(self, name: str | None, among: Iterable[str]) -> None:
        """All that this one (None: anybody) took part in, in these arenas; on real systems that is whole trials."""
        for key in list(self.scores):
            signature, _, players = json.loads(key)
            if signature.split(",")[0] in among and (name is None or name in [player[0] for player in players]):
                del self.scores[key]
        self.file.write_text("".join(_line(key, scores) for key, scores in self.scores.items()))

    def add(self, key: str, scores: Scores) -> None:
        self.scores[key] = [(float(f"{p:.8g}"), float(f"{c:.8g}")) for p, c in scores]
        with self.file.open("a") as file:
            file.write(_line(key, self.scores[key]))

    def of(self, heats: list[Heat], what: str, jobs: int) -> list[Scores]:
        """The scores of each heat, played now if they are not here yet."""
        keys = [heat.key for heat in heats]
        missing = {key: heat for key, heat in zip(keys, heats, strict=True) if key not in self.scores}
        start = said = time.monotonic()
        if missing:
            print(f"  {what}: {len(missing)} of {len(heats)} heats are to be played", flush=True)
        work = (delayed(_played)(key, heat, jobs == 1) for key, heat in missing.items())
        for k, (key, scores) in enumerate(Parallel(n_jobs=jobs, return_as="generator_unordered")(work), 1):
            self.add(key, scores)
            now = time.monotonic()
            if now - said > OFTEN or k == len(missing):
                said, left = now, (now - start) / k * (len(missing) - k)
                print(f"  {what}: {k} of {len(missing)}, {_minutes(now - start)}, {_minutes(left)} left", flush=True)
        return [self.scores[key] for key in keys]


def _played(key: str, heat: Heat, alone: bool) -> tuple[str, Scores]:
    for package in () if alone else PACKAGES:  # else joblib takes a late import for a leak, and starts the process anew
        importlib.import_module(package)
    return key, heat.play()


def _line(key: str, scores: Scores) -> str:
    return json.dumps([*json.loads(key), scores]) + "\n"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"
