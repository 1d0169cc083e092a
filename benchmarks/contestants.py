"""The contestants of `peers.py`: `ask() → x`, `tell(y)`, and `centre`, the point that would be recommended now.

Every one that has a main scale (step, σ, oscillation and gain) may choose from `SETTINGS` values of it.
"""

from __future__ import annotations

import inspect
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from arenas import Arena

import trimtab as tt

SETTINGS = 8
SCALES = tuple(np.geomspace(0.1, 10.0, SETTINGS).tolist())  # times the radius of the arena
STEPS = tuple(np.geomspace(1e-6, 1.0, SETTINGS).tolist())
OWN = ("auto", "residual", "reszo", "hlf-szo", "pbgd")  # those that are registered


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
        self.generator.add_data(self.frame({**dict(zip(self.names, self.x[:, None], strict=True)), "f": [y]}))
        self.started = True
        self.recent.append(self.x)

    @property
    def centre(self) -> np.ndarray:
        return np.mean(self.recent, axis=0)


Settings = list[Any]
Entry = tuple[Settings, Callable[[np.ndarray, Any, Arena, int], Player]]


def registered(name: str) -> Entry:
    """A method of trimtab, with a step to be tuned if it has one."""
    build = tt.methods[name]
    if "step" not in inspect.signature(build).parameters:
        return [None], lambda x0, s, a, seed: Trimtab(x0, build(radius=a.radius), a, seed)
    return list(STEPS), lambda x0, s, a, seed: Trimtab(x0, build(radius=a.radius, step=s), a, seed)


def contestants(arena: Arena) -> dict[str, Entry]:
    """name → (the settings to choose from, how to build it with one)."""
    sizes: Settings = [s * arena.radius for s in SCALES]

    def cma(kind: str) -> Entry:
        return sizes, lambda x0, s, a, seed: Cmaes(x0, kind, s, a, seed)

    def nevergrad(kind: str) -> Entry:
        return sizes, lambda x0, s, a, seed: Nevergrad(x0, kind, s, a, seed)

    seeking: Settings = list(itertools.product(sizes[:: SETTINGS // 4], (0.3, 3.0)))
    return {
        "still": registered("still"),
        **{name: registered(name) for name in OWN if name in tt.methods},
        "cmaes CMA": cma("CMA"),
        "cmaes SepCMA": cma("SepCMA"),
        "nevergrad OnePlusOne": nevergrad("OnePlusOne"),
        "nevergrad TBPSA": nevergrad("TBPSA"),
        "nevergrad SPSA": nevergrad("SPSA"),
        "Xopt extremum seeking": (seeking, lambda x0, s, a, seed: ExtremumSeeking(x0, s[0], s[1], a)),
    }
