"""Problems from a user's function of (round, point)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains import Domain, Everywhere
from trimtab.problems.base import Problem, World
from trimtab.types import Array
from trimtab.validation import real, whole

Values = SupportsFloat | ArrayLike
"""The return value of a function: a number, or one per point if `vectorised`."""


def from_function(
    f: Callable[[int, Array], Values],
    *,
    x0: ArrayLike,
    rounds: int = 1000,
    radius: float = 0.1,
    domain: Domain | None = None,
    optimum: float | Callable[[int], float] | None = None,
    optimiser: ArrayLike | Callable[[int], ArrayLike] | None = None,
    noise: float = 0.0,
    vectorised: bool = False,
    id: str = "function",
) -> Problem:
    """Create a problem from f(t, x) → number, x of shape `(d,)`; f must be deterministic.

    `optimum` is min f_t: a number, a function of t, or None if unknown; likewise `optimiser`. `noise` is the standard
    deviation of the measurement noise; trials differ in nothing else. With `vectorised=True`, f takes points
    `(trials, k, d)` and returns `(trials, k)`, which is faster.

    >>> problem = from_function(lambda t, x: (x[0] - 0.01 * t) ** 2 + x[1] ** 2, x0=[1.0, 1.0], optimum=0.0)
    >>> problem.world(seed=0, trials=1).cost(100, np.array([[[0.0, 2.0]]]))
    array([[5.]])
    """
    if not callable(f):
        raise TypeError(f"f={f!r} is not a function: give one that takes (t, x) and returns a number")
    start = np.array(x0, dtype=float)
    if start.ndim != 1 or start.size == 0 or not np.isfinite(start).all():
        raise ValueError(f"x0={x0!r} is not a point: give a list of finite numbers, one per coordinate")
    start.flags.writeable = False
    where = Everywhere() if domain is None else domain
    if where.dim not in (None, start.size) or not where.contains(start):
        raise ValueError(f"x0={x0!r} is not in {where}: start inside, or widen the domain")
    return Function(
        f=f,
        x0=start,
        dim=start.size,
        rounds=whole("rounds", rounds, 1),
        radius=real("radius", radius, 0, above=True),
        where=where,
        least=optimum,
        best=optimiser,
        noise=real("noise", noise, 0),
        vectorised=vectorised,
        id=id,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Function(Problem):
    """The problem that `from_function` returns."""

    f: Callable[[int, Array], Values]
    x0: Array = field(repr=False)
    dim: int
    rounds: int
    radius: float
    where: Domain
    least: float | Callable[[int], float] | None
    best: ArrayLike | Callable[[int], ArrayLike] | None
    noise: float
    vectorised: bool
    id: str

    @property
    def domain(self) -> Domain:
        """The given domain, by default the whole space."""
        return self.where

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """x0, in every trial."""
        return np.tile(self.x0, (trials, 1))

    def world(self, seed: int, trials: int, first: int = 0) -> FunctionWorld:
        """The function, with the noise of these trials."""
        return FunctionWorld(self, seed, trials, first)


class FunctionWorld(World):
    """A realisation: the same function in every trial, with each trial's noise."""

    def __init__(self, problem: Function, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(seed, trials, first)
        self.problem = problem

    def cost(self, round: int, x: Array) -> Array:
        """f(t, x), point by point, or at once if f is vectorised."""
        points = np.array(x, dtype=float)  # a copy, which f may modify
        if not self.problem.vectorised:
            values = [_number(self.problem.f(round, point)) for point in points.reshape(-1, points.shape[-1])]
            return np.array(values).reshape(points.shape[:-1])
        result = np.asarray(self.problem.f(round, points), dtype=float)
        if result.shape != points.shape[:-1]:
            raise ValueError(
                f"f returned the shape {result.shape} for points of shape {x.shape}: give one value per point, "
                f"{x.shape[:-1]}, or leave out vectorised=True if f takes one point"
            )
        return result

    @property
    def sigma(self) -> float:
        """The given noise."""
        return self.problem.noise

    def optimum(self, round: int) -> Array:
        """The given `optimum` in this round."""
        least = self.problem.least(round) if callable(self.problem.least) else self.problem.least
        return np.full(self.trials, np.nan if least is None else float(least))

    def optimiser(self, round: int) -> Array | None:
        """The given `optimiser` in this round."""
        best = self.problem.best(round) if callable(self.problem.best) else self.problem.best
        return None if best is None else np.tile(np.asarray(best, dtype=float), (self.trials, 1))


def _number(value: Values) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # anything else raises below
    except (TypeError, ValueError):
        raise TypeError(f"f returned {value!r}, not a number: return a float") from None


__all__ = ["Function", "FunctionWorld", "from_function"]
