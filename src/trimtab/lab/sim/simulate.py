"""Simulate methods on a problem in lanes: all trials of all methods and step sizes advance together, round by round.

In a trial, all methods get the same drift, noise and directions. A trial has diverged if the cost at its centre or
query is not finite or exceeds `threshold`·(1 + |its cost at the start|); it then stops moving, and its costs count as
infinite.

With lag k, each round hands out a trial, and the value of round t is told at the end of round t + k − 1. If permuted,
the values of each k rounds are told in random order, one per round, with the same mean delay. Up to 2k trials are open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trimtab.lab.sim.lanes import Group, groups
from trimtab.lab.sim.provenance import describe_run
from trimtab.lab.sim.record import Record
from trimtab.lab.sim.recorder import Recorder
from trimtab.lab.sim.static_optimum import hindsight
from trimtab.lab.sim.theory_witness import TheoryRecorder
from trimtab.problems import Problem, World, make
from trimtab.recipes import BaseMethod
from trimtab.types import Array
from trimtab.validation import whole

Progress = Callable[[float], None]

THRESHOLD = 1e6


def part(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """The progress of one part of the work, as that of all of it."""
    return (lambda share: progress(start + (stop - start) * share)) if progress else None


def run(problem: Problem | str, method: BaseMethod, *, name: str | None = None, **options: Any) -> Record:
    """Run one method on one problem; see `simulate` for the options.

    >>> import trimtab as tt
    >>> record = run("quadratic-v1", tt.residual(radius=0.05, step=0.03), rounds=200, trials=8, seed=1)
    >>> record.cost.shape, int(record.diverged.sum())
    ((8, 200), 0)
    """
    name = name or type(getattr(method, "estimator", method)).__name__
    return simulate(problem, {name: method}, **options)[name]


@dataclass(frozen=True)
class _Plan:
    """The validated options of `simulate`."""

    rounds: int
    trials: int
    seed: int
    first: int
    noise: str
    threshold: float
    gradients: bool
    static: bool
    evidence: bool
    variance_at: frozenset[int]
    variance_of: slice
    common: Array | None
    resamples: int
    lag: int
    permuted: bool


def simulate(
    problem: Problem | str,
    methods: Mapping[str, BaseMethod],
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
    common: Array | None = None,
    resamples: int = 64,
    lag: int = 1,
    permuted: bool = False,
    progress: Progress | None = None,
) -> dict[str, Record]:
    """Run several methods on one problem, side by side.

    trials, first: run trials first, …, first + trials − 1 of this seed; a trial does not depend on the others.
    noise: whether the second query of a two-point method has "independent" noise, or the "common" noise of the first.
    gradients: record ‖∇f_t(x_t)‖². static: find the best fixed point in hindsight, for the static regret.
    evidence: record the quantities in the assumptions of the theory (`trimtab.lab.sim.theory_witness`), which takes
    about three times as long. variance_at: rounds at which each estimator is resampled, at its own iterate and at one
    common to all methods. variance_of: the coordinates included in the variance. common: the common iterate,
    `(trials, d)`, if not the optimiser. lag, permuted: values that arrive late, for methods with one query per round.
    progress: called with the completed share.

    >>> import trimtab as tt
    >>> methods = {"narrow": tt.auto(radius=0.05), "wide": tt.auto(radius=0.2)}
    >>> records = simulate("quadratic-v1", methods, rounds=50, trials=4)
    >>> records["wide"].regret().shape
    (4, 50)
    """
    problem = make(problem) if isinstance(problem, str) else problem
    if not isinstance(problem, Problem):
        raise TypeError(
            f"problem={problem!r} is neither an id nor a Problem: use problems.make(id) or from_function(f)"
        )
    if noise not in ("independent", "common"):
        raise ValueError(f"noise={noise!r} is unknown: choose 'independent' or 'common'")
    plan = _Plan(
        rounds=whole("rounds", problem.rounds if rounds is None else rounds, 1),
        trials=whole("trials", trials, 1),
        seed=whole("seed", seed, 0),
        first=whole("first", first, 0),
        noise=noise,
        threshold=threshold,
        gradients=gradients,
        static=static,
        evidence=evidence,
        variance_at=frozenset(variance_at) - {0},
        variance_of=variance_of,
        common=common,
        resamples=resamples,
        lag=whole("lag", lag, 1),
        permuted=permuted,
    )
    if lag > 1 and (evidence or variance_at):
        raise ValueError(f"lag={lag} goes without evidence and variance_at: leave these out, or the lag")
    for name, method in methods.items():
        if not isinstance(method, BaseMethod):
            raise TypeError(
                f"{name}: {method!r} is not a Method: use for example tt.residual(radius=0.05, step=3e-3),"
                " or tt.methods['still']() to keep the start"
            )
        if lag > 1 and method.queries > 1:
            raise ValueError(f"{name} measures twice per round: late values need one query per round")
    if not methods:
        raise ValueError("methods is empty: give at least one")
    if problem.world(plan.seed, 1).listens:  # an adversary reacts to one method: each gets its own
        return {name: _simulate(problem, {name: method}, plan, progress)[name] for name, method in methods.items()}
    return _simulate(problem, methods, plan, progress)


def due(rounds: int, lag: int, *, permuted: bool, seed: int = 0) -> list[int | None]:
    """The trial told at the end of each round; None if there is none.

    >>> due(6, 3, permuted=False)
    [None, None, 0, 1, 2, 3]
    """
    order = list(range(rounds))
    if permuted:
        rng = np.random.default_rng(seed)
        order = [lag * block + int(j) for block in range(math.ceil(rounds / lag)) for j in rng.permutation(lag)]
    return ([None] * (lag - 1) + order)[:rounds]


def _simulate(
    problem: Problem, methods: Mapping[str, BaseMethod], plan: _Plan, progress: Progress | None
) -> dict[str, Record]:
    whose = (plan.seed, plan.trials, plan.first)
    world, x0 = problem.world(*whose), problem.start(*whose)
    limited = world.limits(0, x0[:, None])
    count = 0 if limited is None else limited.shape[-1]
    lane_groups = [
        Group(problem, members, x0, seed=plan.seed, first=plan.first, noise=plan.noise, lag=plan.lag, limits=count)
        for members in groups(methods)
    ]
    told = due(plan.rounds, plan.lag, permuted=plan.permuted, seed=plan.seed)
    names = [name for group in lane_groups for name in group.members]
    for group in lane_groups:
        if group.setup.told not in (1, 1 + count):
            raise ValueError(
                f"{next(iter(group.members))} takes {group.setup.told - 1} limits, but {problem.id} has {count}: use"
                f" {'tt.primal_dual(..., limits=' + str(count) + ')' if count else 'a method without any'}"
            )
    recorder = Recorder(plan.rounds, plan.trials, len(names), plan.threshold, count)
    witness = TheoryRecorder(plan.rounds, plan.trials, len(names)) if plan.evidence else None
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(plan.rounds):
            centres = _beside([group.centre for group in lane_groups])
            _measure(world, t, lane_groups, centres, recorder)
            if plan.gradients and (slope := world.gradient(t, centres)) is not None:
                recorder.enter("gradient", t, np.square(slope).sum(-1))
            if (best := world.optimiser(t)) is not None:
                away = centres - best[:, None]
                recorder.enter("distance", t, np.sqrt(np.einsum("tkd,tkd->tk", away, away)))
            if t in plan.variance_at:
                common = best if plan.common is None else plan.common
                found = [group.variances(world, common, plan.resamples, plan.variance_of) for group in lane_groups]
                recorder.enter_variances(t, np.concatenate(found, axis=2))
            if witness:
                seen = zip(*(group.looked() for group in lane_groups), strict=True)
                witness.look(world, t, centres, *(np.concatenate(part, axis=1) for part in seen))
            at = 0
            for group in lane_groups:
                group.move(t, recorder.diverged[:, at : at + len(group.members)], told[t])
                at += len(group.members)
            if progress:
                progress((t + 1) / plan.rounds)
        fixed = np.full((plan.trials, plan.rounds), np.nan)
        if plan.static:
            options = {"rounds": plan.rounds, "trials": plan.trials, "seed": plan.seed, "first": plan.first}
            if (point := hindsight(problem, **options)) is not None:
                fixed = np.stack([world.cost(t, point[:, None])[:, 0] for t in range(plan.rounds)], axis=1)
    centres = np.concatenate([group.centre for group in lane_groups], axis=1)
    places = {name: names.index(name) for name in methods}
    return {
        name: recorder.record(
            k,
            fixed,
            centres[:, k],
            describe_run(
                *(problem, name, methods[name]),
                seed=plan.seed,
                first=plan.first,
                noise=plan.noise,
                threshold=plan.threshold,
            ),
            witness.of(k, recorder.diverged_at) if witness else {},
        )
        for name, k in places.items()
    }


def _beside(parts: list[Array]) -> Array:
    """Concatenate the columns of all groups; no copy if there is one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _measure(world: World, t: int, lane_groups: list[Group], centres: Array, recorder: Recorder) -> None:
    """Evaluate and record round t, in as few calls of the world as possible."""
    trials, _, dim = centres.shape
    queries = [group.queries() for group in lane_groups]
    world.play(t, centres, _beside([q[:, :, 0] for q in queries]))
    flat = _beside([q.reshape(trials, -1, dim) for q in queries])
    at_centre = world.cost(t, centres)
    rollouts = world.noisy and not world.adds_noise
    values = np.empty(flat.shape[:2]) if rollouts else world.cost(t, flat)
    at_queries = values.copy()
    needs = [need for group in lane_groups for need in group.needs() * len(group.members)]
    for lag, draw in set(needs):
        columns = [k for k, need in enumerate(needs) if need == (lag, draw)]
        if lag and t:
            values[:, columns] = world.measure(t - lag, np.ascontiguousarray(flat[:, columns]), draw)
        elif world.noisy:
            values[:, columns] = (
                world.measure(t, np.ascontiguousarray(flat[:, columns]), draw)
                if rollouts
                else world.disturbed(t, values[:, columns], draw)
            )
    if rollouts:
        at_queries = world.paid(t, flat, values)
    limits = world.limits(t, flat)
    start, played, incurred, excess = 0, [], [], []
    for group, query in zip(lane_groups, queries, strict=True):
        part = slice(start, start + query.shape[1] * query.shape[2])
        group.values = values[:, part].reshape(query.shape[:3])
        played.append(at_queries[:, part].reshape(query.shape[:3]).mean(-1))
        incurred.append(group.values.mean(-1))
        if limits is not None:
            measured = limits[:, part].reshape(*query.shape[:3], -1)
            group.limits = measured if group.setup.told > 1 else None
            excess.append(measured.mean(2))
        start = part.stop
    recorder.judge(t, at_centre, together := np.concatenate(incurred, axis=1))
    recorder.enter("cost", t, at_centre)
    recorder.enter("played", t, np.concatenate(played, axis=1))
    recorder.enter("incurred", t, together)
    if excess:
        recorder.enter_excess(t, np.concatenate(excess, axis=1))
    best = world.optimum(t)
    recorder.pages["optimum"][t] = best[:, None] if best.ndim == 1 else best
