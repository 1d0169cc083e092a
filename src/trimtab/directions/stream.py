"""A law of directions, a seed and a range of lanes: the function trial → u."""

from __future__ import annotations

import threading
from functools import lru_cache

import numpy as np

from trimtab.protocols import Directions
from trimtab.state import Key
from trimtab.types import Array, Integers

KEPT = 32  # streams of one law and shape: one for each study that was served lately


class Streams:
    """(key, trial) → u for one law and shape; caches the streams of the keys asked for lately. Safe between threads.

    >>> from trimtab.directions import Gaussian
    >>> streams, stream = Streams(Gaussian(), (3,)), Stream(Gaussian(), (3,), seed=7)
    >>> bool((streams(Key(7), 5) == stream(5)).all())
    True
    """

    def __init__(self, law: Directions, shape: tuple[int, ...]) -> None:
        self._stream = lru_cache(KEPT)(lambda key: Stream(law, shape, **key._asdict()))
        self._latest: tuple[Key | None, Stream | None] = (None, None)

    def __call__(self, key: Key, trial: int | Integers) -> Array:
        """u of this trial (or of one trial per lane), `(d,)` or `(lanes, d)`; a read-only view."""
        latest, stream = self._latest
        if stream is None or (latest is not key and latest != key):
            stream = self._stream(key)
            self._latest = (key, stream)  # both at once
        return stream(trial)


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

    def _mixed(self, trials: Integers) -> Array:
        """Directions of lanes that are at different trials."""
        different = np.unique(trials)
        u = self(int(different[-1]))
        for trial in different[:-1]:
            u = np.where((trials == trial)[:, None], self(int(trial)), u)
        return u
