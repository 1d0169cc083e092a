"""What the finished cells say, as one document of plain numbers: `results.json`."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import TYPE_CHECKING, cast

import numpy as np

import trimtab.problems as problems
from trimtab.lab import Record
from trimtab.lab.about import plain
from trimtab.lab.record import quantiles
from trimtab.paper.document import Checks, ExperimentResult, Map, MethodResult, Number, Results, Tables
from trimtab.paper.experiments import Experiment, Mode
from trimtab.types import Array

if TYPE_CHECKING:
    from trimtab.problems.allocation import AllocationWorld

FORMAT = 1


def zetas(e: Experiment, seed: int) -> Array:
    """ζ_t of each trial: `(trials, rounds)`."""
    world = cast("AllocationWorld", problems.make(e.problem, **e.parameters).world(seed, e.trials))
    return np.stack([world.zeta(t)[:, 0] for t in range(e.rounds)], axis=1)


def over_zeta(record: Record, zeta: Array) -> Array:
    """J_t(θ_t)/ζ_t, without the swing that everybody shares: `(trials, rounds)`."""
    return record.cost / zeta


def quarters(values: Array) -> dict[str, Number]:
    """Medians over trials: at the start, and about a quarter, half and the end of the run (means of 1 % of it)."""
    rounds = values.shape[1]
    width = max(1, rounds // 100)
    ends = {"quarter": rounds // 4, "half": rounds // 2, "end": rounds}
    parts = {"start": values[:, :1]} | {name: values[:, stop - width : stop] for name, stop in ends.items()}
    return {name: plain(quantiles(part.mean(1), (0.5,))[0]) for name, part in parts.items()}


def gather(
    mode: Mode,
    seed: int,
    experiments: dict[str, Experiment],
    records: dict[str, dict[str, Record]],
    tables: Tables,
) -> Results:
    """The document, but for the claims."""
    found: dict[str, ExperimentResult] = {}
    for e in experiments.values():
        zeta = zetas(e, seed) if e.agent is not None else None
        entry: ExperimentResult = {
            "title": e.title,
            "problem": e.problem,
            "parameters": e.parameters,
            "rounds": e.rounds,
            "radius": e.radius,
            "trials": e.trials,
            "tuning_trials": e.tuning_trials,
            "methods": {},
        }
        for name, record in records[e.id].items():
            summary = record.summary()
            kept = ("step", "step_at_edge", "queries", "regret", "incurred", "diverged", "variance", "tuning")
            method = cast(MethodResult, {key: summary.get(key) for key in kept})
            if not method["variance"]:
                method["variance"] = {"round": [], "median": []}
            if zeta is not None:
                method["cost_over_zeta"] = quarters(over_zeta(record, zeta))
            entry["methods"][name] = method
        if zeta is not None:
            still, best = records[e.id]["still"], next(iter(records[e.id].values())).optimum
            entry["levels"] = {
                "uniform": quarters(over_zeta(still, zeta))["end"],
                "offline": plain(np.median(best / zeta)),
            }
        found[e.id] = entry
    return {
        "format": FORMAT,
        "mode": mode.name,
        "seed": seed,
        "experiments": found,
        "checks": cast(Checks, {name: table for name, table in tables.items() if not name.startswith("map/")}),
        "maps": maps(tables),
        "versions": versions(),
    }


def maps(tables: Tables) -> dict[str, Map]:
    """The sensitivity maps, by place and method."""
    return {name.removeprefix("map/"): cast(Map, table) for name, table in tables.items() if name.startswith("map/")}


def versions() -> dict[str, str]:
    """What it was made with."""
    names = ("trimtab", "numpy", "scipy", "numba", "matplotlib")
    system = {"python": platform.python_version(), "system": platform.system(), "processor": platform.machine()}
    return {name: metadata.version(name) for name in names} | system | {"cores": str(os.cpu_count())}
