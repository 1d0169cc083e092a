"""u uniform on the unit sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.directions.rows import Fresh
from trimtab.registry import part
from trimtab.types import Array


@part
@dataclass(frozen=True)
class Sphere(Fresh):
    """u uniform on the unit sphere (Appendix H): the radius is the length of the probe; the estimate is scaled by d.

    >>> Sphere().scale(6), Sphere().reach(6)
    (6.0, (1.0, 1.0))
    """

    law: ClassVar[str] = "sphere"
    """The name of this law in `trimtab.theory`."""

    def scale(self, dim: int) -> float:
        """d: E[u uᵀ] = I/d."""
        return float(dim)

    def reach(self, dim: int) -> tuple[float, float]:
        """1 and 1."""
        return 1.0, 1.0

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Standard normal vectors, divided by their length."""
        rng.standard_normal(out=out)
        out /= np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
