"""Orthogonal frames, rotated at random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trimtab.directions.rows import Fresh
from trimtab.protocols import Source
from trimtab.randomness import DIRECTIONS, Keyed
from trimtab.types import Array, Integers

MIRRORED = 2  # the trial that looks opposite to the one before


@dataclass(frozen=True)
class Rotated(Fresh):
    """Blocks of d orthogonal directions of length √d: a frame, uniform among all rotations, drawn from (seed, block).

    Trials 0, 1 and 2 have the same direction, trial 2 with the opposite sign: for methods that open with the centre, a
    probe and its mirror image. Unlike the rows of `Orthogonal`, probes differ in how far they go along a coordinate,
    which is what tells the curvatures of coordinates apart. Needs O(d²) numbers, and O(d²) work a round.

    >>> Rotated().scale(3), Rotated().locate(1), Rotated().locate(2), Rotated().locate(3)
    (1.0, (0, 1.0), (0, -1.0), (1, 1.0))
    """

    def scale(self, dim: int) -> float:
        """1: E[u uᵀ] = I."""
        return 1.0

    def reach(self, dim: int) -> tuple[float, float]:
        """√d and √d."""
        return math.sqrt(dim) * (1 + 1e-12), math.sqrt(dim)

    def locate(self, trial: int) -> tuple[int, float]:
        """One draw for the first three trials, then one each."""
        return max(trial - MIRRORED, 0), -1.0 if trial == MIRRORED else 1.0

    def partner(self, trial: int | Integers) -> int | Integers | None:
        """The other one of trials 1 and 2."""
        return 3 - trial if trial.__class__ is int and trial in (1, MIRRORED) else None

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Fill the rows with frames, the last one cut off."""
        dim = out.shape[1]
        for first in range(0, len(out), dim):
            out[first : first + dim] = frame(rng.standard_normal((dim, dim)))[: len(out) - first]

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """The rows of one frame after the other."""
        return Rotations(shape, seed, lane)


def frame(normal: Array) -> Array:
    """A rotation from d×d normal numbers, times √d; its rows are the directions."""
    q, r = np.linalg.qr(normal)
    sign = np.where(np.einsum("...ii->...i", r) < 0, -1.0, 1.0)  # without it, not all rotations are as likely
    return np.asarray(np.swapaxes(q * (sign * math.sqrt(normal.shape[-1]))[..., None, :], -1, -2))


class Rotations:
    """draw → its row of a frame; the last frame of every lane is cached."""

    def __init__(self, shape: tuple[int, ...], seed: int, lane: int) -> None:
        self.shape, self.lane = shape, lane
        self.keyed = Keyed(seed, DIRECTIONS)
        self.held = 0, np.empty((0, *shape))

    def __call__(self, draw: int) -> Array:
        """`(d,)` or `(lanes, d)`."""
        dim = self.shape[-1]
        index, row = divmod(draw, dim)
        first, block = self.held
        if first != index * dim or not len(block):
            generators = self.keyed.generators(index, self.lane, *self.shape[:-1])
            drawn = np.stack([rng.standard_normal((dim, dim)) for rng in generators])
            block = np.ascontiguousarray(np.moveaxis(frame(drawn), 1, 0))  # (d, lanes, d)
            block = block if len(self.shape) > 1 else block[:, 0]
            block.setflags(write=False)
            self.held = index * dim, block
        found: Array = block[row]
        return found
