"""Choose a step size on a log grid, on separate seeds: by fewest diverged trials, then the best median."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trimtab.lab.sim.provenance import Plain, plain
from trimtab.lab.sim.record import quantiles
from trimtab.lab.sim.simulate import Progress, part, simulate
from trimtab.problems import Problem, make
from trimtab.recipes import BaseMethod, methods

TUNING = 0x7E57_5EED  # added to the seed, to separate tuning trials from reported ones
GRID = tuple(np.geomspace(1e-8, 10.0, 19).tolist())  # half a decade apart
REFINEMENT = tuple((10.0 ** np.array([-0.375, -0.25, -0.125, 0.125, 0.25, 0.375])).tolist())


@dataclass(frozen=True)
class Tuned:
    """The chosen step, the method with it, and the results of the grid.

    >>> tuned: Tuned = tune("quadratic-v1", "still", rounds=20, trials=2)
    >>> tuned.step is None  # this method has none
    True
    """

    step: float | None
    method: BaseMethod
    table: tuple[dict[str, Plain], ...] = ()
    """One row per step: step, diverged, median."""
    at_edge: bool = False
    """Whether the best step is the smallest or largest of the grid; a wider grid may then find a better one."""


def needs_step(name: str) -> bool:
    """Whether the registered method has a step to tune."""
    if name not in methods:
        raise ValueError(f"there is no method {name!r}: choose from {', '.join(sorted(methods))}")
    return "step" in inspect.signature(methods[name]).parameters


def build(name: str, radius: float, step: float | None) -> BaseMethod:
    """Create a registered method; `step` is ignored if it has none."""
    return methods[name](radius=radius, step=step) if needs_step(name) else methods[name](radius=radius)


def tune(
    problem: Problem | str,
    method: str | Callable[[float], BaseMethod],
    *,
    radius: float | None = None,
    steps: tuple[float, ...] = GRID,
    refine: bool = True,
    rounds: int | None = None,
    trials: int = 20,
    seed: int = 0,
    noise: str = "independent",
    hindsight: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Find the best step on a log grid, then on a finer one around it, in trials separate from the reported ones.

    method: a registered name, or a function step → BaseMethod.
    hindsight: choose by the median on the reported trials themselves, which no user could do.

    >>> tuned = tune("quadratic-v1", "residual", rounds=100, trials=5)
    >>> 1e-4 < tuned.step < 1.0
    True
    """
    problem = make(problem) if isinstance(problem, str) else problem
    if isinstance(method, str):
        name, size = method, problem.radius if radius is None else radius
        if not needs_step(name):
            return Tuned(None, build(name, size, None))
        of: Callable[[float], BaseMethod] = lambda step: build(name, size, step)  # noqa: E731
    else:
        of = method
    rows: dict[float, tuple[int, float]] = {}

    def attempt(some: tuple[float, ...], start: float, share: float) -> None:
        records = simulate(
            problem,
            {repr(step): of(step) for step in some},
            rounds=rounds,
            trials=trials,
            seed=seed if hindsight else (seed + TUNING) % 2**64,
            noise=noise,
            progress=part(progress, start, start + share),
        )
        for step in some:
            record = records[repr(step)]
            rows[step] = int(record.diverged.sum()), float(quantiles(record.score(), (0.5,))[0])

    weight = len(steps) / (len(steps) + len(REFINEMENT)) if refine else 1.0
    attempt(steps, 0.0, weight)

    def rank(step: float) -> tuple[int, float]:
        return (0, rows[step][1]) if hindsight else rows[step]

    best = min(rows, key=rank)
    at_edge = len(steps) > 1 and best in (min(steps), max(steps))
    if refine:
        attempt(tuple(best * factor for factor in REFINEMENT), weight, 1 - weight)
        best = min(rows, key=rank)
    table: tuple[dict[str, Plain], ...] = tuple(
        {"step": s, "diverged": rows[s][0], "median": plain(rows[s][1])} for s in sorted(rows)
    )
    return Tuned(best, of(best), table, at_edge)
