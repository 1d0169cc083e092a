"""A law of directions, a seed and a range of lanes: the function trial → u."""

from __future__ import annotations

import threading
from functools import lru_cache

import numpy as np

from trimtab.protocols import Directions
from trimtab.state import Key
from trimtab.types import Array, Integers

FEW = 32  # rows kept of a stream
SMALL = 256  # largest dimension whose rows are kept
OVERHEAD = 512  # bytes of an entry beside its rows, roughly
KEPT = 32  # streams of one law and shape: one for each study that was served lately
NONE = (0, np.empty(0))


class RowCache:
    """Directions drawn ahead for many keys, within a number of bytes; much smaller than the streams they are from."""

    def __init__(self, budget: int) -> None:
        self._rows: dict[object, tuple[int, Array]] = {}
        self._left, self._lock = budget, threading.Lock()

    def get(self, name: object) -> tuple[int, Array]:
        """The number of the first draw, and the rows from there, if any."""
        return self._rows.get(name, NONE)

    def put(self, name: object, first: int, rows: Array) -> None:
        """Replace the rows of a name; those stored first are dropped if there is no room."""
        with self._lock:
            before = self._rows.pop(name, None)
            self._rows[name] = first, rows
            self._left -= rows.nbytes + OVERHEAD if before is None else rows.nbytes - before[1].nbytes
            while self._left < 0:
                self._left += self._rows.pop(next(iter(self._rows)))[1].nbytes + OVERHEAD


ROWS = RowCache(2**25)
"""Shared by all setups."""


class Streams:
    """(key, trial) → u for one law and shape. Safe between threads.

    The streams of recent keys are cached; of the others only a few rows that were drawn ahead, so that a service with
    thousands of studies seldom has to start a stream again.

    >>> from trimtab.directions import Gaussian
    >>> streams, stream = Streams(Gaussian(), (3,)), Stream(Gaussian(), (3,), seed=7)
    >>> bool((streams(Key(7), 5) == stream(5)).all())
    True
    """

    def __init__(self, law: Directions, shape: tuple[int, ...]) -> None:
        self._stream = lru_cache(KEPT)(lambda key: Stream(law, shape, **key._asdict()))
        self._latest: tuple[Key | None, Stream | None] = (None, None)
        self._locate, self._small, self._owner = law.locate, len(shape) == 1 and shape[0] <= SMALL, object()

    def __call__(self, key: Key, trial: int | Integers) -> Array:
        """u of this trial (or of one trial per lane), `(d,)` or `(lanes, d)`; a read-only view."""
        latest, stream = self._latest
        if stream is not None and (latest is key or latest == key):
            return stream(trial)
        if not self._small or isinstance(trial, np.ndarray):
            return self._started(key)(trial)
        draw, sign = self._locate(trial)
        first, rows = ROWS.get((self._owner, key))
        if not 0 <= draw - first < len(rows):
            stream = self._started(key)
            drawn = stream(trial)
            ROWS.put((self._owner, key), *stream.ahead(draw))
            return drawn
        u: Array = rows[draw - first]
        if sign < 0:
            u = np.negative(u)
            u.setflags(write=False)
        return u

    def _started(self, key: Key) -> Stream:
        stream = self._stream(key)
        self._latest = (key, stream)  # both at once
        return stream


class Stream:
    """trial → u for one law, dimension, seed and range of lanes; caches the last draw.

    Lane k of a stream is the same whether it is drawn alone (`lane=k`) or with others, and u does not depend on
    earlier calls. With `copies`, that many neighbouring lanes share one direction.

    >>> from trimtab.directions import Gaussian
    >>> stream = Stream(Gaussian(), (3,), seed=7)
    >>> bool((stream(5) == Stream(Gaussian(), (3,), seed=7)(5)).all())
    True
    """

    def __init__(self, law: Directions, shape: tuple[int, ...], *, seed: int, lane: int = 0, copies: int = 1) -> None:
        self.copies = copies
        self._locate = law.locate
        self._source = law.source(shape if copies == 1 else (shape[0] // copies, shape[1]), seed, lane)
        self._lock = threading.Lock()
        self._latest: tuple[int, Array] = (-1, np.empty(0))

    def __call__(self, trial: int | Integers) -> Array:
        """u of this trial (or of one trial per lane), `(d,)` or `(lanes, d)`; a read-only view."""
        latest, u = self._latest
        if latest is trial or (trial.__class__ is int and latest == trial):  # tell follows ask
            return u
        if isinstance(trial, np.ndarray):
            return self._mixed(trial)
        draw, sign = self._locate(trial)
        first, block = self._source.held
        if 0 <= draw - first < len(block):
            u = block[draw - first]
        else:
            with self._lock:
                u = self._source(draw)
        if sign < 0 or self.copies > 1:
            u = np.repeat(sign * u, self.copies, axis=0) if self.copies > 1 else np.negative(u)
            u.setflags(write=False)
        self._latest = (trial, u)
        return u

    def ahead(self, draw: int) -> tuple[int, Array]:
        """The number of a draw, and copies of its row and of some that follow, as far as they are drawn already."""
        first, block = self._source.held
        rows = block[max(draw - first, 0) :][:FEW].copy()
        rows.setflags(write=False)
        return max(draw, first), rows

    def _mixed(self, trials: Integers) -> Array:
        """Directions of lanes that are at different trials."""
        different = np.unique(trials)
        u = self(int(different[-1]))
        for trial in different[:-1]:
            u = np.where((trials == trial)[:, None], self(int(trial)), u)
        return u
