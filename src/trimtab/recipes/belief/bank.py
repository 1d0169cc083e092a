"""A bank of filters of one measured number: each predicts it and learns from it, and is weighted by its predictions.

The members are Kalman filters of the same linear model. They differ in how fast they forget level and slope, and in
whether slopes have a velocity. Covariances are in units of each member's noise variance, so that a·f + b has the same
path as f. All arrays have an axis of lanes first: `(lanes, members, …)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trimtab.recipes.belief.context import Basis, ContextConstants, Flags, Renewal, change_of_basis
from trimtab.recipes.belief.model import LEVEL, Columns, Constants, on_slopes, passed, seen_from, turned
from trimtab.types import Array

TINY = 1e-30  # noise variance below which differences are rounding: values are in units of their first difference
CEILING = 1e10  # largest variance of a coefficient, in noise variances: it bounds rounding errors (1e8 does, too)
FARTHEST = 1e60  # of a value from the first one, in these units: its square and that of a gain are still numbers
SIX = 6  # members with the same contexts
STARTING = 4  # values before innovations are judged, and members weighed
DECIDING = 12  # values after which it is decided whether those before were outliers
ALIKE = 2.0  # a believed deviation this many times the range of all later values is an outlier's


class Bank(NamedTuple):
    """Configuration: columns, constants, and the members."""

    columns: Columns
    constants: Constants
    growth: Array
    """`(members, columns)`: by how much standard deviations grow per round, λ^-½ with λ = 1 − 1/(1 + window)."""
    moving: Flags
    """`(members,)`: those whose slopes have a velocity."""
    basis: Basis
    """The functions of context."""
    allowed: Flags
    """`(members, functions·(1 + dim))`: which coefficients of context a member has."""
    context: ContextConstants
    plane: Array | None = None
    """`(columns, columns)`: keeps slopes and velocities in the plane of a flat domain; None for others."""

    @property
    def masks(self) -> int:
        """The number of groups of members, by the contexts that they use."""
        return len(self.moving) // SIX

    @classmethod
    def of(
        cls,
        dim: int,
        constants: Constants,
        periods: Sequence[float] = (),
        flatten: Callable[[Array], Array] | None = None,
    ) -> Bank:
        """Six members for each mask of contexts (B13).

        Short or long windows of the slope times those of the level, and the long ones again, with velocity.
        """
        basis, context = Basis.of(periods), ContextConstants()
        columns, masks = Columns.of(dim, len(basis.owner)), basis.masks(dim)
        rows = []
        for mask in range(len(masks)):
            times = context.patience if mask else 1.0
            short, long = times * constants.short, times * constants.long
            for slope, level in [(slope, level) for slope in (short, long, long) for level in (short, long)]:
                row = np.full(columns.size, constants.recall + 10 * dim)
                row[LEVEL], row[columns.trend] = level, constants.steady * level
                row[columns.slope] = row[columns.velocity] = slope * dim
                rows.append(row)
        growth = (1 - 1 / (1 + np.array(rows))) ** -0.5
        moving = np.tile(np.arange(SIX) >= SIX - 2, len(masks))
        plane = on_slopes(columns, flatten(np.eye(dim))) if flatten else None
        return cls(columns, constants, growth, moving, basis, np.repeat(masks, SIX, axis=0), context, plane)


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
    low: Array
    """`(lanes,)`: the least of the values since innovations are judged, until it is decided."""
    high: Array
    """`(lanes,)`: the largest of them."""
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
    anew: Flags
    """It is the first again: what was learnt before was an outlier's."""


def start(bank: Bank, lanes: int) -> Filter:
    """Before any value: the first probe changes it by about `effect` standard deviations of the noise."""
    columns, c, size = bank.columns, bank.constants, bank.columns.size
    prior = np.zeros(size)  # own curvatures and velocities join once there is a unit to give them a prior in: `join`
    prior[LEVEL], prior[columns.trend] = 1.0, c.trend
    prior[columns.slope], prior[columns.common] = c.effect**2 / columns.dim, (c.effect / columns.dim) ** 2
    none, members = np.zeros(lanes), len(bank.moving)
    each = np.zeros((lanes, members))
    cov = np.zeros((lanes, members, size, size)) + np.diag(prior)
    return Filter(
        none,
        none + np.nan,
        none,
        none,
        none,
        none,
        np.zeros((lanes, members, size)),
        cov,
        each + 1e-9,
        each,
        each,
    )


