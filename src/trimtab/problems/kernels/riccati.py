"""The best gain of the linear-quadratic problem, and a lower bound of every cost: the Riccati equation."""

from __future__ import annotations

import numpy as np

from trimtab.problems.kernels.compiling import inner, kernel, prange
from trimtab.problems.kernels.lqr import closed_loop
from trimtab.problems.kernels.matrices import congruence, copy, eliminate, multiply, multiply_left, product_trace, solve
from trimtab.types import Array


@inner
def _best_gain(
    value: Array, a: Array, b: Array, r: Array, gamma: float, across: Array, weight: Array, gain: Array
) -> None:
    """gain = −(R + γBᵀPB)⁻¹ γBᵀPA; `across` and `weight` are for work."""
    copy(r, weight)
    congruence(value, b, gamma, across, weight)
    multiply_left(across, a, gain)
    for i in range(gain.shape[0]):
        for j in range(gain.shape[1]):
            gain[i, j] *= -gamma
    solve(weight, gain)


@inner
def _doubled_riccati(
    a: Array, b: Array, q: Array, r: Array, moment: Array, gamma: float, horizon: int, gain: Array
) -> float:
    """Without noise: the same by doubling, P_1, P_2, P_4, … (Chu, Fan & Lin 2005), bounded by the last one within H."""
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
    for _ in range(60):
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
    if not change <= 1e-15 * size:
        value[0, 0] = np.nan  # and so every entry of the gain
    _best_gain(value, a, b, r, gamma, np.empty((n, inputs)), weight, gain)
    return bound


@inner
def _riccati(
    a: Array, b: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int, gain: Array
) -> float:
    states, inputs = b.shape
    value, following, work = np.zeros((states, states)), np.empty((states, states)), np.empty((states, states))
    loop, small = np.empty((states, states)), np.empty((inputs, states))
    weight, across = np.empty((inputs, inputs)), np.empty((states, inputs))
    gain[:] = 0.0
    quadratic, constant, converged, step = 0.0, 0.0, False, 0
    while step < horizon or not converged:
        if step < horizon:
            for i in range(states):
                constant += variance * value[i, i]
            constant *= gamma
        step += 1
        if not converged:
            closed_loop(a, b, gain, q, r, loop, following, small)
            congruence(value, loop, gamma, work, following)
            change, size = 0.0, 0.0
            for i in range(states):
                for j in range(states):
                    change = max(change, abs(following[i, j] - value[i, j]))
                    size = max(size, abs(following[i, j]))
            value, following = following, value
            converged = change <= 1e-12 * size
            _best_gain(value, a, b, r, gamma, across, weight, gain)
            if step <= horizon:
                quadratic = product_trace(value, moment)
            if step == 10_000 or not np.isfinite(size):
                gain[:] = np.nan
                break
    return quadratic + constant


@kernel
def riccati(
    a: Array, b: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int
) -> tuple[Array, Array]:
    """The gain of the discounted Riccati equation `(trials, n_u, n_x)`, and a lower bound of every H-step cost.

    P_0 = 0, K_h = −(R + γBᵀP_hB)⁻¹ γBᵀP_hA, P_{h+1} = Q + K_hᵀRK_h + γ(A + BK_h)ᵀP_h(A + BK_h) rises to the solution
    of the Riccati equation with √γ-scaled (A, B). On the way P_H is the cost of the best policy for H steps, be it
    linear, static or neither: tr(P_H Σ_0) + c_H with c_{h+1} = γ(σ² tr P_h + c_h) bounds all of them from below, and
    still does with the smaller P at which the iteration stops early. Gains that do not converge are NaN.
    """
    trials, states, inputs = b.shape
    gains, bounds = np.empty((trials, inputs, states)), np.empty(trials)
    for trial in prange(trials):
        if variance == 0:
            bounds[trial] = _doubled_riccati(a[trial], b[trial], q, r, moment, gamma, horizon, gains[trial])
        else:
            bounds[trial] = _riccati(a[trial], b[trial], q, r, moment, gamma, variance, horizon, gains[trial])
    return gains, bounds
