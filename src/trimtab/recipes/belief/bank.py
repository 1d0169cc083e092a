"""A bank of filters of one measured number: each predicts it and learns from it, and is weighted by its predictions.

The members are Kalman filters of the same linear model. They differ in how fast they forget level and slope, and in
whether slopes have a velocity. Covariances are in units of each member's noise variance, so that a·f + b has the same
path as f. All arrays have an axis of lanes first: `(lanes, members, …)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.recipes.belief.model import LEVEL, Columns, Constants, passed, seen_from
from trimtab.types import Array

Flags = NDArray[np.bool_]
TINY = 1e-30  # noise variance below which differences are rounding: values are in units of their first difference
CEILING = 1e10  # largest variance of a coefficient, in noise variances: it bounds rounding errors (1e8 does, too)
FARTHEST = 1e60  # of a value from the first one, in these units: its square and that of a gain are still numbers
STARTING = 4  # values before innovations are judged, and members weighed


class Bank(NamedTuple):
    """Configuration: columns, constants, and the members."""

    columns: Columns
    constants: Constants
    growth: Array
    """`(members, columns)`: by how much standard deviations grow per round, λ^-½ with λ = 1 − 1/(1 + window)."""
    moving: Flags
    """`(members,)`: those whose slopes have a velocity."""

    @classmethod
    def of(cls, dim: int, constants: Constants) -> Bank:
        """Six members: short or long windows of the slope times those of the level; long ones again, with velocity."""
        columns, short, long = Columns.of(dim), constants.short, constants.long
        windows = [(slope, level) for slope in (short, long, long) for level in (short, long)]
        rounds = np.full((len(windows), columns.size), constants.recall + 10 * dim)
        for row, (slope, level) in zip(rounds, windows, strict=True):
            row[LEVEL], row[columns.trend] = level, constants.steady * level
            row[columns.slope] = row[columns.velocity] = slope * dim
        return cls(columns, constants, (1 - 1 / (1 + rounds)) ** -0.5, np.arange(len(windows)) >= 4)


class Filter(NamedTuple):
    """The state of a bank: its estimates of θ, and the number's units and noise."""

    learnt: Array
    """`(lanes,)`: the number of values learnt; at most 1 until two of them differ."""
    origin: Array
    """`(lanes,)`: the value that is 0 here; NaN before the first, and after `forget`."""
    unit: Array
    """`(lanes,)`: the value that is 1 more: the first difference. 0 before."""
    held: Array
    """`(lanes,)`: an innovation that was too large to be learnt and awaits the next, else 0."""
    mean: Array
    """`(lanes, members, columns)`: of θ, seen from the present centre."""
    cov: Array
    """`(lanes, members, columns, columns)`: of θ, in noise variances of the member."""
    dof: Array
    """`(lanes, members)`: values behind the noise variance."""
    squares: Array
    """`(lanes, members)`: discounted sum of squared innovations: the noise variance is squares/dof."""
    evidence: Array
    """`(lanes, members)`: log weights; the largest is 0."""

    def weights(self) -> Array:
        """The share of each member, `(lanes, members)`."""
        likely = np.exp(self.evidence)
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def noise(self) -> Array:
        """The noise variance of each member, `(lanes, members)`."""
        return self.squares / self.dof


class News(NamedTuple):
    """The effect of a value, per lane."""

    compared: Flags
    """It was compared with a prediction."""
    odd: Flags
    """Its innovation is held back: an outlier, or the beginning of a jump."""
    rise: Flags
    """It is held back, and worse than predicted."""


def start(bank: Bank, lanes: int) -> Filter:
    """Before any value: the first probe changes it by about `effect` standard deviations of the noise."""
    columns, c, size = bank.columns, bank.constants, bank.columns.size
    prior = np.zeros(size)  # own curvatures and velocities join once there is a unit to give them a prior in: `join`
    prior[LEVEL], prior[columns.trend] = 1.0, c.trend
    prior[columns.slope], prior[columns.common] = c.effect**2 / columns.dim, (c.effect / columns.dim) ** 2
    none, members = np.zeros(lanes), len(bank.moving)
    each = np.zeros((lanes, members))
    cov = np.zeros((lanes, members, size, size)) + np.diag(prior)
    return Filter(none, none + np.nan, none, none, np.zeros((lanes, members, size)), cov, each + 1e-9, each, each)


