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

BLOCK = 4096  # numbers drawn in sequence for one lane: many rounds when d is small, one when it is large
CACHE = 2**20  # numbers kept for all lanes, unless a single round needs more


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

    def partner(self, round: int) -> int | None:
        """The round whose u is minus that of this one, if there is one."""
        ...

    def echoes(self, round: int) -> bool:
        """Whether u is that of the round before, so that what differs in the values is noise and drift alone."""
        ...

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Draw independent directions into the rows of `out`, row after row, so that fewer rows are the same ones."""
        ...


class _Fresh:
    """A new direction every round."""

    def locate(self, round: int) -> tuple[int, float]:
        return round, 1.0

    def partner(self, round: int) -> int | None:
        return None

    def echoes(self, round: int) -> bool:
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
        rows, dim = out.shape
        words = rng.bit_generator.random_raw(rows * -(-dim // 64)).reshape(rows, -1)  # whole words for each row
        bits = np.unpackbits(np.asarray(words, dtype="<u8").view(np.uint8), axis=1, count=dim)
        np.multiply(bits, 2.0, out=out)
        out -= 1.0


@dataclass(frozen=True)
class Paired:
    """u, −u on consecutive rounds; u from another law.

    Where the value told before was measured at −u, it tells of the gradient too. The tuner knows this and divides the
    estimate by 1 + `recall` of the estimator, which makes it a mean of the two rounds'
    smoothed gradients: exact for a function that stands still, lagging by half a round under drift (Remark 2.5). Made
    for estimators that contrast: a plain one-point step to −u·y first makes the second estimate depend on the offset.

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

    def partner(self, round: int) -> int | None:
        return round ^ 1

    def echoes(self, round: int) -> bool:
        return False

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        self.base.fill(rng, out)


@dataclass(frozen=True)
class Orthogonal(_Fresh):
    """Blocks of d directions that are exactly orthogonal: rows of a cosine transform, shuffled, with random signs.

    In the block of d rounds with signs σ ∈ {±1}^d and a permutation π, both from (seed, block), and ε_t = ±1,

        u_j = ε_t·σ_j·√2·cos(π·k(j + ½)/d),   k = π(t mod d),   and u_j = ε_t·σ_j for k = 0.

    Every d rounds look once along each axis of an orthogonal frame, so no two of them tell the same; E[u_t | past] = 0
    by ε_t, and E[u uᵀ] = I by σ. Memory is O(d), and a row costs one look-up per coordinate in a table of 4d cosines.

    >>> Orthogonal().scale(9), Orthogonal().reach(2)[0]
    (1.0, 1.0)
    """

    def scale(self, dim: int) -> float:
        return 1.0

    def reach(self, dim: int) -> tuple[float, float]:
        return (math.sqrt(2) * (1 + 1e-12) if dim > 2 else 1.0), math.sqrt(dim)

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """What makes a block, of shape (3, d): σ, π and ε, signs as what they add to an angle, 0 or 2d table steps."""
        Rademacher().fill(rng, out)
        out += 1.0
        out *= out.shape[1]
        out[1] = rng.permutation(out.shape[1])


