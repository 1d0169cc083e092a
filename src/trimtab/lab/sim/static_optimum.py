"""The best fixed point in hindsight, the reference of static regret."""

from __future__ import annotations

import numpy as np

from trimtab.problems import Problem, make
from trimtab.types import Array


def hindsight(problem: Problem | str, *, rounds: int, trials: int, seed: int = 0, first: int = 0) -> Array | None:
    """The best fixed point in hindsight, argmin_x Σ_t f_t(x), `(trials, d)`; None without gradients.

    Runs L-BFGS on the sum over all trials, which is separable, from the start and from the mean of the optimisers, and
    takes the better result in each trial. Bounds are those of the domain; the result is projected onto it.

    >>> hindsight("quadratic-v1", rounds=20, trials=3).shape
    (3, 10)
    """
    from scipy.optimize import minimize

    problem = make(problem) if isinstance(problem, str) else problem
    world = problem.world(seed, trials, first)
    x0 = problem.start(seed, trials, first)
    if world.gradient(0, x0[:, None]) is None:
        return None

    def total(flat: Array) -> tuple[float, Array]:
        x = flat.reshape(x0.shape)
        value, slope = 0.0, np.zeros_like(x0)
        for t in range(rounds):
            gradient = world.gradient(t, x[:, None])
            value += float(world.cost(t, x[:, None]).sum())
            slope += 0.0 if gradient is None else gradient[:, 0]
        return (value if np.isfinite(value) else 1e300), slope.ravel()

    def each(x: Array) -> Array:
        return np.asarray(np.sum([world.cost(t, x[:, None])[:, 0] for t in range(rounds)], axis=0))

    sides = (np.tile(side, len(x0)) for side in problem.domain.sides(x0.shape[-1]))
    limits = list(zip(*sides, strict=True))
    starts = [x0]
    optimisers = [best for t in range(0, rounds, max(1, rounds // 16)) if (best := world.optimiser(t)) is not None]
    if optimisers:
        starts.append(np.mean(optimisers, axis=0))
    points = []
    for start in starts:
        found = minimize(total, start.ravel(), jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 200}).x
        points += [start, problem.domain.project(found.reshape(x0.shape))]
    values = np.stack([each(p) for p in points])
    values[~np.isfinite(values)] = np.inf
    best_of = values.argmin(0)
    return np.stack([points[k][i] for i, k in enumerate(best_of)])