def let_pass(bank: Bank, filter: Filter, rounds: Array, common: Array, width: Array) -> Filter:
    """(B1) Time passes: up to a cap, all is known less well. Unknown noise caps nothing.

    common, width: per lane, what own curvatures and velocities are measured in.
    """
    columns, c = bank.columns, bank.constants
    known = filter.squares > 0
    noise = np.where(known, np.maximum(filter.noise(), TINY), 1.0)
    prior = np.where(known, np.minimum((c.doubt * common[:, None]) ** 2 / noise, CEILING), CEILING)[..., None]
    cap = np.full(filter.mean.shape, CEILING)
    cap[..., columns.trend] = c.trend
    cap[..., columns.own] = prior
    cap[..., columns.velocity] = np.minimum(prior * (width * width)[:, None, None], CEILING)
    growth = bank.growth if (rounds == 1).all() else _power(bank.growth, rounds[:, None, None])
    mean, cov = passed(columns, filter.mean, filter.cov, rounds, growth, cap)
    return filter._replace(mean=mean, cov=cov)


def _power(base: Array, exponents: Array) -> Array:
    """base^n by products alone, which round alike for one lane and for many."""
    left, found = exponents.astype(int), np.ones_like(base * exponents)
    while left.any():
        found = np.where(left & 1, found * base, found)
        base, left = base * base, left >> 1
    return found


def learn(
    bank: Bank, filter: Filter, x: Array, value: Array, age: Array, common: Array, curvature: Array
) -> tuple[Filter, News]:
    """(B3–B7, B12) The filters after a value `(lanes,)` with the features x `(lanes, columns)`, asked `age` rounds ago.

    common, curvature: per lane, and per lane and coordinate: those of the last decision. The covariance is changed in
    place: it must be the caller's own, as it is after `let_pass`.
    """
    c = bank.constants
    predicted = np.matmul(filter.mean, x[..., None])[..., 0]
    weight = filter.weights()
    y, filter, news = _scaled(filter, value, (weight * predicted).sum(axis=1))
    # (B3) The innovation of each member. Noise is 1, and more for an old value, by what was forgotten since.
    error = np.where(news, y, 0.0)[:, None] - predicted
    excess = np.ones_like(error)
    if age.any():
        variance = np.einsum("lkii->lki", filter.cov)
        excess += age[:, None] * (variance * (bank.growth * bank.growth - 1) * (x * x)[:, None]).sum(axis=-1)
    gain, spread = _gain(filter.cov, x, excess)
    square = error * error
    noise = np.where(filter.squares > 0, np.maximum(filter.noise(), TINY), np.maximum(square / spread, TINY))
    # (B12) An innovation that the whole bank did not expect is held back; the next of the same sign confirms a jump.
    shared = (weight * error).sum(axis=1)
    ratio = shared**2 / (weight * (spread * noise + (error - shared[:, None]) ** 2)).sum(axis=1)
    jump = news & (filter.held * shared > 0) & (ratio > c.surprise / 3)
    odd = news & ~jump & (ratio > c.surprise) & (filter.learnt > STARTING)
    if jump.any():
        filter, noise = _doubted(bank, filter, jump, shared, ratio, 2 * x[:, bank.columns.common], noise, curvature)
        gain, spread = _gain(filter.cov, x, excess)
    # (B5) Kalman's update, (B6) the noise variance, (B7) weights by Student's density of the innovation
    scale, learnt = spread * noise, (news & ~odd)[:, None]
    surprise = square / scale
    rated = learnt & (~jump & (filter.learnt >= STARTING))[:, None]
    density = -0.5 * (np.log(scale) + (filter.dof + 1) * np.log1p(surprise / filter.dof))
    evidence = c.fading * filter.evidence + density
    evidence = np.maximum(evidence - evidence.max(axis=1, keepdims=True), c.dormant)
    gain *= np.where(learnt, spread**-0.5, 0.0)[..., None]
    cov = filter.cov  # its own since time has passed
    cov -= gain[..., :, None] * gain[..., None, :]
    filter = filter._replace(
        held=np.where(news, np.where(odd, shared, 0.0), filter.held),
        mean=filter.mean + gain * (error / np.sqrt(spread))[..., None],
        dof=np.where(learnt, c.fading * filter.dof + 1, filter.dof),
        squares=np.where(learnt, c.fading * filter.squares + square / spread, filter.squares),
        evidence=np.where(rated, evidence, filter.evidence),
        learnt=filter.learnt + (news | (filter.learnt == 0)),
    )
    return filter, News(news & (filter.learnt > 1), odd, odd & (shared > 0))


