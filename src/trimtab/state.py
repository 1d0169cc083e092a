"""The immutable state of a run, and the trials it hands out: plain numbers and arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.types import Array, Integers, Memory, Value

NEVER = -1  # in place of a trial: no value has been told yet


class Key(NamedTuple):
    """Selects the random numbers: directions are a function of the key and the trial."""

    seed: int
    lane: int = 0
    """The number of the first lane."""
    copies: int = 1
    """The number of neighbouring lanes that share directions, to compare step sizes on the same random numbers."""


class Look(NamedTuple):
    """The origin, direction and width of a query; together with the key, they determine it."""

    trial: int | Integers
    """The trial whose direction is used: this one, or an earlier one whose query is repeated or mirrored."""
    centre: Array
    """x when the trial was handed out."""
    width: Value
    """δ_t/δ: 0 queries the centre itself; a negative width, the mirror image of an earlier query."""
    context: Array | None = None
    """The context of the trial, `(contexts,)` or `(lanes, contexts)`, NaN where it is missing; None without any."""


class Trial(NamedTuple):
    """A query to measure: `x`, and the `id` to tell its value under."""

    id: int
    x: Array
    look: Look | None = None
    knobs: Any = None
    """The setting to apply, by knob name, if the tuner has knobs."""
    context: Any = None
    """The context that the query is for, by name, if the tuner has contexts."""


class Parts(NamedTuple):
    """Memory of a method composed of parts."""

    slope: Memory
    """Memory of the estimator."""
    pace: Memory
    """Memory of the step."""


class State(NamedTuple):
    """Everything that changes from round to round."""

    key: Key
    """The random numbers in use."""
    round: int
    """The number of the next new trial."""
    centre: Array
    """x_t, in scaled coordinates if there are bounds: `(d,)` or `(lanes, d)`."""
    memory: Memory
    """The method's own NamedTuple; NaN marks quantities that need a value first."""
    last: Look
    """The look of the trial told last."""
    values: tuple[Value, ...]
    """The values of that trial, the anchor of residual feedback; NaN before the first."""
    told: int | Integers
    """The number of that trial, `NEVER` before the first; one per lane, since measurements fail lane by lane."""
    skipped: int | Integers
    """The number of rounds without a value; one per lane."""
    open: tuple[tuple[int, Look], ...]
    """Trials handed out and not yet told (with max_pending > 1), each with its look."""

    @property
    def slope(self) -> Memory:
        """The estimator's memory, in a method made of parts."""
        return self.memory.slope

    @property
    def pace(self) -> Memory:
        """The step's memory, in a method made of parts."""
        return self.memory.pace

    def remembering(self, slope: Memory) -> State:
        """The same state with another estimator memory; used by estimators that wrap another."""
        return self._replace(memory=self.memory._replace(slope=slope))


def frozen(state: State) -> State:
    """The state with read-only arrays; a pickled copy is writable again."""
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
    """The state of the given lanes, which may repeat: used to resample an estimate."""
    return frozen(_taken(state, lanes))


def _taken(part: Memory, lanes: NDArray[np.intp]) -> Memory:
    if isinstance(part, np.ndarray):
        return part[lanes]
    if not isinstance(part, tuple):
        return part
    found = [_taken(x, lanes) for x in part]
    return type(part)(*found) if hasattr(part, "_fields") else tuple(found)
