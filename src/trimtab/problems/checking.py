"""Check the contract of a problem.

Covers the testable parts of the contract (`trimtab.problems.base`): shapes, purity in (seed, trial, round), the
optimum, the gradient and the noise. Works for any implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from trimtab.domains import Domain
from trimtab.problems.base import Problem, World
from trimtab.types import Array
from trimtab.validation import real, whole

SAME = 1e-9  # relative; smaller differences may be rounding, such as that of a differently blocked matrix product
CLOSE = 1e-6  # relative accuracy required of an optimum


class CheckError(AssertionError):
    """A violation of the contract; `findings` lists all of them as sentences.

    >>> raise CheckError("measures 2 points in one round")
    Traceback (most recent call last):
    ...
    trimtab.problems.checking.CheckError: measures 2 points in one round
    """

    def __init__(self, subject: str, findings: Sequence[str] = ()) -> None:
        self.findings = list(findings) or [subject]
        super().__init__("\n- ".join([f"{subject} violates the contract:", *findings]) if findings else subject)


def check_problem(problem: Problem, *, seed: int = 0, trials: int = 3) -> None:
    """Check the contract of a problem and raise `CheckError` with all findings.

    >>> from trimtab.problems import from_function
    >>> check_problem(from_function(lambda t, x: x @ x, x0=[1.0, 2.0], optimum=0.0))
    >>> check_problem(from_function(lambda t, x: 1.0, x0=[1.0, 2.0], optimum=4.0))
    Traceback (most recent call last):
    ...
    trimtab.problems.checking.CheckError: function violates the contract:
    - round 0: the cost is 1 somewhere, below the optimum 4
    """
    probe = _Probe(problem, seed, max(trials, 2))
    findings: list[str] = []
    for stage in ((_attributes,), (_start,), (_shapes,), (_purity, _optimum, _gradient, _noise), (_play,)):
        for check in stage:
            with np.errstate(all="ignore"):  # a system may diverge
                findings += _findings(check, probe)
        if findings:  # later stages rely on earlier ones
            raise CheckError(str(getattr(problem, "id", type(problem).__name__)), findings)


@dataclass(frozen=True)
class _Probe:
    problem: Problem
    seed: int
    trials: int

    def world(self) -> World:
        return self.problem.world(self.seed, self.trials)

    @cached_property
    def start(self) -> Array:
        return np.array(self.problem.start(self.seed, self.trials), dtype=float)

    @cached_property
    def rounds(self) -> list[int]:
        return sorted({min(t, self.problem.rounds - 1) for t in (0, 1, 2, 9, 30)})

    @cached_property
    def points(self) -> Array:
        """Points of the domain at increasing distances from the start: `(trials, 12, d)`."""
        rng = np.random.default_rng(self.seed)
        p, dim = self.problem, self.problem.dim
        offsets = rng.standard_normal((self.trials, 12, dim)) * p.radius
        offsets *= np.repeat([1.0, 3.0, 10.0], 4)[:, None]
        offsets[:, 0] = 0.0
        points = self.start[:, None] + offsets
        around = p.domain.outer_radius(dim)
        if np.isfinite(around):
            wide = rng.standard_normal((self.trials, 4, dim)) * around / np.sqrt(dim)
            points[:, 8:] = p.domain.middle(dim) + wide
        return self._inside(points)

    def near(self, at: Array) -> Array:
        """Points of the domain near one point per trial: `(trials, 8, d)`."""
        offsets = np.random.default_rng(self.seed + 2).standard_normal((self.trials, 8, self.problem.dim))
        offsets *= self.problem.radius * np.repeat([0.1, 1.0], 4)[:, None]
        return self._inside(np.where(np.isnan(at), self.start, at)[:, None] + offsets)

    def _inside(self, points: Array) -> Array:
        return self.problem.domain.project(points.reshape(-1, points.shape[-1])).reshape(points.shape)


def _findings(check: Callable[[_Probe], Iterator[str]], probe: _Probe) -> list[str]:
    findings: list[str] = []
    try:
        for finding in check(probe):
            findings.append(finding)
    except Exception as error:
        name = check.__name__.strip("_")
        findings.append(f"the check of {name} raised {type(error).__name__}: {error}")
    return findings


def _attributes(probe: _Probe) -> Iterator[str]:
    p = probe.problem
    if not isinstance(getattr(p, "id", None), str) or not p.id:
        yield f"id={getattr(p, 'id', None)!r} must be a non-empty string"
    for name in ("dim", "rounds"):
        yield from _wrong(whole, name, getattr(p, name, None), 1)
    yield from _wrong(partial(real, above=True), "radius", getattr(p, "radius", None), 0)
    if not isinstance(p.domain, Domain):
        yield f"domain={p.domain!r} is not a Domain"
    elif p.domain.dim not in (None, p.dim):
        yield f"the domain has dimension {p.domain.dim}, but dim={p.dim}"


def _wrong(check: Callable[[str, object, int], float], name: str, value: object, least: int) -> Iterator[str]:
    try:
        check(name, value, least)
    except ValueError as error:
        yield str(error)


def _start(probe: _Probe) -> Iterator[str]:
    p, trials = probe.problem, probe.trials
    if probe.start.shape != (trials, p.dim):
        yield f"start gives the shape {probe.start.shape}, not (trials, d) = {(trials, p.dim)}"
        return
    if not np.isfinite(probe.start).all():
        yield "start is not finite"
        return
    if not np.all(p.domain.contains(probe.start)):
        yield f"start is outside the domain {p.domain}"
    if not np.array_equal(probe.start, p.start(probe.seed, trials)):
        yield "start differs when evaluated again: it must be a function of (seed, trial)"
    elif not np.array_equal(probe.start[1:], p.start(probe.seed, trials - 1, 1)):
        yield "start of a trial depends on the other trials: draw by the number of the trial, first + i"


def _shapes(probe: _Probe) -> Iterator[str]:
    trials, dim = probe.trials, probe.problem.dim
    world = probe.world()
    for k in (1, 4):
        x = probe.points[:, :k].copy()
        for name in ("cost", "measure", "gradient"):
            given = getattr(world, name)(0, x)
            shape = (trials, k, dim) if name == "gradient" else (trials, k)
            if given is not None and np.shape(given) != shape:
                yield f"{name} of points {x.shape} has the shape {np.shape(given)}, not {shape}"
            if not np.array_equal(x, probe.points[:, :k]):
                yield f"{name} changed the points it was given: work on a copy"
                x[:] = probe.points[:, :k]
        limits = world.limits(0, x)
        if limits is not None and (np.ndim(limits) != 3 or np.shape(limits)[:2] != (trials, k)):
            yield f"limits of points {x.shape} has the shape {np.shape(limits)}, not (trials, k, m), with {(trials, k)}"
    if np.shape(world.optimum(0)) != (trials,):
        yield f"optimum has the shape {np.shape(world.optimum(0))}, not (trials,) = {(trials,)}: use NaN if unknown"
    best = world.optimiser(0)
    if best is not None and np.shape(best) != (trials, dim):
        yield f"optimiser has the shape {np.shape(best)}, not (trials, d) = {(trials, dim)}"
    for name in ("cost", "measure"):
        if not np.isfinite(getattr(world, name)(0, probe.start[:, None])).all():
            yield f"{name} is not finite at the start in round 0"


def _answers(world: World, round: int, x: Array) -> dict[str, Array]:
    answers = {
        "cost": world.cost(round, x),
        "measure": world.measure(round, x),
        "measure with draw=1": world.measure(round, x, 1),
        "optimum": world.optimum(round),
        "optimiser": world.optimiser(round),
        "gradient": world.gradient(round, x),
        "limits": world.limits(round, x),
    }
    return {name: np.array(answer) for name, answer in answers.items() if answer is not None}


def _purity(probe: _Probe) -> Iterator[str]:
    x, rounds = probe.points, probe.rounds
    world = probe.world()
    first = {t: _answers(world, t, x) for t in rounds}
    shuffled = [*rounds[::-1], *rounds[::2], rounds[-1], rounds[0]]
    fresh = probe.world()
    alone, many = probe.problem.world(probe.seed, 1, probe.trials - 1), slice(probe.trials - 1, None)
    broken: set[tuple[str, str]] = set()
    for t in shuffled:
        ways: list[tuple[str, dict[str, Array], dict[str, Array], float]] = [
            ("when evaluated again", _answers(world, t, x), first[t], 0.0),
            ("when rounds are evaluated in another order", _answers(fresh, t, x), first[t], 0.0),
            (
                "when the trial is run alone (first=...) instead of with others",
                _answers(alone, t, x[many]),
                {name: answer[many] for name, answer in first[t].items()},
                SAME,
            ),
        ]
        for way, now, before, tolerance in ways:
            for name in before:
                if (way, name) in broken or _equal(now.get(name), before[name], tolerance):
                    continue
                broken.add((way, name))
                yield f"round {t}: {name} differs {way}: it must be a function of (seed, trial, round)"
    for t in rounds:
        for name, ask in (("cost", world.cost), ("optimum", lambda t, _: world.optimum(t))):
            given = ask(t, x)
            if given.flags.writeable:
                given += 1.0
                if not _equal(ask(t, x), first[t][name], 0.0) and ("write", name) not in broken:
                    broken.add(("write", name))
                    yield f"writing to the result of {name} changes later results: return a copy"
    for t in rounds:
        single = np.concatenate([world.cost(t, x[:, i : i + 1]) for i in range(x.shape[1])], axis=1)
        if not _equal(single, first[t]["cost"], SAME):
            yield f"round {t}: the cost of a point depends on the other points"
            break


def _equal(a: Array | None, b: Array, tolerance: float) -> bool:
    if a is None or a.shape != b.shape:
        return False
    if tolerance == 0:
        return np.array_equal(a, b, equal_nan=True)
    return np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def _optimum(probe: _Probe) -> Iterator[str]:
    world = probe.world()
    for t in probe.rounds:
        findings = list(_optimum_of(probe, world, t))
        if findings:
            yield from findings
            return


def _optimum_of(probe: _Probe, world: World, t: int) -> Iterator[str]:
    best, at = world.optimum(t), world.optimiser(t)
    points = probe.points if at is None else np.concatenate([probe.points, probe.near(at)], axis=1)
    costs = world.cost(t, points)
    lowest = np.where(np.isfinite(costs) & _allowed(world, t, points), costs, np.inf).min(1)
    slack = CLOSE * np.maximum(1.0, np.abs(best))
    for trial in np.flatnonzero(lowest < best - slack)[:1]:
        yield f"round {t}: the cost is {lowest[trial]:.6g} somewhere, below the optimum {best[trial]:.6g}"
    if at is None:
        return
    known = np.asarray(~np.isnan(at).any(-1))
    if not np.all(probe.problem.domain.contains(at[known], CLOSE)):
        yield f"round {t}: the optimiser is outside the domain {probe.problem.domain}"
    if not np.all(_allowed(world, t, np.where(known[:, None], at, probe.start)[:, None], CLOSE)[known]):
        yield f"round {t}: the optimiser exceeds a limit: it must be the best point within all limits"
    there = world.cost(t, np.where(known[:, None], at, probe.start)[:, None])[:, 0]
    for trial in np.flatnonzero(known & np.isfinite(best) & ~(np.abs(there - best) <= slack))[:1]:
        yield f"round {t}: the cost at the optimiser is {there[trial]:.6g}, not the optimum {best[trial]:.6g}"
    for trial in np.flatnonzero(known & np.isnan(best) & (lowest < there - CLOSE * np.maximum(1.0, np.abs(there))))[:1]:
        yield f"round {t}: the cost is {lowest[trial]:.6g} somewhere, below {there[trial]:.6g} at the optimiser"


def _allowed(world: World, t: int, x: Array, tolerance: float = 0.0) -> NDArray[np.bool_]:
    """Whether each point is within all limits: `(trials, k)`."""
    limits = world.limits(t, x)
    return np.full(x.shape[:2], True) if limits is None else np.asarray((limits <= tolerance).all(-1))


def _gradient(probe: _Probe) -> Iterator[str]:
    """Check that ⟨∇f, v⟩ lies between the one-sided difference quotients along random directions, even at a kink."""
    world = probe.world()
    x = 0.9 * probe.points + 0.1 * probe.start[:, None]  # away from the boundary
    rng = np.random.default_rng(probe.seed + 1)
    for t in probe.rounds:
        gradient = world.gradient(t, x)
        if gradient is None:
            return
        for _ in range(4):
            v = rng.standard_normal(x.shape)
            v /= np.linalg.norm(v, axis=-1, keepdims=True)
            slope = (gradient * v).sum(-1)
            wrong = np.full(slope.shape, True)
            for h in probe.problem.radius * np.array([1e-3, 1e-4, 1e-5]):  # a sharp bend needs a small step
                middle, slack = _slope(world, t, x, v, h)
                wrong &= np.abs(slope - middle) > slack
            if wrong.any():
                given, expected = slope[wrong][0], middle[wrong][0]
                yield f"round {t}: along a random direction the gradient is {given:.6g}, but differences {expected:.6g}"
                return


def _slope(world: World, t: int, x: Array, v: Array, h: float) -> tuple[Array, Array]:
    """The central difference quotient, and the allowed deviation of a derivative from it."""
    behind, here, ahead = (world.cost(t, x + s * v) for s in (-h, 0.0, h))
    middle, half = (ahead - behind) / (2 * h), np.abs(ahead - 2 * here + behind) / (2 * h)
    rounding = 1e-14 * (1.0 + np.abs(here)) / h
    return middle, half + 1e-3 * (np.abs(middle) + half) + rounding


def _noise(probe: _Probe) -> Iterator[str]:
    world, x = probe.world(), probe.points[:, :6]
    t = probe.rounds[-1]
    values, costs = world.measure(t, x), world.cost(t, x)
    noise = values - costs
    sizes = np.abs(noise).max(1)
    rounding = SAME * (1.0 + np.abs(values).max(1))
    noisy: NDArray[np.bool_] = sizes > rounding
    if not noisy.any():
        return
    backwards = world.measure(t, x[:, ::-1].copy())[:, ::-1]
    if not _equal(backwards, values, SAME):
        yield "the noise of a point depends on the other points: draw it once per (seed, trial, round, draw)"
        return
    near = x + 1e-9 * probe.problem.radius
    jump = np.abs(world.measure(t, near) - world.cost(t, near) - noise).max(1)
    if np.any(jump > 1e-3 * sizes + rounding):
        yield "the noise jumps between neighbouring points: it must not depend on x"
    if _repeats(world.measure(t, x, 1) - costs, noise, rounding, noisy):
        yield "the noise of draw=1 equals that of draw=0: measurements in one round must be independent"
    if t and _repeats(world.measure(t - 1, x) - world.cost(t - 1, x), noise, rounding, noisy):
        yield "the noise is the same in two rounds: draw it by the number of the round"
    neighbour = np.roll(noise, 1, axis=0)
    if _repeats(neighbour, noise, rounding + np.roll(rounding, 1), noisy & np.roll(noisy, 1)):
        yield "the noise is the same in two trials: draw it by the number of the trial, first + i"


def _repeats(other: Array, noise: Array, rounding: Array, noisy: NDArray[np.bool_]) -> bool:
    return bool(np.any((np.abs(other - noise).max(1) <= rounding) & noisy))


def _play(probe: _Probe) -> Iterator[str]:
    """Check that the regret is valid after an adversary has changed the objective."""
    world, x = probe.world(), probe.points
    for t in range(min(3, probe.problem.rounds)):
        world.play(t, x[:, t : t + 1], x[:, 4 + t : 5 + t])
        regret = world.regret(t, x)
        if regret.shape != x.shape[:2]:
            yield f"round {t}: after play, regret has the shape {regret.shape}, not {x.shape[:2]}"
            return
        if np.any(_allowed(world, t, x) & (regret < -CLOSE * np.maximum(1.0, np.abs(world.cost(t, x))))):
            yield f"round {t}: after play, the cost is below the optimum by {-np.nanmin(regret):.6g}"
            return
