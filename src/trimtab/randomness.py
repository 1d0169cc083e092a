"""Random numbers as a pure function of (seed, purpose, lane, index).

Philox, a counter-based generator with the key (seed, purpose), is set to the counter (lane, index). Its four output
words become the state of SFC64, a faster generator, which draws the numbers. So indices can be drawn repeatedly and in
any order, and a lane gets the same numbers whether it is drawn alone or with others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

DIRECTIONS, DRIFT, NOISE, ROUNDING = 0, 1, 2, 3
"""Purposes: numbers for different purposes are independent even under one seed."""


class NoSeed(ISeedSequence):
    """Seed of generators whose state is set before use: it avoids the cost of mixing a real seed."""

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[np.uint32 | np.uint64]:
        """Zeros: the state is replaced anyway."""
        return np.zeros(n_words, dtype=dtype)


NO_SEED = NoSeed()


class Keyed:
    """Generators for one seed and purpose; setting one up takes about two microseconds.

    Not thread-safe: all generators share one state.

    >>> keyed = Keyed(seed=7)
    >>> alone = [rng.random() for rng in keyed.generators(index=3, lane=1, lanes=1)]
    >>> beside = [rng.random() for rng in keyed.generators(index=3, lane=0, lanes=2)]
    >>> alone[0] == beside[1]
    True
    """

    def __init__(self, seed: int, purpose: int = DIRECTIONS) -> None:
        self._key = np.array([seed, purpose], dtype=np.uint64)
        self._counter = np.zeros(4, dtype=np.uint64)
        self._philox = np.random.Philox(NO_SEED)  # type: ignore[arg-type]
        # Replacing the words of an existing state is twenty times faster than creating a generator.
        self._philox_state = self._philox.state
        self._philox_state["state"] = {"counter": self._counter, "key": self._key}
        self._sfc = np.random.SFC64(NO_SEED)  # type: ignore[arg-type]
        self._sfc_state = self._sfc.state
        self._words = self._sfc_state["state"]
        self._rng = np.random.Generator(self._sfc)
        self._current: NDArray[np.uint64] | None = None  # the states that the generator is currently drawing from

    def states(self, index: int, lane: int = 0, lanes: int = 1) -> NDArray[np.uint64]:
        """Initial generator state of (lane, index) for each lane, `(lanes, 4)`."""
        self._counter[:] = (lane, index, 0, 0)
        self._philox.state = self._philox_state
        words: NDArray[np.uint64] = self._philox.random_raw(4 * lanes).reshape(lanes, 4)
        return words

    def resume(self, states: NDArray[np.uint64], *, last: bool = True) -> Iterator[np.random.Generator]:
        """One generator per row of states, valid until the next one is yielded.

        Unless `last`, `states` is updated in place, so that the next call with the same array continues from there.
        """
        if self._current is states:  # a single lane: the generator is still in the right state
            yield self._rng
            return
        self._current = states if len(states) == 1 else None
        for row in states:
            self._words["state"] = row
            self._sfc.state = self._sfc_state
            yield self._rng
            if not last and len(states) > 1:
                row[:] = self._sfc.state["state"]["state"]

    def generators(self, index: int, lane: int = 0, lanes: int = 1) -> Iterator[np.random.Generator]:
        """One generator per lane, in the initial state of (lane, index), valid until the next one is yielded."""
        return self.resume(self.states(index, lane, lanes))
