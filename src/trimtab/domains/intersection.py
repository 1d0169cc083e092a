"""Intersections of sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.base import Domain, Inside, no_room, pulled_in
from trimtab.domains.dykstra import meet, nearest
from trimtab.registry import part
from trimtab.types import Array


class _Inner(NamedTuple):
    """A ball inside an intersection, and the size of the whole."""

    centre: Array
    radius: float  # inf if a ball of any size fits; the centre is then an arbitrary point well inside
    size: float


@part
@dataclass(frozen=True, eq=False)
class Intersection(Domain):
    """The points that lie in every member, projected onto by Dykstra's algorithm: see `trimtab.domains.dykstra`.

    At most one member may be flat (a `Simplex`): the directions must fit into its plane.

    >>> from trimtab.domains import Ball, Halfspace
    >>> Intersection(Ball(1.0), Halfspace([1.0, 0.0], 0.0)).project(np.array([2.0, 2.0])).round(9)
    array([0., 1.])
    """

    members: tuple[Domain, ...]

    def __init__(self, *members: Domain) -> None:
        self._set(members=members)
        if not members:
            raise ValueError("an intersection needs at least one member: Intersection(domain, ...)")
        for member in members:
            if not isinstance(member, Domain):
                raise TypeError(f"{member!r} is not a domain: Intersection(domain, ...)")
        dims = {m.dim for m in members} - {None}
        if len(dims) > 1:
            raise ValueError(
                f"the members disagree on the dimension: {sorted(d for d in dims if d)}; all must have the same"
            )
        if len(self._flat) > 1:
            raise ValueError(
                f"{len(self._flat)} members are flat, and directions can follow one plane only: describe it in one"
                " member, for instance a Product of simplices"
            )

    @property
    def dim(self) -> int | None:
        """The dimension of the members that fix it."""
        return next((m.dim for m in self.members if m.dim is not None), None)

    def project(self, x: Array) -> Array:
        """Project points outside by `dykstra.nearest`, then correct rounding errors inwards; others are unchanged."""
        rows = np.array(np.atleast_2d(x), dtype=float)
        outside = ~np.atleast_1d(self.contains(rows, 0.0))
        if not (outside.any() or self._flat):
            return x
        for member in self._flat:  # back onto the plane: rounding must not add up over the rounds
            rows[~outside] = member.project(rows[~outside])
        if outside.any():
            centre, radius, size = self._inner(rows.shape[1])
            found = nearest(self, self._order, rows[outside], centre, size)
            rows[outside] = pulled_in(self, found, centre) if radius > 1e-9 * size else found
        return rows.reshape(x.shape)

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """Whether every member contains x, each with its own tolerance."""
        return np.all([m.contains(x, tolerance) for m in self.members], axis=0)

    def flatten(self, u: Array) -> Array:
        """Flatten u by the flat member, if there is one."""
        for member in self._flat:
            u = member.flatten(u)
        return u

    def spread(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """The spread of the flat member, if there is one: the others get the same directions."""
        return self._flat[0].spread(dim, each, length) if self._flat else (each, length)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The intersection of the eroded members."""
        reach = self.spread(dim, each, length)
        smaller = Intersection(
            *(m.erode(dim, *(m.reach(dim, each, length) if m in self._flat else reach)) for m in self.members)
        )
        try:
            roomy = smaller._inner(dim).radius > 0
        except ValueError:
            roomy = False
        if not roomy:
            raise no_room(self, self._inner(dim).radius, min(length, each * math.sqrt(dim)))
        return smaller

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """The intersection of the members, each shrunk about the middle of the whole."""
        c = self.inner_point(dim, xi, about)
        return Intersection(*(m.scale(dim, xi, c) for m in self.members))

    def middle(self, dim: int) -> Array:
        """The point farthest from the boundary."""
        inner = self._inner(dim)
        return inner.centre.copy() if math.isfinite(inner.radius) else super().middle(dim)

    def inner_radius(self, dim: int) -> float:
        """The depth of `middle`: how far the members can be eroded and still intersect."""
        return self._inner(dim).radius

    def outer_radius(self, dim: int) -> float:
        """From the middle to the far side of the ball around the smallest member; inf if no member is bounded."""
        inner = self._inner(dim)
        return inner.size if math.isfinite(min(m.outer_radius(dim) for m in self.members)) else math.inf

    @cached_property
    def _flat(self) -> tuple[Domain, ...]:
        return tuple(m for m in self.members if np.any(m.flatten(np.ones(m.dim or 2)) != 1))

    @cached_property
    def _order(self) -> tuple[Domain, ...]:
        """The members, the flat one last: moving inwards stays in a plane, but does not reach it."""
        return tuple(sorted(self.members, key=lambda m: m in self._flat))

    @cached_property
    def _known(self) -> dict[int, _Inner]:
        return {}

    def _inner(self, dim: int) -> _Inner:
        if dim not in self._known:
            self._known[dim] = self._deepest(dim)
        return self._known[dim]

    def _deepest(self, dim: int) -> _Inner:
        """Bisect for the radius: a ball of radius ρ fits if the members eroded by ρ have a common point."""
        around = [(m.outer_radius(dim), m.middle(dim)) for m in self.members if math.isfinite(m.outer_radius(dim))]
        start = np.mean([c for _, c in around], axis=0) if around else np.zeros(dim)
        x = meet(self._order, self._order, start, 1e-9, patience=10)
        if x is None:
            raise ValueError("the intersection is empty: no point lies in every member; widen one of them")
        unit = float(np.abs(x).max()) or 1.0
        near, far = 0.0, min(1e6 * unit, *(m.inner_radius(dim) for m in self.members))
        endless = far == 1e6 * unit and self._deep(dim, far, x) is not None
        for _ in range(1 if endless else 60):
            half = unit if endless else 0.5 * (near + far)
            deep = self._deep(dim, half, x)
            near, far, x = (near, half, x) if deep is None else (half, far, deep)
            if far - near <= 1e-6 * far:
                break
        size = min(
            (r + float(np.linalg.norm(c - x)) for r, c in around), default=near + float(np.linalg.norm(x)) or unit
        )
        return _Inner(x, math.inf if endless else near, size)

    def _deep(self, dim: int, radius: float, start: Array) -> Array | None:
        """A point at depth `radius` or more, or None if none is found; aims slightly deeper against rounding."""
        try:
            wanted, aims = (
                [m.erode(dim, *m.reach(dim, r, r)) for m in self._order] for r in (radius, radius * (1 + 1e-7))
            )
        except ValueError:
            return None
        return meet(wanted, aims, start, 0.0)
