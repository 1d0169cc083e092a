"""Episodes of the allocation problem: costs of policies under given demands, and their adjoint.

Since Σ_p θ_p ‖o − c_p‖² = α(m² + d²) + βm + δd + κ, the score of an action needs four numbers, not nine.
The edges of agent i are `first[i]` … `first[i + 1] − 1`, and edge e leads to agent `head[e]`.
"""

from __future__ import annotations

import numpy as np

from trimtab.problems.kernels.compiling import inner, kernel, part, prange
from trimtab.problems.kernels.matrices import fill, multiply
from trimtab.types import Array, Integers


@kernel
def per_edge(x: Array, matrix: Array) -> Array:
    """x_e·matrix for every edge e, `(trials, k, edges, n)` → `(trials, k, edges, m)`: θ to (α, β, δ, κ), or back."""
    trials, points, edges, _ = x.shape
    products = np.empty((trials, points, edges, matrix.shape[1]))
    for lane in prange(trials * points):
        i, j = lane // points, lane % points
        multiply(x[i, j], matrix, products[i, j])
    return products


@inner
def _allocate(
    scores: Array, demand: Array, first: Integers, head: Integers, now: Array, following: Array, shares: Array
) -> None:
    """m_i(k+1) = m_i(k) − Σ_j a_ij m_i(k) + Σ_j a_ji m_j(k) − d_i(k), where Σ_j a_ij = 1."""
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


@inner
def _shortage(stocks: Array, zeta: Array) -> float:
    """Σ_i ζ_i min(m_i, 0)²."""
    total = 0.0
    for agent in range(stocks.shape[0]):
        if not stocks[agent] >= 0.0:  # NaN counts too
            total += zeta[agent] * stocks[agent] * stocks[agent]
    return total


@part
def _allocation(
    scores: Array, demand: Array, zeta: Array, first: Integers, head: Integers, stock: float, gamma: float
) -> float:
    horizon, agents = demand.shape
    shares, now, following = np.empty(scores.shape[0]), np.empty(agents), np.empty(agents)
    for agent in range(agents):
        now[agent] = stock
    total, discount = _shortage(now, zeta), 1.0
    for step in range(horizon):
        _allocate(scores, demand[step], first, head, now, following, shares)
        now, following = following, now
        discount *= gamma
        total += discount * _shortage(now, zeta)
    return total if np.isfinite(total) else np.inf


@kernel
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


@part
def _allocation_adjoint(
    scores: Array, demand: Array, zeta: Array, first: Integers, head: Integers, stock: float, gamma: float, out: Array
) -> float:
    horizon, agents = demand.shape
    stocks, shares = np.empty((horizon + 1, agents)), np.empty((horizon, scores.shape[0]))
    for agent in range(agents):
        stocks[0, agent] = stock
    total, discount = _shortage(stocks[0], zeta), 1.0
    for step in range(horizon):
        _allocate(scores, demand[step], first, head, stocks[step], stocks[step + 1], shares[step])
        discount *= gamma
        total += discount * _shortage(stocks[step + 1], zeta)
    fill(out, 0.0)
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


@kernel
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