def let_pass(
    bank: Bank, filter: Filter, rounds: Array, common: Array, width: Array, growth: Array | None = None
) -> Filter:
    """(B1) Time passes: up to a cap, all is known less well. Unknown noise caps nothing.

    common, width: per lane, what own curvatures and velocities are measured in. growth: by how much standard deviations
    grow, if that is not the bank's growth in each round.
    """
    columns, c = bank.columns, bank.constants
    known = filter.squares > 0
    noise = np.where(known, np.maximum(filter.noise(), TINY), 1.0)
    prior = np.where(known, np.minimum((c.doubt * common[:, None]) ** 2 / noise, CEILING), CEILING)[..., None]
    cap = np.full(filter.mean.shape, CEILING)
    cap[..., columns.trend] = c.trend
    cap[..., columns.own] = prior
    cap[..., columns.velocity] = np.minimum(prior * (width * width)[:, None, None], CEILING)
    if columns.functions:
        cap[..., columns.further] = context_prior(bank, filter, common)
    if growth is None:
        growth = bank.growth if (rounds == 1).all() else _power(bank.growth, rounds[:, None, None])
    mean, cov = passed(columns, filter.mean, filter.cov, rounds, growth, cap)
    if bank.plane is not None:  # across it nothing is measured: what is unknown there would grow, and widen the probes
        mean, cov = turned(mean, cov, bank.plane[None])
    return filter._replace(mean=mean, cov=cov)


def _power(base: Array, exponents: Array) -> Array:
    """base^n by products alone, which round alike for one lane and for many."""
    left, found = exponents.astype(int), np.ones_like(base * exponents)
    while left.any():
        found = np.where(left & 1, found * base, found)
        base, left = base * base, left >> 1
    return found


def context_prior(bank: Bank, filter: Filter, common: Array) -> Array:
    """(B15) Variances of what depends on context: levels in noise variances, slopes as far as the optimum may move."""
    c, dim = bank.context, bank.columns.dim
    noise = np.maximum(filter.squares / filter.dof, TINY)
    slope = bank.constants.effect**2 / dim + (c.depends * common[:, None]) ** 2 / noise
    each = np.concatenate(
        [np.full_like(slope, c.level**2)[..., None], np.repeat(slope[..., None], dim, axis=-1)], axis=-1
    )
    return np.where(bank.allowed, np.tile(np.minimum(each, CEILING), bank.columns.functions), 0.0)


class Innovation(NamedTuple):
    """(B3) A value beside its predictions. Arrays are `(lanes, members)` where nothing else is said."""

    told: Flags
    """`(lanes,)`: whether there is a value, and something to compare it with."""
    y: Array
    """`(lanes,)`: the value, in units of the filter."""
    error: Array
    excess: Array
    """The variance of the value about the model, in noise variances: 1, and more of an old value."""
    gain: Array
    """P·x, `(lanes, members, columns)`."""
    spread: Array
    """xᵀPx + excess."""
    noise: Array
    """The noise variance."""
    shared: Array
    """`(lanes,)`: the error of the bank's prediction."""
    variance: Array
    """`(lanes,)`: the variance of that error."""

    @property
    def ratio(self) -> Array:
        """`(lanes,)`: the squared error of the bank, in its variances."""
        return np.asarray(self.shared**2 / self.variance)


def compare(
    bank: Bank, filter: Filter, x: Array, value: Array, age: Array, unknown: Flags | None = None
) -> tuple[Filter, Innovation]:
    """(B0, B3) A value `(lanes,)` with the features x `(lanes, columns)`, asked `age` rounds ago; NaN: not measured.

    unknown: which functions of context are missing: what they would have changed is noise.
    """
    predicted = np.matmul(filter.mean, x[..., None])[..., 0]
    weight = filter.weights()
    y, filter, told = _scaled(filter, value, (weight * predicted).sum(axis=1))
    error = np.where(told, y, 0.0)[:, None] - predicted
    excess = np.ones_like(error)
    if age.any():
        variance = np.einsum("lkii->lki", filter.cov)
        excess += age[:, None] * (variance * (bank.growth * bank.growth - 1) * (x * x)[:, None]).sum(axis=-1)
    if unknown is not None and unknown.any():
        excess += _missing(bank, filter, x, unknown)
    gain, spread = gain_of(filter.cov, x, excess)
    noise = np.where(filter.squares > 0, np.maximum(filter.noise(), TINY), np.maximum(error * error / spread, TINY))
    shared = (weight * error).sum(axis=1)
    variance = (weight * (spread * noise + (error - shared[:, None]) ** 2)).sum(axis=1)
    return filter, Innovation(told, y, error, excess, gain, spread, noise, shared, variance)


