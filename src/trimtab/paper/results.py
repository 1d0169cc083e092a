"""Collect the finished cells in one document, `results.json`."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import cast

import numpy as np

from trimtab.lab import Record
from trimtab.lab.sim.provenance import plain
from trimtab.lab.sim.record import quantiles
from trimtab.paper.cells import Runs
from trimtab.paper.experiments import Experiment, Mode
from trimtab.paper.intervals import paired, spread
from trimtab.paper.result_types import (
    Checks,
    Comparison,
    ExperimentResult,
    Map,
    MethodResult,
    Number,
    Results,
    Setting,
    Tables,
)
from trimtab.types import Array

FORMAT = 3
NETWORKS = "networks"
"""In comparisons: the id for all networks together."""
AllRuns = dict[str, dict[str, Runs]]


def zetas(record: Record) -> Array:
    """ζ_t of each trial, `(trials, rounds)`, from the cost of the best policy and ζ_0 = 1."""
    return np.asarray(record.optimum / record.optimum[:, :1])


def over_zeta(record: Record, zeta: Array) -> Array:
    """J_t(θ_t)/ζ_t, free of the drift common to all methods: `(trials, rounds)`."""
    return record.cost / zeta


def quarters(values: Array) -> dict[str, Number]:
    """Medians over trials at the start, a quarter, half and the end of the run (means over 1 % of it)."""
    rounds = values.shape[1]
    width = max(1, rounds // 100)
    ends = {"quarter": rounds // 4, "half": rounds // 2, "end": rounds}
    parts = {"start": values[:, :1]} | {name: values[:, stop - width : stop] for name, stop in ends.items()}
    return {name: plain(quantiles(part.mean(1), (0.5,))[0]) for name, part in parts.items()}


def gather(mode: Mode, seed: int, experiments: dict[str, Experiment], runs: AllRuns, tables: Tables) -> Results:
    """The document without the claims."""
    found = {
        e.id: _experiment(e, runs[e.id], zetas(runs[e.id]["still"].own) if e.agent is not None else None)
        for e in experiments.values()
    }
    networks = [found.pop(e.id) for e in experiments.values() if e.network is not None]
    found["allocation"]["networks"] = networks
    return {
        "format": FORMAT,
        "mode": mode.name,
        "seed": seed,
        "experiments": found,
        "comparisons": comparisons(experiments, runs),
        "checks": cast(Checks, {name: table for name, table in tables.items() if not name.startswith("map/")}),
        "maps": maps(tables),
        "versions": versions(),
    }


def _experiment(e: Experiment, runs: dict[str, Runs], zeta: Array | None) -> ExperimentResult:
    entry: ExperimentResult = {
        "title": e.title,
        "problem": e.problem,
        "parameters": e.parameters,
        "rounds": e.rounds,
        "radius": e.radius,
        "trials": e.trials,
        "rungs": [list(rung) for rung in e.rungs],
        "methods": {},
    }
    for name, both in runs.items():
        about = both.own.about
        method = cast(MethodResult, _setting(both.own)) | {
            "at_edge": about["step_at_edge"],
            "queries": 0 if name == "still" else about["queries"],
            "shared": _setting(both.shared),
            "tuning": about["tuning"],
        }
        if both.shared.variance_rounds.size:
            own, common = (
                [plain(v) for v in quantiles(values, (0.5,))[0]]
                for values in (both.shared.variance, both.shared.common_variance)
            )
            method["variance"] = {"round": both.shared.variance_rounds.tolist(), "own": own, "common": common}
        if zeta is not None:
            method["cost_over_zeta"] = quarters(over_zeta(both.own, zeta))
        entry["methods"][name] = cast(MethodResult, method)
    if zeta is not None:
        still = runs["still"].own
        entry["levels"] = {
            "uniform": quarters(over_zeta(still, zeta))["end"],
            "offline": plain(np.median(still.optimum / zeta)),
        }
    if e.network is not None:
        entry["network"] = e.network
    return entry


def _setting(record: Record) -> Setting:
    return {
        "radius": record.about["radius"],
        "step": record.about["step"],
        "regret": spread(record.regret()[:, -1]),
        "played": spread(record.regret(of="played")[:, -1]),
        "diverged": int(record.diverged.sum()),
    }


QUANTITIES: dict[str, Callable[[Record], Array]] = {
    "regret": lambda record: record.regret()[:, -1],
    "played": lambda record: record.regret(of="played")[:, -1],
    "variance": lambda record: _typical(record.variance),
    "common variance": lambda record: _typical(record.common_variance),
}


def _typical(variances: Array) -> Array:
    """The geometric mean along the run, for each trial: `(trials,)`."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(variances).mean(1))) if variances.size else np.empty(0)


def comparisons(experiments: dict[str, Experiment], runs: AllRuns) -> list[Comparison]:
    """Compare residual feedback and `auto` with all others in every experiment; networks singly and together."""
    places: dict[str, list[str]] = {e.id: [e.id] for e in experiments.values()}
    places[NETWORKS] = [e.id for e in experiments.values() if e.network is not None]
    found = []
    for place, ids in places.items():
        names = [name for name in runs[ids[0]] if all(name in runs[id] for id in ids)]
        for a, b in _pairs(names):
            for what, convention in (
                ("regret", "own"), ("regret", "shared"), ("played", "own"), ("played", "shared"),
                ("variance", "shared"), ("common variance", "shared"),
            ):  # fmt: skip
                values = [tuple(QUANTITIES[what](getattr(runs[id][name], convention)) for name in (a, b)) for id in ids]
                if not all(part.size and not np.isnan(part).any() for pair in values for part in pair):
                    continue
                ratio = paired([(pair[0], pair[1]) for pair in values])
                one = Comparison(experiment=place, what=what, convention=convention, a=a, b=b, **ratio)
                found.append(one)
    return found


def _pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    known = list(names)
    return [(a, b) for a in ("residual", "auto") if a in known for b in known if b != a]


def maps(tables: Tables) -> dict[str, Map]:
    """The sensitivity maps, by method."""
    return {name.removeprefix("map/"): cast(Map, table) for name, table in tables.items() if name.startswith("map/")}


def versions() -> dict[str, str]:
    """Versions of Python and the libraries used."""
    names = ("trimtab", "numpy", "scipy", "numba", "matplotlib")
    system = {"python": platform.python_version(), "system": platform.system(), "processor": platform.machine()}
    return {name: metadata.version(name) for name in names} | system | {"cores": str(os.cpu_count())}
