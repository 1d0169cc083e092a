"""`judge`: evaluate methods on a suite, a fixed list of cells.

`drift`: problem × dimension × drift × noise, for development (`trimtab.lab.suites.drift`) or held out
(`trimtab.lab.suites.held_out`).
`late`: values that arrive some rounds late (`trimtab.lab.suites.late`).
`context`: an optimum that depends on a load which is measured (`trimtab.lab.suites.context`).
`limits`: measured numbers that must not exceed a maximum (`trimtab.lab.suites.limits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trimtab.lab.parallel.sweep import sweep
from trimtab.lab.sim.simulate import Progress
from trimtab.lab.step_search import build, needs_step
from trimtab.lab.suites import context, limits
from trimtab.lab.suites.drift import DRIFT, Cell
from trimtab.lab.suites.held_out import held_out as unseen
from trimtab.lab.suites.late import LATE
from trimtab.lab.suites.oracle import consult, knows
from trimtab.lab.suites.ratios import SuiteResult
from trimtab.lab.suites.scores import Outcome, SavedOutcome, in_hindsight, untuned
from trimtab.problems import make

ORACLE = "oracle"  # not a registered method, since it knows the problem
SUITES = {"drift": DRIFT, "late": LATE, "context": context.CONTEXT, "limits": limits.LIMITS}
LARGEST = {"reszo": 50, "hlf-szo": 100, "pbgd": 100}
"""Largest dimension in which a method is run unless requested by name; beyond, it would double the time of a suite."""
METHODS = {
    "drift": ("residual", "one-point", "two-point", "auto", *LARGEST, "still", ORACLE),
    "late": ("residual", "auto", "still"),
    "context": (context.TOLD, "belief", "auto", "still", context.FIXED),
    "limits": (limits.TOLD, "belief", limits.DUAL, "still"),
}
SPECIAL = {"context": (context.TOLD, context.FIXED), "limits": (limits.TOLD, limits.DUAL)}
"""Methods of a suite beside those without a step; `trimtab.lab.suites.context` and `limits` run them themselves."""
RUN = {context.LOADS: context.run, limits.WALLS: limits.run}


@dataclass(frozen=True)
class Task:
    """One method in one cell."""

    place: Cell
    method: str
    trials: int
    seed: int


def judge(
    suite: str = "drift",
    methods: Sequence[str] | None = None,
    *,
    held_out: bool = False,
    trials: int = 20,
    seed: int = 0,
    every: int = 1,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str | None = None,
    folder: str | Path | None = None,
    report: Progress | None = None,
) -> SuiteResult:
    """Run methods over a suite; for jobs, backend, cluster and folder see `sweep`; report receives the completed share.

    held_out: use the held-out cells. Do so once, when all tuning is finished.
    every: run every n-th cell only, for a quick check. Without `methods`, some methods skip cells of high dimension
    (`LARGEST`): their means are over fewer cells, listed by `SuiteResult.cells`.

    >>> standings = judge(methods=["auto", "still"], trials=2, every=40)
    >>> len(standings.places), standings.methods
    (2, ['auto', 'still'])
    """
    if suite not in SUITES:
        raise ValueError(f"there is no suite {suite!r}: choose from {', '.join(SUITES)}")
    if held_out and suite != "drift":
        raise ValueError(f"suite {suite!r} has no cells that are held out: only drift has")
    if methods is not None and (isinstance(methods, str) or not methods):
        raise ValueError(f"methods={methods!r} is not a list of names: give for example ['residual', 'auto']")
    largest = LARGEST if methods is None else {}
    methods = METHODS[suite] if methods is None else methods
    for name in methods:
        special = SPECIAL.get(suite, (ORACLE,))
        if name not in special and needs_step(name) and suite in SPECIAL:  # raises for unknown names before the work
            raise ValueError(f"suite {suite!r} is for methods without a step, and {name} has one: leave it out")
    places = (unseen() if held_out else SUITES[suite])[::every]
    tasks = [Task(place, name, trials, seed) for place in places for name in methods if _fits(place, name, largest)]
    weights = [_weight(task) for task in tasks]
    order = sorted(range(len(tasks)), key=lambda n: -weights[n])  # longest tasks first
    done_of = [0.0] * len(tasks)

    def tell(n: int, share: float) -> None:
        done_of[n] = share * weights[order[n]]
        if report:
            report(sum(done_of) / sum(weights))

    some = [tasks[n] for n in order]
    done = sweep(
        compute, some, jobs=jobs, backend=backend, cluster=cluster, folder=folder, report=tell, load=SavedOutcome.load
    )
    kept = dict(zip(order, done, strict=True))
    found: dict[int, dict[str, Outcome]] = {id(place): {} for place in places}
    for n, task in enumerate(tasks):
        if (result := kept[n]) is not None:
            found[id(task.place)][task.method] = result.outcome
    complete = None not in kept.values()
    outcomes = tuple(found[id(place)] for place in places)
    return SuiteResult(suite, held_out, places, outcomes, complete)


def compute(task: Task, progress: Progress | None = None) -> SavedOutcome:
    """Run one method in one cell; a step is tuned in hindsight for each score."""
    place = task.place
    if run := RUN.get(place.problem):
        return SavedOutcome(run(place, task.method, task.trials, task.seed))
    problem = make(place.problem, **place.parameters)
    if task.method == ORACLE:
        return SavedOutcome(consult(problem, rounds=place.rounds, trials=task.trials, seed=task.seed))

    late = {"lag": place.lag or 1, "permuted": place.permuted}
    some: dict[str, Any] = {"rounds": place.rounds, "trials": task.trials, "seed": task.seed, **late}
    of = partial(build, task.method, problem.radius)
    return SavedOutcome((in_hindsight if needs_step(task.method) else untuned)(problem, of, **some))


def _fits(place: Cell, name: str, largest: Mapping[str, int]) -> bool:
    """Whether the method is applicable to a cell and not too slow."""
    if place.problem in RUN:
        return True
    problem = make(place.problem, **place.parameters)
    if name == ORACLE:
        return place.lag is None and knows(problem)
    return problem.dim <= largest.get(name, problem.dim)


def _weight(task: Task) -> float:
    """A rough estimate of the running time."""
    if task.place.problem in RUN:
        square = task.place.parameters["dim"] ** 2  # type: ignore[operator]
        dear = {context.TOLD: 10.0 + square, context.FIXED: 0.1, limits.TOLD: 10.0 + square, limits.DUAL: 20.0}
        return task.place.rounds * 100.0 * dear.get(task.method, 3.0)
    problem = make(task.place.problem, **task.place.parameters)
    if task.method == ORACLE:
        return task.place.rounds * (100.0 + problem.dim**2)
    rollouts = 50.0 if "allocation" in task.place.problem else 1.0
    return task.place.rounds * (100.0 + problem.dim * rollouts) * (3.0 if needs_step(task.method) else 1.0)
