"""Halfspaces: a limit in one direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains.base import ROUNDING, Domain, Inside, frozen
from trimtab.registry import part
from trimtab.types import Array
from trimtab.validation import real


@part
@dataclass(frozen=True, eq=False)
class Halfspace(Domain):
    """{⟨normal, x⟩ ≤ offset}.

    >>> Halfspace([1.0, 1.0], 1.0).project(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    """

    normal: Array
    offset: float

    def __init__(self, normal: ArrayLike, offset: float = 0.0) -> None:
        self._set(normal=np.atleast_1d(frozen(normal, "normal")), offset=real("offset", offset))
        if not self.normal @ self.normal > 0:
            raise ValueError(f"normal={self.normal} is zero and defines no halfspace: give the limited direction")

    @property
    def dim(self) -> int | None:
        """The dimension of the normal."""
        return int(self.normal.size)

    def project(self, x: Array) -> Array:
        """x − max(⟨normal, x⟩ − offset, 0)/‖normal‖²·normal."""
        for _ in range(2):  # from far away, the first pass leaves a rounding error
            # (x·normal).sum, because x @ normal rounds differently with and without lanes
            excess = np.maximum((x * self.normal).sum(-1, keepdims=True) - self.offset, 0.0)
            if not np.any(excess):
                break
            x = x - excess / (self.normal @ self.normal) * self.normal
        return x

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """⟨normal, x⟩ ≤ offset, up to max(tolerance, rounding) times (Σ|normal_j·x_j| + |offset|)."""
        terms = np.asarray(x) * self.normal
        size = np.abs(terms).sum(-1) + abs(self.offset)
        return np.asarray(terms.sum(-1) <= self.offset + max(tolerance, ROUNDING) * size)[()]

    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The offset reduced by the longest probe along the normal, min(each·‖normal‖₁, length·‖normal‖₂)."""
        reach = min(each * np.abs(self.normal).sum(), length * float(np.linalg.norm(self.normal)))
        return self._shrunk(reach)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """The face moved towards `about` by the share ξ; a halfspace has no middle of its own."""
        c = self.inner_point(dim, xi, about)
        return self._shrunk(xi * (self.offset - float(self.normal @ c)))

    def _shrunk(self, reach: float) -> Domain:
        return Halfspace(self.normal, float(self.offset - reach - ROUNDING * (abs(self.offset) + reach)))
