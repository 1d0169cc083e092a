"""Objectives of the checks: drifting quadratics, and values in the shape that a tuner expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from trimtab.types import Array, Value

Objective = Callable[[Array], Value]
"""(d,) → a number, (queries, d) → an array."""


def objectives(dim: int) -> Iterator[Objective]:
    """A drifting quadratic, one objective per round."""
    t = 0
    while True:
        optimum = 0.3 * np.sin(np.arange(1, dim + 1) + 0.05 * t)
        yield quadratic(np.eye(dim), -optimum, 0.01 * t)
        t += 1


def quadratic(a: Array, b: Array, c: float = 0.0) -> Objective:
    """⟨b, x⟩ + ½xᵀAx + c."""

    def objective(x: Array) -> Value:
        values = np.asarray(x) @ b + 0.5 * ((x @ a) * x).sum(-1) + c
        return float(values) if values.ndim == 0 else values

    return objective


def alike(value: float, queries: int) -> Value:
    """The same value for all queries of a round."""
    return value if queries == 1 else np.full(queries, value)


def apart(value: float, queries: int) -> Value:
    """Different values from value to −value for the queries of a round."""
    return float(value) if queries == 1 else np.clip(value, -1e300, 1e300) * np.linspace(1.0, -1.0, queries)
