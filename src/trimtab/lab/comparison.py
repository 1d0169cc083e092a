"""Compare methods on one problem, each with its own best step, all in the same trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trimtab.lab.parallel.executors import Report
from trimtab.lab.parallel.sweep import sweep
from trimtab.lab.sim.provenance import Plain, Provenance
from trimtab.lab.sim.record import Record
from trimtab.lab.sim.simulate import Progress, part, run
from trimtab.lab.step_search import build, tune
from trimtab.lab.user_files import UserFile, load_user_file, read_user_file
from trimtab.problems import Problem, make
from trimtab.types import Document


@dataclass(frozen=True, kw_only=True)
class Task:
    """One method of a comparison."""

    problem: str | Problem
    parameters: dict[str, Plain]
    method: str
    radius: float
    rounds: int
    trials: int
    seed: int
    noise: str
    tuning_trials: int
    variance_at: list[int]
    static: bool
    gradients: bool
    own: tuple[UserFile, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The records by method, in the order requested; `complete` is False if some are missing.

    >>> found = compare("quadratic-v1", ["still"], rounds=20, trials=4, variances=0)
    >>> isinstance(found, Comparison), found.records["still"].rounds
    (True, 20)
    """

    problem: Problem
    records: dict[str, Record]
    complete: bool = True

    def summary(self) -> Document:
        """{problem, rounds, trials, …, methods: {name: {step, regret: {median, q25, q75}, incurred, diverged, …}}}."""
        any_record = next(iter(self.records.values()), None)
        made = any_record.about if any_record else Provenance()
        return {
            "problem": self.problem.id,
            "rounds": any_record.rounds if any_record else None,
            "trials": any_record.trials if any_record else None,
            "seed": made.get("seed"),
            "noise": made.get("noise"),
            "threshold": made.get("threshold"),
            "parameters": made.get("parameters"),
            "complete": self.complete,
            "methods": {name: _of_method(record.summary()) for name, record in self.records.items()},
        }


def _of_method(summary: Document) -> Document:
    elsewhere = ("problem", "parameters", "method", "seed", "first", "noise", "threshold", "rounds", "trials")
    return {name: value for name, value in summary.items() if name not in elsewhere}


def compare(
    problem: str | Problem,
    methods: Sequence[str] = ("residual", "one-point", "two-point"),
    *,
    parameters: dict[str, Plain] | None = None,
    rounds: int | None = None,
    trials: int = 50,
    seed: int = 0,
    radius: float | None = None,
    noise: str = "independent",
    tuning_trials: int = 20,
    variances: int = 10,
    static: bool = False,
    gradients: bool = False,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str | None = None,
    folder: str | Path | None = None,
    files: Sequence[str] = (),
    report: Report | None = None,
) -> Comparison:
    """Tune each method on separate trials, run all of them on the same reported trials, and return their records.

    methods: names of registered methods. Register your own in one of the `files`, which are executed here and in every
    worker; or use `tune` (with a function step → Method) and `simulate`.

    problem: an id (with parameters=), or a problem. variances: the number of rounds at which estimators are resampled.
    jobs, backend, cluster, folder, report: see `sweep`; only problems given by id can be distributed or cached.

    >>> found = compare("quadratic-v1", ["residual", "still"], rounds=60, trials=6, tuning_trials=4, variances=0)
    >>> sorted(found.summary()["methods"])
    ['residual', 'still']
    """
    if isinstance(methods, str) or not methods:
        raise ValueError(f"methods={methods!r} is not a list of names: give for example ['residual', 'auto']")
    if parameters and not isinstance(problem, str):
        raise ValueError("parameters= go with the id of a problem: give them when making it, make(id, **parameters)")
    own = tuple(map(read_user_file, files))
    for each in own:
        load_user_file(each)
    made = make(problem, **(parameters or {})) if isinstance(problem, str) else problem
    size = made.radius if radius is None else radius
    for name in methods:
        build(name, size, 1.0)  # raises for unknown names before the work begins
    if len(set(methods)) < len(methods):
        raise ValueError(f"methods={list(methods)} names one twice: name each once")
    rounds = made.rounds if rounds is None else rounds
    at = np.unique(np.linspace(1, rounds - 1, variances).astype(int)).tolist() if variances and rounds > 1 else []
    tasks = [
        Task(
            problem=problem,
            parameters=parameters or {},
            method=name,
            radius=size,
            rounds=rounds,
            trials=trials,
            seed=seed,
            noise=noise,
            tuning_trials=tuning_trials,
            variance_at=at,
            static=static,
            gradients=gradients,
            own=own,
        )
        for name in methods
    ]
    keep = folder if isinstance(problem, str) else None
    records = sweep(compute, tasks, jobs=jobs, backend=backend, cluster=cluster, folder=keep, report=report)
    found = {name: record for name, record in zip(methods, records, strict=True) if record is not None}
    return Comparison(made, found, complete=len(found) == len(methods))


def compute(task: Task, progress: Progress | None = None) -> Record:
    """One method of a comparison: tune, then run."""
    for each in task.own:
        load_user_file(each)
    problem = make(task.problem, **task.parameters) if isinstance(task.problem, str) else task.problem
    some: dict[str, Any] = {"rounds": task.rounds, "seed": task.seed, "noise": task.noise}
    tuned = tune(
        problem, task.method, radius=task.radius, trials=task.tuning_trials, progress=part(progress, 0.0, 0.6), **some
    )
    some |= {name: getattr(task, name) for name in ("trials", "static", "gradients", "variance_at")}
    record = run(problem, tuned.method, name=task.method, progress=part(progress, 0.6, 1.0), **some)
    record.about["tuning"] = list(tuned.table)
    record.about["step_at_edge"] = tuned.at_edge
    return record
