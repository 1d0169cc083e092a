"""The work in pieces: each cell is a pure function of its configuration, computed once and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np

import trimtab.problems as problems
from trimtab import core, theory
from trimtab.directions import Gaussian, Sphere
from trimtab.domains import Ball, Box, Simplex
from trimtab.estimators import ModifiedTwoPoint, Residual
from trimtab.files import write_atomically
from trimtab.lab import Record, run, simulate, tune
from trimtab.lab.about import plain
from trimtab.lab.record import quantiles
from trimtab.lab.running import Progress
from trimtab.lab.sweeping import Cell
from trimtab.lab.tuning import GRID, build, needs_step
from trimtab.paper.document import (
    Contraction,
    Feasible,
    Lemma,
    Lemmas,
    Map,
    Opponent,
    OpponentRow,
    Opponents,
    TableData,
    TheoremRow,
    Theorems,
    Toy,
)
from trimtab.paper.experiments import COMMON, Experiment, Mode
from trimtab.recipes import Method
from trimtab.setup import Setup
from trimtab.types import Array

if TYPE_CHECKING:
    from trimtab.problems.allocation import Allocation

MAPPED = ("residual", "one-point", "two-point", "two-point-forward")
MAPS = {"lqr-r1": ("lqr-v1", {}, 50), "lqr-r3-sigma-0.1": ("lqr-noisy-v1", {"sigma_w": 0.1}, 40)}
STEPS = tuple(np.geomspace(1e-7, 1.0, 15).tolist())  # half a decade apart


class Table:
    """A result that is no record: a JSON document."""

    def __init__(self, data: TableData) -> None:
        self.data = data

    def save(self, path: Path) -> None:
        """One file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path.with_name(path.name + ".table.json"), json.dumps(self.data).encode())

    @classmethod
    def load(cls, path: Path) -> Table:
        """What `save` wrote."""
        return cls(json.loads(path.with_name(path.name + ".table.json").read_text()))


def load(path: Path) -> Record | Table:
    """A finished cell, of either kind."""
    try:
        return Table.load(path)
    except FileNotFoundError:
        return Record.load(path)


