"""Anderson acceleration (1965) of slow fixed-point iterations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.types import Array

Rows = NDArray[np.intp]

# Chosen on 2592 points about random intersections (those of the property tests, 0.3 to 10⁶ radii away). Memories of 5
# to 20, periods of 25 and 50 and trusts of 10 and 30 agree to 1e-7, with cycle counts within 5%. A memory of 1, a
# period of 100, or a trust of 3 or 100 is off by 1e-3 at some points; an unlimited trust, by 1e-2.
MEMORY = 10  # previous cycles used
PERIOD = 50  # accelerated cycles, then the same number of plain ones
TRUST = 30.0  # initial limit of a step's length, in residuals


class _Search(NamedTuple):
    """State of the rows that have not converged, one entry or array per row."""

    rows: Rows
    w: Array  # start of the next cycle
    accelerated: NDArray[np.bool_]  # w is an accelerated step, not the end of the previous cycle
    cut: NDArray[np.bool_]  # the step was shortened to the trust
    trust: Array  # longest step, in residuals
    least: Array  # smallest error so far
    ready: NDArray[np.bool_]  # the previous cycle was accepted: the next one can be compared with it
    last: Array  # end of the last accepted cycle …
    residual: Array  # … and how far it moved
    moves: Array  # (rows, MEMORY, n): differences between the ends of accepted cycles …
    changes: Array  # … and between their residuals; both scaled so that these have length 1

    def only(self, far: NDArray[np.bool_]) -> _Search:
        """Drop the rows that have converged."""
        return _Search._make(entry[far] for entry in self)


def fixed_point(cycle: Callable[[Array, Rows], Array], w: Array, tolerance: float, cycles: int) -> tuple[Array, Array]:
    """Iterate `cycle` row by row until it changes w by at most the tolerance, for at most `cycles` cycles.

    Returns the last cycle(w) and the size of its last change. `cycle` also gets the indices of its rows.

    w ← f_k − Σ_i γ_i (f_i − f_{i−1}), where f = cycle(w) and γ minimises the same combination of the residuals f − w.
    A step that increases the error is undone, back to f_k. As in a trust region, the length of a step is limited: the
    limit shrinks after a step that was undone and grows after one that was cut and reduced the error.

    >>> fixed_point(lambda w, rows: 1.0 + 0.9 * w, np.zeros((1, 1)), 1e-9, 5)[0].round(6)
    array([[10.]])
    """
    found, errors = w.copy(), np.full(len(w), math.inf)
    search = _start(np.arange(len(w)), w, errors)
    for k in range(cycles):
        f = cycle(search.w, search.rows)
        error = np.linalg.norm(f - search.w, axis=1)
        found[search.rows], errors[search.rows] = f, error
        far = error > tolerance
        if not far.any():
            break
        if not far.all():
            search, f, error = search.only(far), f[far], error[far]
        plain = k // PERIOD % 2  # where acceleration stalls, the plain iteration makes progress
        search = _start(search.rows, f, error) if plain else _step(_learn(search, f, error, k % MEMORY))
    return found, errors


def _start(rows: Rows, w: Array, least: Array) -> _Search:
    """Start with an empty history."""
    no, zero, memory = np.zeros(len(w), dtype=bool), np.zeros_like(w), np.zeros((len(w), MEMORY, w.shape[1]))
    trust = np.full(len(w), TRUST)
    return _Search(rows, w, no, no, trust, least.copy(), no, zero, zero, memory, memory.copy())


def _learn(search: _Search, f: Array, error: Array, slot: int) -> _Search:
    """Record a cycle from w to f in this slot; rows whose step increased the error drop their history."""
    good = ~(search.accelerated & (error > 1.1 * search.least))
    known, column = search.ready & good, good[:, None]
    g = f - search.w
    change = np.where(known[:, None], g - search.residual, 0.0)
    size = np.linalg.norm(change, axis=1)
    still = known & (size < 1e-9 * error)  # the residual hardly changes: many more cycles like this one would follow
    change[still], size[still] = -1e-9 * g[still], 1e-9 * error[still]
    size[size == 0] = math.inf
    moves, changes = search.moves, search.changes
    moves[:, slot], changes[:, slot] = (f - search.last) / size[:, None], change / size[:, None]
    moves[~good] = changes[~good] = 0.0
    widened = np.where(search.cut, 4.0 * search.trust, search.trust)
    return search._replace(
        trust=np.where(good, widened, np.maximum(0.25 * search.trust, 1.0)),
        least=np.minimum(search.least, error),
        ready=good,
        last=np.where(column, f, search.last),
        residual=np.where(column, g, search.residual),
    )


def _step(search: _Search) -> _Search:
    """Step from the last accepted point by the combination of moves that minimises the residual."""
    gram = search.changes @ search.changes.transpose(0, 2, 1) + 1e-12 * np.eye(MEMORY)
    weights = np.linalg.solve(gram, search.changes @ search.residual[:, :, None])
    step = -np.sum(weights * search.moves, axis=1)
    length, limit = np.linalg.norm(step, axis=1), search.trust * np.linalg.norm(search.residual, axis=1)
    w = search.last + step * (limit / np.maximum(length, limit))[:, None]
    return search._replace(w=w, accelerated=length > 0, cut=length > limit)
