"""Polytopes, by a quadratic and a linear programming solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.sets import ROUNDING, Array, Domain, Verdict, no_room

_EXTRA = 'Polytope needs its solvers: pip install "trimtab[polytope]"'


@dataclass(frozen=True, eq=False)
class Polytope(Domain):
    """{A x ≤ b}, projected onto by the active-set solver DAQP (`pip install "trimtab[polytope]"`).

    >>> Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]).project(np.array([2.0, 1.0])).round(12)
    array([1., 0.])
    """

    a: Any
    b: Any

    def __post_init__(self) -> None:
        a, b = np.array(self.a, dtype=float), np.array(self.b, dtype=float)
        if a.ndim != 2 or b.shape != a.shape[:1] or not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise ValueError(f"a of shape {a.shape} and b of shape {b.shape} must be finite, (rows, dim) and (rows,)")
        if not np.all(np.any(a != 0, axis=1)):
            raise ValueError("a row of a is zero: it constrains nothing, leave it out")
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", b)
        self._room(np.linalg.norm(a, axis=1))  # an empty set or a missing extra is told here, not in the first round

    @property
    def dim(self) -> int | None:
        return int(self.a.shape[1])

    def project(self, x: Array) -> Array:
        if x.ndim > 1:
            return np.stack([self.project(row) for row in x])
        if np.all(self.a @ x <= self.b):
            return x
        try:
            from daqp import solve
        except ImportError as error:
            raise ImportError(_EXTRA) from error
        size = np.linalg.norm(self.a, axis=1)  # rows of unit norm, so that the tolerance is a length
        rows = len(size)
        # The solver works about the origin: shift there, and the answer keeps its digits far away too.
        z, _, flag, _ = solve(
            np.eye(x.size),
            np.zeros(x.size),
            self.a / size[:, None],
            (self.b - self.a @ x) / size,
            np.full(rows, -1e30),
            np.zeros(rows, dtype=np.int32),
            primal_tol=1e-12,
        )
        if flag <= 0:
            raise ValueError(
                f"no nearest point of the polytope to {x}: DAQP ended with {flag}; check the scale of a, b"
            )
        return np.asarray(x + z, dtype=float)

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        size = np.abs(x) @ np.abs(self.a.T) + np.abs(self.b)
        return np.all(np.asarray(x) @ self.a.T <= self.b + max(tolerance, ROUNDING) * size, axis=-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        reach = np.minimum(each * np.abs(self.a).sum(1), length * np.linalg.norm(self.a, axis=1))
        share = self._room(reach)[1]
        if share <= 1:
            raise no_room(self, share)
        return Polytope(self.a, self.b - reach - 1e-11 * (np.abs(self.b) + reach))

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return Polytope(self.a, (1 - xi) * self.b + xi * (self.a @ c))

    def middle(self, dim: int) -> Array:
        centre, radius = self._inner
        return centre.copy() if math.isfinite(radius) else super().middle(dim)

    def inner_radius(self, dim: int) -> float:
        return self._inner[1]

    def outer_radius(self, dim: int) -> float:
        return self._outer

    def _room(self, reach: Array) -> tuple[Array, float]:
        """The x and the largest k with A x + k·reach ≤ b."""
        dim = self.a.shape[1]
        best = _linear_program(np.eye(dim + 1)[-1] * -1.0, np.column_stack([self.a, reach]), self.b)
        return (np.zeros(dim), math.inf) if best is None else (best[:-1], float(best[-1]))

    @cached_property
    def _inner(self) -> tuple[Array, float]:
        """The Chebyshev centre."""
        return self._room(np.linalg.norm(self.a, axis=1))

    @cached_property
    def _outer(self) -> float:
        """From the smallest box around the set."""
        if math.isinf(self._inner[1]):
            return math.inf
        corner = []
        for axis in np.eye(self.a.shape[1]):
            for sign in (1.0, -1.0):
                end = _linear_program(sign * axis, self.a, self.b)
                if end is None:
                    return math.inf
                corner.append(abs(axis @ (end - self._inner[0])))
        return float(np.linalg.norm(np.reshape(corner, (-1, 2)).max(1)))


def _linear_program(cost: Array, a: Array, b: Array) -> Array | None:
    """argmin ⟨cost, x⟩ over a x ≤ b; None if unbounded."""
    try:
        from scipy.optimize import linprog
    except ImportError as error:
        raise ImportError(_EXTRA) from error
    answer = linprog(cost, A_ub=a, b_ub=b, bounds=(None, None))
    if answer.status == 2:
        raise ValueError("the polytope is empty: check the signs in a x <= b")
    return None if answer.x is None else np.asarray(answer.x, dtype=float)
