"""Provenance of a record as JSON values; parts are described by their type and fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Protocol, TypeAlias, TypedDict, runtime_checkable

import numpy as np

from trimtab.problems import Problem
from trimtab.recipes import BaseMethod, Method
from trimtab.setup import Setup

Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"
Part = Mapping[str, Plain]
"""{"type": its class, field: value, …}."""


@runtime_checkable
class Lawful(Protocol):
    """A law of directions covered by the theory."""

    @property
    def law(self) -> str:
        """Its name in `trimtab.theory`."""
        ...


class Provenance(TypedDict, total=False):
    """Everything needed to reproduce a record."""

    problem: str
    parameters: Part
    dim: int
    method: str
    """The name it ran under."""
    parts: dict[str, Part]
    """The estimator, the step and the directions (those in use, if the method leaves them open)."""
    law: str | None
    """The law of the directions, if the theory covers it and the method is residual feedback; else None."""
    step: float | None
    """The step size, if it is constant."""
    radius: float
    max_move: float | None
    margin: str
    queries: int
    seed: int
    first: int
    noise: str
    threshold: float
    tuning: list[dict[str, Plain]]
    """The results of the step grid, if the step was tuned."""
    step_at_edge: bool


def describe_run(
    problem: Problem, name: str, method: BaseMethod, *, seed: int, first: int, noise: str, threshold: float
) -> Provenance:
    """Describe a run."""
    setup = Setup(method, (problem.dim,), problem.domain)
    law = setup.directions
    return {
        "problem": problem.id,
        "parameters": described(problem),
        "dim": problem.dim,
        "method": name,
        "parts": {
            **{name: described(part) for name, part in method.parts.items()},
            "directions": described(law),
        },
        "law": law.law if isinstance(law, Lawful) and _is_residual(setup) else None,
        "step": step_size(method),
        "radius": method.radius,
        "max_move": method.max_move,
        "margin": method.margin,
        "queries": method.queries,
        "seed": seed,
        "first": first,
        "noise": noise,
        "threshold": threshold,
    }


def _is_residual(setup: Setup) -> bool:
    """Whether the method is residual feedback: one query, an unbiased contrast with the previous value, no memory."""
    method = setup.method
    one = method.offsets == (1.0,) and method.lags == (0,) and method.told == 1
    if not (isinstance(method, Method) and one and method.anchored and method.unbiased):
        return False
    return not method.estimator.start(setup.frame, np.zeros(setup.dim))


def step_size(method: BaseMethod) -> float | None:
    """η, if the step is a constant number; else None.

    >>> from trimtab.recipes import auto, residual
    >>> step_size(residual(radius=0.1, step=0.02)), step_size(auto(radius=0.1))
    (0.02, None)
    """
    size = method.constant
    return size if isinstance(size, float) else None


def described(part: object) -> Part:
    """Describe a part by its type and fields.

    >>> from trimtab.directions import Paired
    >>> described(Paired())
    {'type': 'Paired', 'base': {'type': 'Rademacher'}}
    """
    if not is_dataclass(part):
        return {"type": type(part).__name__}
    return {
        "type": type(part).__name__,
        **{f.name: _plainly(getattr(part, f.name)) for f in fields(part) if f.init or f.repr},
    }


def _plainly(value: object) -> Plain:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.number):
        return plain(value)
    if isinstance(value, np.ndarray):
        return _plainly(value.tolist())
    if isinstance(value, list | tuple):
        return [_plainly(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plainly(item) for name, item in value.items()}
    if callable(value) and not is_dataclass(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return described(value)


def plain(value: float | np.number) -> float | str | None:
    """Convert a number for JSON: infinity to "inf", NaN to None."""
    value = float(value)
    return value if math.isfinite(value) else None if math.isnan(value) else "inf" if value > 0 else "-inf"
