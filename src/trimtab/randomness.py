"""Random numbers as a pure function of (seed, purpose, lane, index): nothing is drawn in sequence.

Philox, a counter-based generator with the key (seed, purpose), is set to the counter (lane, index); its four words are
the state of an SFC64, a faster generator, which then draws as many numbers as wanted. So any index can be drawn again,
in any order, and a lane's numbers are the same whether it is drawn alone or beside others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

DIRECTIONS, DRIFT, NOISE, ROUNDING = 0, 1, 2, 3
"""Purposes: numbers for different purposes are independent even under one seed."""


class NoSeed(ISeedSequence):
    """For generators whose state is set before anything is drawn: mixing a seed would cost ten times as much."""

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[np.uint32 | np.uint64]:
        """Any numbers will do."""
        return np.zeros(n_words, dtype=dtype)


NO_SEED = NoSeed()


class Keyed:
    """The generators of one seed and purpose; setting one up costs about two microseconds.

    For one thread at a time: it has one state, which each of its generators is set to.

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
        # The states are kept and only their words replaced: making a generator anew would cost twenty times more.
        self._philox_state = self._philox.state
        self._philox_state["state"] = {"counter": self._counter, "key": self._key}
        self._sfc = np.random.SFC64(NO_SEED)  # type: ignore[arg-type]
        self._sfc_state = self._sfc.state
        self._words = self._sfc_state["state"]
        self._rng = np.random.Generator(self._sfc)
        self._drawing: NDArray[np.uint64] | None = None  # whose numbers the generator is in the middle of

    def states(self, index: int, lane: int = 0, lanes: int = 1) -> NDArray[np.uint64]:
        """Where the numbers of (lane, index) start, for each lane: `(lanes, 4)`."""
        self._counter[:] = (lane, index, 0, 0)
        self._philox.state = self._philox_state
        words: NDArray[np.uint64] = self._philox.random_raw(4 * lanes).reshape(lanes, 4)
        return words

    def resume(self, states: NDArray[np.uint64], *, last: bool = True) -> Iterator[np.random.Generator]:
        """One generator per row of states; valid until the next one is taken.

        Unless it is the last time, `states` is moved on to where each generator was left: resumed with the same
        array, each goes on there.
        """
        if self._drawing is states:  # one lane alone, which goes on where it was left
            yield self._rng
            return
        self._drawing = states if len(states) == 1 else None
        for row in states:
            self._words["state"] = row
            self._sfc.state = self._sfc_state
            yield self._rng
            if not last and len(states) > 1:
                row[:] = self._sfc.state["state"]["state"]

    def generators(self, index: int, lane: int = 0, lanes: int = 1) -> Iterator[np.random.Generator]:
        """One generator per lane, at the start of the numbers of (lane, index); valid until the next one is taken."""
        return self.resume(self.states(index, lane, lanes))
