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
from trimtab.directions.rows import SOON, Fresh, drawn_rows
from trimtab.protocols import Source
from trimtab.randomness import DIRECTIONS, Keyed
from trimtab.registry import part
from trimtab.types import Array

SOME = 2**13  # numbers that make the blocks drawn together for one lane, if they are at least FEW of them
FEW = 8


@part
@dataclass(frozen=True)
class Orthogonal(Fresh):
    """Blocks of d directions that are exactly orthogonal: rows of a cosine transform, shuffled, with random signs.

    In the block of d rounds with signs σ ∈ {±1}^d and a permutation π, both from (seed, block), and ε_t = ±1,

        u_j = ε_t·σ_j·√2·cos(π·k(j + ½)/d),   k = π(t mod d),   and u_j = ε_t·σ_j for k = 0.

    Every d rounds look once along each axis of an orthogonal frame, so no two of them tell the same; E[u_t | past] = 0
    by ε_t, and E[u uᵀ] = I by σ. Memory is O(d), and a row costs one look-up per coordinate in a table of 4d cosines.

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
        """What makes blocks, three rows each: σ, π and ε, signs as what they add to an angle, 0 or 2d table steps."""
        dim = out.shape[1]
        signs(rng, out)
        out += 1.0
        out *= dim
        out[1::3] = rng.permuted(np.broadcast_to(np.arange(dim), (len(out) // 3, dim)), axis=1)

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """Rows by the chunk, from what makes their block."""
        return Frames(self, shape, seed, lane)


def together(dim: int) -> int:
    """How many blocks are drawn at once: in few dimensions one is soon used up."""
    blocks = SOME // (3 * dim)
    return blocks if blocks >= FEW else 1


class Frames:
    """draw → its row of a frame: what makes some blocks (σ, π, ε) is kept, and the rows made from it last."""

    def __init__(self, law: Orthogonal, shape: tuple[int, ...], seed: int, lane: int) -> None:
        self.law, self.shape, self.lane = law, shape, lane
        self.keyed, self.cosines = Keyed(seed, DIRECTIONS), cosines(shape[-1])
        self.blocks = together(shape[-1])
        # as `Rows` does, but a look-up has more to set up than a draw, so a chunk of few lanes is longer
        numbers = math.prod(shape)
        chunk = min(SOON // shape[-1], max(1, rows.CACHE // numbers))
        self.chunk = max(1, chunk, min(2 * SOON, rows.CACHE) // numbers)
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
            self.block = self._made(slice(row, row + self.ahead))
            self.ahead = min(self.chunk, 2 * self.ahead)
            self.block.setflags(write=False)
            self.held = index * self.blocks * self.shape[-1] + self.start, self.block
        found: Array = self.block[row - self.start]
        return found

    def _made(self, some: slice) -> Array:
        """Rows of the blocks at hand."""
        columns = self.signs[0]
        if self.blocks > 1:
            dim, last = self.shape[-1], min(some.stop, len(self.order))
            first = some.start // dim
            columns = np.repeat(self.signs[first : -(-last // dim)], dim, axis=0)[some.start - first * dim :]
            columns = columns[: last - some.start]
        return self.cosines(self.order[some], columns, self.flips[some])


Whole = NDArray[Any]


@lru_cache(8)
def cosines(dim: int) -> Cosines:
    """Made once for all who have so many coordinates."""
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
        """The rows k, shifted by what columns and rows say."""
        place = k[..., None] * self._odd
        place += columns
        place += rows[..., None]
        place -= place // self._period * self._period  # a remainder by a fixed divisor is faster this way
        u: Array = self._table.take(place)
        u[k == 0] = np.sign(u[k == 0])
        return u