def absorb(bank: Bank, filter: Filter, news: Innovation, learnt: Flags, rated: Flags) -> Filter:
    """(B5) Kalman's update, (B6) the noise variance, (B7) weights by Student's density of the innovation.

    learnt, rated: in which lanes θ and the noise are learnt, and in which the members are weighed. The covariance is
    changed in place: it must be the caller's own, as it is after `let_pass`.
    """
    fading, (on, square) = bank.constants.fading, (learnt[:, None], news.error * news.error)
    scale, spread = news.spread * news.noise, news.spread
    density = -0.5 * (np.log(scale) + (filter.dof + 1) * np.log1p(square / scale / np.maximum(filter.dof, 1e-9)))
    gain = news.gain * np.where(on, spread**-0.5, 0.0)[..., None]
    cov = filter.cov
    cov -= gain[..., :, None] * gain[..., None, :]
    return filter._replace(
        mean=filter.mean + gain * (news.error / np.sqrt(spread))[..., None],
        dof=np.where(on, fading * filter.dof + 1, filter.dof),
        squares=np.where(on, fading * filter.squares + square / spread, filter.squares),
        evidence=np.where(rated[:, None], _weighed(bank, filter.evidence, density), filter.evidence),
    )


def learn(
    bank: Bank,
    filter: Filter,
    x: Array,
    value: Array,
    age: Array,
    common: Array,
    curvature: Array,
    unknown: Flags | None = None,
) -> tuple[Filter, News]:
    """The filter after a value; arguments as in `compare`.

    (B12) An innovation that the whole bank did not expect is held back; the next of the same sign confirms a jump.
    common, curvature: per lane, and per lane and coordinate: those of the last decision. The covariance is changed in
    place.
    """
    filter, found = compare(bank, filter, x, value, age, unknown)
    told, shared, ratio, c = found.told, found.shared, found.ratio, bank.constants
    jump = told & (filter.held * shared > 0) & (ratio > c.surprise / 3)
    odd = told & ~jump & (ratio > c.surprise) & (filter.learnt > STARTING)
    if jump.any():
        filter, noise = _doubted(bank, filter, jump, found, 2 * x[:, bank.columns.common], curvature)
        gain, spread = gain_of(filter.cov, x, found.excess)
        found = found._replace(gain=gain, spread=spread, noise=noise)
    learnt = told & ~odd
    before = filter.learnt
    filter = absorb(bank, filter, found, learnt, learnt & ~jump & (before >= STARTING))
    filter = counted(filter, value, told)._replace(held=np.where(told, np.where(odd, shared, 0.0), filter.held))
    filter, anew = _without_outlier(bank, filter, value, told, found.y)
    return filter, News(told & (filter.learnt > 1), odd & ~anew, odd & (shared > 0) & ~anew, anew)


def _without_outlier(bank: Bank, filter: Filter, value: Array, told: Flags, y: Array) -> tuple[Filter, Flags]:
    """(B12) Whether the values once judged are so much alike that an earlier one was an outlier: it starts anew.

    Among the first values an outlier cannot be told from noise, and would be remembered for hundreds of rounds.
    """
    judged = told & (filter.learnt > STARTING + 1) & (filter.learnt <= DECIDING)
    if not judged.any():
        return filter, judged
    first = filter.learnt == STARTING + 2
    low = np.where(judged, np.where(first, y, np.minimum(filter.low, y)), filter.low)
    high = np.where(judged, np.where(first, y, np.maximum(filter.high, y)), filter.high)
    noise = (filter.weights() * filter.noise()).sum(axis=1)
    anew = judged & (filter.learnt == DECIDING) & (ALIKE * (high - low) < np.sqrt(noise))
    filter = filter._replace(low=low, high=high)
    if not anew.any():
        return filter, anew
    fresh = start(bank, len(value))
    fresh = counted(_scaled(fresh, value, np.zeros_like(value))[1], value, np.zeros_like(told))
    return Filter(*chosen(anew, fresh, filter)), anew


def chosen(lanes: Flags, new: Sequence[Array], old: Sequence[Array]) -> Iterator[Array]:
    """Yield arrays of what is new in these lanes, and old in the others."""
    for one, other in zip(new, old, strict=True):
        yield np.where(lanes.reshape(-1, *(1,) * (one.ndim - 1)), one, other)


def counted(filter: Filter, value: Array, told: Flags) -> Filter:
    """One value more: the first, which is only compared with, or one that was learnt."""
    return filter._replace(learnt=filter.learnt + (told | ((filter.learnt == 0) & ~np.isnan(value))))


def _missing(bank: Bank, filter: Filter, x: Array, unknown: Flags) -> Array:
    """(B14) The variance that missing functions of context cause: each has the mean 0 and the variance 1."""
    columns = bank.columns
    further = filter.mean[..., columns.further].reshape(*filter.dof.shape, columns.functions, -1)
    effect = (further * x[:, None, None, columns.position]).sum(axis=-1)
    return np.asarray((effect * effect * unknown[:, None]).sum(axis=-1) / np.maximum(filter.squares / filter.dof, TINY))


