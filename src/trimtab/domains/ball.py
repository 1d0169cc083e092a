"""Balls: a limit on the distance from a centre."""

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
class Ball(Domain):
    """{‖x − centre‖ ≤ radius}.

    >>> Ball(5.0).project(np.array([30.0, 40.0]))
    array([3., 4.])
    """

    radius: float
    centre: Array

    def __init__(self, radius: float = 1.0, centre: ArrayLike = 0.0) -> None:
        self._set(radius=real("radius", radius, 0, above=True), centre=frozen(centre, "centre"))

    @property
    def dim(self) -> int | None:
        """The dimension of the centre, if it is a list."""
        return common(self.centre)

    def project(self, x: Array) -> Array:
        """centre + (x − centre)·min(1, radius/‖x − centre‖)."""
        offset = x - self.centre
        length = np.linalg.norm(offset, axis=-1, keepdims=True)
        if np.all(length <= self.radius):
            return x
        offset *= np.minimum(1.0, self.radius / np.maximum(length, self.radius))
        offset += self.centre
        return np.where(length <= self.radius, x, offset)

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """‖x − centre‖ ≤ radius, up to the tolerance times (radius + largest coordinate of the centre)."""
        length = np.linalg.norm(np.asarray(x, dtype=float) - self.centre, axis=-1)
        return np.asarray(length <= self.radius + tolerance * self._size())[()]

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The ball with its radius reduced by the longest probe, min(length, each·√d)."""
        return self._shrunk(dim, min(length, each * math.sqrt(dim)), self.centre)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """The ball of (1 − ξ) times the radius."""
        c = self.inner_point(dim, xi, about)
        return self._shrunk(dim, xi * self.radius, c + (1 - xi) * (self.centre - c))

    def _shrunk(self, dim: int, margin: float, centre: Array) -> Domain:
        room = self.radius - ROUNDING * math.sqrt(dim) * self._size()
        if margin >= room:
            raise no_room(self, room, margin)
        return Ball(room - margin, centre)

    def middle(self, dim: int) -> Array:
        """The centre."""
        return np.broadcast_to(self.centre, (dim,)).copy()

    def inner_radius(self, dim: int) -> float:
        """The radius."""
        return self.radius

    def outer_radius(self, dim: int) -> float:
        """The radius."""
        return self.radius

    def _size(self) -> float:
        return self.radius + float(np.max(np.abs(self.centre)))
