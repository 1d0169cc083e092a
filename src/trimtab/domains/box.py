"""Boxes: limits for each coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.base import ROUNDING, Domain, Inside, common, frozen, no_room
from trimtab.registry import part
from trimtab.types import Array


@part
@dataclass(frozen=True, eq=False)
class Box(Domain):
    """{low ≤ x ≤ high} in each coordinate; numbers or lists; ±inf leaves a side open.

    >>> Box(0, [1, 2]).project(np.array([-1.0, 5.0]))
    array([0., 2.])
    """

    low: Array
    high: Array

    def __init__(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> None:
        self._set(low=frozen(low, "low", infinite=True), high=frozen(high, "high", infinite=True))
        common(self.low, self.high)
        if not np.all(self.low < self.high):
            raise ValueError(f"low={self.low} is not below high={self.high} everywhere: swap or widen the bounds")

    @property
    def dim(self) -> int | None:
        """The number of limits in a list; None if both are numbers."""
        return common(self.low, self.high)

    def project(self, x: Array) -> Array:
        """min(max(x, low), high)."""
        inside: Array = np.maximum(x, self.low)
        np.minimum(inside, self.high, out=inside)
        return inside

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """low ≤ x ≤ high, up to the tolerance times the largest finite limit of that coordinate."""
        slack = tolerance * self._size()
        return np.all((np.asarray(x) >= self.low - slack) & (np.asarray(x) <= self.high + slack), axis=-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """{low + m ≤ x ≤ high − m}, where m = min(each, length) is the farthest a probe goes in one coordinate."""
        margin = min(each, length)
        return self._shrunk(self.low + margin, self.high - margin, 2 * margin) if margin > 0 else self

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """Both limits moved towards the middle by the share ξ."""
        c = self.inner_point(dim, xi, about)
        need = xi * float(np.min(self.high - self.low))
        return self._shrunk(c + (1 - xi) * (self.low - c), c + (1 - xi) * (self.high - c), need)

    def _shrunk(self, low: Array, high: Array, need: float) -> Domain:
        slack = ROUNDING * self._size()
        if not np.all(low + slack < high - slack):
            raise no_room(self, float(np.min(self.high - self.low - 2 * slack)), need)
        return Box(low + slack, high - slack)

    def middle(self, dim: int) -> Array:
        """(low + high)/2."""
        if not np.isfinite(self.high - self.low).all():
            return super().middle(dim)
        return np.broadcast_to(0.5 * (self.low + self.high), (dim,)).copy()

    def inner_radius(self, dim: int) -> float:
        """Half the shortest side."""
        return 0.5 * float(np.min(self.high - self.low))

    def outer_radius(self, dim: int) -> float:
        """Half the diagonal."""
        return 0.5 * float(np.linalg.norm(np.broadcast_to(self.high - self.low, (dim,))))

    def sides(self, dim: int) -> tuple[Array, Array]:
        """low and high."""
        return np.broadcast_to(self.low, (dim,)), np.broadcast_to(self.high, (dim,))

    def _size(self) -> Array:
        """The largest finite limit in each coordinate."""
        both = np.abs(np.stack(np.broadcast_arrays(self.low, self.high)))
        return np.asarray(np.where(np.isfinite(both), both, 0.0).max(0))
