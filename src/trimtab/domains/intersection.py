"""The common points of several sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.anderson import Rows, fixed_point
from trimtab.domains.sets import Array, Domain, Verdict, no_room, pulled_in

STEPS, CYCLES = 60, 150  # at most; after these, points stay inside rather than be nearest


class _Inner(NamedTuple):
    """A ball inside an intersection, and how large the whole is."""

    centre: Array
    radius: float  # inf if a ball of any size fits; then the centre is some point well inside
    size: float


@dataclass(frozen=True, eq=False)
class Intersection(Domain):
    """The points that lie in every member, projected onto by Dykstra's algorithm (Boyle & Dykstra 1986), accelerated.

    At most one member may be flat (a `Simplex`): the directions must fit into its plane.

    >>> from trimtab.domains import Ball, Halfspace
    >>> Intersection(Ball(1.0), Halfspace([1.0, 0.0], 0.0)).project(np.array([2.0, 2.0])).round(9)
    array([0., 1.])
    """

    members: tuple[Domain, ...]

    def __init__(self, *members: Domain) -> None:
        object.__setattr__(self, "members", members)
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
        return next((m.dim for m in self.members if m.dim is not None), None)

    def project(self, x: Array) -> Array:
        rows = np.array(np.atleast_2d(x), dtype=float)
        outside = ~np.atleast_1d(self.contains(rows, 0.0))
        if not (outside.any() or self._flat):
            return x
        for member in self._flat:  # back onto the plane: rounding must not add up over the rounds
            rows[~outside] = member.project(rows[~outside])
        if outside.any():
            inner = self._inner(rows.shape[1])
            nearest = self._nearest(rows[outside], inner)
            solid = inner.radius > 1e-9 * inner.size
            rows[outside] = pulled_in(self, nearest, inner.centre) if solid else nearest
        return rows.reshape(x.shape)

    def _nearest(self, x: Array, inner: _Inner) -> Array:
        """Dykstra's algorithm where x is near, and step by step from far away.

        Far away it stalls for as many cycles as the distance has radii (Bauschke et al. 2020). But p is nearest to x
        if it is nearest to a point between them: P(p + t(x − p)) = p. So p moves on to that projection, and further
        the same way as long as it stays inside. Moves along a flat face shrink by 1 − t, hence add up to 1/t times the
        first; others are taken for a geometric series, too, whose ratio is that of the last two.
        """
        precise = 1e-13 * inner.size + 1e-15 * float(np.abs(inner.centre).max())
        nearest, rest, p = np.empty_like(x), np.arange(len(x)), np.broadcast_to(inner.centre, x.shape)
        corrections, before = np.zeros((len(x), (len(self.members) - 1) * x.shape[1])), np.zeros_like(x)
        for _ in range(STEPS):
            way = x[rest] - p
            share = inner.size / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), inner.size)
            z, corrections, error = self._dykstra(p + share * way, corrections, precise)
            nearest[rest] = z
            move = z - p
            far = (error > precise) | ((share[:, 0] < 1) & (np.abs(move).max(1) > 4 * precise))
            if not far.any():
                break
            rest, p, move, before, corrections, share = (v[far] for v in (rest, p, move, before, corrections, share))
            ratio = (move * before).sum(1) / np.maximum((before * before).sum(1), np.finfo(float).tiny)
            times = np.where(ratio > 0.9, 1 / share[:, 0], 1 / (1 - np.clip(ratio, 0.0, 0.9)))
            times = self._inside(p, move, times)[:, None]
            p, before = p + times * move, np.where(times > 2, 0.0, move)
        return nearest

    def _inside(self, p: Array, move: Array, times: Array) -> Array:
        """So many times that p + times·move stays inside (up to a tenth of them), but at least 1."""
        near, far, k = np.ones_like(times), times, times
        for _ in range(40):
            inside = self.contains(p + k[:, None] * move, 1e-10)
            near, far = np.where(inside, k, near), np.where(inside, far, k)
            k = np.where(far > 1.1 * near, np.sqrt(near * far), near)
            if np.array_equal(k, near):
                break
        return near

    def _dykstra(self, x: Array, corrections: Array, tolerance: float) -> tuple[Array, Array, Array]:
        """The nearest points, the corrections of all members but the first (from those of other points), the errors."""
        first, *others = self._order
        nearest = np.empty_like(x)

        def cycle(old: Array, rows: Rows) -> Array:
            old = np.reshape(old, (len(rows), len(others), x.shape[1]))
            new = np.empty_like(old)
            z = first.project(x[rows] - old.sum(1))
            for k, member in enumerate(others):
                target = z + old[:, k]
                z = member.project(target)
                new[:, k] = target - z
            nearest[rows] = z
            return np.reshape(new, (len(rows), -1))

        # Birgin & Raydan 2005: the change of the corrections, not of the points, tells convergence
        return nearest, *fixed_point(cycle, corrections, tolerance, CYCLES)

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        return np.all([m.contains(x, tolerance) for m in self.members], axis=0)

    def flatten(self, u: Array) -> Array:
        for member in self._flat:
            u = member.flatten(u)
        return u

    def spread(self, dim: int, each: float, length: float) -> tuple[float, float]:
        return self._flat[0].spread(dim, each, length) if self._flat else (each, length)

    def erode(self, dim: int, each: float, length: float) -> Domain:
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
        c = self.inner_point(dim, xi, about)
        return Intersection(*(m.scale(dim, xi, c) for m in self.members))

    def middle(self, dim: int) -> Array:
        centre, radius, _ = self._inner(dim)
        return centre.copy() if math.isfinite(radius) else super().middle(dim)

    def inner_radius(self, dim: int) -> float:
        return self._inner(dim).radius

    def outer_radius(self, dim: int) -> float:
        inner = self._inner(dim)
        return inner.size if math.isfinite(min(m.outer_radius(dim) for m in self.members)) else math.inf

    @cached_property
    def _flat(self) -> tuple[Domain, ...]:
        return tuple(m for m in self.members if np.any(m.flatten(np.ones(m.dim or 2)) != 1))

    @cached_property
    def _order(self) -> tuple[Domain, ...]:
        """The flat one last: moving inwards keeps to a plane, but does not lead there."""
        return tuple(sorted(self.members, key=lambda m: m in self._flat))

    @cached_property
    def _known(self) -> dict[int, _Inner]:
        return {}

    def _inner(self, dim: int) -> _Inner:
        """The deepest point, by bisection: a ball of radius ρ fits if the members eroded by ρ have a common point."""
        if dim in self._known:
            return self._known[dim]
        around = [(m.outer_radius(dim), m.middle(dim)) for m in self.members if math.isfinite(m.outer_radius(dim))]
        start = np.mean([c for _, c in around], axis=0) if around else np.zeros(dim)
        x = _meet(self._order, self._order, start, 1e-9, 10 * CYCLES)
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
        self._known[dim] = _Inner(x, math.inf if endless else near, size)
        return self._known[dim]

    def _deep(self, dim: int, radius: float, start: Array) -> Array | None:
        """A point at least `radius` deep, or None if it finds none; it aims a little deeper, to get there exactly."""
        try:
            wanted, aims = (
                [m.erode(dim, *m.reach(dim, r, r)) for m in self._order] for r in (radius, radius * (1 + 1e-7))
            )
        except ValueError:
            return None
        return _meet(wanted, aims, start, 0.0, CYCLES)


def _meet(members: Sequence[Domain], aims: Sequence[Domain], x: Array, tolerance: float, cycles: int) -> Array | None:
    """A common point of the members, by projecting onto the aims in turn; None if it finds none."""

    def cycle(z: Array, rows: Rows) -> Array:
        for aim in aims:
            z = aim.project(z)
        return z

    x = fixed_point(cycle, x[None], 1e-14 * float(np.abs(x).max()), cycles)[0][0]
    return x if all(m.contains(x, tolerance) for m in members) else None
