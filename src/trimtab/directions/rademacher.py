"""u_j = ±1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trimtab.directions.rows import Fresh
from trimtab.registry import part
from trimtab.types import Array


@part
@dataclass(frozen=True)
class Rademacher(Fresh):
    """u_j = ±1 with equal probability: the same radius in every coordinate, bounded, and the cheapest to draw.

    >>> Rademacher().scale(9), Rademacher().reach(9)
    (1.0, (1.0, 3.0))
    """

    def scale(self, dim: int) -> float:
        """1: E[u uᵀ] = I."""
        return 1.0

    def reach(self, dim: int) -> tuple[float, float]:
        """1 and √d."""
        return 1.0, math.sqrt(dim)

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Independent signs, one random bit each."""
        signs(rng, out)


def signs(rng: np.random.Generator, out: Array) -> None:
    """Fill with independent ±1; each row starts at a new random word."""
    rows, dim = out.shape
    words = rng.bit_generator.random_raw(rows * -(-dim // 64)).reshape(rows, -1)
    bits = np.unpackbits(np.asarray(words, dtype="<u8").view(np.uint8), axis=1, count=dim)
    np.multiply(bits, 2.0, out=out)
    out -= 1.0
