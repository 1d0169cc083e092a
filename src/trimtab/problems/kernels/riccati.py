"""The Riccati equation: the best gain of the linear-quadratic problem, and a lower bound on every cost."""

from __future__ import annotations

import numpy as np

from trimtab.problems.kernels.compiling import kernel, part, prange
from trimtab.problems.kernels.matrices import congruence, copy, eliminate, multiply, multiply_left, product_trace, solve
from trimtab.types import Array


@part
def _best_gain(
    value: Array, a: Array, b: Array, r: Array, gamma: float, across: Array, weight: Array, gain: Array
) -> None:
    """gain = −(R + γBᵀPB)⁻¹ γBᵀPA; `across` and `weight` are work arrays."""
    copy(r, weight)
    congruence(value, b, gamma, across, weight)
    multiply_left(across, a, gain)
    for i in range(gain.shape[0]):
        for j in range(gain.shape[1]):
            gain[i, j] *= -gamma
    solve(weight, gain)


@part
def _riccati(
    a: Array, b: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int, gain: Array
) -> float:
    """Solve by doubling, P_1, P_2, P_4, … (Chu, Fan & Lin 2005); those up to H give the lower bound."""
    n, inputs = b.shape
    weight, small = np.empty((inputs, inputs)), np.empty((inputs, n))
    f, g, value = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    both, matrix, work = np.empty((n, 2 * n)), np.empty((n, n)), np.empty((n, n))
    left, right = np.empty((n, n)), np.empty((n, n))
    copy(r, weight)
    for i in range(n):
        for j in range(inputs):
            small[j, i] = gamma * b[i, j]
    solve(weight, small)
    multiply(b, small, g)  # G_0 = γBR⁻¹Bᵀ
    copy(q, value)
    for i in range(n):
        for j in range(n):
            f[i, j] = np.sqrt(gamma) * a[i, j]
    steps, bound, change, size = 1, product_trace(value, moment), 0.0, 0.0
    reached, constant = 1, 0.0  # c_h, with the P of the last doubling in between
    for _ in range(60):
        trace = 0.0
        for i in range(n):
            trace += value[i, i]
        while reached < min(2 * steps, horizon):
            constant = gamma * (variance * trace + constant)
            reached += 1
        multiply(g, value, matrix)
        for i in range(n):
            matrix[i, i] += 1.0
            for j in range(n):
                both[i, j], both[i, n + j] = f[i, j], g[i, j]
        eliminate(matrix, both)  # (I + GP)⁻¹F and (I + GP)⁻¹G
        for i in range(n):
            for j in range(n):
                left[i, j], right[i, j] = both[i, j], both[i, n + j]
        multiply(value, f, work)
        multiply_left(left, work, matrix)
        change, size = 0.0, 0.0
        for i in range(n):
            for j in range(n):
                value[i, j] += 0.5 * (matrix[i, j] + matrix[j, i])
                change = max(change, abs(matrix[i, j]))
                size = max(size, abs(value[i, j]))
        multiply(f, right, work)
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    g[i, j] += work[i, k] * f[j, k]
        multiply(f, left, work)
        copy(work, f)
        steps *= 2
        if steps <= horizon:
            bound = product_trace(value, moment)
        if change <= 1e-15 * size or not np.isfinite(size):
            break
    while reached < horizon:
        constant = gamma * (variance * trace + constant)
        reached += 1
    if not change <= 1e-15 * size:
        value[0, 0] = np.nan  # makes every entry of the gain NaN
    _best_gain(value, a, b, r, gamma, np.empty((n, inputs)), weight, gain)
    return bound + constant


@kernel
def riccati(
    a: Array, b: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int
) -> tuple[Array, Array]:
    """The gain of the discounted Riccati equation `(trials, n_u, n_x)`, and a lower bound on every H-step cost.

    P_0 = 0, K_h = −(R + γBᵀP_hB)⁻¹ γBᵀP_hA, P_{h+1} = Q + K_hᵀRK_h + γ(A + BK_h)ᵀP_h(A + BK_h) converges from below to
    the solution of the Riccati equation with √γ-scaled (A, B). P_H is the cost of the best policy of any kind for H
    steps, so tr(P_H Σ_0) + c_H with c_{h+1} = γ(σ² tr P_h + c_h) is a lower bound for all policies; it stays valid with
    the smaller P of an iteration that stops early. Gains that do not converge are NaN.
    """
    trials, states, inputs = b.shape
    gains, bounds = np.empty((trials, inputs, states)), np.empty(trials)
    for trial in prange(trials):
        bounds[trial] = _riccati(a[trial], b[trial], q, r, moment, gamma, variance, horizon, gains[trial])
    return gains, bounds
