"""The work as cells: each is a pure function of its configuration, computed once and cached."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

import trimtab.problems as problems
from trimtab.lab import Record, run, simulate
from trimtab.lab.parallel.sweep import Cell
from trimtab.lab.sim.provenance import plain
from trimtab.lab.sim.simulate import Progress, part
from trimtab.lab.step_search import apart, attempt, build, ranks
from trimtab.paper import theorem_checks
from trimtab.paper.experiments import COMMON, ILLUSTRATION, OFFLINE, PAPER, UNTUNED, Experiment, Mode
from trimtab.paper.radius_search import Setting, search
from trimtab.paper.result_types import Map, Ready, TableData
from trimtab.types import Array
from trimtab.util.files import write_atomically

if TYPE_CHECKING:
    from trimtab.problems.allocation import Allocation, AllocationWorld

FREE = ("toy", "lemmas", "theorems", "opponents", "feasible")
"""Kinds of cells that run without compiled kernels."""
MAP_STEPS = tuple(np.geomspace(1e-6, 1.0, 13).tolist())  # half a decade apart


class Table:
    """A result in the form of a JSON document."""

    def __init__(self, data: TableData) -> None:
        self.data = data

    def save(self, path: Path) -> None:
        """Write one JSON file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path.with_name(path.name + ".table.json"), json.dumps(self.data).encode())

    @classmethod
    def load(cls, path: Path) -> Table:
        """Read a table written by `save`."""
        return cls(json.loads(path.with_name(path.name + ".table.json").read_text()))


@dataclass(frozen=True)
class Runs:
    """One method in one experiment, run with its own radius and step, and at the shared radius."""

    own: Record
    shared: Record

    def save(self, path: Path) -> None:
        """Write two records."""
        self.own.save(path.with_name(path.name + ".own"))
        self.shared.save(path.with_name(path.name + ".shared"))

    def until(self, rounds: int) -> Runs:
        """Cut both runs to the first rounds."""
        return Runs(_until(self.own, rounds), _until(self.shared, rounds))

    @classmethod
    def load(cls, path: Path) -> Runs:
        """Read the runs written by `save`."""
        return cls(Record.load(path.with_name(path.name + ".own")), Record.load(path.with_name(path.name + ".shared")))


def _until(record: Record, rounds: int) -> Record:
    """Cut costs, optimum and slopes to the first rounds; drop the final centre and the variances."""
    series = ("cost", "played", "incurred", "optimum", "distance", "gradient", "fixed")
    return replace(
        record,
        **{name: getattr(record, name)[:, :rounds] for name in series},
        diverged_at=np.where(record.diverged_at < rounds, record.diverged_at, -1),
        final=np.full_like(record.final, np.nan),
        variance_rounds=np.empty(0, dtype=np.int64),
        variance=np.empty((record.trials, 0)),
        common_variance=np.empty((record.trials, 0)),
    )


def load(path: Path) -> Runs | Table:
    """Load a finished cell of either kind."""
    try:
        return Table.load(path)
    except FileNotFoundError:
        return Runs.load(path)


def cells(mode: Mode, experiments: dict[str, Experiment], seed: int) -> dict[str, Cell]:
    """All cells by name, the longest first; `weight` is roughly proportional to the running time."""
    found: dict[str, Cell] = {}
    for e in experiments.values():
        tried = len(e.radii) * len(e.steps) * e.rungs[0][0] * e.rungs[0][1] + 12 * e.rungs[-1][0] * e.rungs[-1][1]
        rollout = 8 if e.agent is not None else 2 if e.problem == "lqr-noisy-v1" else 1
        known = experiments[e.begins].methods if e.begins else ()
        for name in (name for name in e.methods if name not in known):
            work = (0 if name in UNTUNED else tried) + 2 * e.rounds * (e.trials + 20)
            resampling = {"resamples": mode.resamples, "varied": mode.varied}
            cell = {"kind": "run", "experiment": asdict(e), "method": name, **resampling}
            found[f"{e.id}/{name}"] = cell | {"weight": rollout * work * (2 if "two-point" in name else 1) / 5e4}
    for name in PAPER:
        found[f"map/{name}"] = {
            "kind": "map",
            "method": name,
            "radii": np.geomspace(1e-3, 0.3, mode.grid).tolist(),
            "trials": mode.mapped,
            "weight": mode.grid / 8,
        }
    sizes = {"lanes": mode.lanes, "horizons": mode.horizons, "trials": mode.repeats}
    for name, weight in (
        ("toy", 1),
        ("lemmas", 3),
        ("moments", 1),
        ("theorems", 10),
        ("opponents", 4),
        ("feasible", 1),
    ):
        found[name] = {"kind": name, **sizes, "weight": weight}
    ordered = sorted(found.items(), key=lambda item: -item[1]["weight"])
    return {name: {**cell, "name": name, "seed": seed} for name, cell in ordered}


