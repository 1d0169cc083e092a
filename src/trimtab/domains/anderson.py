"""Anderson's method (1965) for fixed points of slow iterations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

MEMORY = 10  # cycles to look back on
PERIOD = 50  # plain cycles after as many with the method
TRUST = 30.0  # residuals that a step may be long, at first


def fixed_point(cycle: Callable[[Array, Rows], Array], w: Array, tolerance: float, cycles: int) -> tuple[Array, Array]:
    """The last cycle(w), row by row, once it differs from w by at most the tolerance, or after so many cycles.

    Also by how much it differed. `cycle` is told which rows it gets.

    w ← f_k − Σ_i γ_i (f_i − f_{i−1}), where f = cycle(w) and γ makes the same combination of the residuals f − w least.
    A step that has led away is taken back to f_k. As in a trust region, none is longer than so many residuals: fewer
    after one that was taken back, more after one that was cut and did well.

    >>> fixed_point(lambda w, rows: 1.0 + 0.9 * w, np.zeros((1, 1)), 1e-9, 5)[0].round(6)
    array([[10.]])
    """
    found, errors, rows = w.copy(), np.full(len(w), math.inf), np.arange(len(w))
    last, residual = np.zeros((2, *w.shape))
    moves, changes = np.zeros((2, len(w), MEMORY, w.shape[1]))  # of f and of the residual
    least, trust = np.full(len(w), math.inf), np.full(len(w), TRUST)
    ready, bold, cut = np.zeros((3, len(w)), dtype=bool)
    for k in range(cycles):
        f = cycle(w, rows)
        g = f - w
        error = np.linalg.norm(g, axis=1)
        found[rows], errors[rows] = f, error
        far = error > tolerance
        if not far.any():
            break
        if not far.all():
            rows, f, g, error, last, residual = (v[far] for v in (rows, f, g, error, last, residual))
            moves, changes, least, trust = moves[far], changes[far], least[far], trust[far]
            ready, bold, cut = ready[far], bold[far], cut[far]
        if k // PERIOD % 2:  # where the method does not get on, the plain iteration does
            w, least = f, error
            moves[:], changes[:], trust[:], ready[:], bold[:], cut[:] = 0.0, 0.0, TRUST, False, False, False
            continue
        good = ~(bold & (error > 1.1 * least))
        known = ready & good
        change = np.where(known[:, None], g - residual, 0.0)
        size = np.linalg.norm(change, axis=1)
        still = known & (size < 1e-9 * error)  # it goes on like that for long
        change[still], size[still] = -1e-9 * g[still], 1e-9 * error[still]
        size[size == 0] = math.inf
        moves[:, k % MEMORY], changes[:, k % MEMORY] = (f - last) / size[:, None], change / size[:, None]
        moves[~good] = changes[~good] = 0.0
        last, residual = np.where(good[:, None], f, last), np.where(good[:, None], g, residual)
        least, ready = np.minimum(least, error), good
        trust = np.where(good, np.where(cut, 4.0 * trust, trust), np.maximum(0.25 * trust, 1.0))
        gram = changes @ changes.transpose(0, 2, 1) + 1e-12 * np.eye(MEMORY)
        step = -np.sum(np.linalg.solve(gram, changes @ residual[:, :, None]) * moves, axis=1)
        length, limit = np.linalg.norm(step, axis=1), trust * np.linalg.norm(residual, axis=1)
        bold, cut = length > 0, length > limit
        w = last + step * (limit / np.maximum(length, limit))[:, None]
    return found, errors
