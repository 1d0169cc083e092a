"""Protocols of rules, which the kernel runs, and of their parts: estimators, steps and laws of directions.

A part is configuration (a frozen dataclass). It is *bound* once to a `Frame`, which describes the setup, and returns
functions with all choices resolved. Its memory is a NamedTuple in the `State`, never in the part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from trimtab.limit import Side
from trimtab.state import Key, Look, State
from trimtab.types import Array, Integers, Memory, Value


class Frame(NamedTuple):
    """Description of a setup for its parts."""

    xp: Any
    """`Single` or `Lanes` of `trimtab.xp`."""
    dim: int
    radius: float
    probe_length: float
    """δ·rms‖u‖: δ√d for Gaussian and Rademacher directions, δ for the unit sphere."""
    scale: float
    """The number s with s·E[u uᵀ] = I."""
    longest: float
    """An upper bound on ‖u‖; for normals by 14 per coordinate, which NumPy's never reach."""
    tallest: float
    """The largest |u_j|, at most √2; limits probes along a single coordinate."""
    direction: Callable[[Key, int | Integers], Array]
    """(key, trial) → u."""
    partner: Callable[[int | Integers], int | Integers | None]
    """trial → the trial with the opposite u, or None."""
    zero: Value
    """0 in the shape of a value."""
    project: Callable[[Array], Array]
    """The projection onto the set of allowed centres."""
    free: bool
    """Whether centres are unconstrained."""
    longest_move: float
    """The longest allowed move."""
    periods: tuple[float, ...] = ()
    """One for each context: the period of an angle or an hour, 0 of any other number."""
    flatten: Callable[[Array], Array] | None = None
    """The projection of directions onto the plane of the domain, if it is flat."""
    limits: tuple[Side, ...] = ()
    """Bounds on the numbers told, for methods that keep limits."""


class LocalModel(NamedTuple):
    """A method's model of the cost around the centre: the slope, and the mean curvature L."""

    scale: Value
    slope: Array
    """The gradient is scale·slope."""
    certainty: Value
    """Confidence in L, given the noise: 0 (unknown) to 1."""
    bent: Value
    """certainty·L."""
    width: Value
    """The current width of probes, as a multiple of the radius."""


def unknown_slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
    """NaN, for methods that do not estimate a gradient from a single round."""
    return np.full_like(state.centre, math.nan)


def radius_wide(memory: Memory, id: int) -> Value:
    """1, for methods whose probes always have the given radius."""
    return 1.0


def no_model(state: State) -> LocalModel | None:
    """None, for methods without a model of the cost."""
    return None


def no_limits(state: State) -> Array:
    """An empty array: the method keeps no limits."""
    return np.empty((*state.centre.shape[:-1], 0), dtype=bool)


def nothing_exceeds(state: State, points: Array, id: int, context: Array | None) -> Array:
    """0: the method keeps no limits."""
    return np.zeros(len(points))


def at_centre(state: State, context: Array | None) -> Array:
    """The centre: the method takes no context."""
    return state.centre


def stays(memory: Memory, factors: Array) -> Memory:
    """Raise ValueError, for methods whose memory cannot be rescaled."""
    raise ValueError(f"the memory {type(memory).__name__} cannot be rescaled: give its rule a `carried` that does it")


class Rule(NamedTuple):
    """A method bound to a setup: pure functions of an immutable memory. The first three are required."""

    start: Callable[[Array], Memory]
    """centre → the memory before the first value; NaN marks quantities that need a value first."""
    query: Callable[..., Look]
    """(state, id) → the look of trial `id`; (state, id, context) where the setup has contexts."""
    learn: Callable[[State, Look, Array, tuple[Value, ...]], tuple[Array, Memory]]
    """(state, look, point, values) → the new centre, inside the domain, and the new memory. `point` is the query of the
    values, in scaled coordinates. A value that cannot be compared with an earlier one does not move the centre."""
    slope: Callable[[State, Look, Array, tuple[Value, ...]], Array] = unknown_slope
    """(state, look, point, values) → ĝ, the estimate of the gradient; NaN without one."""
    width: Callable[[Memory, int], Value] = radius_wide
    """(memory, id) → the probe width of trial `id`, as a multiple of the radius."""
    model: Callable[[State], LocalModel | None] = no_model
    """state → the model of the cost around the centre, for savings and advice."""
    carried: Callable[[Memory, Array], Memory] = stays
    """(memory, factors) → the memory in the coordinates x′ = factors·x, after a change of radius, widths or limits; the
    next query neither repeats nor mirrors an earlier one."""
    at: Callable[[State, Array | None], Array] = at_centre
    """(state, context) → the operating point for a context; None: for the mean one."""
    beyond: Callable[[State], Array] = no_limits
    """state → which of the frame's limits the operating point exceeded, as far as was known at the last value, on the
    last axis. It has moved since."""
    exceeds: Callable[[State, Array, int, Array | None], Array] = nothing_exceeds
    """(state, points, id, context) → by how much a single system's query `id` at each of the points would exceed the
    limits, 0 or less if all of them hold with the stated risk."""


