"""What a drifting problem is: a `Problem` (parameters) makes a `World` (one realisation of the drift, in many trials).

A world is a pure function of (seed, trial, round): every method that runs in a trial meets the same drift and the
same noise, in whatever order and beside whatever other trials it runs. Points are arrays `(trials, k, d)`: k points
for each trial, all meeting that trial's objective of that round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domains import Domain, Everywhere

Array = NDArray[np.float64]


class World(ABC):
    """One realisation of a problem, for the trials `first`, …, `first + trials − 1`."""

    seed: int
    trials: int
    first: int

    @abstractmethod
    def cost(self, round: int, x: Array) -> Array:
        """f_t(x) without noise: `(trials, k, d)` → `(trials, k)`; not finite where the system blows up."""

    def measure(self, round: int, x: Array, draw: int = 0) -> Array:
        """What a measurement gives: the cost with noise. The noise depends on (seed, trial, round, draw), not on x."""
        return self.cost(round, x)

    def optimum(self, round: int) -> Array:
        """min f_t: `(trials,)`; NaN where it is not known."""
        return np.full(self.trials, np.nan)

    def optimiser(self, round: int) -> Array | None:
        """argmin f_t: `(trials, d)`, or None where it is not known or not unique."""
        return None

    def gradient(self, round: int, x: Array) -> Array | None:
        """∇f_t(x): `(trials, k, d)`, or None where there is none."""
        return None

    def play(self, round: int, centre: Array, query: Array) -> None:
        """Told before each round what will be played, `(trials, k, d)` each: only an adversary listens."""
        return


class Problem(ABC):
    """The parameters of a problem, and the reference values to run it with."""

    id: str
    dim: int
    rounds: int
    """A sensible number of rounds."""
    radius: float
    """A sensible exploration radius δ."""

    @property
    def domain(self) -> Domain:
        """Where queries may be."""
        return Everywhere()

    @abstractmethod
    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """The starting points, `(trials, d)`."""

    @abstractmethod
    def world(self, seed: int, trials: int, first: int = 0) -> World:
        """A realisation, for the trials `first`, …, `first + trials − 1` of this seed."""


registry: dict[str, Callable[..., Problem]] = {}


def register(id: str) -> Callable[[Any], Any]:
    """Class or function decorator: `make(id, **parameters)` calls it."""

    def add(factory: Any) -> Any:
        registry[id] = factory
        return factory

    return add


def make(id: str, **parameters: Any) -> Problem:
    """The problem of this id, with parameters that differ from the reference.

    >>> make("lqr-v2")
    Traceback (most recent call last):
    ...
    ValueError: there is no problem 'lqr-v2': choose one of allocation-v1, ...
    """
    if id not in registry:
        raise ValueError(f"there is no problem {id!r}: choose one of {', '.join(sorted(registry)) or 'none'}")
    return registry[id](**parameters)
