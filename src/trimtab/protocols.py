"""What a method is to the kernel, a `Rule`, and what its parts are: estimators, steps, and laws of directions.

A part is configuration (a frozen dataclass). It is *bound* once to a `Frame`, what it may know of the setup, and gives
functions in which nothing is left to decide. What it remembers is a NamedTuple in the `State`, never in the part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from trimtab.state import Key, Look, State, make
from trimtab.types import Array, Integers, Memory, Value


class Frame(NamedTuple):
    """What a part may know of its setup."""

    xp: Any
    """`Single` or `Lanes` of `trimtab.xp`."""
    dim: int
    radius: float
    probe_length: float
    """δ·rms‖u‖: δ√d for Gaussian and Rademacher directions, δ for the unit sphere."""
    scale: float
    """The number s with s·E[u uᵀ] = I."""
    longest: float
    """The largest ‖u‖; for normals, which NumPy draws below 14, more than can occur."""
    tallest: float
    """The largest |u_j|, √2 at most: so far a probe may go along one coordinate."""
    direction: Callable[[Key, int | Integers], Array]
    """(key, trial) → u."""
    partner: Callable[[int | Integers], int | Integers | None]
    """trial → the trial whose u is minus that of this one, if there is one."""
    zero: Value
    """0 in the shape of a value."""
    project: Callable[[Array], Array]
    """The nearest point where a centre may be."""
    free: bool
    """Whether centres may be anywhere."""
    longest_move: float
    """No move may be longer."""


class LocalModel(NamedTuple):
    """The cost about the centre, as a method knows it: the slope, and the mean curvature L."""

    scale: Value
    slope: Array
    """The gradient is scale·slope."""
    certainty: Value
    """How far L stands out of the noise: 0 (not known) to 1."""
    bent: Value
    """certainty·L."""
    width: Value
    """How wide it probes now, as a multiple of the radius."""


def unknown_slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
    """NaN: the method estimates no gradient from a single round."""
    return np.full_like(state.centre, math.nan)


def radius_wide(memory: Memory, id: int) -> Value:
    """1: every probe is as wide as the radius."""
    return 1.0


def no_model(state: State) -> LocalModel | None:
    """None: the method has no model of the cost."""
    return None


def stays(memory: Memory, factors: Array) -> Memory:
    """ValueError: the method cannot change its coordinates."""
    raise ValueError(f"the memory {type(memory).__name__} cannot be rescaled: give its rule a `carried` that does it")


class Rule(NamedTuple):
    """A method, bound to a setup: pure functions of an immutable memory. The first three are needed."""

    start: Callable[[Array], Memory]
    """centre → the memory before anything was measured, with NaN where it takes a value to know."""
    query: Callable[[State, int], Look]
    """(state, id) → where trial `id` looks from."""
    learn: Callable[[State, Look, Array, tuple[Value, ...]], tuple[Array, Memory]]
    """(state, look, point, values) → the new centre, inside the domain, and the new memory. `point` is where the values
    were measured, in scaled coordinates. A value with nothing to be compared with leaves the centre where it is."""
    slope: Callable[[State, Look, Array, tuple[Value, ...]], Array] = unknown_slope
    """(state, look, point, values) → ĝ, the estimate of the gradient; NaN where there is none."""
    width: Callable[[Memory, int], Value] = radius_wide
    """(memory, id) → how wide a probe of trial `id` is, as a multiple of the radius."""
    model: Callable[[State], LocalModel | None] = no_model
    """state → the cost about the centre, for savings and advice."""
    carried: Callable[[Memory, Array], Memory] = stays
    """(memory, factors) → the memory in the coordinates x′ = factors·x, when radius, widths or limits have changed; the
    next query neither repeats nor mirrors one from before."""


class Sense(NamedTuple):
    """What an estimator that knows its own scale tells a step that finds its own pace."""

    surprise: Value
    """The contrast, in units of its own running rms."""
    steepness: Value
    """s: the running rms of the slope along a probe."""
    size: Value
    """‖ĝ‖²."""
    signal_share: Value
    """h: how much of the contrast is signal, as far as it is known: 0 to 1."""
    certainty: Value
    """How far the mean curvature L stands out of the noise: 0 (not known) to 1."""
    bent: Value
    """certainty·L."""
    distance: Value
    """How far the optimum is: inf where no curvature is known."""
    evenness: Value
    """The mean square of surprises downwards over that of those upwards, 1 at most: at a cliff it is small."""
    jumped: Value
    """Whether the objective has jumped just now."""


Estimate = tuple[Value, Value, Array, Memory, Sense | None]
"""contrast, scale, vector, memory, sense. The contrast is the news in a round's values, NaN where there is nothing to
contrast them with: the centre stays. ĝ = scale·vector. A plain tuple, because it is made in every round."""


class Estimation(NamedTuple):
    """An estimator, bound."""

    look: Callable[[State, int, Value], Look]
    """(state, id, width) → where trial `id` looks from; `fresh_look` for most."""
    learn: Callable[[State, Look, Array, tuple[Value, ...]], Estimate]
    """(state, look, query, values) → what the values tell; `query` in scaled coordinates."""
    longest: float = math.inf
    """The largest length of the vector it gives, where that is known; it is measured in every round where it is not."""
    model: Callable[[State], LocalModel | None] = no_model
    """state → the cost about the centre; its width is that of the last probe."""
    interrupted: Callable[[Memory], Memory] | None = None
    """memory → the memory when the next query must not belong to those from before."""


class Estimator(Protocol):
    """What does the number tell?"""

    @property
    def offsets(self) -> tuple[float, ...]:
        """The queries of a round: x + offset·δ_t·u."""
        ...

    @property
    def told(self) -> int:
        """How many numbers a query brings: 1, the value, or more, where limits are measured beside it."""
        ...

    @property
    def lags(self) -> tuple[int, ...]:
        """Which objective each is measured on; 1: that of the round before, which only a simulation can do."""
        ...

    @property
    def anchored(self) -> bool:
        """Whether values are contrasted with earlier ones, so that the first only anchors."""
        ...

    @property
    def unbiased(self) -> bool:
        """Whether E ĝ = ∇f for a quadratic that stands still, once there is a contrast."""
        ...

    @property
    def senses(self) -> bool:
        """Whether it gives a `Sense`."""
        ...

    @property
    def located(self) -> bool:
        """Whether it learns from where it measured, so that queries may be projected back into the domain."""
        ...

    def start(self, frame: Frame, centre: Array) -> Memory:
        """The memory before anything was measured: NaN where it takes a value to know, which is what is forgotten."""
        ...

    def bind(self, frame: Frame) -> Estimation:
        """The functions that do the work."""
        ...


class Pacing(NamedTuple):
    """A step, bound."""

    width: Callable[[Memory, int], Value]
    """(pace, id) → δ_t/δ of trial `id`."""
    rate: Callable[[State, Look, Value, Sense | None], tuple[Value, Memory]]
    """(state, look, contrast, sense) → η_t, and the new memory."""
    settle: Callable[[Memory, Array], Memory] | None = None
    """(pace, where the centre went) → the memory after it, where it learns from it."""
    carry: Callable[[Memory], Array | None] | None = None
    """pace → how far the centre goes besides, with an optimum that goes on; None: nowhere."""
    longest: float = math.inf
    """The longest move it makes, where it sees to that itself."""
    aim: Callable[[State, int, Look], Look] | None = None
    """(state, id, look) → where trial `id` looks instead; a point of the step's own choice has the width 0."""


