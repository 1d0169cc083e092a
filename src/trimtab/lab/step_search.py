"""Choose a step size on a log grid, on separate seeds: by fewest diverged trials, then the best median."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from trimtab.lab.sim.provenance import Plain, plain
from trimtab.lab.sim.record import Record, quantiles
from trimtab.lab.sim.simulate import Progress, part, simulate
from trimtab.problems import Problem, make
from trimtab.recipes import BaseMethod, methods

TUNING = 0x7E57_5EED  # added to the seed, to separate tuning trials from reported ones
GRID = tuple(np.geomspace(1e-8, 10.0, 19).tolist())  # half a decade apart
REFINEMENT = tuple((10.0 ** np.array([-0.375, -0.25, -0.125, 0.125, 0.25, 0.375])).tolist())

S = TypeVar("S")
Rank = tuple[int, float]
"""The number of diverged trials and the median score; the smallest rank is the best."""


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


def apart(seed: int) -> int:
    """The seed of tuning trials."""
    return (seed + TUNING) % 2**64


def attempt(
    problem: Problem | str, of: Callable[[S], BaseMethod], settings: Iterable[S], **options: Any
) -> dict[S, Record]:
    """Run a method with all settings side by side; for the options see `simulate`."""
    keys = {repr(setting): setting for setting in settings}
    found = simulate(problem, {key: of(setting) for key, setting in keys.items()}, **options)
    return {setting: found[key] for key, setting in keys.items()}


def ranks(records: Mapping[S, Record]) -> dict[S, Rank]:
    """The rank of each setting."""
    return {key: (int(r.diverged.sum()), float(quantiles(r.score(), (0.5,))[0])) for key, r in records.items()}


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
        size = problem.radius if radius is None else radius
        if not needs_step(method):
            return Tuned(None, build(method, size, None))
        method = partial(build, method, size)
    seed = seed if hindsight else apart(seed)
    some: dict[str, Any] = {"rounds": rounds, "trials": trials, "seed": seed, "noise": noise}
    weight = len(steps) / (len(steps) + len(REFINEMENT)) if refine else 1.0
    rows = ranks(attempt(problem, method, steps, progress=part(progress, 0.0, weight), **some))

    def rank(step: float) -> Rank:
        return (0, rows[step][1]) if hindsight else rows[step]

    best = min(rows, key=rank)
    at_edge = len(steps) > 1 and best in (min(steps), max(steps))
    if refine:
        finer = [best * factor for factor in REFINEMENT]
        rows |= ranks(attempt(problem, method, finer, progress=part(progress, weight, 1.0), **some))
        best = min(rows, key=rank)
    table: tuple[dict[str, Plain], ...] = tuple(
        {"step": s, "diverged": rows[s][0], "median": plain(rows[s][1])} for s in sorted(rows)
    )
    return Tuned(best, method(best), table, at_edge)