@dataclass(frozen=True)
class Echoed:
    """Another law, where now and then a round repeats the direction of the round before: once every so many rounds, and
    before that in the rounds `first` − 1, 2·`first` − 1, 4·`first` − 1, ….

    A step that listens to echoes (`Adaptive`) has the very query repeated. That costs a round and tells nothing of the
    slope, but what differs in the values is noise and drift alone: it knows then how much of the contrast is signal.

    >>> [t for t in range(200) if Echoed().echoes(t)]
    [7, 15, 31, 63, 127, 191]
    """

    base: Gaussian | Sphere | Rademacher | Orthogonal = Orthogonal()
    every: int = 64
    first: int = 8

    def __post_init__(self) -> None:
        for name in ("every", "first"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 2:
                raise ValueError(f"{name}={number!r} must be a whole number, at least 2")

    def scale(self, dim: int) -> float:
        return self.base.scale(dim)

    def reach(self, dim: int) -> tuple[float, float]:
        return self.base.reach(dim)

    def locate(self, round: int) -> tuple[int, float]:
        n = round + 1
        return round - n // self.every - (min(n, self.every - 1) // self.first).bit_length(), 1.0

    def partner(self, round: int) -> int | None:
        return None

    def echoes(self, round: int) -> bool:
        n = round + 1
        if n >= self.every:
            return n % self.every == 0
        times, rest = divmod(n, self.first)
        return rest == 0 < times and times & (times - 1) == 0

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        self.base.fill(rng, out)


class _Cosines:
    """(k, shift) → the row √2·cos(π·k(j + ½)/d + π·shift/2d) of the cosine transform (±1 for k = 0), from one table."""

    def __init__(self, dim: int) -> None:
        half = math.sqrt(2) * np.cos(np.arange(2 * dim) * (math.pi / (2 * dim)))
        self._table = np.concatenate([half, -half])
        if dim <= 2:
            self._table = np.sign(np.round(self._table, 9))  # exactly ±1
        self._whole: Any = np.uint32 if 2 * dim * (dim + 4) < 2**32 else np.uint64
        self._odd = np.arange(1, 2 * dim, 2).astype(self._whole)
        self._period = self._whole(4 * dim)

    def __call__(self, k: Array, columns: Array, rows: Array) -> Array:
        place = k.astype(self._whole)[..., None] * self._odd
        place += columns.astype(self._whole)
        place += rows.astype(self._whole)[..., None]
        place -= place // self._period * self._period  # a remainder by a fixed divisor is faster this way
        u: Array = self._table.take(place)
        u[k == 0] = np.sign(u[k == 0])
        return u


class Stream:
    """The function round → u for one law, dimension, seed and range of lanes; remembers the last block it drew.

    Lane k of a stream is the same whether it is drawn alone (`lane=k`) or beside others, and u is the same whatever
    was asked before. With `copies`, so many neighbouring lanes share one direction.

    >>> stream = Stream(Gaussian(), (3,), seed=7)
    >>> bool((stream(5) == Stream(Gaussian(), (3,), seed=7)(5)).all())
    True
    """

    def __init__(self, law: Directions, shape: tuple[int, ...], *, seed: int, lane: int = 0, copies: int = 1) -> None:
        self.law, self.seed, self.lane, self.copies = law, seed, lane, copies
        self.shape = shape if copies == 1 else (shape[0] // copies, shape[1])
        shape = self.shape
        self._rows = max(1, BLOCK // shape[-1])
        self._cosines = _Cosines(shape[-1]) if isinstance(getattr(law, "base", law), Orthogonal) else None
        # Many lanes draw a block in several chunks, so that the cache stays small.
        self._chunk = min(self._rows, max(1, CACHE // math.prod(shape)))
        self._keyed = Keyed(seed, DIRECTIONS)
        self._lock = threading.Lock()
        self._index, self._start, self._block = -1, 0, np.empty((0, *shape))
        self._states = self._keyed.states(0)
        self._latest: tuple[int, Array] = (-1, self._block)
        self._makings = self._block

    def __call__(self, round: int) -> Array:
        """u of this round, shape (d,) or (lanes, d); a view that must not be written to."""
        latest, u = self._latest
        if latest == round:  # tell comes after ask
            return u
        draw, sign = self.law.locate(round)
        index, row = divmod(draw, self._rows)
        with self._lock:
            if self._cosines is not None:
                drawn = self._orthogonal(draw, self._cosines)
            else:
                if index != self._index or row < self._start:
                    self._states = self._keyed.states(index, self.lane, *self.shape[:-1])
                    self._index, self._start = index, 0
                    self._block = self._drawn(min(self._chunk, self._rows))
                while row >= self._start + len(self._block):
                    self._start += len(self._block)
                    self._block = self._drawn(min(self._chunk, self._rows - self._start))
                drawn = self._block[row - self._start]
        u = drawn
        if sign < 0 or self.copies > 1:
            u = np.repeat(sign * drawn, self.copies, axis=0) if self.copies > 1 else np.negative(drawn)
            u.setflags(write=False)
        self._latest = (round, u)
        return u

    def _orthogonal(self, draw: int, cosines: _Cosines) -> Array:
        """A row of a block of orthogonal ones, made by the chunk from what makes the block."""
        index, row = divmod(draw, self.shape[-1])
        if index != self._index:
            self._states = self._keyed.states(index, self.lane, *self.shape[:-1])
            self._index, self._rows, self._start = index, 3, 0
            self._makings, self._block = self._drawn(3), self._block[:0]
        if not self._start <= row < self._start + len(self._block):
            signs, order, flips = self._makings
            # a look-up has more to set up than a draw
            chunk = max(self._chunk, min(4 * BLOCK, CACHE) // math.prod(self.shape))
            self._start = row - row % chunk
            some = slice(self._start, self._start + chunk)
            self._block = cosines(order[..., some].T, signs, flips[..., some].T)
            self._block.setflags(write=False)
        drawn: Array = self._block[row - self._start]
        return drawn

    def _drawn(self, rows: int) -> Array:
        """The next rows of the present block."""
        *lanes, dim = self.shape
        block = np.empty((rows, *self.shape))
        one = np.empty((rows, dim)) if lanes else block
        last = self._start + rows == self._rows
        for k, rng in enumerate(self._keyed.resume(self._states, last=last)):
            self.law.fill(rng, one)
            if lanes:
                block[:, k] = one
        block.setflags(write=False)
        return block

    def __reduce__(self) -> Any:
        shape = self.shape if self.copies == 1 else (self.shape[0] * self.copies, self.shape[1])
        return _stream, (self.law, shape, self.seed, self.lane, self.copies)


def _stream(law: Directions, shape: tuple[int, ...], seed: int, lane: int, copies: int) -> Stream:
    return Stream(law, shape, seed=seed, lane=lane, copies=copies)