class Step(Protocol):
    """How far do we go, and how wide do we probe?"""

    @property
    def scale_free(self) -> bool:
        """Whether a·f has the same path as f, for every a > 0."""
        ...

    @property
    def constant(self) -> float | tuple[float, ...] | None:
        """η, where it is the same in every round."""
        ...

    @property
    def needs_sense(self) -> bool:
        """Whether it can only go with an estimator that gives a `Sense`."""
        ...

    @property
    def finds_width(self) -> bool:
        """Whether it finds δ_t by itself, between its fields `narrowest` and `widest`."""
        ...

    @property
    def narrowest(self) -> float:
        """The least δ_t/δ."""
        ...

    @property
    def widest(self) -> float:
        """The largest δ_t/δ: margin="erode" keeps room for it."""
        ...

    def start(self, frame: Frame, centre: Array) -> Memory:
        """The memory before any contrast was seen."""
        ...

    def bind(self, frame: Frame) -> Pacing:
        """The functions that do the work."""
        ...


class Source(Protocol):
    """draw → the rows u of all lanes: what a law of directions makes of random numbers."""

    held: tuple[int, Array]
    """The first of the draws that are there already, and their rows."""

    def __call__(self, draw: int) -> Array:
        """`(d,)` or `(lanes, d)`, not to be written to."""
        ...


class Directions(Protocol):
    """Where do we look?"""

    def scale(self, dim: int) -> float:
        """The number s with s·E[u uᵀ] = I."""
        ...

    def reach(self, dim: int) -> tuple[float, float]:
        """The largest |u_j| and the largest ‖u‖ that can occur (inf if unbounded)."""
        ...

    def locate(self, trial: int) -> tuple[int, float]:
        """Which draw serves this trial, and with which sign."""
        ...

    def partner(self, trial: int | Integers) -> int | Integers | None:
        """The trial whose u is minus that of this one, if there is one."""
        ...

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Draw independent directions into the rows of `out`, row after row, so that fewer rows are the same ones."""
        ...

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """The function draw → u, for these lanes."""
        ...


def fresh_look(state: State, id: int, width: Value) -> Look:
    """A direction of its own, from where the centre is."""
    return make(Look, (id, state.centre, width))
