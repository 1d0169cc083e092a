"""Check the paper's lemmas and theorems on problems that satisfy their assumptions by construction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import trimtab.problems as problems
from trimtab import core, theory
from trimtab.directions import Gaussian, Sphere
from trimtab.domains import Ball, Box, Domain, Simplex
from trimtab.estimators import ModifiedTwoPoint, Residual
from trimtab.lab import run, simulate, tune
from trimtab.lab.parallel.sweep import Cell
from trimtab.lab.sim.provenance import plain
from trimtab.lab.step_search import build
from trimtab.paper.result_types import (
    Feasible,
    Lemma,
    Lemmas,
    Moment,
    Moments,
    Opponent,
    OpponentRow,
    Opponents,
    TableData,
    TheoremRow,
    Theorems,
    Toy,
)
from trimtab.problems import Absolute, Sines
from trimtab.protocols import Directions, Estimator
from trimtab.recipes import BaseMethod, Method
from trimtab.setup import Setup
from trimtab.theory import Plan
from trimtab.types import Array, Document

FENCE = 1.5
COARSE = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
CIRCLE = 0.25  # radius of the circle on which a moving optimum travels


def toy(cell: Cell) -> Toy:
    """Section 3: E ĝ_t² over t at a fixed point, with f_0 = x²/2, f_t = f_{t−1} + n_t."""
    last = 1000 if cell["trials"] > 8 else 200
    at = np.unique(np.geomspace(1, last, 40).astype(int))

    both = {name: build(name, 0.1, 1e-300) for name in ("residual", "one-point")}
    records = simulate("walk-v1", both, rounds=last + 1, trials=100, seed=cell["seed"], evidence=True)
    residual, one_point = (records[name].evidence["moment"][:, at].mean(0).tolist() for name in both)
    return {"round": at.tolist(), "residual": residual, "one-point": one_point}


def lemmas(cell: Cell) -> Lemmas:
    """Lemmas 2.4 and H.1 and Remark 2.5, on a cubic that moves between two rounds.

    For f = Σ c_j(x_j − a_j)³ smoothing changes the slope by 3c_jδ² with Gaussian u, and by 3c_jδ²/(d + 2) on the ball.
    """
    lanes, dim, radius = cell["lanes"], 5, 0.5
    rng = np.random.default_rng(cell["seed"])
    weights, x = np.linspace(0.2, 1.0, dim), 0.3 * rng.standard_normal(dim)
    centres = 0.3 * rng.standard_normal((2, dim))  # of f_{t−1} and f_t

    def f(t: int, p: Array) -> Array:
        return np.asarray((weights * (p - centres[t]) ** 3).sum(-1) + 0.2 * t)

    def smoothed(t: int, more: float) -> Array:
        return np.asarray(3 * weights * ((x - centres[t]) ** 2 + more))

    def tried(estimator: Estimator, law: Directions, more: float, weight: float) -> Lemma:
        setup = Setup(Method(estimator=estimator, radius=radius, step=1e-300, directions=law), (lanes, dim))
        state = core.init(setup, np.tile(x, (lanes, 1)), cell["seed"] % 2**64)
        for t in (0, 1):
            query = core.ask(setup, state).x
            parts = query[:, None] if query.ndim == 2 else query
            values = tuple(f(t - lag if t else 0, parts[:, k]) for k, lag in enumerate(estimator.lags))
            if t == 0:
                state = core.tell(setup, state, values[0] if len(values) == 1 else np.stack(values, axis=-1))
        estimates = core.estimate(setup, state, values)
        mean, error = estimates.mean(0), estimates.std(0) / math.sqrt(lanes)
        expected = weight * (smoothed(0, more) - smoothed(1, more))
        off = mean - smoothed(1, more)
        return {
            "bias": float(np.linalg.norm(off)),
            "error": float(np.linalg.norm(error)),
            "largest_z": float(np.abs((off - expected) / error).max()),
            "expected_bias": float(np.linalg.norm(expected)),
            "from_slope": float(np.linalg.norm(smoothed(1, more) - smoothed(1, 0.0))),
        }

    return {
        "residual": tried(Residual(), Gaussian(), radius**2, 0.0),
        "residual on the sphere": tried(Residual(), Sphere(), radius**2 / (dim + 2), 0.0),
        "modified two-point": tried(ModifiedTwoPoint(), Gaussian(), radius**2, 0.5),
    }


def moments(cell: Cell) -> Moments:
    """Lemmas 2.6, 5.2 and H.6 along runs with tuned steps: E‖ĝ_t‖² ≤ α·E‖ĝ_{t−1}‖² + D_t, with the L₀ of the path."""
    found: dict[str, Moment] = {}
    trials = 4 * cell["trials"]
    for lemma, id in (("Lemma 2.6", "lqr-v1"), ("Lemma 5.2", "lqr-noisy-v1")):
        tuned = tune(id, "residual", trials=5, steps=COARSE, refine=False, rounds=40, seed=cell["seed"])
        found[lemma] = _moment(problems.make(id), tuned.method, trials, 40, cell["seed"])
    fenced = Fenced(dim=5, drift="walk", speed=0.02, offset=0.2)
    plan = theory.convex_lipschitz_feasible(dim=5, horizon=200, lipschitz=1.0, inner_radius=FENCE, outer_radius=FENCE)
    return found | {"Lemma H.6": _moment(fenced, plan.method(), trials, 200, cell["seed"])}


def _moment(problem: problems.Problem, method: BaseMethod, trials: int, rounds: int, seed: int) -> Moment:
    record = run(problem, method, trials=trials, rounds=rounds, seed=seed, evidence=True)
    left, right = theory.second_moments(record)
    alpha = theory.measure(record).contraction
    return {
        "kept": float((left <= right).mean()),
        "rounds": len(left),
        "slack": float((right / left).min()),
        "contraction": plain(alpha.value) if alpha else None,
    }


@dataclass(frozen=True, kw_only=True)
class Fenced(Absolute):
    """The 1-norm, restricted to a ball around its start."""

    @property
    def domain(self) -> Domain:
        """A ball that is not centred on the optimum."""
        return Ball(FENCE, centre=np.full(self.dim, 0.3 / math.sqrt(self.dim)))

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """The centre of the ball."""
        return np.tile(np.full(self.dim, 0.3 / math.sqrt(self.dim)), (trials, 1))


def theorems(cell: Cell) -> Theorems:
    """Mean regret (or sum of squared slopes) and the tight bound, with the optimum at rest and on a circle."""
    rows: list[TheoremRow] = []
    moving: Document = {"drift": "circle", "every": 100, "speed": 2 * math.pi * CIRCLE / 100}
    still: Document = {"drift": "none", "offset": 0.2}
    first, last = cell["horizons"][0], cell["horizons"][-1]
    for horizon in cell["horizons"]:
        for dim in (2, 10) if horizon == last else (2,):
            some = {"dim": dim, "horizon": horizon, "lipschitz": 1.0}
            rows.append(
                _convex(
                    "Theorem 3.2",
                    "level walks",
                    problems.make("absolute-v1", dim=dim, **still),
                    cell,
                    theory.convex_lipschitz(**some, distance=1.0),
                )
            )
            logcosh = problems.make("logcosh-v1", dim=dim, **still)
            smooth = {**some, "smoothness": logcosh.smoothness}
            rows.append(
                _convex("Theorem 3.4", "level walks", logcosh, cell, theory.convex_smooth(**smooth, distance=1.0))
            )
            noisy = problems.make("logcosh-v1", dim=dim, noise=0.3, **still)
            stochastic = theory.convex_smooth(**smooth, distance=1.0, setting="stochastic")
            rows.append(_convex("Section 5 (Theorem 3.4 with noise)", "noise 0.3", noisy, cell, stochastic))
            inside = theory.convex_lipschitz_feasible(**some, inner_radius=FENCE, outer_radius=FENCE)
            rows.append(_convex("Theorem H.7", "level walks", Fenced(dim=dim, **still), cell, inside))
            for theorem in ("Theorem 4.2", "Theorem 4.3"):
                rows.append(_nonconvex(theorem, dim, horizon, moving, cell))
        if horizon == first:  # once: finding the best fixed point in hindsight is slow
            far = 1.0 + 2 * CIRCLE
            some = {"dim": 2, "horizon": horizon, "lipschitz": 1.0, "distance": far}
            absolute = problems.make("absolute-v1", dim=2, **moving)
            rows.append(_convex("Theorem 3.2", "optimum circles", absolute, cell, theory.convex_lipschitz(**some)))
            logcosh = problems.make("logcosh-v1", dim=2, **moving)
            plan = theory.convex_smooth(**some, smoothness=logcosh.smoothness)
            rows.append(_convex("Theorem 3.4", "optimum circles", logcosh, cell, plan))
    return {"rows": rows}


def _convex(theorem: str, case: str, problem: problems.Problem, cell: Cell, plan: Plan) -> TheoremRow:
    moves = "circles" in case
    trials = 8 if moves else cell["trials"]
    record = run(problem, plan.method(), rounds=plan.horizon, trials=trials, seed=cell["seed"], static=moves)
    kind = "static" if moves else "dynamic"
    happened, played = record.regret(kind)[:, -1], record.regret(kind, of="played")[:, -1]
    bounds = (plan.bound(variation=problem.variation, tight=True, played=p).total for p in (False, True))
    return _row(theorem, case, plan, happened, next(bounds)) | {
        "played": float(played.mean()),
        "played_bound": next(bounds),
    }


def _nonconvex(theorem: str, dim: int, horizon: int, moving: Document, cell: Cell) -> TheoremRow:
    """An egg box that moves on a circle; W_T and W̃_T are upper estimates along the path."""
    problem = Sines(dim=dim, **moving)
    some: Document = {"dim": dim, "horizon": horizon, "lipschitz": 1.0}
    if theorem == "Theorem 4.2":
        plan = theory.nonconvex_lipschitz(**some, accuracy=1.0)
    else:
        plan = theory.nonconvex_smooth(**some, smoothness=problem.smoothness)
    more = {"rounds": horizon, "trials": cell["trials"], "seed": cell["seed"], "gradients": True, "evidence": True}
    record = run(problem, plan.method(), **more)
    seen = theory.measure(record)
    # ∇f_δ = exp(−δ²/2w²)·∇f on an egg box of width w.
    lowered = math.exp(-(plan.radius**2) / (2 * problem.width**2)) if theorem == "Theorem 4.2" else 1.0
    bound = plan.bound(
        gap=float(record.cost[:, 0].mean()),
        accumulated=max(seen.accumulated.high, 0.0),
        squared=seen.squared.high,
        tight=True,
    )
    return _row(theorem, "optimum circles", plan, lowered**2 * record.regret("gradient")[:, -1], bound.total)


def _row(theorem: str, case: str, plan: Plan, happened: Array, bound: float) -> TheoremRow:
    mean = float(happened.mean())
    return {
        "theorem": theorem,
        "case": case,
        "dim": plan.dim,
        "horizon": plan.horizon,
        "mean": mean,
        "high": mean + 1.96 * float(happened.std(ddof=1)) / math.sqrt(len(happened)),
        "bound": bound,
        "played": None,
        "played_bound": None,
    }


def opponents(cell: Cell) -> Opponents:
    """Appendix I in both orders: a bound V_f on every change (Theorem 3.4), or a budget W̃_T = √T (Theorem 4.3)."""
    found: Opponents = {}
    power, horizons = 0.5, sorted({cell["horizons"][0], 4 * cell["horizons"][0], *cell["horizons"]})
    for budget in (False, True):
        for order in ("before", "after"):
            rows: list[OpponentRow] = []
            for horizon in horizons:
                spend = math.sqrt(horizon) if budget else math.inf
                problem = problems.make("adversary-v1", dim=2, order=order, power=power, budget=spend)
                some = {"dim": 2, "horizon": horizon, "lipschitz": 1.0, "smoothness": 1.0, "setting": "adversarial"}
                plan = theory.nonconvex_smooth(**some) if budget else theory.convex_smooth(**some, distance=1.0)
                record = run(
                    problem, plan.method(), rounds=horizon, trials=cell["trials"], seed=cell["seed"], evidence=True,
                    gradients=budget,
                )  # fmt: skip
                happened = record.regret("gradient" if budget else "dynamic")[:, -1]
                if budget:
                    rise = max(theory.measure(record).accumulated.high, 0.0)
                    bound = plan.bound(gap=float(record.cost[:, 0].mean()), accumulated=rise, squared=spend, tight=True)
                else:
                    bound = plan.bound(variation=power, tight=True)
                spent = int(min(spend / power**2, horizon - 1)) + 1 if budget else horizon
                row = _row("", "", plan, happened, bound.total)
                rows.append(
                    {
                        "horizon": horizon,
                        "regret": row["mean"],
                        "high": row["high"],
                        "bias": float(record.evidence["lean"][:, 1:spent].mean()),
                        "predicted": 0.0 if order == "before" else -math.sqrt(2 / math.pi) * power / plan.radius,
                        "bound": bound.total,
                    }
                )
            growth = math.log(rows[-1]["regret"] / rows[0]["regret"]) / math.log(horizons[-1] / horizons[0])
            one: Opponent = {"rows": rows, "exponent": growth}
            found[f"{'budget ' if budget else ''}{order}"] = one
    return found


def feasible(cell: Cell) -> Feasible:
    """Appendix H: count queries outside the domain under adversarial values."""
    outside, asked = 0, 0
    rng = np.random.default_rng(cell["seed"])
    for domain, dim in ((Ball(1.0), 6), (Box([-1.0] * 4, [2.0] * 4), 4), (Simplex(), 5)):
        method = Method(estimator=Residual(), radius=0.05, step=1.0, directions=Sphere(), margin="scale")
        setup = Setup(method, (200, dim), domain=domain)
        state = core.init(setup, np.full((200, dim), 1.0 / dim), cell["seed"] % 2**64)
        for _ in range(max(10, cell["lanes"] // 200)):
            query = core.ask(setup, state).x
            outside += int((~np.asarray(domain.contains(query))).sum())
            asked += len(query)
            state = core.tell(setup, state, rng.standard_cauchy(200) * 10.0 ** rng.uniform(-3, 6))
    return {"queries": asked, "outside": outside}


WORK: dict[str, Callable[[Cell], TableData]] = {
    "toy": toy,
    "lemmas": lemmas,
    "moments": moments,
    "theorems": theorems,
    "opponents": opponents,
    "feasible": feasible,
}
