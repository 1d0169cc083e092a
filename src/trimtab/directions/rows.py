"""Laws with an independent direction in every round."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trimtab.protocols import Source
from trimtab.randomness import DIRECTIONS, Keyed
from trimtab.types import Array, Integers

Fill = Callable[[np.random.Generator, Array], None]

CHUNK = 2**13  # numbers drawn at once for a single lane, so that they fit the processor cache; at least one round
BLOCK = 2**16  # numbers drawn in sequence for one lane, roughly: many rounds if d is small, one if it is large
CACHE = 2**20  # numbers cached for all lanes; at least one round
FEW = 32  # rows that many lanes draw first; doubled each time, so that a short run does not draw too many


class Fresh(ABC):
    """A new direction every round, each a row of independent numbers."""

    def locate(self, trial: int) -> tuple[int, float]:
        """One draw per trial."""
        return trial, 1.0

    def partner(self, trial: int | Integers) -> int | Integers | None:
        """None: trials are independent."""
        return None

    @abstractmethod
    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Fill the rows with independent directions."""

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """Rows in blocks."""
        return Rows(self.fill, shape, seed, lane)


class Rows:
    """draw → its row, for all lanes; a block of rows is drawn in sequence, and the last one is cached.

    With many lanes, a block is drawn in several chunks to keep the cache small.
    """

    def __init__(self, fill: Fill, shape: tuple[int, ...], seed: int, lane: int) -> None:
        self.fill, self.shape, self.lane = fill, shape, lane
        single = max(1, CHUNK // shape[-1])
        self.rows = single * max(1, BLOCK // (single * shape[-1]))
        self.chunk = min(self.rows, max(1, CACHE // math.prod(shape))) if len(shape) > 1 else single
        self.ahead = min(self.chunk, FEW) if len(shape) > 1 else self.chunk
        self.keyed = Keyed(seed, DIRECTIONS)
        self.index, self.start, self.block = -1, 0, np.empty((0, *shape))
        self.held = 0, self.block
        self.states = self.keyed.states(0)

    def __call__(self, draw: int) -> Array:
        """`(d,)` or `(lanes, d)`."""
        index, row = divmod(draw, self.rows)
        if index != self.index or row < self.start:
            self.states = self.keyed.states(index, self.lane, *self.shape[:-1])
            self.index, self.start = index, 0
            self.block = self._next()
        while row >= self.start + len(self.block):
            self.start += len(self.block)
            self.block = self._next()
        self.held = index * self.rows + self.start, self.block
        drawn: Array = self.block[row - self.start]
        return drawn

    def _next(self) -> Array:
        rows = min(self.ahead, self.rows - self.start)
        self.ahead = min(self.chunk, 2 * self.ahead)
        last = self.start + rows == self.rows
        return drawn_rows(self.fill, self.keyed, self.states, (rows, *self.shape), last=last)


def drawn_rows(fill: Fill, keyed: Keyed, states: NDArray[np.uint64], shape: tuple[int, ...], *, last: bool) -> Array:
    """The next rows of every lane, `(rows, d)` or `(rows, lanes, d)`, read-only."""
    block = np.empty(shape)
    one = np.empty((shape[0], shape[-1])) if len(shape) > 2 else block
    for k, rng in enumerate(keyed.resume(states, last=last)):
        fill(rng, one)
        if len(shape) > 2:
            block[:, k] = one
    block.setflags(write=False)
    return block
