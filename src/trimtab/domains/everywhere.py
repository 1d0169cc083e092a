"""The whole space: no limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.base import Domain, Inside
from trimtab.registry import part
from trimtab.types import Array


@part
@dataclass(frozen=True, eq=False)
class Everywhere(Domain):
    """The whole space.

    >>> bool(Everywhere().contains([1e9, -3.0]))
    True
    """

    def project(self, x: Array) -> Array:
        """x itself."""
        return x

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """Whether every coordinate is finite."""
        return np.isfinite(x).all(-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The whole space: no probe leaves it."""
        return self

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """The whole space."""
        return self
