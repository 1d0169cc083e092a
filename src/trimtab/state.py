"""What changes: a `State`, the `Look` of a trial, and the `Trial` that is handed out. Plain numbers and arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.types import Array, Integers, Memory, Value

make = tuple.__new__
"""make(Look, (…)) is Look(…) at half the cost: for what is made in every round."""


NEVER = -1  # the trial before the first


class Key(NamedTuple):
    """Whose random numbers: directions are a function of the key and the trial."""

    seed: int
    lane: int = 0
    """The number of the first lane."""
    copies: int = 1
    """How many neighbouring lanes share their directions, to compare step sizes on the same random numbers."""


class Look(NamedTuple):
    """Where a trial looks from: with the seed, all that its query depends on."""

    trial: int | Integers
    """Whose direction it is: its own number, or that of the trial whose query is repeated or mirrored."""
    centre: Array
    """x, as it was when the trial was asked for."""
    width: Value
    """δ_t/δ: 0 looks at the centre itself, a negative one at the mirror image."""


class Trial(NamedTuple):
    """A query to measure: `x`, and the `id` to tell its value under."""

    id: int
    x: Array
    look: Look | None = None
    knobs: Any = None
    """What to set, by name, where the tuner has knobs."""


class State(NamedTuple):
    """Everything that changes."""

    key: Key
    """Whose random numbers."""
    round: int
    """The number of the next new trial."""
    centre: Array
    """x_t, in scaled coordinates where there are bounds: `(d,)` or `(lanes, d)`."""
    memory: Memory
    """What the method remembers: its own NamedTuple, with NaN where it takes a value to know."""
    last: Look
    """Where the value told last was measured."""
    values: tuple[Value, ...]
    """That value, the anchor of residual feedback (or two of them); NaN before the first."""
    told: int | Integers
    """The trial that brought it, −1 before the first; one per lane, because a lane may have failed."""
    skipped: int | Integers
    """How many rounds brought no value: a number, or one per lane."""
    open: tuple[tuple[int, Look], ...]
    """Trials handed out ahead and not yet told (with max_pending > 1), each with its look."""

    @property
    def slope(self) -> Memory:
        """The estimator's memory, in a method made of parts."""
        return self.memory.slope

    @property
    def pace(self) -> Memory:
        """The step's memory, in a method made of parts."""
        return self.memory.pace

    def remembering(self, slope: Memory) -> State:
        """The same with another memory of the estimator, for estimators that wrap another one."""
        return self._replace(memory=self.memory._replace(slope=slope))


def frozen(state: State) -> State:
    """The state with arrays that nobody can change (they thaw when they are pickled)."""
    state.centre.setflags(write=False)
    _freeze((*state.memory, *state.last, *state.values, state.told, state.skipped))
    return state


def _freeze(part: Memory) -> None:
    for x in part:
        kind = x.__class__
        if kind is np.ndarray:
            x.setflags(write=False)
        elif kind is not float and isinstance(x, tuple):
            _freeze(x)


def take(state: State, lanes: NDArray[np.intp]) -> State:
    """The state of some of the lanes, each as often as it is named: to try something out beside the run itself."""
    return frozen(_taken(state, lanes))


def _taken(part: Memory, lanes: NDArray[np.intp]) -> Memory:
    if isinstance(part, np.ndarray):
        return part[lanes]
    if not isinstance(part, tuple):
        return part
    found = [_taken(x, lanes) for x in part]
    return type(part)(*found) if hasattr(part, "_fields") else tuple(found)
