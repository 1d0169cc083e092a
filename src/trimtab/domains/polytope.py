"""Polytopes, with a quadratic and a linear programming solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.base import ROUNDING, Domain, Inside, no_room, pulled_in
from trimtab.registry import part
from trimtab.types import Array
from trimtab.util.extras import pip_install


class _Depth(NamedTuple):
    """A point inside, and its distance from the nearest side."""

    centre: Array
    radius: float


@part
@dataclass(frozen=True, eq=False)
class Polytope(Domain):
    """{A x ≤ b}, projected onto by the active-set solver DAQP (`pip install "trimtab[polytope]"`).

    >>> Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]).project(np.array([2.0, 1.0])).round(12)
    array([1., 0.])
    """

    a: Array
    b: Array

    def __init__(self, a: ArrayLike, b: ArrayLike) -> None:
        try:
            matrix, limits = np.array(a, dtype=float), np.array(b, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"a={a!r}, b={b!r} must consist of numbers: give a matrix and a list") from None
        shapes = f"a of shape {matrix.shape} and b of shape {limits.shape}"
        if matrix.ndim != 2 or limits.shape != matrix.shape[:1]:
            raise ValueError(f"{shapes} do not fit: they must be (rows, dim) and (rows,)")
        if not (np.isfinite(matrix).all() and np.isfinite(limits).all()):
            raise ValueError(f"{shapes} must be finite: leave out rows without a limit")
        if not np.all(np.any(matrix != 0, axis=1)):
            raise ValueError("a row of a is zero: it constrains nothing; leave it out")
        matrix.flags.writeable = limits.flags.writeable = False
        self._set(a=matrix, b=limits)
        # Report an empty set or a missing extra here, not in the first round.
        if self._inner.radius < -1e-9 * self._widest:
            raise ValueError("the polytope is empty: no x satisfies a x <= b; check the signs in a and b")

    @property
    def dim(self) -> int | None:
        """The number of columns of a."""
        return int(self.a.shape[1])

    def project(self, x: Array) -> Array:
        """argmin ‖z − x‖ over A z ≤ b, one quadratic program per lane."""
        rows = np.atleast_2d(x)
        outside = ~self._within(rows, 0.25 * ROUNDING)
        if not outside.any():
            return x
        nearest = np.array(rows, dtype=float)
        nearest[outside] = [self._nearest(row) for row in nearest[outside]]
        if self._inner.radius > 1e-9 * self._widest:  # rounding and the solver's tolerance may leave points outside
            nearest = pulled_in(self, nearest, self._inner.centre)
        return nearest.reshape(x.shape)

    def _nearest(self, x: Array) -> Array:
        try:
            from daqp import solve
        except ImportError as error:
            raise ImportError(f"Polytope needs its solvers: {pip_install('polytope')}") from error
        rows, length = len(self.b), self._inner.radius if 0 < self._inner.radius < math.inf else 1.0
        a, lower, sense = self.a / self._size[:, None], np.full(rows, -1e30), np.zeros(rows, dtype=np.int32)
        # The solver is most accurate near the origin, so shift x there.
        room = (self.b - self.a @ x) / self._size
        z, _, flag, _ = solve(np.eye(x.size), np.zeros(x.size), a, room / length, lower, sense, primal_tol=1e-12)
        return x + length * z if flag > 0 else x  # no solution: `project` still moves x inside

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """A x ≤ b, each row up to max(tolerance, rounding) times (Σ|a_ij·x_j| + |b_i|)."""
        return self._within(np.asarray(x, dtype=float), max(tolerance, ROUNDING))

    def _within(self, x: Array, tolerance: float) -> Inside:
        rows = x[..., None, :]  # one product per row rounds the same with and without lanes
        size = (np.abs(rows) @ np.abs(self.a.T))[..., 0, :] + np.abs(self.b)
        return np.all((rows @ self.a.T)[..., 0, :] <= self.b + tolerance * size, axis=-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """Each limit reduced by the longest probe along its row, min(each·‖a_i‖₁, length·‖a_i‖₂)."""
        return self._shrunk(np.minimum(each * np.abs(self.a).sum(1), length * self._size))

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """Each face moved towards the middle by the share ξ."""
        c = self.inner_point(dim, xi, about)
        return self._shrunk(xi * (self.b - self.a @ c))

    def _shrunk(self, reach: Array) -> Domain:
        slack = 4 * ROUNDING * (np.abs(self.a) @ np.abs(self._inner.centre) + np.abs(self.b) + reach)
        room = self._room(reach, self.b - slack).radius if reach.any() else math.inf
        if room * (1 - 1e-9) <= 1:
            raise no_room(self, room, 1.0)
        return Polytope(self.a, self.b - reach - slack)

    def middle(self, dim: int) -> Array:
        """The Chebyshev centre."""
        return self._inner.centre.copy() if math.isfinite(self._inner.radius) else super().middle(dim)

    def inner_radius(self, dim: int) -> float:
        """The depth of the Chebyshev centre."""
        return self._inner.radius

    def outer_radius(self, dim: int) -> float:
        """The distance to the farthest corner of the bounding box: an upper bound."""
        return self._outer

    @cached_property
    def _size(self) -> Array:
        return np.asarray(np.linalg.norm(self.a, axis=1))

    @cached_property
    def _inner(self) -> _Depth:
        """The Chebyshev centre and its depth; an arbitrary inner point and inf if a ball of any size fits."""
        return self._room(self._size, self.b)

    @cached_property
    def _widest(self) -> float:
        """The distance from the inner point to the farthest side."""
        return float(np.abs((self.b - self.a @ self._inner.centre) / self._size).max())

    def _room(self, reach: Array, b: Array) -> _Depth:
        """The x with the largest k in A x + k·reach ≤ b, and k; an arbitrary x and inf if k is unbounded."""
        x, narrowing = np.zeros(self.a.shape[1]), reach > 0
        sides, last = self.a / self._size[:, None], np.eye(x.size + 1)[-1]
        rows = np.column_stack([sides, reach / self._size / (reach / self._size).max()])
        for _ in range(2):  # the second pass, about the point found, is accurate for a set far from the origin
            room = (b - self.a @ x) / self._size
            unit = float(np.abs(room).max()) or 1.0  # unit of length, since the solver's tolerances are absolute
            best = _linear_program(-last, rows, room / unit)
            if best is None:
                some = _linear_program(-last, rows, room / unit, limit=1.0)
                return _Depth(x if some is None else x + unit * some[:-1], math.inf)
            x = x + unit * best[:-1]
        return _Depth(x, float(np.min((b - self.a @ x)[narrowing] / reach[narrowing])))

    @cached_property
    def _outer(self) -> float:
        """Half the diagonal of the box about `middle` that contains the set."""
        centre = self._inner.centre
        if math.isinf(self._inner.radius):
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
    """argmin ⟨cost, x⟩ over a x ≤ b with the last coordinate ≤ `limit`; None if unbounded."""
    try:
        from scipy.optimize import linprog
    except ImportError as error:
        raise ImportError(f"Polytope needs its solvers: {pip_install('polytope')}") from error
    bounds = [(None, None)] * (len(cost) - 1) + [(None, limit)]
    options = {"primal_feasibility_tolerance": 1e-10, "presolve": False}
    answer = linprog(cost, A_ub=a, b_ub=b, bounds=bounds, options=options)
    if answer.status not in (0, 3):
        raise ValueError(f"the linear program of the polytope failed: {answer.message}; check the scale of a and b")
    return None if answer.x is None else np.asarray(answer.x, dtype=float)
