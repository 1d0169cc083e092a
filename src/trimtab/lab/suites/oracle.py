"""The oracle: a reference for moving quadratics that knows everything except the position of the optimum.

A second-order extended Kalman filter (Athans, Wishner, Bertolini 1968) of the state s = (c, v, b): the optimum, its
velocity (if it moves along lines) and the offset. It knows the curvatures Λ, the laws of drift, noise and offset, and
the initial distance. It gets one value per round, y = ½(q − c)ᵀΛ(q − c) + b + noise. With the prediction ŝ, P and the
gradient H = (−Λ(q − ĉ), 0, 1) of y,

    ŷ = ½(q − ĉ)ᵀΛ(q − ĉ) + b̂ + ½tr(ΛP_c),   S = HPHᵀ + σ² + ½tr(ΛP_cΛP_c),   K = PHᵀ/S,
    ŝ ← ŝ + K(y − ŷ),   P ← P − KSKᵀ.

It queries q = ĉ + γ·√(tr P_c)·u, with u from orthonormal bases. γ, the probe length relative to its own uncertainty, is
the best in hindsight for each score. It is not a bound: a method may do better, because the filter linearises.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeGuard

import numpy as np

from trimtab.lab.suites.scores import SCORES, Outcome, Result, Score
from trimtab.problems import Problem, Quadratic
from trimtab.randomness import DIRECTIONS, Keyed
from trimtab.types import Array

LARGEST = 100  # largest dimension; the covariance takes too long beyond
GAMMAS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5)
MANY, FEWER = 50, (0.3, 0.6)  # from this dimension on, try fewer γ
LOST = 1e6  # a mean regret beyond this multiple of the initial one counts as diverged
SMALLEST = 1e-18  # lower limit of the variance of a value
DRIFTS = ("none", "walk", "line", "jumps", "ramps")


def knows(problem: Problem) -> TypeGuard[Quadratic]:
    """Whether a problem has an oracle: an unconstrained quadratic of moderate size, with normal drift and noise."""
    return (
        isinstance(problem, Quadratic)
        and problem.id == "quadratic-v1"
        and problem.dim <= LARGEST
        and problem.drift in DRIFTS
        and (problem.noise_law == "normal" or not problem.noise)
    )


def consult(problem: Problem, *, rounds: int, trials: int, seed: int = 0) -> Outcome:
    """Run the oracle, with the best γ for each score; the `step` of a result is that γ."""
    if not knows(problem):
        raise ValueError(
            f"there is no oracle for {problem.id}: only for quadratic-v1 with dim <= {LARGEST}, normal noise and a"
            f" drift of {', '.join(DRIFTS)}"
        )
    # Run all γ together if the covariances fit into the processor cache, else one by one.
    batches = [(gamma,) for gamma in FEWER] if problem.dim >= MANY else [GAMMAS]
    found: dict[Score, list[Result]] = {score: [] for score in SCORES}
    for gammas in batches:
        regrets = _regrets(problem, gammas, rounds, trials, seed)
        for score, values in zip(SCORES, regrets, strict=True):
            found[score] += [Result(v, int(np.isinf(v).sum()), g) for v, g in zip(values, gammas, strict=True)]
    return {score: min(results, key=lambda result: result.median) for score, results in found.items()}


def _regrets(problem: Quadratic, gammas: tuple[float, ...], rounds: int, trials: int, seed: int) -> Array:
    """Regrets at ĉ and at the queries, `(2, gammas, trials)`; infinite if the filter diverged."""
    world, count = problem.world(seed, trials), len(gammas)
    start = world.inward(problem.start(seed, trials)[:, None])[:, 0]
    belief = _Belief(problem, np.repeat(start, count, axis=0))
    bases, totals = _bases(seed, trials, problem.dim), np.zeros((2, trials, count))
    reach = np.tile(gammas, trials)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(rounds):
            if t:
                belief.predict(t)
            query = belief.optimum + (reach * belief.distance)[:, None] * np.repeat(next(bases), count, axis=0)
            for k, points in enumerate((belief.optimum, query)):
                x = world.outward(points.reshape(trials, count, -1))
                totals[k] += world.cost(t, x) - world.optimum(t)[:, None]
            belief.learn(query, world.measure(t, x).reshape(-1))
    lost = ~(np.abs(totals).max(0) < LOST * rounds * (1.0 + problem.distance**2))
    return np.where(lost, np.inf, totals).transpose(0, 2, 1)


def _bases(seed: int, trials: int, dim: int) -> Iterator[Array]:
    """Yield unit vectors `(trials, d)`, one per round, orthogonal within each d rounds."""
    keyed = Keyed(seed, DIRECTIONS)
    for block in itertools.count():
        normals = np.stack([rng.standard_normal((dim, dim)) for rng in keyed.generators(block, 0, trials)])
        yield from np.moveaxis(np.linalg.qr(normals)[0], 2, 0)


class _Belief:
    """Mean `(trials, n)` and covariance `(trials, n, n)` of (c, v, b), in the axes of Λ; without v if always 0."""

    def __init__(self, problem: Quadratic, start: Array) -> None:
        trials, dim = start.shape
        self.problem, self.dim = problem, dim
        self.speeds = slice(dim, 2 * dim if problem.drift in ("line", "ramps") else dim)
        n = self.speeds.stop + 1
        self.mean, self.covariance = np.zeros((trials, n)), np.zeros((trials, n, n))
        self.mean[:, :dim] = start
        self._add(0, problem.distance**2 / dim)
        if problem.drift == "line":
            self._add(dim, problem.speed**2 / dim)

    @property
    def optimum(self) -> Array:
        """ĉ: `(trials, d)`."""
        return self.mean[:, : self.dim]

    @property
    def distance(self) -> Array:
        """√(tr P_c), the estimated error of ĉ: `(trials,)`."""
        return np.asarray(np.sqrt(np.maximum(np.einsum("tii->t", self._of_optimum), 0.0)))

    @property
    def _of_optimum(self) -> Array:
        return self.covariance[:, : self.dim, : self.dim]

    def _add(self, first: int, variance: float) -> None:
        """Add a variance to d coordinates from `first` on."""
        each = first + np.arange(self.dim)
        self.covariance[:, each, each] += variance

    def predict(self, t: int) -> None:
        """Predict the drift from round t − 1 to t."""
        p, cov, d = self.problem, self.covariance, self.dim
        if p.drift == "ramps" and (t - 1) % p.every == 0:  # a new line, or a rest
            self.mean[:, self.speeds] = 0.0
            cov[:, self.speeds] = cov[:, :, self.speeds] = 0.0
            if (t - 1) // p.every % 2 == 0:
                self._add(d, p.speed**2 / d)
        if self.speeds.stop > d:  # c ← c + v
            self.mean[:, :d] += self.mean[:, self.speeds]
            cov[:, :d] += cov[:, self.speeds]
            cov[:, :, :d] += cov[:, :, self.speeds]
        if p.drift == "walk":
            self._add(0, p.speed**2 / d)
        elif p.drift == "jumps" and t % p.every == 0:
            self._add(0, (p.speed * p.every) ** 2 / d)
        self.mean[:, -1] += p.trend
        cov[:, -1, -1] += p.offset**2

    def learn(self, query: Array, value: Array) -> None:
        """Update with a measured value."""
        away = query - self.optimum
        curvatures = self.problem.curvatures
        bend = curvatures * away
        gradient = np.zeros_like(self.mean)
        gradient[:, : self.dim], gradient[:, -1] = -bend, 1.0
        own = self._of_optimum
        predicted = 0.5 * (bend * away).sum(-1) + self.mean[:, -1] + 0.5 * np.einsum("tii,i->t", own, curvatures)
        along = (self.covariance @ gradient[:, :, None])[:, :, 0]
        twice = np.square(own) @ curvatures @ curvatures
        spread = (gradient * along).sum(-1) + self.problem.noise**2 + 0.5 * twice + SMALLEST
        self.mean += along * ((value - predicted) / spread)[:, None]
        along /= np.sqrt(spread)[:, None]
        self.covariance -= along[:, :, None] * along[:, None, :]