Estimate = tuple[Value, Value, Array, Memory]
"""(contrast, scale, vector, memory), with ĝ = scale·vector. The contrast is the new information in a round's
values; NaN without earlier values, in which case the centre stays. A plain tuple, for speed."""


class Estimation(NamedTuple):
    """An estimator bound to a setup."""

    look: Callable[[State, int, Value], Look]
    """(state, id, width) → the look of trial `id`; usually `fresh_look`."""
    learn: Callable[[State, Look, Array, tuple[Value, ...]], Estimate]
    """(state, look, query, values) → the estimate; `query` is in scaled coordinates."""
    longest: float = math.inf
    """An upper bound on the length of the vector, if known; otherwise the length is computed in every round."""
    model: Callable[[State], LocalModel | None] = no_model
    """state → the model of the cost around the centre; its width is that of the last probe."""
    interrupted: Callable[[Memory], Memory] | None = None
    """memory → the memory in which the next query is unrelated to earlier ones."""


class Estimator(Protocol):
    """Estimates the gradient from measured values."""

    @property
    def offsets(self) -> tuple[float, ...]:
        """The queries of a round: x + offset·δ_t·u."""
        ...

    @property
    def told(self) -> int:
        """The number of values per query: 1, plus one for each measured limit."""
        ...

    @property
    def lags(self) -> tuple[int, ...]:
        """The age in rounds of the objective that each query measures; not 0 in simulations only."""
        ...

    @property
    def anchored(self) -> bool:
        """Whether values are contrasted with earlier ones, so that the first only sets the anchor."""
        ...

    @property
    def unbiased(self) -> bool:
        """Whether E ĝ = ∇f for a static quadratic, once there is a contrast."""
        ...

    @property
    def located(self) -> bool:
        """Whether it uses the actual query, so that queries may be projected back into the domain."""
        ...

    def start(self, frame: Frame, centre: Array) -> Memory:
        """The memory before the first value; `forget` resets the quantities that are NaN here."""
        ...

    def bind(self, frame: Frame) -> Estimation:
        """The functions that do the work."""
        ...


class Pacing(NamedTuple):
    """A step bound to a setup."""

    width: Callable[[Memory, int], Value]
    """(pace, id) → δ_t/δ of trial `id`."""
    rate: Callable[[State, Look, Value], tuple[Value, Memory]]
    """(state, look, contrast) → η_t, and the new memory."""


class Step(Protocol):
    """Determines the step size, and the width of probes."""

    @property
    def scale_free(self) -> bool:
        """Whether a·f has the same path as f, for every a > 0."""
        ...

    @property
    def constant(self) -> float | tuple[float, ...] | None:
        """η, if constant."""
        ...

    @property
    def narrowest(self) -> float:
        """The smallest δ_t/δ."""
        ...

    @property
    def widest(self) -> float:
        """The largest δ_t/δ: margin="erode" keeps room for it."""
        ...

    def start(self, frame: Frame, centre: Array) -> Memory:
        """The memory before the first contrast."""
        ...

    def bind(self, frame: Frame) -> Pacing:
        """The functions that do the work."""
        ...


class Source(Protocol):
    """draw → the rows u of all lanes, generated by a law of directions."""

    held: tuple[int, Array]
    """The index of the first cached draw, and the cached rows."""

    def __call__(self, draw: int) -> Array:
        """The row of a draw, `(d,)` or `(lanes, d)`; read-only."""
        ...


class Directions(Protocol):
    """The law of the probing directions."""

    def scale(self, dim: int) -> float:
        """The number s with s·E[u uᵀ] = I."""
        ...

    def reach(self, dim: int) -> tuple[float, float]:
        """The largest |u_j| and the largest ‖u‖ that can occur (inf if unbounded)."""
        ...

    def locate(self, trial: int) -> tuple[int, float]:
        """The draw used by this trial, and its sign."""
        ...

    def partner(self, trial: int | Integers) -> int | Integers | None:
        """The trial with the opposite u, or None."""
        ...

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Draw independent directions row by row, so that the first rows do not depend on how many are drawn."""
        ...

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """The function draw → u, for these lanes."""
        ...


def fresh_look(state: State, id: int, width: Value) -> Look:
    """A look from the current centre, with a direction of its own."""
    return Look(id, state.centre, width, None)
