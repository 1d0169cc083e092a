"""Drifting problems: a `Problem` (parameters) creates a `World` (a realisation of the drift in many trials).

A world is a pure function of (seed, trial, round): every method sees the same drift and noise in a trial, in any order
of rounds and with any other trials. Points are arrays `(trials, k, d)`: k points per trial, all evaluated with the
objective of that trial and round.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains import Domain, Everywhere
from trimtab.randomness import DRIFT, NOISE, Keyed
from trimtab.types import Array
from trimtab.validation import whole

S = TypeVar("S")
Factory = TypeVar("Factory", bound=Callable[..., "Problem"])

ONCE = 2**63
"""First index of numbers drawn once per trial; drift is drawn by the number of its round."""


class World(ABC):
    """One realisation of a problem, for the trials `first`, …, `first + trials − 1`.

    >>> from trimtab.problems import World, make
    >>> world: World = make("quadratic-v1", dim=3).world(seed=0, trials=5)
    >>> world.cost(7, np.zeros((5, 1, 3))).shape, world.optimum(7).shape
    ((5, 1), (5,))
    """

    seed: int
    trials: int
    first: int
    listens: bool = False
    """Whether the evaluated points change the objective: every method then needs its own world."""

    def __init__(self, seed: int, trials: int, first: int = 0) -> None:
        self.seed = whole("seed", seed, 0, 2**64)
        self.trials = whole("trials", trials, 1)
        self.first = whole("first", first, 0)

    @abstractmethod
    def cost(self, round: int, x: Array) -> Array:
        """f_t(x) without noise: `(trials, k, d)` → `(trials, k)`; not finite where the system diverges."""

    def measure(self, round: int, x: Array, draw: int = 0) -> Array:
        """Measure the cost with noise. The noise depends on (seed, trial, round, draw), not on x."""
        return self.disturbed(round, self.cost(round, x), draw)

    def disturbed(self, round: int, costs: Array, draw: int = 0) -> Array:
        """Add measurement noise to costs `(trials, k)`; used by `measure`."""
        return costs + self.sigma * self.noise(round, draw)[:, None] if self.sigma else costs

    def limits(self, round: int, x: Array) -> Array | None:
        """g_t(x), measured with the cost and required to be ≤ 0: `(trials, k, m)`, or None without limits.

        `optimum` and `optimiser` then respect the limits; regret is negative only where they are exceeded.
        """
        return None

    @property
    def sigma(self) -> float:
        """The standard deviation of Gaussian measurement noise. Override `disturbed` for other additive noise, and
        `measure` if a measurement cannot be computed from the cost."""
        return 0.0

    @property
    def noisy(self) -> bool:
        """Whether `measure` differs from `cost`."""
        return self.sigma > 0 or not self.adds_noise

    @property
    def adds_noise(self) -> bool:
        """Whether a measurement is computed from the cost, by `disturbed`."""
        return type(self).measure is World.measure

    def paid(self, round: int, x: Array, measured: Array) -> Array:
        """The expected cost of evaluating x, given the measured values; override it if `cost` is expensive."""
        return self.cost(round, x)

    def optimum(self, round: int) -> Array:
        """min f_t: `(trials,)`; NaN if unknown."""
        return np.full(self.trials, np.nan)

    def optimiser(self, round: int) -> Array | None:
        """argmin f_t: `(trials, d)`, or None if it is unknown or not unique."""
        return None

    def gradient(self, round: int, x: Array) -> Array | None:
        """∇f_t(x) (a subgradient at a kink): `(trials, k, d)`, or None if unavailable."""
        return None

    def play(self, round: int, centre: Array, query: Array) -> None:
        """Receive centre and query, `(trials, k, d)` each, before each round; used by adversaries (`listens`)."""
        return

    def regret(self, round: int, x: Array) -> Array:
        """f_t(x) − min f_t: `(trials, k)`; NaN if the optimum is unknown."""
        excess: Array = self.cost(round, x) - self.optimum(round)[:, None]
        return excess

    def drawn(self, index: int, draw: Callable[[np.random.Generator], ArrayLike]) -> Array:
        """One draw of drift per trial, stacked; the index is the round, or `ONCE` + n."""
        generators = self._drift_keys.generators(index, self.first, self.trials)
        return np.stack([np.asarray(draw(rng), dtype=float) for rng in generators])

    def noise(self, round: int, draw: int) -> Array:
        """One standard normal number per trial, for measurement noise: `(trials,)`."""
        generators = self._noise_keys.generators(round | draw << 40, self.first, self.trials)
        return np.array([rng.standard_normal() for rng in generators])

    @cached_property
    def _drift_keys(self) -> Keyed:
        return Keyed(self.seed, DRIFT)

    @cached_property
    def _noise_keys(self) -> Keyed:
        return Keyed(self.seed, NOISE)


class Problem(ABC):
    """The parameters of a problem, with default settings for a run.

    >>> from trimtab.problems import Problem, make
    >>> problem: Problem = make("quadratic-v1", dim=3)
    >>> problem.rounds, problem.radius, problem.start(seed=0, trials=5).shape
    (2000, 0.1, (5, 3))
    """

    id: str
    dim: int
    rounds: int
    """A sensible number of rounds."""
    radius: float
    """A sensible exploration radius δ."""

    @property
    def domain(self) -> Domain:
        """The set of allowed queries."""
        return Everywhere()

    @property
    def lipschitz(self) -> float:
        """L₀: |f_t(x) − f_t(y)| ≤ L₀‖x − y‖ for all t; inf if unbounded or unknown."""
        return math.inf

    @property
    def smoothness(self) -> float:
        """L₁: ‖∇f_t(x) − ∇f_t(y)‖ ≤ L₁‖x − y‖ for all t; inf if unbounded or unknown."""
        return math.inf

    @property
    def variation(self) -> float:
        """V_f (Assumption 3.1; with noise, that of Section 5): a bound on the rms change of a measurement at a fixed
        point from one round to the next; inf if unbounded or unknown."""
        return math.inf

    @abstractmethod
    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """The starting points, `(trials, d)`."""

    @abstractmethod
    def world(self, seed: int, trials: int, first: int = 0) -> World:
        """A realisation, for the trials `first`, …, `first + trials − 1` of this seed."""


class Path(Generic[S]):
    """A sequence s_t = step(t, s_{t−1}), such as a random walk, that can only be computed in order.

    The last few states are cached, so that steps forward and short steps back are cheap; going further back restarts
    from s_0. States are shared and therefore read-only; `step` must return a new one.

    >>> path = Path(np.zeros(2), lambda t, s: s + t)
    >>> path(3), path(2)
    (array([6., 6.]), array([3., 3.]))
    """

    def __init__(self, start: S, step: Callable[[int, S], S], keep: int = 4) -> None:
        self._start, self._step, self._keep = _read_only(start), step, keep
        self._recent = {0: self._start}

    def __call__(self, round: int) -> S:
        """s_t, computed from the latest cached state before it."""
        if round in self._recent:
            return self._recent[round]
        if round < 0:
            raise ValueError(f"round={round} is before the first: rounds count from 0")
        last = max(self._recent)
        if round < last:
            self._recent, last = {0: self._start}, 0
        state = self._recent[last]
        for t in range(last + 1, round + 1):
            state = _read_only(self._step(t, state))
            self._recent[t] = state
            if len(self._recent) > self._keep:
                del self._recent[min(self._recent)]
        return state


def _read_only(state: S) -> S:
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return state


def directions(world: World, index: int, dim: int) -> Array:
    """A random unit vector per trial: `(trials, d)`."""
    u = world.drawn(index, lambda rng: rng.standard_normal(dim))
    unit: Array = u / np.linalg.norm(u, axis=-1, keepdims=True)
    return unit


def reflect(x: Array, low: float, high: float) -> Array:
    """Reflect x into [low, high], repeatedly if necessary.

    >>> reflect(np.array([-1.0, 4.0, 11.0, 25.0]), 0.0, 10.0)
    array([1., 4., 9., 5.])
    """
    span = high - low
    folded: Array = high - np.abs((x - low) % (2.0 * span) - span)
    return np.where((x < low) | (x > high), folded, x)


registry: dict[str, Callable[..., Problem]] = {}


def register(id: str) -> Callable[[Factory], Factory]:
    """Register a class or function that `make(id, **parameters)` calls.

    >>> from trimtab.problems import from_function, make, register, registry
    >>> @register("ramp-v0")
    ... def ramp(speed: float = 0.01):
    ...     return from_function(lambda t, x: (x[0] - speed * t) ** 2, x0=[0.0], rounds=300, radius=0.1)
    >>> make("ramp-v0", speed=0.1).rounds
    300
    >>> del registry["ramp-v0"]
    """

    def add(factory: Factory) -> Factory:
        registry[id] = factory
        return factory

    return add


def make(id: str, **parameters: object) -> Problem:
    """Create the problem with this id; parameters override the defaults.

    >>> from trimtab.problems import make
    >>> make("quadratic-v1", dim=3, drift="line").dim
    3
    >>> make("quadratic-v7")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: unknown problem 'quadratic-v7': choose one of absolute-v1, ...
    """
    if id not in registry:
        raise ValueError(f"unknown problem {id!r}: choose one of {', '.join(sorted(registry)) or 'none'}")
    factory = registry[id]
    known = inspect.signature(factory)
    try:
        known.bind(**parameters)
    except TypeError as error:
        raise TypeError(f"{id}: {error}; its parameters are {', '.join(known.parameters)}") from None
    return factory(**parameters)
