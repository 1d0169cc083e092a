"""Directions that are drawn one by one: what most laws are made of."""

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

SOON = 2**13  # numbers drawn at once for one lane alone, unless a single round needs more: they stay near the processor
BLOCK = 2**16  # numbers drawn in sequence for one lane, about: many rounds when d is small, one when it is large
CACHE = 2**20  # numbers kept for all lanes, unless a single round needs more
FEW = 32  # rows that many lanes draw at first; then twice as many, and so on: a short run pays for what it uses


class Fresh(ABC):
    """A new direction every round, each a row of independent numbers."""

    def locate(self, trial: int) -> tuple[int, float]:
        """Every trial has a draw of its own."""
        return trial, 1.0

    def partner(self, trial: int | Integers) -> int | Integers | None:
        """There is none."""
        return None

    @abstractmethod
    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Each law has its own."""

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """Rows in blocks."""
        return Rows(self.fill, shape, seed, lane)


class Rows:
    """draw → its row, for all lanes; a block of rows is drawn in sequence, and the last one is kept.

    Many lanes draw a block in several chunks, so that the cache stays small.
    """

    def __init__(self, fill: Fill, shape: tuple[int, ...], seed: int, lane: int) -> None:
        self.fill, self.shape, self.lane = fill, shape, lane
        few = max(1, SOON // shape[-1])
        self.rows = few * max(1, BLOCK // (few * shape[-1]))
        self.chunk = min(self.rows, max(1, CACHE // math.prod(shape))) if len(shape) > 1 else few
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
    """The next rows of every lane, `(rows, d)` or `(rows, lanes, d)`, not to be written to."""
    block = np.empty(shape)
    one = np.empty((shape[0], shape[-1])) if len(shape) > 2 else block
    for k, rng in enumerate(keyed.resume(states, last=last)):
        fill(rng, one)
        if len(shape) > 2:
            block[:, k] = one
    block.setflags(write=False)
    return block
