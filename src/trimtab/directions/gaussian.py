"""u ~ N(0, I)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.directions.rows import Fresh
from trimtab.registry import part
from trimtab.types import Array


@part
@dataclass(frozen=True)
class Gaussian(Fresh):
    """u ~ N(0, I), the law of the paper's main text; unbounded, so queries may leave a bounded domain.

    >>> Gaussian().scale(6), Gaussian().reach(6)
    (1.0, (inf, inf))
    """

    law: ClassVar[str] = "gaussian"
    """The name of this law in `trimtab.theory`."""

    def scale(self, dim: int) -> float:
        """1: E[u uᵀ] = I."""
        return 1.0

    def reach(self, dim: int) -> tuple[float, float]:
        """Unbounded."""
        return math.inf, math.inf

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Standard normals."""
        rng.standard_normal(out=out)
