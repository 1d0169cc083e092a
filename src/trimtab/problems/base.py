"""What a drifting problem is: a `Problem` (parameters) makes a `World` (one realisation of the drift, in many trials).

A world is a pure function of (seed, trial, round): every method that runs in a trial meets the same drift and the
same noise, in whatever order and beside whatever other trials it runs. Points are arrays `(trials, k, d)`: k points
for each trial, all meeting that trial's objective of that round.
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
"""Drift is drawn under the number of its round; what is drawn once per trial takes the numbers from here on."""


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
    """Whether what is played changes the objective: then every method needs a world of its own."""

    def __init__(self, seed: int, trials: int, first: int = 0) -> None:
        self.seed = whole("seed", seed, 0, 2**64)
        self.trials = whole("trials", trials, 1)
        self.first = whole("first", first, 0)

    @abstractmethod
    def cost(self, round: int, x: Array) -> Array:
        """f_t(x) without noise: `(trials, k, d)` → `(trials, k)`; not finite where the system blows up."""

    def measure(self, round: int, x: Array, draw: int = 0) -> Array:
        """What a measurement gives: the cost with noise. The noise depends on (seed, trial, round, draw), not on x."""
        return self.disturbed(round, self.cost(round, x), draw)

    def disturbed(self, round: int, costs: Array, draw: int = 0) -> Array:
        """Costs `(trials, k)` with the noise of a measurement: how `measure` makes its values, unless overridden."""
        return costs + self.sigma * self.noise(round, draw)[:, None] if self.sigma else costs

    def limits(self, round: int, x: Array) -> Array | None:
        """g_t(x), measured beside the cost and to be ≤ 0: `(trials, k, m)`, or None where nothing is limited.

        `optimum` and `optimiser` are then those within the limits, and regret is below 0 only beyond them.
        """
        return None

    @property
    def sigma(self) -> float:
        """The standard deviation of Gaussian measurement noise; with other noise, `disturbed` is overridden, or, where
        a measurement is more than a cost with something added, `measure`."""
        return 0.0

    @property
    def noisy(self) -> bool:
        """Whether `measure` is anything else than `cost`."""
        return self.sigma > 0 or not self.adds_noise

    @property
    def adds_noise(self) -> bool:
        """Whether a measurement follows from the cost, by `disturbed`."""
        return type(self).measure is World.measure

    def paid(self, round: int, x: Array, measured: Array) -> Array:
        """What playing x costs in expectation, given what was measured there, for worlds whose `cost` is dear."""
        return self.cost(round, x)

    def optimum(self, round: int) -> Array:
        """min f_t: `(trials,)`; NaN where it is not known."""
        return np.full(self.trials, np.nan)

    def optimiser(self, round: int) -> Array | None:
        """argmin f_t: `(trials, d)`, or None where it is not known or not unique."""
        return None

    def gradient(self, round: int, x: Array) -> Array | None:
        """∇f_t(x) (a subgradient at a kink): `(trials, k, d)`, or None where there is none."""
        return None

    def play(self, round: int, centre: Array, query: Array) -> None:
        """Told before each round what will be played, `(trials, k, d)` each: only an adversary (`listens`) cares."""
        return

    def regret(self, round: int, x: Array) -> Array:
        """f_t(x) − min f_t: `(trials, k)`; NaN where the optimum is not known."""
        excess: Array = self.cost(round, x) - self.optimum(round)[:, None]
        return excess

    def drawn(self, index: int, draw: Callable[[np.random.Generator], ArrayLike]) -> Array:
        """One draw of drift per trial, stacked; the index is the number of the round, or `ONCE` + n."""
        generators = self._drift_keys.generators(index, self.first, self.trials)
        return np.stack([np.asarray(draw(rng), dtype=float) for rng in generators])

    def noise(self, round: int, draw: int) -> Array:
        """A standard normal number per trial, for measurement noise: `(trials,)`."""
        generators = self._noise_keys.generators(round | draw << 40, self.first, self.trials)
        return np.array([rng.standard_normal() for rng in generators])

    @cached_property
    def _drift_keys(self) -> Keyed:
        return Keyed(self.seed, DRIFT)

    @cached_property
    def _noise_keys(self) -> Keyed:
        return Keyed(self.seed, NOISE)


class Problem(ABC):
    """The parameters of a problem, and the reference values to run it with.

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
        """Where queries may be."""
        return Everywhere()

    @property
    def lipschitz(self) -> float:
        """L₀: |f_t(x) − f_t(y)| ≤ L₀‖x − y‖ for all t; inf where there is none, or none is known."""
        return math.inf

    @property
    def smoothness(self) -> float:
        """L₁: ‖∇f_t(x) − ∇f_t(y)‖ ≤ L₁‖x − y‖ for all t; inf where there is none, or none is known."""
        return math.inf

    @property
    def variation(self) -> float:
        """V_f (Assumption 3.1, with noise that of Section 5): at a fixed point, the rms change of a measurement from
        one round to the next is at most this; inf where there is no bound, or none is known."""
        return math.inf

    @abstractmethod
    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """The starting points, `(trials, d)`."""

    @abstractmethod
    def world(self, seed: int, trials: int, first: int = 0) -> World:
        """A realisation, for the trials `first`, …, `first + trials − 1` of this seed."""


class Path(Generic[S]):
    """s_0, s_1, …, where s_t = step(t, s_{t−1}) can only be had from the one before: random walks.

    The states of the last few rounds are kept, so that going on and looking back a little is cheap; going back
    further starts again from s_0. States are shared and therefore made read-only; `step` returns a new one.

    >>> path = Path(np.zeros(2), lambda t, s: s + t)
    >>> path(3), path(2)
    (array([6., 6.]), array([3., 3.]))
    """

    def __init__(self, start: S, step: Callable[[int, S], S], keep: int = 4) -> None:
        self._start, self._step, self._keep = _read_only(start), step, keep
        self._recent = {0: self._start}

    def __call__(self, round: int) -> S:
        """s_t, by as many steps as it takes from the last state that is kept."""
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
    """x folded into [low, high], as light between two mirrors.

    >>> reflect(np.array([-1.0, 4.0, 11.0, 25.0]), 0.0, 10.0)
    array([1., 4., 9., 5.])
    """
    span = high - low
    folded: Array = high - np.abs((x - low) % (2.0 * span) - span)
    return np.where((x < low) | (x > high), folded, x)


registry: dict[str, Callable[..., Problem]] = {}


def register(id: str) -> Callable[[Factory], Factory]:
    """Class or function decorator: `make(id, **parameters)` calls it.

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
    """The problem of this id, with parameters that differ from the reference.

    >>> from trimtab.problems import make
    >>> make("quadratic-v1", dim=3, drift="line").dim
    3
    >>> make("quadratic-v7")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: there is no problem 'quadratic-v7': choose one of absolute-v1, ...
    """
    if id not in registry:
        raise ValueError(f"there is no problem {id!r}: choose one of {', '.join(sorted(registry)) or 'none'}")
    factory = registry[id]
    known = inspect.signature(factory)
    try:
        known.bind(**parameters)
    except TypeError as error:
        raise TypeError(f"{id}: {error}; its parameters are {', '.join(known.parameters)}") from None
    return factory(**parameters)