def _weighed(bank: Bank, evidence: Array, density: Array) -> Array:
    """(B7) Log weights fade, and gain the log density of the innovation.

    (B16) With context, fast evidence weighs the members of a mask, and slow evidence the masks, so that an irrelevant
    context stays out.
    """
    c = bank.constants
    if bank.masks == 1:
        evidence = c.fading * evidence + density
        return np.asarray(np.maximum(evidence - evidence.max(axis=1, keepdims=True), c.dormant))
    old, news = (x.reshape(len(x), bank.masks, SIX) for x in (evidence, density))
    top, best = old.max(axis=2, keepdims=True), news.max(axis=2, keepdims=True)
    mask = top + np.log(np.exp(old - top).sum(axis=2, keepdims=True))
    mixture = best + np.log(np.exp(old - mask + news - best).sum(axis=2, keepdims=True))  # density by the whole mask
    mask = bank.context.relevance * mask + mixture
    mask = np.maximum(mask - mask.max(axis=1, keepdims=True), 2 * c.dormant)
    fast = c.fading * (old - top) + news
    fast = np.maximum(fast - fast.max(axis=2, keepdims=True), c.dormant)
    both = mask + fast - np.log(np.exp(fast).sum(axis=2, keepdims=True))
    return np.asarray((both - both.max(axis=(1, 2), keepdims=True)).reshape(evidence.shape))


def gain_of(cov: Array, x: Array, excess: Array) -> tuple[Array, Array]:
    """(B3) P·x, and the variance of an innovation, xᵀPx + noise."""
    gain = np.matmul(cov, x[:, None, :, None])[..., 0]
    return gain, (gain * x[:, None]).sum(axis=-1) + excess


def _scaled(filter: Filter, value: Array, predicted: Array) -> tuple[Array, Filter, Flags]:
    """(B0) The value from the first one, in units of the first difference; and whether it can be learnt from.

    After `forget` a value is what was predicted: it only anchors.
    """
    there, differs = ~np.isnan(value), filter.unit > 0
    anchor = np.isnan(filter.origin) & there
    origin = np.where(anchor, value - np.where(differs, filter.unit * predicted, 0.0), filter.origin)
    apart = np.where(there, value - origin, 0.0)
    unit = np.where(differs, filter.unit, np.abs(apart))
    y = np.clip(apart / np.where(unit > 0, unit, 1.0), -FARTHEST, FARTHEST)
    return y, filter._replace(origin=origin, unit=unit), (unit > 0) & ~anchor & there


def _doubted(
    bank: Bank, filter: Filter, jump: Flags, found: Innovation, square: Array, curvature: Array
) -> tuple[Filter, Array]:
    """(B12) After a jump, level, slope, curvature and the noise's variance are doubted, in the lanes that jumped."""
    columns, on, root = bank.columns, jump[:, None], np.sqrt(np.maximum(found.ratio, 1.0))[:, None]
    cov, noise, size = filter.cov.copy(), found.noise, np.abs(found.shared)[:, None]
    variance = np.einsum("lkii->lki", cov)  # a view
    variance[..., LEVEL] += np.where(on, np.minimum(size * size / noise, CEILING), 0.0)
    slope = (2 * size / (columns.dim * noise))[..., None] * curvature[:, None]
    variance[..., columns.slope] += np.where(on[..., None], np.minimum(slope, CEILING), 0.0)
    # Curvature that explains the innovation all by itself is the most that is worth believing.
    most = (2 * size / np.maximum(square, columns.dim)[:, None]) ** 2 / noise
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


def renewed(bank: Bank, filter: Filter, renewal: Renewal, common: Array) -> Filter:
    """(B14) The same knowledge in a new standardisation of the contexts; those that are new to it get their prior."""
    columns, basis = bank.columns, bank.basis
    if renewal.again.any():
        turn = np.zeros((len(common), columns.size, columns.size)) + np.eye(columns.size)
        for lane, context in np.argwhere(renewal.again):
            change = change_of_basis(renewal.a[lane, context], renewal.b[lane, context]).T
            mine = columns.further.start + np.flatnonzero(basis.owner == context) * (1 + columns.dim)
            for k in range(1 + columns.dim):  # φ_0 is 1: its coefficients are b and g themselves
                index = np.array([k, *(mine + k)])
                turn[lane, index[:, None], index] = change
        mean, cov = turned(filter.mean, filter.cov, turn)
        filter = filter._replace(mean=mean, cov=cov)
    if renewal.joins.any():
        joins = np.repeat(renewal.joins[:, basis.owner], 1 + columns.dim, axis=1)[:, None]
        cov = filter.cov.copy()
        variance = np.einsum("lkii->lki", cov)[..., columns.further]
        variance += np.where(joins, context_prior(bank, filter, common), 0.0)
        filter = filter._replace(cov=cov)
    return filter
