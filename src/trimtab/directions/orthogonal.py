"""Blocks of d directions that are exactly orthogonal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.directions import rows
from trimtab.directions.rademacher import signs
from trimtab.directions.rows import CHUNK, Fresh, drawn_rows
from trimtab.protocols import Source
from trimtab.randomness import DIRECTIONS, Keyed
from trimtab.registry import part
from trimtab.types import Array

BATCH = 2**13  # numbers drawn together for one lane, if they make at least FEW blocks
FEW = 8


@part
@dataclass(frozen=True)
class Orthogonal(Fresh):
    """Blocks of d directions that are exactly orthogonal: rows of a cosine transform, shuffled, with random signs.

    In the block of d rounds with signs σ ∈ {±1}^d and a permutation π, both from (seed, block), and ε_t = ±1,

        u_j = ε_t·σ_j·√2·cos(π·k(j + ½)/d),   k = π(t mod d),   and u_j = ε_t·σ_j for k = 0.

    Every d rounds probe each axis of an orthogonal frame once, so no two of them are redundant; E[u_t | past] = 0
    because of ε_t, and E[u uᵀ] = I because of σ. Memory is O(d); a row takes one look-up per coordinate in a table of
    4d cosines.

    >>> Orthogonal().scale(9), Orthogonal().reach(2)[0]
    (1.0, 1.0)
    """

    def scale(self, dim: int) -> float:
        """1: E[u uᵀ] = I."""
        return 1.0

    def reach(self, dim: int) -> tuple[float, float]:
        """√2 (1 for d ≤ 2) and √d."""
        return (math.sqrt(2) * (1 + 1e-12) if dim > 2 else 1.0), math.sqrt(dim)

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Draw σ, π and ε of each block, three rows per block; a sign is the table offset it adds, 0 or 2d."""
        dim = out.shape[1]
        signs(rng, out)
        out += 1.0
        out *= dim
        out[1::3] = rng.permuted(np.broadcast_to(np.arange(dim), (len(out) // 3, dim)), axis=1)

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """Rows in chunks, computed from σ, π and ε of their block."""
        return Frames(self, shape, seed, lane)


def blocks_per_draw(dim: int) -> int:
    """The number of blocks drawn at once: in few dimensions a block is used up quickly."""
    blocks = BATCH // (3 * dim)
    return blocks if blocks >= FEW else 1


class Frames:
    """draw → its row of a frame; caches σ, π and ε of some blocks, and the rows computed from them last."""

    def __init__(self, law: Orthogonal, shape: tuple[int, ...], seed: int, lane: int) -> None:
        self.law, self.shape, self.lane = law, shape, lane
        self.keyed, self.cosines = Keyed(seed, DIRECTIONS), cosines(shape[-1])
        self.blocks = blocks_per_draw(shape[-1])
        # As in `Rows`, but a look-up has more overhead than a draw, so chunks of few lanes are longer.
        numbers = math.prod(shape)
        chunk = min(CHUNK // shape[-1], max(1, rows.CACHE // numbers))
        self.chunk = max(1, chunk, min(2 * CHUNK, rows.CACHE) // numbers)
        self.ahead = min(self.chunk, rows.FEW)
        self.index, self.start, self.block = -1, 0, np.empty((0, *shape))
        self.held = (0, self.block)
        self.signs = self.order = self.flips = np.empty(0, self.cosines.whole)

    def __call__(self, draw: int) -> Array:
        """`(d,)` or `(lanes, d)`."""
        index, row = divmod(draw, self.blocks * self.shape[-1])
        if index != self.index:
            states = self.keyed.states(index, self.lane, *self.shape[:-1])
            shape = (3 * self.blocks, *self.shape)
            drawn = drawn_rows(self.law.fill, self.keyed, states, shape, last=True).astype(self.cosines.whole)
            self.signs, order, flips = (drawn[k::3] for k in range(3))
            self.order, self.flips = (np.moveaxis(x, -1, 1).reshape(-1, *self.shape[:-1]) for x in (order, flips))
            self.index, self.block = index, self.block[:0]
        if not self.start <= row < self.start + len(self.block):
            self.start = row
            self.block = self._rows(slice(row, row + self.ahead))
            self.ahead = min(self.chunk, 2 * self.ahead)
            self.block.setflags(write=False)
            self.held = index * self.blocks * self.shape[-1] + self.start, self.block
        found: Array = self.block[row - self.start]
        return found

    def _rows(self, span: slice) -> Array:
        """Rows of the cached blocks."""
        columns = self.signs[0]
        if self.blocks > 1:
            dim, last = self.shape[-1], min(span.stop, len(self.order))
            first = span.start // dim
            columns = np.repeat(self.signs[first : -(-last // dim)], dim, axis=0)[span.start - first * dim :]
            columns = columns[: last - span.start]
        return self.cosines(self.order[span], columns, self.flips[span])


Whole = NDArray[Any]


@lru_cache(8)
def cosines(dim: int) -> Cosines:
    """The table for this number of coordinates, cached."""
    return Cosines(dim)


class Cosines:
    """(k, shift) → the row √2·cos(π·k(j + ½)/d + π·shift/2d) of the cosine transform (±1 for k = 0), from one table."""

    def __init__(self, dim: int) -> None:
        half = math.sqrt(2) * np.cos(np.arange(2 * dim) * (math.pi / (2 * dim)))
        self._table = np.concatenate([half, -half])
        if dim <= 2:
            self._table = np.sign(np.round(self._table, 9))  # exactly ±1
        self.whole: Any = np.uint32 if 2 * dim * (dim + 4) < 2**32 else np.uint64
        self._odd = np.arange(1, 2 * dim, 2).astype(self.whole)
        self._period = self.whole(4 * dim)

    def __call__(self, k: Whole, columns: Whole, rows: Whole) -> Array:
        """The rows k, shifted by `columns` and `rows`."""
        index = k[..., None] * self._odd
        index += columns
        index += rows[..., None]
        index -= index // self._period * self._period  # faster than % for a fixed divisor
        u: Array = self._table.take(index)
        u[k == 0] = np.sign(u[k == 0])
        return u
