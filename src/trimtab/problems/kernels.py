"""Numba kernels of the simulated systems: values, gradients and rollouts of many lanes at once.

A lane is one point of one trial; lanes run in parallel and share nothing that is written, so the numbers do not depend
on the number of threads or on what else is computed beside them. Whatever overflows comes out as inf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

try:
    from numba import get_num_threads, njit, prange, set_num_threads
except ImportError as error:
    raise ImportError('the simulated problems need Numba: pip install "trimtab[lab]"', name="numba") from error

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _kernel(function: _Kernel) -> _Kernel:
    """Compiled, parallel over lanes, with IEEE arithmetic."""
    compiled: Any = njit(parallel=True, cache=True, fastmath=False, error_model="numpy")(function)
    return cast(_Kernel, compiled)


def _inner(function: _Kernel) -> _Kernel:
    """Compiled for use inside a kernel."""
    compiled: Any = njit(cache=True, fastmath=False, error_model="numpy")(function)
    return cast(_Kernel, compiled)


def writable(x: Array) -> Array:
    """x as the kernels want it, copied if need be: Numba compiles anew for another layout, or for a read-only array."""
    return np.require(x, dtype=np.float64, requirements=["C", "W"])


@contextmanager
def threads(wanted: int) -> Iterator[None]:
    """Run kernels on so many threads, at least one and at most those that Numba may use.

    Ask for one per millisecond of work or so: to wait for another thread takes microseconds on an idle machine, but
    many milliseconds on a busy one.
    """
    allowed = get_num_threads()
    set_num_threads(max(1, min(allowed, wanted)))
    try:
        yield
    finally:
        set_num_threads(allowed)


# Matrices of a few rows: plain loops beat a call of BLAS.


@_inner
def _multiply(a: Array, b: Array, out: Array) -> None:
    """out = a b."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(b.shape[0]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@_inner
def _multiply_left(a: Array, b: Array, out: Array) -> None:
    """out = aᵀ b."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(b.shape[0]):
                total += a[k, i] * b[k, j]
            out[i, j] = total


@_inner
def _copy(a: Array, out: Array) -> None:
    """out = a; the slice assignment takes Numba three seconds to compile."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = a[i, j]


@_inner
def _add(out: Array, a: Array, scale: float) -> None:
    """out += scale·a."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += scale * a[i, j]


@_inner
def _product_trace(a: Array, b: Array) -> float:
    """tr(aᵀ b): the sum over all entries."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@_inner
