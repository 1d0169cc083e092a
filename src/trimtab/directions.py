"""Where do we look?  Laws of the probing direction u, each a pure function of (seed, lane, round).

A law says how one block of directions is filled from a random generator, how far a direction can reach, and by
which `scale` an estimate has to be multiplied so that scale·E[u uᵀ] = I. A `Stream` turns a law into the function
(seed, lane, round) → u, drawing blocks of a few rounds by `trimtab.randomness`.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trimtab.randomness import DIRECTIONS, Keyed

Array = NDArray[np.float64]

BLOCK = 2048  # numbers drawn together for one lane: a few rounds at a time when d is small, one when it is large


class Directions(Protocol):
    """What a law of directions has to say of itself."""

    def scale(self, dim: int) -> float:
        """The number s with s·E[u uᵀ] = I."""
        ...

    def reach(self, dim: int) -> tuple[float, float]:
        """The largest |u_j| and the largest ‖u‖ that can occur (inf if unbounded)."""
        ...

    def locate(self, round: int) -> tuple[int, float]:
        """Which draw serves this round, and with which sign."""
        ...

    def mirrors(self, round: int) -> bool:
        """Whether u of this round is minus that of the round before."""
        ...

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Draw independent directions into the rows of `out`."""
        ...


class _Fresh:
    """A new independent direction every round."""

    def locate(self, round: int) -> tuple[int, float]:
        return round, 1.0

    def mirrors(self, round: int) -> bool:
        return False


@dataclass(frozen=True)
class Gaussian(_Fresh):
    """u ~ N(0, I), the law of the paper's main text; unbounded, so queries may leave a bounded domain.

    >>> Gaussian().scale(6), Gaussian().reach(6)
    (1.0, (inf, inf))
    """

    def scale(self, dim: int) -> float:
        return 1.0

    def reach(self, dim: int) -> tuple[float, float]:
        return math.inf, math.inf

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        rng.standard_normal(out=out)


@dataclass(frozen=True)
class Sphere(_Fresh):
    """u uniform on the unit sphere (Appendix H): the radius is the length of the probe, the estimate is scaled by d.

    >>> Sphere().scale(6), Sphere().reach(6)
    (6.0, (1.0, 1.0))
    """

    def scale(self, dim: int) -> float:
        return float(dim)

    def reach(self, dim: int) -> tuple[float, float]:
        return 1.0, 1.0

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        rng.standard_normal(out=out)
        out /= np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]


@dataclass(frozen=True)
class Rademacher(_Fresh):
    """u_j = ±1 with equal chance: the same radius in every coordinate, bounded, and the cheapest to draw.

    >>> Rademacher().scale(9), Rademacher().reach(9)
    (1.0, (1.0, 3.0))
    """

    def scale(self, dim: int) -> float:
        return 1.0

    def reach(self, dim: int) -> tuple[float, float]:
        return 1.0, math.sqrt(dim)

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        words = rng.bit_generator.random_raw(-(-out.size // 64))
        bits = np.unpackbits(np.asarray(words, dtype="<u8").view(np.uint8), count=out.size)
        np.multiply(bits.reshape(out.shape), 2.0, out=out)
        out -= 1.0


@dataclass(frozen=True)
class Paired:
    """u, −u on consecutive rounds; u from another law.

    On the second round of a pair the previous value was measured at −u, so it tells of the gradient too. The tuner
    knows this and divides the estimate by 1 + `recall` of the estimator, which makes it a mean of the two rounds'
    smoothed gradients: exact for a function that stands still, lagging by half a round under drift (Remark 2.5).

    >>> Paired().locate(4), Paired().locate(5), Paired(Sphere()).scale(3)
    ((2, 1.0), (2, -1.0), 3.0)
    """

    base: Gaussian | Sphere | Rademacher = Rademacher()

    def scale(self, dim: int) -> float:
        return self.base.scale(dim)

    def reach(self, dim: int) -> tuple[float, float]:
        return self.base.reach(dim)

    def locate(self, round: int) -> tuple[int, float]:
        return round // 2, -1.0 if round % 2 else 1.0

    def mirrors(self, round: int) -> bool:
        return round % 2 == 1

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        self.base.fill(rng, out)


class Stream:
    """The function round → u for one law, dimension, seed and range of lanes; remembers the last block it drew.

    Lane k of a stream is the same whether it is drawn alone (`lane=k`) or beside others, and u is the same whatever
    was asked before.

    >>> stream = Stream(Gaussian(), (3,), seed=7)
    >>> bool((stream(5) == Stream(Gaussian(), (3,), seed=7)(5)).all())
    True
    """

    def __init__(self, law: Directions, shape: tuple[int, ...], *, seed: int, lane: int = 0) -> None:
        self.law, self.shape, self.seed, self.lane = law, shape, seed, lane
        self._rows = max(1, BLOCK // shape[-1])
        self._keyed = Keyed(seed, DIRECTIONS)
        self._lock = threading.Lock()
        self._index = -1
        self._block = np.empty(0)

    def __call__(self, round: int) -> Array:
        """u of this round, shape (d,) or (lanes, d); a view that must not be written to."""
        draw, sign = self.law.locate(round)
        index, row = divmod(draw, self._rows)
        with self._lock:
            if index != self._index:
                self._block, self._index = self._drawn(index), index
            u: Array = self._block[row]
        return u if sign > 0 else -u

    def _drawn(self, index: int) -> Array:
        *lanes, dim = self.shape
        block = np.empty((self._rows, *self.shape))
        one = np.empty((self._rows, dim)) if lanes else block
        for k, rng in enumerate(self._keyed.generators(index, self.lane, *lanes)):
            self.law.fill(rng, one)
            if lanes:
                block[:, k] = one
        return block

    def __reduce__(self) -> Any:
        return _stream, (self.law, self.shape, self.seed, self.lane)


def _stream(law: Directions, shape: tuple[int, ...], seed: int, lane: int) -> Stream:
    return Stream(law, shape, seed=seed, lane=lane)