def cells(mode: Mode, experiments: dict[str, Experiment], seed: int) -> dict[str, Cell]:
    """All the work, by name, what takes longest first; `weight` is roughly its share of the time."""
    found: dict[str, Cell] = {}
    for experiment in experiments.values():
        weight = experiment.rounds * experiment.trials * (12 if experiment.agent is not None else 1) / 3000
        for name in experiment.methods:
            cell = {"kind": "run", "experiment": asdict(experiment), "method": name, "resamples": mode.resamples}
            found[f"{experiment.id}/{name}"] = cell | {"weight": weight * (2 if "two-point" in name else 1)}
    for place in MAPS:
        for name in (*MAPPED, "auto"):
            found[f"map/{place}/{name}"] = {
                "kind": "map",
                "place": place,
                "method": name,
                "radii": np.geomspace(1e-3, 0.3, mode.grid).tolist(),
                "trials": 20 if mode.name != "quick" else 8,
                "weight": mode.grid / 4,
            }
    found["toy"] = {"kind": "toy", "lanes": mode.lanes // 50, "weight": 3}
    found["lemmas"] = {"kind": "lemmas", "lanes": mode.lanes, "weight": 1}
    found["theorems"] = {"kind": "theorems", "horizons": mode.horizons, "weight": 10}
    found["opponents"] = {"kind": "opponents", "horizons": mode.horizons, "weight": 5}
    found["contraction"] = {"kind": "contraction", "trials": mode.tuning_trials, "weight": 1}
    found["feasible"] = {"kind": "feasible", "rounds": mode.lanes, "weight": 2}
    ordered = sorted(found.items(), key=lambda item: -item[1]["weight"])
    return {name: {**cell, "name": name, "seed": seed} for name, cell in ordered}


def compute(cell: Cell, progress: Progress | None = None) -> Record | Table:
    """One cell."""
    if cell["kind"] == "run":
        return _run(cell, progress)
    work: dict[str, Callable[[Cell], TableData]] = {
        "map": _map,
        "toy": _toy,
        "lemmas": _lemmas,
        "theorems": _theorems,
        "opponents": _opponents,
        "contraction": _contraction,
        "feasible": _feasible,
    }
    with np.errstate(over="ignore", invalid="ignore"):
        return Table(work[cell["kind"]](cell))


class _Options(TypedDict):
    seed: int
    noise: str


def _run(cell: Cell, progress: Progress | None) -> Record:
    """Tune on other trials, then run."""
    e = Experiment(**cell["experiment"])
    name, noise = cell["method"].removesuffix(COMMON), "common" if cell["method"].endswith(COMMON) else "independent"
    problem = problems.make(e.problem, **e.parameters)
    options = _Options(seed=cell["seed"], noise=noise)
    steps = _steps(problem, e, name, options, progress)
    tuned = tune(
        problem,
        name,
        steps=steps,
        radius=e.radius,
        refine=e.agent is None,
        rounds=e.rounds,
        trials=e.tuning_trials,
        progress=_part(progress, 0.2, 0.5),
        **options,
    )
    at = np.unique(np.linspace(1, e.rounds - 1, e.variances).astype(int)).tolist() if e.variances else []
    record = run(
        problem,
        tuned.method,
        name=cell["method"],
        rounds=e.rounds,
        trials=e.trials,
        variance_at=at,
        variance_of=slice(None) if e.agent is None else cast("Allocation", problem).coordinates(e.agent),
        resamples=cell["resamples"],
        progress=_part(progress, 0.5, 1.0),
        **options,
    )
    record.about["tuning"] = list(tuned.table)
    record.about["step_at_edge"] = tuned.at_edge
    return record


def _steps(
    problem: problems.Problem, e: Experiment, name: str, options: _Options, progress: Progress | None
) -> tuple[float, ...]:
    """The steps to choose from. Where rollouts are expensive: four, about the best of the whole grid on a short run."""
    if e.agent is None or not needs_step(name):
        return GRID
    short = max(e.rounds // 10, 50)
    first = tune(
        problem,
        name,
        radius=e.radius,
        refine=False,
        rounds=short,
        trials=2,
        progress=_part(progress, 0.0, 0.2),
        **options,
    )
    assert first.step is not None
    return tuple(first.step * 10.0**k for k in (-1.0, -0.5, 0.0, 0.5))


def _part(progress: Progress | None, start: float, stop: float) -> Progress | None:
    return (lambda share: progress(start + (stop - start) * share)) if progress else None


def _map(cell: Cell) -> Map:
    """Median regret and diverged trials, by radius and step."""
    id, parameters, rounds = MAPS[cell["place"]]
    problem = problems.make(id, **parameters)
    steps: list[float | None] = [*STEPS] if needs_step(cell["method"]) else [None]
    regret, diverged = [], []
    for radius in cell["radii"]:
        some = {repr(step): build(cell["method"], radius, step) for step in steps}
        records = simulate(problem, some, rounds=rounds, trials=cell["trials"], seed=cell["seed"]).values()
        regret.append([plain(quantiles(r.score(), (0.5,))[0]) for r in records])
        diverged.append([int(r.diverged.sum()) for r in records])
    return {"radii": cell["radii"], "steps": steps, "regret": regret, "diverged": diverged, "trials": cell["trials"]}


def _toy(cell: Cell) -> Toy:
    """Section 3: f_0 = x²/2, f_t = f_{t−1} + n_t, at a point that stays: E ĝ_t² over t."""
    at = np.unique(np.geomspace(1, 1000, 40).astype(int))

    def moments(name: str) -> list[float]:
        record = run(
            problems.make("walk-v1"),
            build(name, 0.1, 1e-300),
            rounds=1001,
            trials=cell["lanes"],
            seed=cell["seed"],
            evidence=True,
        )
        return [float(moment) for moment in record.evidence["moment"][:, at].mean(0)]

    return {"round": at.tolist(), "residual": moments("residual"), "one-point": moments("one-point")}


def _lemmas(cell: Cell) -> Lemmas:
    """Lemma 2.4 and Remark 2.5 on a quadratic that moves between two rounds, where smoothed gradients are exact."""
    lanes, dim, radius = 20 * cell["lanes"], 5, 0.3
    rng = np.random.default_rng(cell["seed"])
    curvature = np.diag(np.linspace(0.2, 1.0, dim))
    centres = rng.standard_normal((2, dim))  # of f_{t−1} and f_t
    x = rng.standard_normal(dim)

    def f(t: int, p: Array) -> Array:
        z = p - centres[t]
        return np.asarray(0.5 * ((z @ curvature) * z).sum(-1) + 1.0 * t)

    slopes = [curvature @ (x - c) for c in centres]
    found: dict[str, Lemma] = {}
    for name, estimator in (("residual", Residual()), ("modified two-point", ModifiedTwoPoint())):
        method = Method(estimator=estimator, radius=radius, step=1e-300, directions=Gaussian())
        setup = Setup(method, (lanes, dim), seed=cell["seed"] % 2**64)
        state = core.init(setup, np.tile(x, (lanes, 1)))
        for t in (0, 1):
            query = core.ask(setup, state).x
            parts = query[:, None] if query.ndim == 2 else query
            values = tuple(f(t - lag if t else 0, parts[:, k]) for k, lag in enumerate(estimator.lags))
            if t == 0:
                state = core.tell(setup, state, values[0] if len(values) == 1 else np.stack(values, axis=-1))
        estimates = core.estimate(setup, state, values)
        mean, error = estimates.mean(0), estimates.std(0) / math.sqrt(lanes)
        found[name] = {
            "bias": float(np.linalg.norm(mean - slopes[1])),
            "error": float(np.linalg.norm(error)),
            "largest_z": float(np.abs((mean - slopes[1]) / error).max()),
        }
    found["modified two-point"]["predicted_bias"] = float(np.linalg.norm(0.5 * (slopes[0] - slopes[1])))
    return cast(Lemmas, found)


def _theorems(cell: Cell) -> Theorems:
    """The mean regret (or sum of squared slopes) against the bound, on problems that keep the assumptions."""
    rows: list[TheoremRow] = []
    for horizon in cell["horizons"]:
        some = {"dim": 2, "horizon": horizon, "lipschitz": 1.0}
        still = {"dim": 2, "drift": "none"}
        kept = [
            ("Theorem 3.2", "absolute-v1", theory.convex_lipschitz(**some, distance=1.0)),
            ("Theorem 3.4", "logcosh-v1", None),
            ("Theorem 4.3", "sines-v1", None),
        ]
        for theorem, id, plan in kept:
            problem = problems.make(id, **still, offset=0.0 if id == "sines-v1" else 0.2)
            if id == "logcosh-v1":
                plan = theory.convex_smooth(**some, smoothness=problem.smoothness, distance=1.0)
            elif id == "sines-v1":
                plan = theory.nonconvex_smooth(**some, smoothness=problem.smoothness)
            assert plan is not None
            record = run(
                problem, plan.method(), rounds=horizon, trials=40, seed=cell["seed"], gradients=not plan.convex
            )
            if plan.convex:
                happened, bound = record.regret()[:, -1], plan.bound(variation=0.2)
            else:
                happened = record.regret("gradient")[:, -1]
                bound = plan.bound(gap=float(record.cost[:, 0].mean()), squared=0.0)
            rows.append({"theorem": theorem, "horizon": horizon, "mean": float(happened.mean()), "bound": bound.total})
    return {"rows": rows}


def _opponents(cell: Cell) -> Opponents:
    """Appendix I in both orders: regret over the horizon, and the bias that the opponent makes."""
    found: dict[str, Opponent] = {}
    for order in ("before", "after"):
        rows: list[OpponentRow] = []
        for horizon in cell["horizons"]:
            problem = problems.make("adversary-v1", dim=2, order=order, power=0.5)
            plan = theory.convex_smooth(
                dim=2, horizon=horizon, lipschitz=1.0, smoothness=1.0, distance=1.0, setting="adversarial"
            )
            record = run(problem, plan.method(), rounds=horizon, trials=40, seed=cell["seed"], evidence=True)
            rows.append(
                {
                    "horizon": horizon,
                    "regret": float(record.regret()[:, -1].mean()),
                    "bias": float(record.evidence["lean"][:, 1:].mean()),
                    "predicted": 0.0 if order == "before" else -math.sqrt(2 / math.pi) * 0.5 / plan.radius,
                    "bound": plan.bound(variation=0.5).total,
                }
            )
        first, last = rows[0], rows[-1]
        growth = math.log(last["regret"] / first["regret"]) / math.log(last["horizon"] / first["horizon"])
        found[order] = {"rows": rows, "exponent": growth}
    return {"before": found["before"], "after": found["after"]}


def _contraction(cell: Cell) -> Contraction:
    """α along the LQR run with its tuned step."""
    tuned = tune("lqr-v1", "residual", rounds=40, trials=cell["trials"], seed=cell["seed"])
    record = run("lqr-v1", tuned.method, rounds=40, trials=20, seed=cell["seed"], evidence=True)
    diagnosis = theory.diagnose(record)
    return {"step": tuned.step, "findings": {name: (f.verdict, f.text) for name, f in diagnosis.items()}}


def _feasible(cell: Cell) -> Feasible:
    """Appendix H: hostile values, and the number of queries outside the domain."""
    outside, asked = 0, 0
    rng = np.random.default_rng(cell["seed"])
    for domain, dim in ((Ball(1.0), 6), (Box([-1.0] * 4, [2.0] * 4), 4), (Simplex(), 5)):
        method = Method(estimator=Residual(), radius=0.05, step=1.0, directions=Sphere(), margin="scale")
        setup = Setup(method, (200, dim), domain=domain, seed=cell["seed"] % 2**64)
        state = core.init(setup, np.full((200, dim), 1.0 / dim))
        for _ in range(max(10, cell["rounds"] // 200)):
            query = core.ask(setup, state).x
            outside += int((~np.asarray(domain.contains(query))).sum())
            asked += len(query)
            state = core.tell(setup, state, rng.standard_cauchy(200) * 10.0 ** rng.uniform(-3, 6))
    return {"queries": asked, "outside": outside}
