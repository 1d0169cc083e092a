"""Simulate methods on a problem, in lanes: all trials of all methods and step sizes go through each round together.

All methods of a trial meet the same drift, the same noise and the same directions. A trial has diverged when the cost
at its centre, or of what it played, is not finite or beyond `threshold`·(1 + |its cost at the start|); it is then left
where it is, and its costs count as infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab import core
from trimtab.domains import Box
from trimtab.lab.evidence import Witness
from trimtab.lab.record import Record
from trimtab.methods import Method
from trimtab.problems import Problem, World, make
from trimtab.setup import Setup
from trimtab.state import State, take
from trimtab.steps import Constant
from trimtab.validation import whole

Array = NDArray[np.float64]
Progress = Callable[[float], None]

THRESHOLD = 1e6
RESAMPLING = 0x5EED_0F_5A3D  # added to the seed: resampled directions are independent of those that were played


def run(problem: Problem | str, method: Method | None, *, name: str | None = None, **options: Any) -> Record:
    """One method on one problem; see `simulate` for the options. None is the method of doing nothing.

    >>> import trimtab as tt
    >>> record = run("quadratic-v1", tt.residual(radius=0.05, step=0.03), rounds=200, trials=8, seed=1)
    >>> record.cost.shape, int(record.diverged.sum())
    ((8, 200), 0)
    """
    name = name or ("still" if method is None else type(getattr(method, "estimator", method)).__name__)
    return simulate(problem, {name: method}, **options)[name]


def simulate(
    problem: Problem | str,
    methods: Mapping[str, Method | None],
    *,
    rounds: int | None = None,
    trials: int = 50,
    seed: int = 0,
    first: int = 0,
    noise: str = "independent",
    threshold: float = THRESHOLD,
    gradients: bool = False,
    static: bool = False,
    evidence: bool = False,
    variance_at: Sequence[int] = (),
    variance_of: slice = slice(None),
    resamples: int = 64,
    progress: Progress | None = None,
) -> dict[str, Record]:
    """Several methods on one problem, side by side; None stands for doing nothing.

    trials, first: the trials first, …, first + trials − 1 of this seed; a trial is the same in any company.
    noise: of the second query of a two-point method: "independent", or "common" with the first.
    gradients: record ‖∇f_t(x_t)‖². static: find the best fixed point in hindsight, for the static regret.
    evidence: record what the assumptions of the theory speak of (`trimtab.lab.evidence`; about three times the work).
    variance_at: rounds at which each estimator is resampled, at its own iterate and at one common to all methods.
    variance_of: the coordinates that count in it.
    progress: called with the share that is done.
    """
    arguments = dict(locals())
    problem = make(problem) if isinstance(problem, str) else problem
    if not isinstance(problem, Problem):
        raise TypeError(
            f"problem={problem!r} is neither an id nor a Problem: use problems.make(id) or from_function(f)"
        )
    rounds = problem.rounds if rounds is None else rounds
    if noise not in ("independent", "common"):
        raise ValueError(f"noise={noise!r} is unknown: choose 'independent' or 'common'")
    rounds, trials, seed = whole("rounds", rounds, 1), whole("trials", trials, 1), whole("seed", seed, 0)
    for name, method in methods.items():
        if method is not None and not isinstance(method, Method):
            raise TypeError(f"{name}: {method!r} is not a Method: use for example tt.residual(radius=0.05, step=3e-3)")
    if not methods:
        raise ValueError("no methods: give at least one")
    x0 = problem.start(seed, trials, first)
    world = problem.world(seed, trials, first)
    if world.listens and len(methods) > 1:  # an adversary answers to one player: each method meets its own
        options = {k: v for k, v in arguments.items() if k not in ("problem", "methods", "progress")}
        return {n: simulate(problem, {n: m}, **options)[n] for n, m in methods.items()}
    runners = [_Runner(problem, group, x0, seed, first, noise) for group in _groups(methods)]
    names = [name for runner in runners for name in runner.members]
    book = _Book(rounds, trials, len(names), threshold)
    witness = Witness(rounds, trials, len(names)) if evidence else None
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(rounds):
            centres = np.concatenate([r.centre for r in runners], axis=1)
            _measure(world, t, runners, centres, book)
            if gradients and (slope := world.gradient(t, centres)) is not None:
                book.enter("gradient", t, np.square(slope).sum(-1))
            if (best := world.optimiser(t)) is not None:
                book.enter("distance", t, np.sqrt(np.square(centres - best[:, None]).sum(-1)))
            if t in variance_at and t > 0:
                common = x0 if best is None else best
                how = (t, common, seed, first, resamples, variance_of)
                found = np.concatenate([r.variances(world, *how) for r in runners], axis=2)
                found[0][book.diverged] = np.inf
                book.variances.append((t, np.where(np.isnan(found), np.inf, found)))
            if witness:
                seen = zip(*(r.looked() for r in runners), strict=True)
                witness.look(world, t, centres, *(np.concatenate(part, axis=1) for part in seen))
            at = 0
            for runner in runners:
                runner.move(book.diverged[:, at : at + len(runner.members)])
                at += len(runner.members)
            if progress:
                progress((t + 1) / rounds)
        fixed = np.full((trials, rounds), np.nan)
        if static and (point := hindsight(problem, rounds=rounds, trials=trials, seed=seed, first=first)) is not None:
            fixed = np.stack([world.cost(t, point[:, None])[:, 0] for t in range(rounds)], axis=1)
    centres = np.concatenate([r.centre for r in runners], axis=1)
    return {
        name: book.record(
            names.index(name),
            fixed,
            centres,
            _about(problem, name, method, seed, first, noise, threshold),
            witness.of(names.index(name), book.diverged_at) if witness else {},
        )
        for name, method in methods.items()
    }


def _groups(methods: Mapping[str, Method | None]) -> list[dict[str, Method | None]]:
    """Methods that differ in a constant step alone go together, as lanes of one setup."""
    groups: dict[Any, dict[str, Method | None]] = {}
    for name, method in methods.items():
        alike = method is not None and isinstance(method.step.constant, float)
        key = repr(replace(method, step=Constant(1.0))) if method is not None and alike else name
        groups.setdefault((alike, key), {})[name] = method
    return list(groups.values())


class _Runner:
    """A group of methods in all trials: one setup whose lanes are trials × methods, its state, what it will be told."""

    def __init__(
        self, problem: Problem, members: dict[str, Method | None], x0: Array, seed: int, first: int, noise: str
    ) -> None:
        self.members, self.noise, self.domain = members, noise, problem.domain
        self.method = next(iter(members.values()))
        self.shape = (x0.shape[0], len(members), x0.shape[1])
        self.start = x0[:, None]
        self.values: Array = np.empty(0)
        self.before: State | None = None
        if self.method is not None:
            method = self.method
            if len(members) > 1:
                steps = np.array([m.step.constant for m in members.values() if m is not None], dtype=float)
                method = replace(method, step=Constant(np.tile(steps, x0.shape[0])))
            x = np.repeat(x0, len(members), axis=0)
            self.setup = Setup(method, x.shape, domain=problem.domain, seed=seed, lane=first, copies=len(members))
            self.state = core.init(self.setup, x)

    @property
    def centre(self) -> Array:
        """`(trials, members, d)`."""
        return self.start if self.method is None else self.state.centre.reshape(self.shape)

    def queries(self) -> Array:
        """`(trials, members, queries, d)`."""
        if self.method is None:
            return self.start[:, :, None]
        trials, members, dim = self.shape
        return core.ask(self.setup, self.state).x.reshape(trials, members, -1, dim)

    def needs(self) -> list[tuple[int, int]]:
        """The (lag, draw) of each query."""
        if self.method is None:
            return [(0, 0)]
        return [(lag, k if self.noise == "independent" else 0) for k, lag in enumerate(self.method.estimator.lags)]

    def looked(self) -> tuple[Array, Array, Array, Array]:
        """The first query of this round, its value, ‖ĝ_t‖² (0 without a contrast), and the gain scale/δ²."""
        query, value = self.queries()[:, :, 0], self.values[:, :, 0]
        if self.method is None:
            return query, value, np.zeros(value.shape), np.zeros(value.shape)
        parts = self.values.reshape(-1, self.values.shape[-1]).T
        estimate = core.estimate(self.setup, self.state, tuple(parts))
        gain = self.setup.directions.scale(self.setup.dim) / self.setup.method.radius**2
        moment = np.nan_to_num(np.square(estimate).sum(-1)).reshape(value.shape)
        return query, value, moment, np.full(value.shape, gain)

    def move(self, diverged: NDArray[np.bool_]) -> None:
        """Tell the values, `(trials, members, queries)`; those of diverged trials count as failed."""
        if self.method is None:
            return
        values = np.where(np.isfinite(self.values) & ~diverged[:, :, None], self.values, np.nan)
        lanes = values.reshape(-1, values.shape[-1])
        self.before = self.state
        self.state = core.tell(self.setup, self.state, lanes if lanes.shape[1] > 1 else lanes[:, 0])

    def variances(self, world: World, t: int, common: Array, seed: int, first: int, resamples: int, of: slice) -> Array:
        """Trace of the covariance of ĝ_t over fresh directions (of this round and of the anchor's) and noise.

        `(2, trials, members)`: at each method's own iterates, and at the common one.
        """
        trials, members, dim = self.shape
        found = np.zeros((2, trials, members))
        if self.method is None or self.before is None:
            return found
        setup = Setup(
            self.method,
            (trials * resamples, dim),
            domain=self.domain,
            seed=(seed + RESAMPLING) % 2**64,
            lane=first * resamples,
        )
        common = setup.home.project(common.copy())
        for k in range(members):
            rows = np.repeat(np.arange(trials) * members + k, resamples)
            before, now = (s.centre.reshape(self.shape)[:, k] for s in (self.before, self.state))
            for which, (earlier, later) in enumerate(((before, now), (common, common))):
                state = take(self.before, rows)._replace(centre=np.repeat(earlier, resamples, axis=0))
                values = self._resampled(world, setup, state, resamples)
                told = np.stack(values, axis=-1) if len(values) > 1 else values[0]
                state = core.tell(setup, state, told)._replace(centre=np.repeat(later, resamples, axis=0))
                values = self._resampled(world, setup, state, resamples)
                estimates = core.estimate(setup, state, values).reshape(trials, resamples, dim)
                found[which, :, k] = estimates[:, :, of].var(axis=1, ddof=1).sum(-1)
        return found

    def _resampled(self, world: World, setup: Setup, state: State, resamples: int) -> tuple[Array, ...]:
        x = core.ask(setup, state).x.reshape(self.shape[0], resamples, -1, setup.dim)
        values = []
        for k, (lag, draw) in enumerate(self.needs()):
            t, points = max(state.round - lag, 0), np.ascontiguousarray(x[:, :, k])
            if world.noisy:  # each resample with noise of its own
                columns = [world.measure(t, points[:, m : m + 1], draw + 2 * m + 2) for m in range(resamples)]
                values.append(np.concatenate(columns, axis=1).reshape(-1))
            else:
                values.append(world.cost(t, points).reshape(-1))
        return tuple(values)


class _Book:
    """The arrays of all records, while they are being written: `(rounds, trials, methods)`."""

    def __init__(self, rounds: int, trials: int, count: int, threshold: float) -> None:
        names = ("cost", "incurred", "optimum", "distance", "gradient")
        self.pages = {name: np.full((rounds, trials, count), np.nan) for name in names}
        self.diverged_at = np.full((trials, count), -1, dtype=np.int64)
        self.diverged = np.zeros((trials, count), dtype=bool)
        self.threshold, self.limit = threshold, np.empty(0)
        self.variances: list[tuple[int, Array]] = []

    def judge(self, t: int, cost: Array, incurred: Array) -> None:
        """Which trials have diverged by now."""
        if t == 0:
            self.limit = self.threshold * (1 + np.abs(np.where(np.isfinite(cost), cost, 0.0)))
        # At the centre NaN and inf are beyond any limit; a measurement that is NaN has merely failed.
        beyond = ~(np.abs(cost) <= self.limit) | (np.abs(incurred) > self.limit)
        self.diverged_at[beyond & ~self.diverged] = t
        self.diverged |= beyond

    def enter(self, name: str, t: int, values: Array) -> None:
        """The values of a round, `(trials, methods)`; infinite where the trial has diverged."""
        page = self.pages[name][t]
        page[:] = values
        page[self.diverged] = np.inf

    def record(self, k: int, fixed: Array, centres: Array, about: dict[str, Any], evidence: dict[str, Array]) -> Record:
        """The finished record of method k."""
        own, common = (
            np.array([v[which, :, k] for _, v in self.variances]).reshape(-1, len(self.diverged)).T.copy()
            for which in (0, 1)
        )
        return Record(
            **{name: np.ascontiguousarray(page[:, :, k].T) for name, page in self.pages.items()},
            fixed=fixed,
            final=centres[:, k].copy(),
            diverged_at=self.diverged_at[:, k].copy(),
            variance_rounds=np.array([t for t, _ in self.variances], dtype=np.int64),
            variance=own,
            common_variance=common,
            evidence=evidence,
            about=about,
        )


def _measure(world: World, t: int, runners: list[_Runner], centres: Array, book: _Book) -> None:
    """Everything that is to be known of round t, in as few calls of the world as possible."""
    trials, count, dim = centres.shape
    queries = [r.queries() for r in runners]
    world.play(t, centres, np.concatenate([q[:, :, 0] for q in queries], axis=1))
    flat = np.concatenate([q.reshape(trials, -1, dim) for q in queries], axis=1)
    if world.noisy:
        at_centre, values = world.cost(t, centres), np.empty(flat.shape[:2])
    else:
        costs = world.cost(t, np.concatenate([centres, flat], axis=1))
        at_centre, values = costs[:, :count], costs[:, count:].copy()
    needs = [need for r in runners for need in r.needs() * len(r.members)]
    for lag, draw in set(needs):
        if (lag and t) or world.noisy:
            columns = [k for k, need in enumerate(needs) if need == (lag, draw)]
            values[:, columns] = world.measure(max(t - lag, 0), np.ascontiguousarray(flat[:, columns]), draw)
    start, incurred = 0, []
    for runner, query in zip(runners, queries, strict=True):
        stop = start + query.shape[1] * query.shape[2]
        runner.values = values[:, start:stop].reshape(query.shape[:3])
        incurred.append(runner.values.mean(-1) if query.shape[2] > 1 else runner.values[:, :, 0])
        start = stop
    book.judge(t, at_centre, together := np.concatenate(incurred, axis=1))
    book.enter("cost", t, at_centre)
    book.enter("incurred", t, together)
    best = world.optimum(t)
    book.pages["optimum"][t] = best[:, None] if best.ndim == 1 else best


def hindsight(problem: Problem | str, *, rounds: int, trials: int, seed: int = 0, first: int = 0) -> Array | None:
    """The best fixed point in hindsight, argmin_x Σ_t f_t(x), `(trials, d)`; None where there are no gradients.

    L-BFGS on the sum over all trials at once (it separates), from the start and from the mean of the optimisers,
    whichever is better in each trial; within the bounds of a box, else projected onto the domain.
    """
    from scipy.optimize import minimize

    problem = make(problem) if isinstance(problem, str) else problem
    world = problem.world(seed, trials, first)
    x0 = problem.start(seed, trials, first)
    if world.gradient(0, x0[:, None]) is None:
        return None

    def total(flat: Array) -> tuple[float, Array]:
        x = flat.reshape(x0.shape)
        value, slope = 0.0, np.zeros_like(x0)
        for t in range(rounds):
            gradient = world.gradient(t, x[:, None])
            value += float(world.cost(t, x[:, None]).sum())
            slope += 0.0 if gradient is None else gradient[:, 0]
        return (value if np.isfinite(value) else 1e300), slope.ravel()

    def each(x: Array) -> Array:
        return np.asarray(np.sum([world.cost(t, x[:, None])[:, 0] for t in range(rounds)], axis=0))

    limits = None
    if isinstance(problem.domain, Box):
        sides = (np.broadcast_to(side, x0.shape).ravel() for side in (problem.domain.low, problem.domain.high))
        limits = list(zip(*sides, strict=True))
    starts = [x0]
    optimisers = [best for t in range(0, rounds, max(1, rounds // 16)) if (best := world.optimiser(t)) is not None]
    if optimisers:
        starts.append(np.mean(optimisers, axis=0))
    points = []
    for start in starts:
        found = minimize(total, start.ravel(), jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 200}).x
        points += [start, problem.domain.project(found.reshape(x0.shape))]
    values = np.stack([each(p) for p in points])
    values[~np.isfinite(values)] = np.inf
    best_of = values.argmin(0)
    return np.stack([points[k][i] for i, k in enumerate(best_of)])


def _about(
    problem: Problem, name: str, method: Method | None, seed: int, first: int, noise: str, threshold: float
) -> dict[str, Any]:
    step = method.step.constant if method else None
    law = (method.directions or Setup(method, (problem.dim,), problem.domain).directions) if method else None
    return {
        "problem": problem.id,
        "parameters": repr(problem),
        "dim": problem.dim,
        "directions": repr(law),
        "method": name,
        "configuration": repr(method),
        "step": step,
        "radius": method.radius if method else None,
        "queries": method.queries if method else 0,
        "seed": seed,
        "first": first,
        "noise": noise,
        "threshold": threshold,
    }
