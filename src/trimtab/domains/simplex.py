"""Simplices: shares of a whole."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.base import ROUNDING, Domain, Inside, common, frozen, no_room
from trimtab.registry import part
from trimtab.types import Array
from trimtab.validation import real


@part
@dataclass(frozen=True, eq=False)
class Simplex(Domain):
    """{Σx_j = total, x_j ≥ floor_j}: shares of a whole. Directions stay in its plane, so every query adds up to total.

    Projection: Duchi et al. 2008, after subtracting the maximum, so that the sum is exact however large x is.

    >>> Simplex().project(np.array([0.5, 1.5, -1.0]))
    array([0., 1., 0.])
    """

    total: float
    floor: Array

    def __init__(self, total: float = 1.0, floor: ArrayLike = 0.0) -> None:
        self._set(total=real("total", total, 0, above=True), floor=frozen(floor, "floor"))
        if self.floor.ndim:
            self._spare(self.floor.size)

    @property
    def dim(self) -> int | None:
        """The dimension of the floor, if it is a list."""
        return common(self.floor)

    def _size(self) -> float:
        return max(self.total, float(np.max(np.abs(self.floor))))

    def _spare(self, dim: int) -> float:
        """The part of the total above the floor."""
        spare = self.total - float(np.sum(self.floor) if self.floor.ndim else dim * self.floor)
        if spare <= 0:
            raise ValueError(
                f"floor={self.floor} in {dim} coordinates leaves nothing of total={self.total:g}: lower the floor"
            )
        return spare

    def project(self, x: Array) -> Array:
        """max(x − θ, floor), with θ such that the sum is the total."""
        dim = x.shape[-1]
        spare = self._spare(dim)
        w: Array = x - self.floor
        w -= w.max(-1, keepdims=True)
        np.maximum(w, -spare, out=w)
        falling = -np.sort(-w, axis=-1)
        excess = np.cumsum(falling, axis=-1) - spare
        ranks = np.arange(1, dim + 1)
        last = np.sum(falling * ranks > excess, axis=-1, keepdims=True)
        w -= np.take_along_axis(excess, last - 1, -1) / last
        np.maximum(w, 0.0, out=w)
        positive = w > 0  # once more, to correct the rounding of a sum over many coordinates
        w -= (w.sum(-1, keepdims=True) - spare) / positive.sum(-1, keepdims=True) * positive
        np.maximum(w, 0.0, out=w)
        w += self.floor
        return w

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """x ≥ floor and Σx_j = total, up to the tolerance times the larger of the two; at least 1e-12 for the sum."""
        x = np.asarray(x, dtype=float)
        adds_up = np.abs(x.sum(-1) - self.total) <= max(tolerance, 1e-12) * self._size()
        return np.all(x >= self.floor - tolerance * self._size(), axis=-1) & adds_up

    def flatten(self, u: Array) -> Array:
        """u − ū, which leaves the sum unchanged."""
        flat: Array = u - u.mean(-1, keepdims=True)
        return flat

    def reach(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """|u_j − ū| = |⟨Pe_j, u⟩| with ‖Pe_j‖₁ = 2(1 − 1/d) and ‖Pe_j‖₂ = √(1 − 1/d)."""
        return min(each * 2 * (1 - 1 / dim), length * math.sqrt(1 - 1 / dim)), length

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The simplex with the floor raised by min(each, length)."""
        margin = min(each, length)
        return self._raised(dim, self.floor + margin, dim * margin)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """The simplex with the floor raised by the share ξ of the way to the middle."""
        floor = xi * self.inner_point(dim, xi, about) + (1 - xi) * self.floor
        return self._raised(dim, floor, xi * self._spare(dim))

    def _raised(self, dim: int, floor: Array, need: float) -> Domain:
        slack = ROUNDING * self._size()
        room = self._spare(dim) - 2 * dim * slack
        if need >= room:
            raise no_room(self, room, need)
        return Simplex(self.total, floor + slack)

    def middle(self, dim: int) -> Array:
        """The part above the floor, shared equally."""
        return np.broadcast_to(self.floor + self._spare(dim) / dim, (dim,)).copy()

    def inner_radius(self, dim: int) -> float:
        """The distance from the middle to a face: s/√(d(d − 1)), where s is the part of the total above the floor."""
        return self._spare(dim) / math.sqrt(dim * (dim - 1)) if dim > 1 else 0.0

    def outer_radius(self, dim: int) -> float:
        """The distance from the middle to a corner: s·√(1 − 1/d)."""
        return self._spare(dim) * math.sqrt(1 - 1 / dim)