def _congruence(x: Array, f: Array, scale: float, work: Array, out: Array) -> None:
    """out += scale·fᵀ x f for a symmetric x; the result is exactly symmetric."""
    _multiply(x, f, work)
    for i in range(out.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(f.shape[0]):
                total += f[k, i] * work[k, j]
            out[i, j] += scale * total
            out[j, i] = out[i, j]


@_inner
def _closed_loop(a: Array, b: Array, gain: Array, q: Array, r: Array, loop: Array, stage: Array, work: Array) -> None:
    """loop = A + BK and stage = Q + KᵀRK; work is as large as K."""
    _multiply(b, gain, loop)
    _add(loop, a, 1.0)
    _copy(q, stage)
    _congruence(r, gain, 1.0, work, stage)


@_inner
def _value(
    a: Array, b: Array, gain: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int
) -> float:
    inputs, states = gain.shape
    loop, stage = np.empty((states, states)), np.empty((states, states))
    _closed_loop(a, b, gain, q, r, loop, stage, np.empty((inputs, states)))
    value, work, spare = stage.copy(), np.empty((states, states)), np.empty((states, states))
    constant = 0.0
    if variance > 0.0:
        for _ in range(1, horizon):
            for i in range(states):
                constant += variance * value[i, i]
            constant *= gamma
            _copy(stage, spare)
            _congruence(value, loop, gamma, work, spare)
            value, spare = spare, value
    else:
        power, scale = loop.copy(), gamma  # M^n and γⁿ of the n steps that `value` covers
        bit = 0
        while horizon >> (bit + 1) > 0:
            bit += 1
        while bit > 0:
            bit -= 1
            _congruence(value, power, scale, work, value)
            _multiply(power, power, work)
            power, work = work, power
            scale *= scale
            if (horizon >> bit) & 1:
                _copy(stage, spare)
                _congruence(value, loop, gamma, work, spare)
                value, spare = spare, value
                _multiply(power, loop, work)
                power, work = work, power
                scale *= gamma
    total = _product_trace(value, moment) + constant
    return total if np.isfinite(total) else np.inf


@_kernel
def lqr_values(
    a: Array, b: Array, gains: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int
) -> Array:
    """V(K) = E Σ_{k<H} γᵏ x_kᵀ S x_k = tr(P_H Σ_0) + c_H, with S = Q + KᵀRK, of gains `(trials, k, n_u, n_x)`.

    P_1 = S, P_{h+1} = S + γMᵀP_hM, c_1 = 0, c_{h+1} = γ(σ² tr P_h + c_h), M = A + BK. Without noise H steps take about
    log₂H doublings, P_{2h} = P_h + γʰ(Mʰ)ᵀP_hMʰ: the same number, sooner.
    """
    trials, points = gains.shape[:2]
    values = np.empty((trials, points))
    for lane in prange(trials * points):
        i, j = lane // points, lane % points
        values[i, j] = _value(a[i], b[i], gains[i, j], q, r, moment, gamma, variance, horizon)
    return values


@_inner
def _gradient(
    a: Array,
    b: Array,
    gain: Array,
    q: Array,
    r: Array,
    moment: Array,
    gamma: float,
    variance: float,
    horizon: int,
    out: Array,
) -> None:
    inputs, states = gain.shape
    half, work, small = np.empty((states, states)), np.empty((states, states)), np.empty((inputs, states))
    loop, stage = np.empty((states, states)), np.empty((states, states))
    _closed_loop(a, b, gain, q, r, loop, stage, small)
    turned = loop.T.copy()
    values = np.zeros((horizon, states, states))
    for step in range(1, horizon):
        _copy(stage, values[step])
        _congruence(values[step - 1], loop, gamma, work, values[step])
    left = np.empty((inputs, states))
    out[:] = 0.0
    sigma, following, discount = moment.copy(), np.empty((states, states)), 1.0
    for step in range(horizon):
        _multiply(values[horizon - 1 - step], loop, half)
        _multiply_left(b, half, small)
        _multiply(r, gain, left)
        _add(left, small, gamma)
        _multiply(left, sigma, small)
        _add(out, small, 2.0)
        discount *= gamma
        following[:] = 0.0
        for i in range(states):
            following[i, i] = discount * variance
        _congruence(sigma, turned, gamma, work, following)
        sigma, following = following, sigma
    for i in range(inputs):
        for j in range(states):
            if not np.isfinite(out[i, j]):
                out[i, j] = np.nan


@_kernel
def lqr_gradients(
    a: Array, b: Array, gains: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int
) -> Array:
    """∇V(K) = 2 Σ_{k<H} (RK + γBᵀP_{H−1−k}M) γᵏΣ_k, P_0 = 0 and Σ_{k+1} = MΣ_kMᵀ + σ²I; NaN where it overflows."""
    trials, points = gains.shape[:2]
    gradients = np.empty(gains.shape)
    for lane in prange(trials * points):
        i, j = lane // points, lane % points
        _gradient(a[i], b[i], gains[i, j], q, r, moment, gamma, variance, horizon, gradients[i, j])
    return gradients


@_inner
def _rollout(a: Array, b: Array, gain: Array, q: Array, r: Array, start: Array, noise: Array, gamma: float) -> float:
    inputs, states = gain.shape
    loop, stage = np.empty((states, states)), np.empty((states, states))
    _closed_loop(a, b, gain, q, r, loop, stage, np.empty((inputs, states)))
    state, following = start.copy(), np.empty(states)
    total, discount = 0.0, 1.0
    for step in range(noise.shape[0]):
        cost = 0.0
        for i in range(states):
            row, moved = 0.0, 0.0
            for j in range(states):
                row += stage[i, j] * state[j]
                moved += loop[i, j] * state[j]
            cost += state[i] * row
            following[i] = moved + noise[step, i]
        total += discount * cost
        discount *= gamma
        state, following = following, state
    return total if np.isfinite(total) else np.inf


@_kernel
def lqr_rollouts(
    a: Array, b: Array, gains: Array, q: Array, r: Array, starts: Array, noise: Array, gamma: float
) -> Array:
    """Σ_{k<H} γᵏ (xᵀQx + uᵀRu) with x_{k+1} = Ax + Bu + w_k, u = Kx; x_0 is `(trials, n_x)`, w `(trials, H, n_x)`."""
    trials, points = gains.shape[:2]
    costs = np.empty((trials, points))
    for lane in prange(trials * points):
        i, j = lane // points, lane % points
        costs[i, j] = _rollout(a[i], b[i], gains[i, j], q, r, starts[i], noise[i], gamma)
    return costs


@_inner
def _solve(matrix: Array, right: Array) -> None:
    """Replace right by matrix⁻¹·right, and matrix by its Cholesky factor; NaN where it is not positive definite."""
    size = matrix.shape[0]
    for j in range(size):
        for k in range(j):
            for i in range(j, size):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
        pivot = np.sqrt(matrix[j, j])
        for i in range(j, size):
            matrix[i, j] /= pivot
    for column in range(right.shape[1]):
        for i in range(size):
            for k in range(i):
                right[i, column] -= matrix[i, k] * right[k, column]
            right[i, column] /= matrix[i, i]
        for i in range(size - 1, -1, -1):
            for k in range(i + 1, size):
                right[i, column] -= matrix[k, i] * right[k, column]
            right[i, column] /= matrix[i, i]


@_inner
def _eliminate(matrix: Array, right: Array) -> None:
    """Replace right by matrix⁻¹·right, by elimination with pivots; matrix is used up."""
    size, columns = right.shape
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(k, size):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            for j in range(columns):
                right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            for j in range(k + 1, size):
                matrix[i, j] -= factor * matrix[k, j]
            for j in range(columns):
                right[i, j] -= factor * right[k, j]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            for j in range(columns):
                right[k, j] -= matrix[k, i] * right[i, j]
        for j in range(columns):
            right[k, j] /= matrix[k, k]


@_inner
def _doubled_riccati(
    a: Array, b: Array, q: Array, r: Array, moment: Array, gamma: float, horizon: int, gain: Array
) -> float:
    """Without noise: the same by doubling, P_1, P_2, P_4, … (Chu, Fan & Lin 2005), bounded by the last one within H."""
    n, inputs = b.shape
    weight, small = np.empty((inputs, inputs)), np.empty((inputs, n))
    f, g, value = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    both, matrix, work = np.empty((n, 2 * n)), np.empty((n, n)), np.empty((n, n))
    left, right = np.empty((n, n)), np.empty((n, n))
    _copy(r, weight)
    for i in range(n):
        for j in range(inputs):
            small[j, i] = gamma * b[i, j]
    _solve(weight, small)
    _multiply(b, small, g)  # G_0 = γBR⁻¹Bᵀ
    _copy(q, value)
    for i in range(n):
        for j in range(n):
            f[i, j] = np.sqrt(gamma) * a[i, j]
    steps, bound, change, size = 1, _product_trace(value, moment), 0.0, 0.0
    for _ in range(60):
        _multiply(g, value, matrix)
        for i in range(n):
            matrix[i, i] += 1.0
            for j in range(n):
                both[i, j], both[i, n + j] = f[i, j], g[i, j]
        _eliminate(matrix, both)  # (I + GP)⁻¹F and (I + GP)⁻¹G
        for i in range(n):
            for j in range(n):
                left[i, j], right[i, j] = both[i, j], both[i, n + j]
        _multiply(value, f, work)
        _multiply_left(left, work, matrix)
        change, size = 0.0, 0.0
        for i in range(n):
            for j in range(n):
                value[i, j] += 0.5 * (matrix[i, j] + matrix[j, i])
                change = max(change, abs(matrix[i, j]))
                size = max(size, abs(value[i, j]))
        _multiply(f, right, work)
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    g[i, j] += work[i, k] * f[j, k]
        _multiply(f, left, work)
        _copy(work, f)
        steps *= 2
        if steps <= horizon:
            bound = _product_trace(value, moment)
        if change <= 1e-15 * size or not np.isfinite(size):
            break
    if not change <= 1e-15 * size:
        value[0, 0] = np.nan  # and so every entry of the gain
    across = np.empty((n, inputs))
    _copy(r, weight)
    _congruence(value, b, gamma, across, weight)
    _multiply_left(across, a, gain)
    for i in range(inputs):
        for j in range(n):
            gain[i, j] *= -gamma
    _solve(weight, gain)
    return bound


@_inner
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
            _closed_loop(a, b, gain, q, r, loop, following, small)
            _congruence(value, loop, gamma, work, following)
            change, size = 0.0, 0.0
            for i in range(states):
                for j in range(states):
                    change = max(change, abs(following[i, j] - value[i, j]))
                    size = max(size, abs(following[i, j]))
            value, following = following, value
            converged = change <= 1e-12 * size
            _copy(r, weight)
            _congruence(value, b, gamma, across, weight)
            _multiply_left(across, a, gain)
            for i in range(inputs):
                for j in range(states):
                    gain[i, j] *= -gamma
            _solve(weight, gain)
            if step <= horizon:
                quadratic = _product_trace(value, moment)
            if step == 10_000 or not np.isfinite(size):
                gain[:] = np.nan
                break
    return quadratic + constant


@_kernel
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


# Allocation. Σ_p θ_p ‖o − c_p‖² = α(m² + d²) + βm + δd + κ: the score of an action needs four numbers, not nine.
# The edges of agent i are `first[i]` … `first[i + 1] − 1`, and edge e leads to agent `head[e]`.


@_kernel
def per_edge(x: Array, matrix: Array) -> Array:
    """x_e·matrix of every edge e, `(trials, k, edges, n)` → `(trials, k, edges, m)`: θ to (α, β, δ, κ), or back."""
    trials, points, edges, _ = x.shape
    products = np.empty((trials, points, edges, matrix.shape[1]))
    for lane in prange(trials * points):
        i, j = lane // points, lane % points
        _multiply(x[i, j], matrix, products[i, j])
    return products


@_inner
def _allocate(
    scores: Array, demand: Array, first: Integers, head: Integers, now: Array, following: Array, shares: Array
) -> None:
    """m_i(k+1) = m_i(k) − Σ_j a_ij m_i(k) + Σ_j a_ji m_j(k) − d_i(k); an agent sends out all, some of it to itself."""
    agents = now.shape[0]
    for agent in range(agents):
        following[agent] = -demand[agent]
    for agent in range(agents):
        m, d = now[agent], demand[agent]
        square = m * m + d * d
        low, high = first[agent], first[agent + 1]
        top = -np.inf
        for edge in range(low, high):
            z = scores[edge, 0] * square + scores[edge, 1] * m + scores[edge, 2] * d + scores[edge, 3]
            shares[edge] = z
            if z > top:
                top = z
        total = 0.0
        for edge in range(low, high):
            weight = np.exp(shares[edge] - top)
            shares[edge] = weight
            total += weight
        part = 1.0 / total
        for edge in range(low, high):
            share = part * shares[edge]
            shares[edge] = share
            following[head[edge]] += share * m


@_inner
def _shortage(stocks: Array, zeta: Array) -> float:
    """Σ_i ζ_i min(m_i, 0)²."""
    total = 0.0
    for agent in range(stocks.shape[0]):
        if not stocks[agent] >= 0.0:  # NaN counts too
            total += zeta[agent] * stocks[agent] * stocks[agent]
    return total


@_inner
def _allocation(
    scores: Array, demand: Array, zeta: Array, first: Integers, head: Integers, stock: float, gamma: float
) -> float:
    horizon, agents = demand.shape
    shares, now, following = np.empty(scores.shape[0]), np.full(agents, stock), np.empty(agents)
    total, discount = _shortage(now, zeta), 1.0
    for step in range(horizon):
        _allocate(scores, demand[step], first, head, now, following, shares)
        now, following = following, now
        discount *= gamma
        total += discount * _shortage(now, zeta)
    return total if np.isfinite(total) else np.inf


@_kernel
def allocation_rollouts(
    scores: Array, demand: Array, zeta: Array, first: Integers, head: Integers, stock: float, gamma: float
) -> Array:
    """Σ_i ζ_i Σ_{k≤H} γᵏ min(m_i(k), 0)² under each demand `(trials, draws, H, agents)`: `(trials, k, draws)`."""
    trials, points = scores.shape[:2]
    draws = demand.shape[1]
    costs = np.empty((trials, points, draws))
    for item in prange(trials * points * draws):
        i, j, k = item // draws // points, item // draws % points, item % draws
        costs[i, j, k] = _allocation(scores[i, j], demand[i, k], zeta[i], first, head, stock, gamma)
    return costs


@_inner
def _allocation_adjoint(
    scores: Array, demand: Array, zeta: Array, first: Integers, head: Integers, stock: float, gamma: float, out: Array
) -> float:
    horizon, agents = demand.shape
    stocks, shares = np.empty((horizon + 1, agents)), np.empty((horizon, scores.shape[0]))
    stocks[0] = stock
    total, discount = _shortage(stocks[0], zeta), 1.0
    for step in range(horizon):
        _allocate(scores, demand[step], first, head, stocks[step], stocks[step + 1], shares[step])
        discount *= gamma
        total += discount * _shortage(stocks[step + 1], zeta)
    out[:] = 0.0
    later, slope = np.empty(agents), np.empty(agents)
    for agent in range(agents):
        later[agent] = 2.0 * discount * zeta[agent] * min(stocks[horizon, agent], 0.0)
    for step in range(horizon - 1, -1, -1):
        discount /= gamma
        for agent in range(agents):
            m, d = stocks[step, agent], demand[step, agent]
            square = m * m + d * d
            mean = 0.0
            for edge in range(first[agent], first[agent + 1]):
                mean += shares[step, edge] * later[head[edge]]
            own = mean
            for edge in range(first[agent], first[agent + 1]):
                z = shares[step, edge] * m * (later[head[edge]] - mean)
                own += z * (2.0 * scores[edge, 0] * m + scores[edge, 1])
                out[edge, 0] += z * square
                out[edge, 1] += z * m
                out[edge, 2] += z * d
                out[edge, 3] += z
            slope[agent] = own + 2.0 * discount * zeta[agent] * min(m, 0.0)
        later, slope = slope, later
    return total if np.isfinite(total) else np.inf


@_kernel
def allocation_gradients(
    scores: Array, demand: Array, zeta: Array, first: Integers, head: Integers, stock: float, gamma: float
) -> tuple[Array, Array]:
    """The costs of `allocation_rollouts` and their gradients `(trials, k, draws, edges, 4)` with respect to the scores.

    The adjoint of the rollout: λ_i(k) = ∂J/∂m_i(k) runs backwards, with ∂J/∂a_ij(k) = m_i(k) λ_j(k+1) and
    ∂J/∂z_ij = a_ij (∂J/∂a_ij − Σ_l a_il ∂J/∂a_il).
    """
    trials, points, edges, _ = scores.shape
    draws = demand.shape[1]
    costs, gradients = np.empty((trials, points, draws)), np.empty((trials, points, draws, edges, 4))
    for item in prange(trials * points * draws):
        i, j, k = item // draws // points, item // draws % points, item % draws
        costs[i, j, k] = _allocation_adjoint(
            scores[i, j], demand[i, k], zeta[i], first, head, stock, gamma, gradients[i, j, k]
        )
    return costs, gradients