def _gain(cov: Array, x: Array, excess: Array) -> tuple[Array, Array]:
    """(B3) P·x, and the variance of an innovation, xᵀPx + noise."""
    gain = np.matmul(cov, x[:, None, :, None])[..., 0]
    return gain, (gain * x[:, None]).sum(axis=-1) + excess


def _scaled(filter: Filter, value: Array, predicted: Array) -> tuple[Array, Filter, Flags]:
    """(B0) The value from the first one, in units of the first difference; and whether it can be learnt from.

    After `forget` a value is what was predicted: it only anchors.
    """
    anchor, differs = np.isnan(filter.origin), filter.unit > 0
    origin = np.where(anchor, value - np.where(differs, filter.unit * predicted, 0.0), filter.origin)
    apart = value - origin
    unit = np.where(differs, filter.unit, np.abs(apart))
    y = np.clip(apart / np.where(unit > 0, unit, 1.0), -FARTHEST, FARTHEST)
    return y, filter._replace(origin=origin, unit=unit), (unit > 0) & ~anchor


def _doubted(
    bank: Bank, filter: Filter, jump: Flags, shared: Array, ratio: Array, square: Array, noise: Array, curvature: Array
) -> tuple[Filter, Array]:
    """(B12) After a jump, level, slope, curvature and the noise's variance are doubted, in the lanes that jumped."""
    columns, on, root = bank.columns, jump[:, None], np.sqrt(np.maximum(ratio, 1.0))[:, None]
    cov = filter.cov.copy()
    variance = np.einsum("lkii->lki", cov)  # a view
    variance[..., LEVEL] += np.where(on, np.minimum(shared[:, None] ** 2 / noise, CEILING), 0.0)
    slope = np.abs(shared)[:, None] * 2 / (columns.dim * noise)
    variance[..., columns.slope] += np.where(
        on[..., None], np.minimum(slope[..., None] * curvature[:, None], CEILING), 0.0
    )
    # Curvature that explains the innovation all by itself is the most that is worth believing.
    most = (2 * shared / np.maximum(square, columns.dim))[:, None] ** 2 / noise
    more = np.maximum(1.0, np.minimum(root, most / np.maximum(variance[..., columns.common], 1e-300)))
    factor = np.where(on, np.sqrt(more), 1.0)[..., None]
    cov[..., columns.common, :] *= factor
    cov[..., :, columns.common] *= factor
    noise, dof = np.where(on, noise * root, noise), np.where(on, np.minimum(filter.dof, 1.0), filter.dof)
    return filter._replace(cov=cov, dof=dof, squares=np.where(on, noise * dof, filter.squares)), noise


def join(bank: Bank, filter: Filter, common: Array, noise: Array) -> Filter:
    """Velocities join after three values, own curvatures after 2·d, with priors in units of the common curvature."""
    columns = bank.columns
    for group, values, members in (
        (columns.velocity, 3, bank.moving),
        (columns.own, max(3, 2 * columns.dim), np.ones_like(bank.moving)),
    ):
        due = filter.learnt == values
        if due.any():
            prior = (bank.constants.doubt * common[:, None]) ** 2 / np.maximum(noise, TINY)
            cov = filter.cov.copy()
            variance = np.einsum("lkii->lki", cov)[..., group]
            variance[...] = np.where((due[:, None] & members)[..., None], prior[..., None], variance)
            filter = filter._replace(cov=cov)
    return filter


def moved(bank: Bank, filter: Filter, move: Array) -> Filter:
    """(B8) The same filters, seen from a centre that has moved (in radii)."""
    mean, cov = seen_from(bank.columns, filter.mean, filter.cov, move)
    return filter._replace(mean=mean, cov=cov)
