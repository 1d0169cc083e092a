"""The contestants of `peers.py`: `ask() → x`, `tell(y)`, and `centre`, the point that would be recommended now.

Every one that has a main scale (step, σ, oscillation and gain) may choose from `SETTINGS` values of it. PyNOL is not
among them: `pip install pynol` finds no distribution. Its learner for one value a round is PBGD, which trimtab has.
"""

from __future__ import annotations

import inspect
import itertools
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from arenas import Arena

import trimtab as tt

SETTINGS = 8
SCALES = tuple(np.geomspace(0.1, 10.0, SETTINGS).tolist())  # times the radius of the arena
STEPS = tuple(np.geomspace(1e-6, 1.0, SETTINGS).tolist())
OWN = ("auto", "residual", "reszo", "hlf-szo", "pbgd")


class Player(Protocol):
    @property
    def centre(self) -> np.ndarray: ...
    def ask(self) -> np.ndarray: ...
    def tell(self, y: float) -> None: ...


class Trimtab:
    def __init__(self, x0: np.ndarray, method: tt.Method, arena: Arena, seed: int) -> None:
        domain = tt.Box(*arena.limits) if arena.limits else tt.Everywhere()
        self.tuner = tt.Tuner(x0, method, domain=domain, seed=seed)

    def ask(self) -> np.ndarray:
        self.trial = self.tuner.ask()
        return self.trial.x

    def tell(self, y: float) -> None:
        self.tuner.tell(self.trial, y)

    @property
    def centre(self) -> np.ndarray:
        return self.tuner.centre


class Cmaes:
    """Generations in their order, one member per round."""

    def __init__(self, x0: np.ndarray, kind: str, sigma: float, arena: Arena, seed: int) -> None:
        import cmaes

        bounds = np.tile(arena.limits, (len(x0), 1)) if arena.limits else None
        self.optimizer = getattr(cmaes, kind)(mean=x0.copy(), sigma=sigma, bounds=bounds, seed=seed % 2**31)
        self.told: list[tuple[np.ndarray, float]] = []

    def ask(self) -> np.ndarray:
        self.x = self.optimizer.ask()
        return self.x

    def tell(self, y: float) -> None:
        self.told.append((self.x, y))
        if len(self.told) == self.optimizer.population_size:
            self.optimizer.tell(self.told)
            self.told = []

    @property
    def centre(self) -> np.ndarray:
        return self.optimizer._mean


class Nevergrad:
    def __init__(self, x0: np.ndarray, kind: str, sigma: float, arena: Arena, seed: int) -> None:
        import nevergrad as ng

        array = ng.p.Array(init=x0.copy())
        array = array.set_bounds(*arena.limits) if arena.limits else array
        array.set_mutation(sigma=sigma)
        array.random_state.seed(seed % 2**31)
        self.optimizer = ng.optimizers.registry[kind](parametrization=array, budget=arena.rounds)
        if kind != "SPSA":  # which knows no first point but its own
            self.optimizer.suggest(x0)

    @classmethod
    def spsa(cls, x0: np.ndarray, step: float, arena: Arena, seed: int) -> Nevergrad:
        """Its gains a and c are "arbitrary", says its source: the first probe is the radius, the first step is ours."""
        first = 0.1  # c
        player = cls(x0, "SPSA", arena.radius / first, arena, seed)
        player.optimizer.a = step * (1 + player.optimizer.A) ** 0.602 / (arena.radius / first) ** 2
        return player

    def ask(self) -> np.ndarray:
        self.candidate = self.optimizer.ask()
        return np.asarray(self.candidate.value, dtype=float)

    def tell(self, y: float) -> None:
        self.optimizer.tell(self.candidate, y)

    @property
    def centre(self) -> np.ndarray:
        return np.asarray(self.optimizer.provide_recommendation().value, dtype=float)