def compute(cell: Cell, progress: Progress | None = None) -> Runs | Table:
    """Compute one cell."""
    if cell["kind"] == "run":
        return _run(cell, progress)
    with np.errstate(over="ignore", invalid="ignore"):
        work: dict[str, Callable[[Cell], TableData]] = {"map": _map, "prepare": _prepare, **theorem_checks.WORK}
        return Table(work[cell["kind"]](cell))


def needs(cell: Cell) -> int:
    """Rank cells by the kernels they need: none, those of allocation, or those of LQR, which compile longest."""
    if cell["kind"] in FREE:
        return 0
    return 1 if cell["kind"] == "run" and cell["experiment"]["agent"] is not None else 2


def preparations(mode: Mode) -> list[Cell]:
    """Two cells that compile the kernels, without common ones, and find the offline optima."""
    return [{"kind": "prepare", "what": what, "networks": mode.networks} for what in ("lqr", "allocation")]


def _prepare(cell: Cell) -> Ready:
    """Compile the kernels for cells of this kind; these and the policies are cached on disk."""
    from trimtab.problems import compiled  # imports Numba, which only workers need

    if cell["what"] == "lqr":
        compiled.lqr()
        return {"ready": cell["what"]}
    for number in cell["networks"]:
        for torus in (False, True) if number == ILLUSTRATION else (False,):
            problem = problems.make("allocation-v1", network=number, draws=2, torus=torus, **OFFLINE)
            run(problem, build("residual", 0.03, 1e-3), rounds=2, trials=1)
    return {"ready": cell["what"]}


def _run(cell: Cell, progress: Progress | None) -> Runs:
    """Tune on separate trials, then run; resample the estimators at the shared radius."""
    e = Experiment(**cell["experiment"])
    name, noise = cell["method"].removesuffix(COMMON), "common" if cell["method"].endswith(COMMON) else "independent"
    problem, seed = problems.make(e.problem, **e.parameters), int(cell["seed"])
    found = search(
        problem,
        name,
        radii=e.radii,
        steps=e.steps,
        shared=e.radius,
        rungs=e.rungs,
        kept=e.kept,
        seed=seed,
        noise=noise,
        progress=part(progress, 0.0, 0.6),
    )
    resampled = e.variances if name in PAPER else 0
    at = np.unique(np.linspace(1, e.rounds - 1, resampled).astype(int)).tolist() if resampled else []
    common: Array | None = None
    if e.agent is not None and at:  # the problem has no unique optimiser: use the offline policy
        common = cast("AllocationWorld", problem.world(seed, e.trials)).offline()

    def play(settings: dict[str, Setting], trials: int, at: list[int], report: Progress | None) -> dict[str, Record]:
        found = simulate(
            problem,
            {kind: build(name, *setting) for kind, setting in settings.items()},
            rounds=e.rounds,
            trials=trials,
            seed=seed,
            noise=noise,
            variance_at=at,
            variance_of=slice(None) if e.agent is None else cast("Allocation", problem).coordinates(e.agent),
            common=common,
            resamples=cell["resamples"],
            progress=report,
        )
        for record in found.values():
            record.about["method"] = cell["method"]
        return found

    both = {"shared": found.shared} | ({} if found.own == found.shared else {"own": found.own})
    few = bool(at) and e.trials <= cell["varied"]
    records = play({"shared": both.pop("shared")}, e.trials, at, part(progress, 0.6, 0.8)) if few else {}
    records |= play(both, e.trials, [], part(progress, 0.8, 0.9)) if both else {}
    if at and not few:  # resampling is slow, and some of the trials suffice to tell factors of ten apart
        some = play({"shared": found.shared}, cell["varied"], at, part(progress, 0.9, 1.0))["shared"]
        names = ("variance_rounds", "variance", "common_variance")
        records["shared"] = replace(records["shared"], **{name: getattr(some, name) for name in names})
    shared, own = records["shared"], records.get("own", records["shared"])
    own.about["tuning"] = found.table
    own.about["step_at_edge"] = found.at_edge
    return Runs(own, shared)


def _map(cell: Cell) -> Map:
    """Median regret and number of diverged trials of R1 by radius and step, on the tuning trials."""
    regret, diverged = [], []
    for radius in cell["radii"]:
        of = partial(build, cell["method"], radius)
        found = ranks(attempt("lqr-v1", of, MAP_STEPS, rounds=50, trials=cell["trials"], seed=apart(cell["seed"])))
        regret.append([plain(median) for _, median in found.values()])
        diverged.append([lost for lost, _ in found.values()])
    steps = list(MAP_STEPS)
    return {"radii": cell["radii"], "steps": steps, "regret": regret, "diverged": diverged, "trials": cell["trials"]}
