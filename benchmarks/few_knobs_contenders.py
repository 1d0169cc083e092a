"""The contenders of `few_knobs.py`: `ask()` → setting, `tell(value)`, and `centre`, the setting it would recommend.

All begin at the start of the arena with 5 % of the ranges as their radius, or twice that as σ or as the size of the
first simplex; nothing is tuned. A value is NaN where the measurement failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import numpy as np
from few_knobs_arenas import Arena, Array

import trimtab as tt

RADIUS = 0.05
WIDTH = 2 * RADIUS  # σ, and the edge of a simplex, as shares of the ranges


class Contender(Protocol):
    @property
    def centre(self) -> Array: ...
    def ask(self) -> Array: ...
    def tell(self, value: float) -> None: ...


class Trimtab:
    """A method of trimtab, with the knobs of the arena; without a method, all defaults."""

    def __init__(self, arena: Arena, seed: int, method: tt.Method | None) -> None:
        self.tuner = tt.Tuner(knobs=arena.knobs, method=method, seed=seed)

    def ask(self) -> Array:
        self.trial = self.tuner.ask()
        return np.array(list(self.trial.knobs.values()), dtype=float)

    def tell(self, value: float) -> None:
        self.tuner.tell(self.trial, value)

    @property
    def centre(self) -> Array:
        return np.array(list(self.tuner.setting.values()), dtype=float)


class Cmaes:
    """A sampler of the package cmaes; one member of a generation per round, another one where a measurement fails."""

    def __init__(self, arena: Arena, seed: int, kind: str) -> None:
        self.arena, start, bounds = arena, shares(arena), np.tile((0.0, 1.0), (len(arena.knobs), 1))
        build = getattr(import_module("cmaes"), kind)
        self.sampler = build(mean=start, sigma=WIDTH, bounds=bounds, seed=seed % 2**31)
        self.told: list[tuple[Array, float]] = []

    def ask(self) -> Array:
        self.x = self.sampler.ask()
        return self.arena.values(self.x)

    def tell(self, value: float) -> None:
        if np.isnan(value):
            return
        self.told.append((self.x, value))
        if len(self.told) == self.sampler.population_size:
            self.sampler.tell(self.told)
            self.told = []

    @property
    def centre(self) -> Array:
        return self.arena.values(np.clip(self.sampler._mean, 0.0, 1.0))


class NelderMead:
    """Nelder–Mead between limits, begun anew around its best point once the simplex is smaller than the radius.

    Coefficients 1 (reflection), 2 (expansion), ½ (contraction), ½ (shrinkage). A failed measurement is repeated.
    """

    def __init__(self, arena: Arena, seed: int) -> None:
        self.arena, self.rng = arena, np.random.default_rng(seed)
        self.best = shares(arena)
        self.points = self.search()
        self.x = next(self.points)

    def ask(self) -> Array:
        return self.arena.values(self.x)

    def tell(self, value: float) -> None:
        if not np.isnan(value):
            self.x = self.points.send(value)

    @property
    def centre(self) -> Array:
        return self.arena.values(self.best)

    def search(self) -> Generator[Array, float, None]:
        """Yield points, receive their values."""
        while True:
            simplex = self.simplex(self.best)
            values = np.empty(len(simplex))
            for k, x in enumerate(simplex):
                values[k] = yield x
            while np.abs(simplex - simplex[0]).max() > RADIUS:
                order = np.argsort(values)
                simplex, values = simplex[order], values[order]
                self.best = simplex[0]
                yield from self.step(simplex, values)
            self.best = simplex[values.argmin()]

    def step(self, simplex: Array, values: Array) -> Generator[Array, float, None]:
        """Replace the worst vertex of a sorted simplex, or all but the best one."""
        middle, worst = simplex[:-1].mean(axis=0), simplex[-1].copy()

        def along(factor: float) -> Array:
            return np.clip(middle + factor * (worst - middle), 0.0, 1.0)

        reflected = along(-1.0)
        value = yield reflected
        if value < values[0]:
            farther = along(-2.0)
            found = yield farther
            simplex[-1], values[-1] = (farther, found) if found < value else (reflected, value)
        elif value < values[-2]:
            simplex[-1], values[-1] = reflected, value
        else:
            nearer = along(-0.5 if value < values[-1] else 0.5)
            found = yield nearer
            if found < min(value, values[-1]):
                simplex[-1], values[-1] = nearer, found
                return
            for k in range(1, len(simplex)):
                simplex[k] = (simplex[0] + simplex[k]) / 2
                values[k] = yield simplex[k]

    def simplex(self, corner: Array) -> Array:
        """A corner and, for each knob, a point beside it on a random side where there is room."""
        sides = np.where(self.rng.random(len(corner)) < 0.5, -WIDTH, WIDTH)
        sides = np.where((corner + sides < 0) | (corner + sides > 1), -sides, sides)
        return np.vstack([corner, corner + np.diag(sides)])


def shares(arena: Arena) -> Array:
    """The start of an arena, as shares of the ranges."""
    return tt.Knobs.of(arena.knobs).start


Build = Callable[[Arena, int], Contender]
STILL, BASE = "still", "auto"  # always played: a floor, and the contender that the others are compared with


def contenders() -> dict[str, Build]:
    """Build each by name; leave out what is not installed or not registered."""
    found: dict[str, Build] = {
        STILL: lambda arena, seed: Trimtab(arena, seed, tt.still(radius=RADIUS)),
        BASE: lambda arena, seed: Trimtab(arena, seed, tt.auto(radius=RADIUS)),
        "auto widest=1": lambda arena, seed: Trimtab(arena, seed, tt.auto(radius=RADIUS, widest=1.0)),
        "defaults": lambda arena, seed: Trimtab(arena, seed, None),
    }
    if "belief" in tt.methods:
        found["belief"] = lambda arena, seed: Trimtab(arena, seed, tt.methods["belief"](radius=RADIUS))
    found["Nelder–Mead"] = NelderMead
    if find_spec("cmaes"):
        found["SepCMA"] = lambda arena, seed: Cmaes(arena, seed, "SepCMA")
        found["CMA"] = lambda arena, seed: Cmaes(arena, seed, "CMA")
    return found
