"""Polytopes, by a quadratic and a linear programming solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.sets import ROUNDING, Array, Domain, Verdict, no_room, pulled_in

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
        try:
            a, b = np.array(self.a, dtype=float), np.array(self.b, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"a={self.a!r}, b={self.b!r} are not made of numbers: give a matrix and a list") from None
        if a.ndim != 2 or b.shape != a.shape[:1] or not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise ValueError(f"a of shape {a.shape} and b of shape {b.shape} must be finite, (rows, dim) and (rows,)")
        if not np.all(np.any(a != 0, axis=1)):
            raise ValueError("a row of a is zero: it constrains nothing, leave it out")
        for name, array in (("a", a), ("b", b)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if (
            self._inner[1] < -1e-9 * self._widest
        ):  # an empty set or a missing extra is told here, not in the first round
            raise ValueError("the polytope is empty: no x has a x <= b; check the signs in a and b")

    @property
    def dim(self) -> int | None:
        return int(self.a.shape[1])

    def project(self, x: Array) -> Array:
        rows = np.atleast_2d(x)
        outside = ~self._within(rows, 0.25 * ROUNDING)
        if not outside.any():
            return x
        nearest = np.array(rows, dtype=float)
        nearest[outside] = [self._nearest(row) for row in nearest[outside]]
        if self._inner[1] > 1e-9 * self._widest:  # what rounding and the solver's tolerance have left outside
            nearest = pulled_in(self, nearest, self._inner[0])
        return nearest.reshape(x.shape)

    def _nearest(self, x: Array) -> Array:
        try:
            from daqp import solve
        except ImportError as error:
            raise ImportError(_EXTRA) from error
        rows, length = len(self.b), self._inner[1] if 0 < self._inner[1] < math.inf else 1.0
        a, lower, sense = self.a / self._size[:, None], np.full(rows, -1e30), np.zeros(rows, dtype=np.int32)
        # The solver works about the origin: shift x there, and the answer keeps its digits.
        room = (self.b - self.a @ x) / self._size
        z, _, flag, _ = solve(np.eye(x.size), np.zeros(x.size), a, room / length, lower, sense, primal_tol=1e-12)
        return x + length * z if flag > 0 else x  # without an answer, `project` stays inside rather than be nearest

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        return self._within(np.asarray(x, dtype=float), max(tolerance, ROUNDING))

    def _within(self, x: Array, tolerance: float) -> Verdict:
        rows = x[..., None, :]  # one product for each, which rounds alike with lanes and without
        size = (np.abs(rows) @ np.abs(self.a.T))[..., 0, :] + np.abs(self.b)
        return np.all((rows @ self.a.T)[..., 0, :] <= self.b + tolerance * size, axis=-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        reach = np.minimum(each * np.abs(self.a).sum(1), length * np.linalg.norm(self.a, axis=1))
        return self._shrunk(reach, self._room(reach)[1], 1.0)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return self._shrunk(xi * (self.b - self.a @ c), 1.0, xi)

    def _shrunk(self, reach: Array, room: float, need: float) -> Domain:
        if need >= room * (1 - 1e-9):
            raise no_room(self, room, need)
        slack = 4 * ROUNDING * (np.abs(self.a) @ np.abs(self._inner[0]) + np.abs(self.b) + reach)
        return Polytope(self.a, self.b - reach - slack)

    def middle(self, dim: int) -> Array:
        centre, radius = self._inner
        return centre.copy() if math.isfinite(radius) else super().middle(dim)

    def inner_radius(self, dim: int) -> float:
        return self._inner[1]

    def outer_radius(self, dim: int) -> float:
        return self._outer

    @cached_property
    def _size(self) -> Array:
        return np.asarray(np.linalg.norm(self.a, axis=1))

    @cached_property
    def _inner(self) -> tuple[Array, float]:
        """The Chebyshev centre and its depth; some inner point and inf if a ball of any size fits."""
        return self._room(self._size)

    @cached_property
    def _widest(self) -> float:
        """The distance from the inner point to the farthest side."""
        return float(np.abs((self.b - self.a @ self._inner[0]) / self._size).max())

    def _room(self, reach: Array) -> tuple[Array, float]:
        """The x and the largest k with A x + k·reach ≤ b; some x and inf if there is no largest."""
        dim = self.a.shape[1]
        rows, cost = np.column_stack([self.a, reach]) / self._size[:, None], np.eye(dim + 1)[-1] * -1.0
        unit = float(np.abs(self.b / self._size).max()) or 1.0  # of length, since the solver's tolerances are absolute
        best = _linear_program(cost, rows, self.b / self._size / unit)
        if best is not None:
            x = unit * best[:-1]
            return x, float(np.min((self.b - self.a @ x) / reach))
        some = _linear_program(cost, rows, self.b / self._size / unit, limit=1.0)
        return np.zeros(dim) if some is None else unit * some[:-1], math.inf

    @cached_property
    def _outer(self) -> float:
        """From the smallest box around the set."""
        centre, radius = self._inner
        if math.isinf(radius):
            return math.inf
        room = (self.b - self.a @ centre) / self._size
        unit = float(np.abs(room).max())
        corner = []
        for axis in np.eye(len(centre)):
            ends = [_linear_program(sign * axis, self.a / self._size[:, None], room / unit) for sign in (1.0, -1.0)]
            if any(end is None for end in ends):
                return math.inf
            corner.append(unit * max(abs(float(axis @ end)) for end in ends if end is not None))
        return float(np.linalg.norm(corner))


def _linear_program(cost: Array, a: Array, b: Array, limit: float = math.inf) -> Array | None:
    """argmin ⟨cost, x⟩ over a x ≤ b, with the last coordinate at most `limit`; None if unbounded."""
    try:
        from scipy.optimize import linprog
    except ImportError as error:
        raise ImportError(_EXTRA) from error
    bounds = [(None, None)] * (len(cost) - 1) + [(None, limit)]
    options = {"primal_feasibility_tolerance": 1e-10, "presolve": False}
    answer = linprog(cost, A_ub=a, b_ub=b, bounds=bounds, options=options)
    if answer.status not in (0, 3):
        raise ValueError(f"the polytope cannot be measured: {answer.message}; check the scale of a and b")
    return None if answer.x is None else np.asarray(answer.x, dtype=float)
