"""Anderson's method (1965) for fixed points of slow iterations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.types import Array

Rows = NDArray[np.intp]

# Chosen on 2592 points about random intersections (those of the property tests, 0.3 to 10⁶ radii away). Memories of 5
# to 20, periods of 25 and 50 and trusts of 10 and 30 agree to 1e-7, in as many cycles up to 5%. A memory of 1, a period
# of 100, or a trust of 3 or 100 is off by 1e-3 in some, no limit to the trust by 1e-2.
MEMORY = 10  # cycles to look back on
PERIOD = 50  # plain cycles after as many with the method
TRUST = 30.0  # residuals that a step may be long, at first


class _Search(NamedTuple):
    """What is known of the rows that are not there yet, one entry or array for each."""

    rows: Rows
    w: Array  # where the next cycle starts
    bold: NDArray[np.bool_]  # w is a step of the method, not the end of the cycle before
    cut: NDArray[np.bool_]  # and the step was shortened to the trust
    trust: Array  # how many residuals a step may be long
    least: Array  # the smallest error so far
    ready: NDArray[np.bool_]  # the cycle before did not lead away: this one can be compared to it
    last: Array  # where the last cycle that did not lead away ended …
    residual: Array  # … and by how much it moved
    moves: Array  # (rows, MEMORY, n): from the end of such a cycle to that of the next …
    changes: Array  # … and from residual to residual, which here have length 1

    def only(self, far: NDArray[np.bool_]) -> _Search:
        """Without the rows that are there."""
        return _Search._make(entry[far] for entry in self)


def fixed_point(cycle: Callable[[Array, Rows], Array], w: Array, tolerance: float, cycles: int) -> tuple[Array, Array]:
    """The last cycle(w), row by row, once it differs from w by at most the tolerance, or after so many cycles.

    Also by how much it differed. `cycle` is told which rows it gets.

    w ← f_k − Σ_i γ_i (f_i − f_{i−1}), where f = cycle(w) and γ makes the same combination of the residuals f − w least.
    A step that has led away is taken back to f_k. As in a trust region, none is longer than so many residuals: fewer
    after one that was taken back, more after one that was cut and did well.

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
        plain = k // PERIOD % 2  # where the method does not get on, the plain iteration does
        search = _start(search.rows, f, error) if plain else _step(_learn(search, f, error, k % MEMORY))
    return found, errors


def _start(rows: Rows, w: Array, least: Array) -> _Search:
    """Nothing is known yet."""
    no, nothing, memory = np.zeros(len(w), dtype=bool), np.zeros_like(w), np.zeros((len(w), MEMORY, w.shape[1]))
    trust = np.full(len(w), TRUST)
    return _Search(rows, w, no, no, trust, least.copy(), no, nothing, nothing, memory, memory.copy())


def _learn(search: _Search, f: Array, error: Array, slot: int) -> _Search:
    """A cycle from w to f: a row whose step led away forgets all, the others keep the differences in this slot."""
    good = ~(search.bold & (error > 1.1 * search.least))
    known, column = search.ready & good, good[:, None]
    g = f - search.w
    change = np.where(known[:, None], g - search.residual, 0.0)
    size = np.linalg.norm(change, axis=1)
    still = known & (size < 1e-9 * error)  # it goes on like that for long
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
    """From the last end, by the combination of the moves whose changes leave the least of the residual."""
    gram = search.changes @ search.changes.transpose(0, 2, 1) + 1e-12 * np.eye(MEMORY)
    weights = np.linalg.solve(gram, search.changes @ search.residual[:, :, None])
    step = -np.sum(weights * search.moves, axis=1)
    length, limit = np.linalg.norm(step, axis=1), search.trust * np.linalg.norm(search.residual, axis=1)
    w = search.last + step * (limit / np.maximum(length, limit))[:, None]
    return search._replace(w=w, bold=length > 0, cut=length > limit)
