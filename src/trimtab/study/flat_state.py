"""A state as a flat array of 8-byte floats, without loss.

Integers in a state (rounds, trials) are below 2⁵³, so a float holds them exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trimtab.state import Key, State, frozen
from trimtab.types import Array, Memory


class Flat:
    """Layout of the numbers of a state, derived from any state of its setup. Open trials are not included.

    >>> import trimtab as tt
    >>> setup = tt.Setup(tt.residual(radius=0.1, step=0.01), (2,))
    >>> state = tt.init(setup, [1.0, 2.0])
    >>> flat = Flat(state)
    >>> flat.read(np.array(flat.write(state))).centre
    array([1., 2.])
    """

    def __init__(self, like: State) -> None:
        self._like = like._replace(open=())
        leaves = list(_leaves("state", self._like))
        self.names = [name for name, _ in leaves]
        """Name of each number or array; they may differ between versions of trimtab."""
        sizes = [x.size if isinstance(x, np.ndarray) else 1 for _, x in leaves]
        self._ends = np.cumsum(sizes).tolist()
        self.size: int = self._ends[-1]
        self.is_row = all(np.ndim(x) < 2 for _, x in leaves)
        """Whether the state can be flattened: no matrices, such as the last queries of a fit."""

    def place(self, name: str) -> slice:
        """Return the slice of the numbers of that name."""
        n = self.names.index(name)
        return slice(self._ends[n - 1] if n else 0, self._ends[n])

    def write(self, state: State) -> list[float]:
        """Return the numbers of a state."""
        numbers: list[float] = []
        _append(state._replace(open=()), numbers)
        return numbers

    def read(self, numbers: Array) -> State:
        """Return the state with these numbers."""
        return frozen(_built(self._like, numbers, numbers.tolist(), iter(self._ends)))


def _append(part: Memory, numbers: list[float]) -> None:
    for x in part:
        kind = x.__class__
        if kind is float or kind is int:
            numbers.append(x)
        elif kind is np.ndarray:
            numbers.extend(x.tolist())
        elif x is None or kind is Key:  # 64 bits, which no float holds
            continue
        elif isinstance(x, tuple):
            _append(x, numbers)
        else:
            numbers.append(float(x))


def _leaves(name: str, part: Memory) -> Iterator[tuple[str, Any]]:
    if part is None or isinstance(part, Key):  # 64 bits, which no float holds
        return
    if not isinstance(part, tuple):
        yield name, part
        return
    names = getattr(part, "_fields", range(len(part)))
    for inner, x in zip(names, part, strict=True):
        yield from _leaves(name if inner == "memory" else f"{name}.{inner}", x)  # rows name what is in it alone


def _built(like: Memory, numbers: Array, plain: list[float], ends: Iterator[int]) -> Any:
    """Build a tuple like another one; ends: where each of its numbers and arrays ends, in order."""
    parts: list[Any] = []
    for x in like:
        kind = x.__class__
        if kind is float:
            parts.append(plain[next(ends) - 1])
        elif kind is np.ndarray:
            end = next(ends)
            parts.append(numbers[end - x.size : end].copy())
        elif x is None or kind is Key:
            parts.append(x)
        elif isinstance(x, tuple):
            parts.append(_built(x, numbers, plain, ends))
        else:
            parts.append(kind(plain[next(ends) - 1]))
    return like._make(parts) if hasattr(like, "_make") else tuple(parts)
