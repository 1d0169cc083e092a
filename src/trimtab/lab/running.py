"""Simulate methods on a problem, in lanes: all trials of all methods go through each round together.

All methods of a trial meet the same drift, the same noise and the same directions. A trial has diverged when the cost
at its centre, or of what it played, is not finite or beyond `threshold`·(1 + |its cost at the start|); it is then left
where it is, and its costs count as infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab import core
from trimtab.core import Setup, State
from trimtab.estimators import Memory
from trimtab.lab.record import Record
from trimtab.methods import Method
from trimtab.problems import Problem, World, make

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
    name = name or ("still" if method is None else type(method.estimator).__name__)
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
    variance_at: Sequence[int] = (),
    resamples: int = 64,
    progress: Progress | None = None,
) -> dict[str, Record]:
    """Several methods on one problem, side by side; None stands for doing nothing.

    trials, first: the trials first, …, first + trials − 1 of this seed; a trial is the same in any company.
    noise: of the second query of a two-point method: "independent", or "common" with the first.
    gradients: record ‖∇f_t(x_t)‖². static: find the best fixed point in hindsight, for the static regret.
    variance_at: rounds at which each estimator is resampled, at its own iterate and at one common to all methods.
    progress: called with the share that is done.
    """
    arguments = dict(locals())
    problem = make(problem) if isinstance(problem, str) else problem
    rounds = problem.rounds if rounds is None else rounds
    if noise not in ("independent", "common"):
        raise ValueError(f"noise={noise!r} is unknown: choose 'independent' or 'common'")
    if not (rounds >= 1 and trials >= 1 and methods):
        raise ValueError(f"rounds={rounds}, trials={trials}, {len(methods)} methods: at least one of each is needed")
    x0 = problem.start(seed, trials, first)
    world = problem.world(seed, trials, first)
    if world.listens and len(methods) > 1:  # an adversary answers to one player: each method meets its own
        options = {k: v for k, v in arguments.items() if k not in ("problem", "methods")}
        return {n: simulate(problem, {n: m}, **options)[n] for n, m in methods.items()}
    runners = [_Runner(problem, method, x0, seed, first, noise) for method in methods.values()]
    books = [_Book(rounds, trials) for _ in runners]
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(rounds):
            centres = np.stack([r.centre for r in runners], axis=1)
            _measure(world, t, runners, centres, books, threshold)
            if gradients and (slope := world.gradient(t, centres)) is not None:
                for k, book in enumerate(books):
                    book.gradient[:, t] = np.where(book.diverged, np.inf, np.square(slope[:, k]).sum(-1))
            if (best := world.optimiser(t)) is not None:
                for k, book in enumerate(books):
                    book.distance[:, t] = np.where(book.diverged, np.inf, np.linalg.norm(centres[:, k] - best, axis=-1))
            if t in variance_at and t > 0:
                common = x0 if best is None else best
                for runner, book in zip(runners, books, strict=True):
                    book.variances.append((t, *runner.variances(world, t, common, seed, first, resamples)))
            for runner, book in zip(runners, books, strict=True):
                runner.move(book.diverged)
            if progress:
                progress((t + 1) / rounds)
        fixed = np.full((trials, rounds), np.nan)
        if static and (point := hindsight(problem, rounds=rounds, trials=trials, seed=seed, first=first)) is not None:
            fixed = np.stack([world.cost(t, point[:, None])[:, 0] for t in range(rounds)], axis=1)
    return {
        name: book.record(fixed, runner.centre, _about(problem, name, method, seed, first, noise, threshold))
        for (name, method), runner, book in zip(methods.items(), runners, books, strict=True)
    }


class _Runner:
    """One method in all trials: its setup, its state, and what it is about to be told."""

    def __init__(self, problem: Problem, method: Method | None, x0: Array, seed: int, first: int, noise: str) -> None:
        self.method, self.noise, self.domain = method, noise, problem.domain
        self.values: Array | None = None
        if method is None:
            self.still = x0
            return
        self.setup = Setup(method, x0.shape, domain=problem.domain, seed=seed, lane=first)
        self.state = core.init(self.setup, x0)
        self.before: State | None = None

    @property
    def centre(self) -> Array:
        return self.still if self.method is None else self.state.centre

    def queries(self) -> Array:
        """`(trials, queries, d)`."""
        if self.method is None:
            return self.still[:, None]
        x = core.ask(self.setup, self.state)
        return x if self.method.queries > 1 else x[:, None]

    def needs(self) -> list[tuple[int, int]]:
        """The (lag, draw) of each query."""
        if self.method is None:
            return [(0, 0)]
        return [(lag, k if self.noise == "independent" else 0) for k, lag in enumerate(self.method.estimator.lags)]

    def move(self, diverged: NDArray[np.bool_]) -> None:
        if self.method is None or self.values is None:
            return
        values = np.where(np.isfinite(self.values) & ~diverged[:, None], self.values, np.nan)
        self.before = self.state
        self.state = core.tell(self.setup, self.state, values if self.method.queries > 1 else values[:, 0])

    def variances(
        self, world: World, t: int, common: Array, seed: int, first: int, resamples: int
    ) -> tuple[Array, Array]:
        """Trace of the covariance of ĝ_t over fresh directions (of this round and of the anchor's) and noise."""
        trials = self.centre.shape[0]
        if self.method is None or self.before is None:
            return np.zeros(trials), np.zeros(trials)
        shape = (trials * resamples, self.centre.shape[1])
        setup = Setup(self.method, shape, domain=self.domain, seed=(seed + RESAMPLING) % 2**64, lane=first * resamples)
        found = []
        for before, now in ((self.before.centre, self.state.centre), (common, common)):
            memory: Memory = tuple(np.repeat(m, resamples) for m in self.before.memory)
            state = self.before._replace(centre=np.repeat(before, resamples, axis=0), memory=memory, round=t - 1)
            values = self._resampled(world, t - 1, setup, state, resamples)
            _, memory = self.method.estimator.contrast(memory, values)
            state = state._replace(centre=np.repeat(now, resamples, axis=0), memory=memory, round=t)
            values = self._resampled(world, t, setup, state, resamples)
            estimate = core.estimate(setup, state, values).reshape(trials, resamples, -1)
            found.append(estimate.var(axis=1, ddof=1).sum(-1))
        return found[0], found[1]

    def _resampled(self, world: World, t: int, setup: Setup, state: State, resamples: int) -> tuple[Array, ...]:
        trials = state.centre.shape[0] // resamples
        x = core.ask(setup, state).reshape(trials, resamples, -1, setup.dim)
        values = []
        for k, (lag, draw) in enumerate(self.needs()):
            if world.noisy:  # each resample with noise of its own
                columns = [
                    world.measure(max(t - lag, 0), x[:, m, k][:, None], draw + 2 * m + 2)[:, 0]
                    for m in range(resamples)
                ]
                values.append(np.stack(columns, axis=1).reshape(-1))
            else:
                values.append(world.cost(max(t - lag, 0), np.ascontiguousarray(x[:, :, k])).reshape(-1))
        return tuple(values)


class _Book:
    """The arrays of a record, while they are being written."""

    def __init__(self, rounds: int, trials: int) -> None:
        self.cost, self.incurred, self.optimum, self.distance, self.gradient = (
            np.full((trials, rounds), np.nan) for _ in range(5)
        )
        self.diverged_at = np.full(trials, -1, dtype=np.int64)
        self.limit = np.full(trials, np.inf)
        self.variances: list[tuple[int, Array, Array]] = []

    @property
    def diverged(self) -> NDArray[np.bool_]:
        return self.diverged_at >= 0

    def enter(self, t: int, cost: Array, incurred: Array, optimum: Array, threshold: float) -> None:
        if t == 0:
            self.limit = threshold * (1 + np.abs(np.where(np.isfinite(cost), cost, 0.0)))
        out = ~(np.isfinite(cost) & np.isfinite(incurred)) | (np.maximum(np.abs(cost), np.abs(incurred)) > self.limit)
        self.diverged_at[out & ~self.diverged] = t
        self.cost[:, t] = np.where(self.diverged, np.inf, cost)
        self.incurred[:, t] = np.where(self.diverged, np.inf, incurred)
        self.optimum[:, t] = optimum

    def record(self, fixed: Array, final: Array, about: dict[str, Any]) -> Record:
        trials = len(self.diverged_at)
        return Record(
            cost=self.cost,
            incurred=self.incurred,
            optimum=self.optimum,
            distance=self.distance,
            gradient=self.gradient,
            fixed=fixed,
            final=np.array(final),
            diverged_at=self.diverged_at,
            variance_rounds=np.array([t for t, _, _ in self.variances], dtype=np.int64),
            variance=np.stack([v for _, v, _ in self.variances], axis=1) if self.variances else np.zeros((trials, 0)),
            common_variance=np.stack([c for _, _, c in self.variances], axis=1)
            if self.variances
            else np.zeros((trials, 0)),
            about=about,
        )


def _measure(
    world: World, t: int, runners: list[_Runner], centres: Array, books: list[_Book], threshold: float
) -> None:
    """Everything that is to be known of round t, in as few calls of the world as possible."""
    queries = [r.queries() for r in runners]
    world.play(t, centres, np.stack([q[:, 0] for q in queries], axis=1))
    flat = np.concatenate(queries, axis=1)
    costs = world.cost(t, np.concatenate([centres, flat], axis=1))
    at_centre, played = costs[:, : len(runners)], costs[:, len(runners) :]
    needs = [need for r in runners for need in r.needs()]
    values = played.copy()
    for lag, draw in set(needs):
        if (lag and t) or world.noisy:
            columns = [k for k, need in enumerate(needs) if need == (lag, draw)]
            values[:, columns] = world.measure(max(t - lag, 0), np.ascontiguousarray(flat[:, columns]), draw)
    best = world.optimum(t)
    start = 0
    for k, (runner, book) in enumerate(zip(runners, books, strict=True)):
        own = slice(start, start + queries[k].shape[1])
        start = own.stop
        runner.values = values[:, own]
        book.enter(t, at_centre[:, k], played[:, own].mean(1), best if best.ndim == 1 else best[:, k], threshold)


def hindsight(problem: Problem | str, *, rounds: int, trials: int, seed: int = 0, first: int = 0) -> Array | None:
    """The best fixed point in hindsight, argmin_x Σ_t f_t(x), `(trials, d)`; None where there are no gradients.

    L-BFGS on the sum over all trials at once (it separates), from the start and from the mean of the optimisers,
    whichever is better in each trial; then projected onto the domain.
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

    starts = [x0]
    optimisers = [best for t in range(0, rounds, max(1, rounds // 16)) if (best := world.optimiser(t)) is not None]
    if optimisers:
        starts.append(np.mean(optimisers, axis=0))
    points = []
    for start in starts:
        found = minimize(total, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
        points += [start, problem.domain.project(found.reshape(x0.shape))]
    values = np.stack([each(p) for p in points])
    values[~np.isfinite(values)] = np.inf
    best_of = values.argmin(0)
    return np.stack([points[k][i] for i, k in enumerate(best_of)])


def _about(
    problem: Problem, name: str, method: Method | None, seed: int, first: int, noise: str, threshold: float
) -> dict[str, Any]:
    step = getattr(method.step, "step", None) if method else None
    return {
        "problem": problem.id,
        "parameters": repr(problem),
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
