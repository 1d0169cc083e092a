"""Cartesian products of sets."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.base import Domain, Inside
from trimtab.registry import part
from trimtab.types import Array


@part
@dataclass(frozen=True, eq=False)
class Product(Domain):
    """The first coordinates in one set, the next in another: `Product((Simplex(), 3), (Box(0, 1), 2))`.

    >>> from trimtab.domains import Everywhere, Simplex
    >>> Product((Everywhere(), 1), (Simplex(), 2)).project(np.array([9.0, 1.0, 1.0]))
    array([9. , 0.5, 0.5])
    """

    parts: tuple[tuple[Domain, int], ...]

    def __init__(self, *parts: tuple[Domain, int]) -> None:
        try:
            self._set(parts=tuple((domain, operator.index(size)) for domain, size in parts))
        except TypeError:
            raise TypeError(f"{parts} are not pairs of a domain and a size: Product((domain, size), ...)") from None
        if not self.parts:
            raise ValueError("a product needs at least one part: Product((domain, size), ...)")
        for domain, size in self.parts:
            if size < 1 or domain.dim not in (None, size):
                raise ValueError(
                    f"{domain} cannot hold {size} coordinates: give {'1 or more' if size < 1 else domain.dim}"
                )

    @property
    def dim(self) -> int | None:
        """The sum of the sizes."""
        return sum(size for _, size in self.parts)

    def _blocks(self) -> Iterator[tuple[Domain, int, slice]]:
        start = 0
        for domain, size in self.parts:
            yield domain, size, slice(start, start + size)
            start += size

    def project(self, x: Array) -> Array:
        """Project each part onto its own set."""
        return np.concatenate([domain.project(x[..., part]) for domain, _, part in self._blocks()], axis=-1)

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """Whether every part is in its set."""
        x = np.asarray(x, dtype=float)
        inside: Inside = np.all(
            [domain.contains(x[..., part], tolerance) for domain, _, part in self._blocks()], axis=0
        )
        return inside

    def flatten(self, u: Array) -> Array:
        """Flatten each part by its own set."""
        return np.concatenate([domain.flatten(u[..., part]) for domain, _, part in self._blocks()], axis=-1)

    def sides(self, dim: int) -> tuple[Array, Array]:
        """The limits of the parts."""
        low, high = zip(*(domain.sides(size) for domain, size in self.parts), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def spread(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """The largest coordinate over the parts; a direction may lie in a single one of them."""
        return max(domain.spread(size, each, length)[0] for domain, size in self.parts), length

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The product of the parts, each eroded."""
        return Product(*((d.erode(n, *d.reach(n, each, length)), n) for d, n in self.parts))

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """The product of the parts, each shrunk about its part of the point."""
        c = self.inner_point(dim, xi, about)
        return Product(*((domain.scale(size, xi, c[part]), size) for domain, size, part in self._blocks()))

    def middle(self, dim: int) -> Array:
        """The middles of the parts, concatenated."""
        return np.concatenate([domain.middle(size) for domain, size in self.parts])

    def inner_radius(self, dim: int) -> float:
        """The smallest inner radius of the parts."""
        return min(domain.inner_radius(size) for domain, size in self.parts)

    def outer_radius(self, dim: int) -> float:
        """√Σr̄² over the parts."""
        return math.hypot(*(domain.outer_radius(size) for domain, size in self.parts))
