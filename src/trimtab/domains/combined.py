"""Sets made of sets: side by side (`Product`) and at once (`Intersection`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.sets import Array, Domain, Verdict, no_room


@dataclass(frozen=True, eq=False)
class Product(Domain):
    """The first coordinates in one set, the next in another: `Product((Simplex(), 3), (Box(0, 1), 2))`.

    >>> from trimtab.domains import Everywhere, Simplex
    >>> Product((Everywhere(), 1), (Simplex(), 2)).project(np.array([9.0, 1.0, 1.0]))
    array([9. , 0.5, 0.5])
    """

    parts: tuple[tuple[Domain, int], ...]

    def __init__(self, *parts: tuple[Domain, int]) -> None:
        object.__setattr__(self, "parts", tuple((domain, int(size)) for domain, size in parts))
        if not self.parts:
            raise ValueError("a product needs at least one part: Product((domain, size), ...)")
        for domain, size in self.parts:
            if size < 1 or domain.dim not in (None, size):
                raise ValueError(f"{domain} cannot hold {size} coordinates: its dimension is {domain.dim}")

    @property
    def dim(self) -> int | None:
        return sum(size for _, size in self.parts)

    def _blocks(self) -> Iterator[tuple[Domain, int, slice]]:
        start = 0
        for domain, size in self.parts:
            yield domain, size, slice(start, start + size)
            start += size

    def project(self, x: Array) -> Array:
        return np.concatenate([domain.project(x[..., part]) for domain, _, part in self._blocks()], axis=-1)

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        x = np.asarray(x, dtype=float)
        return np.all([domain.contains(x[..., part], tolerance) for domain, _, part in self._blocks()], axis=0)

    def flatten(self, u: Array) -> Array:
        return np.concatenate([domain.flatten(u[..., part]) for domain, _, part in self._blocks()], axis=-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        return Product(*((d.erode(n, *d.reach(n, each, length)), n) for d, n in self.parts))

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return Product(*((domain.scale(size, xi, c[part]), size) for domain, size, part in self._blocks()))

    def middle(self, dim: int) -> Array:
        return np.concatenate([domain.middle(size) for domain, size in self.parts])

    def inner_radius(self, dim: int) -> float:
        return min(domain.inner_radius(size) for domain, size in self.parts)

    def outer_radius(self, dim: int) -> float:
        return math.hypot(*(domain.outer_radius(size) for domain, size in self.parts))


@dataclass(frozen=True, eq=False)
class Intersection(Domain):
    """The points that lie in every member, projected onto by Dykstra's algorithm (Boyle & Dykstra 1986).

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
        dims = {m.dim for m in members} - {None}
        if len(dims) > 1:
            raise ValueError(f"the members disagree on the dimension: {sorted(d for d in dims if d)}")

    @property
    def dim(self) -> int | None:
        return next((m.dim for m in self.members if m.dim is not None), None)

    def project(self, x: Array) -> Array:
        rows = np.atleast_2d(x)
        outside = ~np.atleast_1d(self.contains(rows, 0.0))
        if not outside.any():
            return x
        nearest = rows.copy()
        nearest[outside] = self._dykstra(rows[outside])
        late = ~np.atleast_1d(self.contains(nearest, 1e-10))
        if late.any():  # too flat an angle between the members: stay inside rather than be nearest
            nearest[late] = self._pull_in(nearest[late])
        return nearest.reshape(x.shape)

    def _dykstra(self, x: Array) -> Array:
        corrections = [np.zeros_like(x) for _ in self.members]
        size = 1.0 + float(np.abs(self.members[0].project(x)).max())
        for _ in range(2000):
            change = 0.0
            for k, member in enumerate(self.members):
                target = x + corrections[k]
                x = member.project(target)
                # Birgin & Raydan 2005: the change of the corrections, not of x, tells convergence
                change = max(change, float(np.abs(target - x - corrections[k]).max()))
                corrections[k] = target - x
            if change <= 1e-13 * size:
                break
        return x

    def _pull_in(self, x: Array) -> Array:
        """The farthest points inside on the way from the middle to x."""
        c = self.middle(x.shape[-1])
        near, far = np.zeros((len(x), 1)), np.ones((len(x), 1))
        for _ in range(60):
            half = 0.5 * (near + far)
            inside = np.reshape(self.contains(c + half * (x - c), 1e-12), (-1, 1))
            near, far = np.where(inside, half, near), np.where(inside, far, half)
        return np.asarray(c + near * (x - c))

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        return np.all([m.contains(x, tolerance) for m in self.members], axis=0)

    def flatten(self, u: Array) -> Array:
        for member in self.members:
            u = member.flatten(u)
        return u

    def reach(self, dim: int, each: float, length: float) -> tuple[float, float]:
        flat = [m for m in self.members if m.reach(dim, 1.0, math.inf) != (1.0, math.inf)]
        if len(flat) > 1:
            raise ValueError(f"{len(flat)} members of the intersection are flat: directions can follow one plane only")
        return flat[0].reach(dim, each, length) if flat else (each, length)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        # The members' own rounding margins do for exact projections; Dykstra's needs a little more.
        smaller = Intersection(*(m.erode(dim, each + 1e-9 * each, length + 1e-9 * length) for m in self.members))
        if smaller._depth(dim, 0.0) is None:
            share = self.inner_radius(dim) / min(length, each * math.sqrt(dim))
            raise no_room(self, min(share, 1.0))
        return smaller

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return Intersection(*(m.scale(dim, xi, c) for m in self.members))

    def middle(self, dim: int) -> Array:
        return self._inner(dim)[0]

    def inner_radius(self, dim: int) -> float:
        return self._inner(dim)[1]

    def outer_radius(self, dim: int) -> float:
        around = [m for m in self.members if math.isfinite(m.outer_radius(dim))]
        if not around:
            return math.inf
        c = self.middle(dim)
        return min(m.outer_radius(dim) + float(np.linalg.norm(m.middle(dim) - c)) for m in around)

    @cached_property
    def _balls(self) -> dict[int, tuple[Array, float]]:
        return {}

    def _inner(self, dim: int) -> tuple[Array, float]:
        """The deepest point, by bisection: a ball of radius ρ fits if the members eroded by ρ have a common point."""
        if dim not in self._balls:
            shallow = self._depth(dim, 0.0)
            if shallow is None:
                raise ValueError("the intersection is empty: no point lies in every member")
            around = min(m.outer_radius(dim) for m in self.members)
            if math.isinf(around):
                return shallow, math.inf
            near, far, best = 0.0, around, shallow
            for _ in range(30):
                half = 0.5 * (near + far)
                deep = self._depth(dim, half)
                near, far, best = (near, half, best) if deep is None else (half, far, deep)
            self._balls[dim] = best, near
        return self._balls[dim]

    def _depth(self, dim: int, radius: float) -> Array | None:
        """A point at least `radius` deep, or None."""
        try:
            inner = [m.erode(dim, *m.reach(dim, radius, radius)) if radius else m for m in self.members]
        except ValueError:
            return None
        known = [m.middle(dim) for m in inner if math.isfinite(m.outer_radius(dim))]
        x = np.mean(known, axis=0) if known else np.zeros(dim)
        for _ in range(2000):
            for member in inner:
                x = member.project(x)
            if all(m.contains(x, 1e-9) for m in inner):
                return np.asarray(x)
        return None