class ExtremumSeeking:
    """Xopt's; it needs limits: where the problem has none, 20 oscillations to each side. Its centre: a mean of 20."""

    def __init__(self, x0: np.ndarray, size: float, gain: float, arena: Arena) -> None:
        import pandas
        from xopt.generators.sequential.extremumseeking import ExtremumSeekingGenerator
        from xopt.vocs import VOCS

        self.frame = pandas.DataFrame
        self.names = [f"x{j}" for j in range(len(x0))]
        spans = [arena.limits or (v - 20 * arena.radius, v + 20 * arena.radius) for v in x0]
        vocs = VOCS(variables=dict(zip(self.names, map(list, spans), strict=True)), objectives={"f": "MINIMIZE"})
        half = (spans[0][1] - spans[0][0]) / 2
        self.generator = ExtremumSeekingGenerator(vocs=vocs, oscillation_size=size / half, k=gain)
        self.x, self.recent = x0, deque([x0], maxlen=20)
        self.started = False

    def ask(self) -> np.ndarray:
        if self.started:
            found = self.generator.generate(1)[0]
            self.x = np.array([found[name] for name in self.names])
        return self.x

    def tell(self, y: float) -> None:
        if self.started:  # all that `add_data` does, without the tables that take most of its time
            self.generator._last_input, self.generator._last_outcome = self.x, y
            self.generator._i += 1
        else:
            self.generator.add_data(self.frame(np.append(self.x, y)[None], columns=[*self.names, "f"]))
        self.started = True
        self.recent.append(self.x)

    @property
    def centre(self) -> np.ndarray:
        return np.mean(self.recent, axis=0)


Settings = list[Any]


@dataclass(frozen=True)
class Entry:
    settings: Settings
    """To choose from; one: nothing is tuned."""
    build: Callable[[np.ndarray, Any, Arena, int], Player]
    version: str
    """The other inputs of a run: if they change, it is run again."""


def registered(name: str, arena: Arena) -> Entry:
    """A method of trimtab, with a step to be tuned if it has one."""
    build = tt.methods[name]
    if "step" not in inspect.signature(build).parameters:
        method = build(radius=arena.radius)
        return Entry([None], lambda x0, s, a, seed: Trimtab(x0, method, a, seed), _digest(method))
    return Entry(
        list(STEPS),
        lambda x0, s, a, seed: Trimtab(x0, build(radius=a.radius, step=s), a, seed),
        _digest(build(radius=arena.radius, step=1.0)),
    )


def _digest(method: tt.Method) -> str:
    """A hash of its parts and their constants, not of their code."""
    return f"{zlib.crc32(repr(method).encode()):08x}"


@cache
def contestants(arena: Arena) -> dict[str, Entry]:
    """name → its settings, and how to build it with one."""
    sizes: Settings = [s * arena.radius for s in SCALES]

    def cma(kind: str) -> Entry:
        return Entry(sizes, lambda x0, s, a, seed: Cmaes(x0, kind, s, a, seed), version("cmaes"))

    def nevergrad(kind: str) -> Entry:
        return Entry(sizes, lambda x0, s, a, seed: Nevergrad(x0, kind, s, a, seed), version("nevergrad"))

    seeking: Settings = list(itertools.product(sizes[:: SETTINGS // 4], (0.3, 3.0)))
    return {
        "still": registered("still", arena),
        **{name: registered(name, arena) for name in OWN},
        "cmaes CMA": cma("CMA"),
        "cmaes SepCMA": cma("SepCMA"),
        "nevergrad OnePlusOne": nevergrad("OnePlusOne"),
        "nevergrad TBPSA": nevergrad("TBPSA"),
        "nevergrad SPSA": Entry(list(STEPS), Nevergrad.spsa, version("nevergrad")),
        "Xopt extremum seeking": Entry(
            seeking, lambda x0, s, a, seed: ExtremumSeeking(x0, s[0], s[1], a), version("xopt")
        ),
    }
