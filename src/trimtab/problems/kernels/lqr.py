"""Costs of gains in the linear-quadratic problem: values, gradients and rollouts of many lanes at once."""

from __future__ import annotations

import numpy as np

from trimtab.problems.kernels.compiling import inner, kernel, part, prange
from trimtab.problems.kernels.matrices import (
    add,
    congruence,
    copy,
    fill,
    multiply,
    multiply_left,
    product_trace,
    transpose,
)
from trimtab.types import Array


@inner
def closed_loop(a: Array, b: Array, gain: Array, q: Array, r: Array, loop: Array, stage: Array, work: Array) -> None:
    """loop = A + BK and stage = Q + KᵀRK; `work` has the shape of K."""
    multiply(b, gain, loop)
    add(loop, a, 1.0)
    copy(q, stage)
    congruence(r, gain, 1.0, work, stage)


@part
def _value(
    a: Array, b: Array, gain: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int
) -> float:
    inputs, states = gain.shape
    loop, stage = np.empty((states, states)), np.empty((states, states))
    closed_loop(a, b, gain, q, r, loop, stage, np.empty((inputs, states)))
    value, power, noise = np.empty((states, states)), np.empty((states, states)), np.empty((states, states))
    work, spare, turned = np.empty((states, states)), np.empty((states, states)), np.empty((states, states))
    copy(stage, value)
    copy(loop, power)
    fill(noise, 0.0)
    for i in range(states):
        noise[i, i] = variance
    scale, constant = gamma, 0.0  # γⁿ and c_n for the n steps that `value` covers; `power` is Mⁿ, `noise` is N_n
    bit = 0
    while horizon >> (bit + 1) > 0:
        bit += 1
    while bit > 0:
        bit -= 1
        if variance > 0.0:
            constant += scale * (product_trace(value, noise) + constant)
            transpose(power, turned)
            congruence(noise, turned, 1.0, work, noise)
        congruence(value, power, scale, work, value)
        multiply(power, power, work)
        power, work = work, power
        scale *= scale
        if (horizon >> bit) & 1:
            if variance > 0.0:
                constant += scale * product_trace(stage, noise)
                for i in range(states):
                    for j in range(states):
                        for k in range(states):
                            noise[i, j] += variance * power[i, k] * power[j, k]
            copy(stage, spare)
            congruence(value, loop, gamma, work, spare)
            value, spare = spare, value
            multiply(power, loop, work)
            power, work = work, power
            scale *= gamma
    total = product_trace(value, moment) + constant
    return total if np.isfinite(total) else np.inf


@kernel
def lqr_values(
    a: Array, b: Array, gains: Array, q: Array, r: Array, moment: Array, gamma: float, variance: float, horizon: int
) -> Array:
    """V(K) = E Σ_{k<H} γᵏ x_kᵀ S x_k = tr(P_H Σ_0) + c_H, with S = Q + KᵀRK, of gains `(trials, k, n_u, n_x)`.

    P_1 = S, P_{h+1} = S + γMᵀP_hM, c_1 = 0, c_{h+1} = γ(σ² tr P_h + c_h), M = A + BK. H steps take
    about log₂H doublings, P_{2n} = P_n + γⁿ(Mⁿ)ᵀP_nMⁿ and c_{2n} = c_n + γⁿ(tr(P_nN_n) + c_n), where N_n = σ² Σ_{j<n}
    Mʲ(Mʲ)ᵀ is the contribution of the noise of n steps to the second moment.
    """
    trials, points = gains.shape[:2]
    values = np.empty((trials, points))
    for lane in prange(trials * points):
        i, j = lane // points, lane % points
        values[i, j] = _value(a[i], b[i], gains[i, j], q, r, moment, gamma, variance, horizon)
    return values


@part
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
    closed_loop(a, b, gain, q, r, loop, stage, small)
    turned, values = np.empty((states, states)), np.empty((horizon, states, states))
    transpose(loop, turned)
    fill(values[0], 0.0)
    for step in range(1, horizon):
        copy(stage, values[step])
        congruence(values[step - 1], loop, gamma, work, values[step])
    left = np.empty((inputs, states))
    fill(out, 0.0)
    sigma, following, discount = np.empty((states, states)), np.empty((states, states)), 1.0
    copy(moment, sigma)
    for step in range(horizon):
        multiply(values[horizon - 1 - step], loop, half)
        multiply_left(b, half, small)
        multiply(r, gain, left)
        add(left, small, gamma)
        multiply(left, sigma, small)
        add(out, small, 2.0)
        discount *= gamma
        fill(following, 0.0)
        for i in range(states):
            following[i, i] = discount * variance
        congruence(sigma, turned, gamma, work, following)
        sigma, following = following, sigma
    for i in range(inputs):
        for j in range(states):
            if not np.isfinite(out[i, j]):
                out[i, j] = np.nan


@kernel
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


@part
def _rollout(a: Array, b: Array, gain: Array, q: Array, r: Array, start: Array, noise: Array, gamma: float) -> float:
    inputs, states = gain.shape
    loop, stage = np.empty((states, states)), np.empty((states, states))
    closed_loop(a, b, gain, q, r, loop, stage, np.empty((inputs, states)))
    state, following = np.empty(states), np.empty(states)
    for i in range(states):
        state[i] = start[i]
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


@kernel
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
