"""The common points of several sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.sets import Array, Domain, Verdict, no_room, pulled_in

MEMORY = 6  # cycles that Anderson's method looks back on
NEAR = 1.0
SAFE = 2.0
STEPS = 100
CYCLES = 1000  # at most: after these, points stay inside rather than be nearest


class _Inner(NamedTuple):
    """A ball inside an intersection, and how large the whole is."""

    centre: Array
    radius: float
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
        """Dykstra's algorithm as long as x is near; from far away, by steps.

        It stalls for as many cycles as x is radii away (Bauschke et al. 2020). But p is nearest to x if it is nearest
        to any point between, so p ← P(p + t(x − p)) ends there, too, and p can go on in the same direction up to the
        edge or to the point nearest to x (gradient projection with exact line search).
        """
        precise = 1e-13 * (inner.size + np.abs(inner.centre).max())
        nearest, rest, p = np.empty_like(x), np.arange(len(x)), np.broadcast_to(inner.centre, x.shape)
        w = np.zeros((len(x), (len(self.members) - 1) * x.shape[1]))
        near = NEAR * inner.size
        for _ in range(STEPS):
            way = x[rest] - p
            share = near / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), near)
            z, w = self._dykstra(p + share * way, w, precise)
            step = z - p
            done = (share[:, 0] == 1) | (np.abs(step).max(1) <= 4 * precise)
            nearest[rest] = z
            if done.all():
                break
            rest, p, step, way, w = rest[~done], p[~done], step[~done], way[~done], w[~done]
            p = self._along(p, step, np.vecdot(way, step) / np.vecdot(step, step))
        return nearest

    def _along(self, p: Array, step: Array, far: Array) -> Array:
        """p + k·step with the largest k ≤ far that keeps inside (at least 1, which does)."""
        near, far = np.ones_like(far), np.maximum(far, 1.0)
        k = far
        for _ in range(40):
            inside = self.contains(p + k[:, None] * step, 0.0)
            near, far = np.where(inside, k, near), np.where(inside, far, k)
            if np.all(far <= 1.001*near):
                break
            k = np.sqrt(near * far)
        return p + near[:, None] * step

    def _dykstra(self, x: Array, w: Array, tolerance: float) -> tuple[Array, Array]:
        """The nearest points, row by row.

        A cycle over the members maps corrections w to f(w). Anderson's method (1965) looks for the fixed point among
        the combinations of the last few cycles, and is taken back where it leads away.
        """
        nearest, rest = np.empty_like(x), np.arange(len(x))
        found, last, residual = np.zeros((3, *w.shape))
        moves, changes = np.zeros((2, MEMORY, *w.shape))  # of f and of the residual f(w) − w
        error, ready, bold = np.zeros(len(x)), np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
        for cycle in range(CYCLES):
            z, f = self._cycle(x[rest], w)
            g = f - w
            new = np.abs(g).max(1, initial=0.0)  # Birgin & Raydan 2005: the corrections, not x, tell convergence
            nearest[rest], found[rest] = z, f
            far = new > tolerance
            if not far.any():
                break
            if not far.all():
                rest, f, g, new = rest[far], f[far], g[far], new[far]
                last, residual, error, ready, bold = (v[far] for v in (last, residual, error, ready, bold))
                moves, changes = moves[:, far], changes[:, far]
            good = ~(bold & (new > SAFE * error))
            change = np.where((ready & good)[:, None], g - residual, 0.0)
            size = np.linalg.norm(change, axis=1, keepdims=True)
            size[size == 0] = math.inf
            moves[cycle % MEMORY], changes[cycle % MEMORY] = (f - last) / size, change / size
            moves[:, ~good] = changes[:, ~good] = 0.0
            last, residual = np.where(good[:, None], f, last), np.where(good[:, None], g, residual)
            error, ready = np.where(good, new, error), good
            gram = np.einsum("inj,knj->nik", changes, changes) + 1e-12 * np.eye(MEMORY)
            mix = np.linalg.solve(gram, np.einsum("inj,nj->ni", changes, residual)[..., None])[..., 0]
            w, bold = last - np.einsum("ni,inj->nj", mix, moves), np.any(mix != 0, axis=1)
        return nearest, found

    def _cycle(self, x: Array, corrections: Array) -> tuple[Array, Array]:
        first, *others = self._order
        parts = np.reshape(corrections, (len(x), len(others), x.shape[1]))
        improved = np.empty_like(parts)
        z = first.project(x - parts.sum(1))
        for k, member in enumerate(others):
            target = z + parts[:, k]
            z = member.project(target)
            improved[:, k] = target - z
        return z, np.reshape(improved, corrections.shape)

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
        return self._inner(dim).centre.copy() if math.isfinite(self.inner_radius(dim)) else super().middle(dim)

    def inner_radius(self, dim: int) -> float:
        inner = self._inner(dim)
        return inner.radius if math.isfinite(min(m.inner_radius(dim) for m in self.members)) else math.inf

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
        middles = [m.middle(dim) for m in self.members if math.isfinite(m.outer_radius(dim))]
        x = _meet(self._order, self._order, np.mean(middles, axis=0) if middles else np.zeros(dim), 1e-9)
        if x is None:
            raise ValueError("the intersection is empty: no point lies in every member; widen one of them")
        limit = min(m.inner_radius(dim) for m in self.members)
        near, far = 0.0, limit if math.isfinite(limit) else float(np.abs(x).max()) or 1.0
        size = far
        for _ in range(40):
            half = 0.5 * (near + far)
            deep = self._deep(dim, half, x)
            near, far, x = (near, half, x) if deep is None else (half, far, deep)
            if far - near <= 1e-6 * far:
                break
        around = [(m.outer_radius(dim), m) for m in self.members if math.isfinite(m.outer_radius(dim))]
        size = min((r + float(np.linalg.norm(m.middle(dim) - x)) for r, m in around), default=size + np.abs(x).max())
        self._known[dim] = _Inner(x, near, size)
        return self._known[dim]

    def _deep(self, dim: int, radius: float, start: Array) -> Array | None:
        """A point at least `radius` deep, or None. What is asked for is a little more, to have it to the last digit."""
        try:
            wanted, inner = (
                [m.erode(dim, *m.reach(dim, r, r)) for m in self._order] for r in (radius, radius * (1 + 1e-7))
            )
        except ValueError:
            return None
        return _meet(inner, wanted, start, 0.0)


def _meet(members: Sequence[Domain], wanted: Sequence[Domain], x: Array, tolerance: float) -> Array | None:
    """A common point of `wanted`, by projecting onto the `members` inside them in turn; None if it finds none."""
    for _ in range(1000):
        before = x
        for member in members:
            x = member.project(x)
        if all(m.contains(x, tolerance) for m in wanted):
            return x
        if np.all(np.abs(x - before) <= 1e-14 * np.abs(x).max()):
            break
    return None
