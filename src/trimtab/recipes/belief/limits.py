"""Limits: numbers beside the value that must stay below a maximum, at every query but a stated share of them.

Each limit has a bank of filters of its own, on the same features as the value's. It is always one round ahead, so that
it predicts the next query:

    U(z) = mean + k·(1 + 2.5/dof)·sd − maximum                                                               (B18)

bounds the true number; a query is made where U ≤ 0 for every limit. k comes from the risk, and is corrected by the
exceedances seen, against those expected (B19). A query beyond a limit is projected onto it (B20), as is a move (B21).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trimtab.limit import Side
from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief.bank import CEILING, FARTHEST, STARTING, Bank, Filter
from trimtab.recipes.belief.context import Flags, Renewal
from trimtab.recipes.belief.model import LEVEL, Columns, features, seen_from
from trimtab.types import Array
from trimtab.xp import Lanes

NARROW = 0.3  # width of the first probes where there are limits (not varied)
ALARM = 3.0  # standardised innovation towards a limit that is believed at once (not varied)
CORRECT = 0.2  # change of k per exceedance (.1, .2, .3, 1)
LARGEST = 3.0  # k, in quantiles of the risk (not varied)
JUDGED = 6  # numbers before exceedances are counted
BACK = 4.0  # radii that a projection may go (2, 4)
ROOM = 0.25  # of a width, between the operating point and a limit (.25, .5)
SWEEPS = 4  # over the limits, when a point is projected onto all
STUDENT = 2.5  # k is larger by this share of 1/dof, for the noise variance is estimated, too
LOST = 3  # values in a row beyond a limit, after which the last safe setting is tried, and again after as many
REACHED = 1e-12  # U that counts as 0
CUT = 1e-9  # radii by which limits change a move that is planned anew


class Wall(NamedTuple):
    """The state of one side of a limit, a round ahead."""

    filter: Filter
    """Predicts sign·number. Its origin is 0 before the first number: a limit is not forgotten."""
    k: Array
    """`(lanes,)`: the standard deviations to keep."""
    since: Array
    """`(lanes,)`: rounds from the last measurement to the next query."""
    beyond: Array
    """`(lanes,)`: how many values in a row were beyond it, as the operating point was."""
    mean: Array
    """`(lanes, columns)`: of θ, over the bank."""
    cov: Array
    """`(lanes, columns, columns)`: of θ, over the bank, in units of the filter."""


class Front(NamedTuple):
    """The upper bound of one side as a function of z (B18)."""

    mean: Array
    cov: Array
    margin: Array
    """`(lanes,)`: k·(1 + 2.5/dof)."""
    most: Array
    """`(lanes,)`: the maximum, in units of the filter."""
    measured: Flags
    """`(lanes,)`: whether there was a number; before, everything is beyond the limit."""
    differs: Flags
    """`(lanes,)`: whether two numbers differed."""


class Standing(NamedTuple):
    """The belief about one side of a limit at the operating point, per lane, in the unit of sign·number."""

    level: Array
    """Without noise; NaN before the first number."""
    bound: Array
    """Exceeded with the risk of the limit."""
    careful: Array
    """k, in quantiles of the risk: 1 to 3."""
    since: Array
    """Rounds from the last measurement to the next query."""


class Limits(NamedTuple):
    """The limits of a setup."""

    bank: Bank
    sides: tuple[Side, ...]

    def start(self, lanes: int) -> tuple[Wall, ...]:
        """Before any number."""
        filter = banks.start(self.bank, lanes)
        none, (mean, cov) = np.zeros(lanes), merged(filter)
        filter = filter._replace(origin=none)
        return tuple(Wall(filter, none + _quantile(side.risk), none + 1.0, none, mean, cov) for side in self.sides)

    def let_pass(self, walls: tuple[Wall, ...], rounds: Array) -> tuple[Wall, ...]:
        """Rounds pass without a measurement, in lanes where `rounds` is positive."""
        if not rounds.any():
            return walls
        return tuple(_unless(rounds == 0, wall, _merged(self._passed(wall, rounds))) for wall in walls)

    def notice(
        self,
        walls: tuple[Wall, ...],
        x: Array,
        told: tuple[Array, ...],
        age: Array,
        rounds: Array,
        unknown: Flags | None,
    ) -> tuple[Wall, ...]:
        """Learn what was told, `rounds` after the last; then look a round ahead, in lanes where that is not done yet.

        x: features of the query, seen from the round that the filters are in; age: of the query, before that round.
        """
        found = []
        for side, wall in zip(self.sides, walls, strict=True):
            wall = self._passed(wall, np.maximum(rounds - 1.0, 0.0)) if (rounds > 1).any() else wall
            wall = _learnt(self.bank, side, wall, x, side.sign * told[side.number], age, unknown, rounds > 0)
            wall = self._passed(wall, np.minimum(rounds, 1.0))
            found.append(_merged(wall))
        return tuple(found)

    def _passed(self, wall: Wall, rounds: Array) -> Wall:
        """(B18) Time passes; variances of what is not measured grow linearly, not exponentially."""
        none, each = np.zeros(len(rounds)), (1, 1)
        more = self.bank.growth * self.bank.growth - 1
        before, after = (x.reshape(-1, *each) for x in (wall.since, wall.since + rounds))
        growth = np.sqrt((1 + after * more) / (1 + before * more))
        filter = banks.let_pass(self.bank, wall.filter, rounds, none, none, growth)
        return _unless(rounds == 0, wall, wall._replace(filter=filter, since=wall.since + rounds))

    def clear(self, walls: tuple[Wall, ...], told: tuple[Array, ...]) -> Flags:
        """Whether every number was measured, and is allowed even if noise has lowered it by k standard deviations."""
        found = []
        for side, wall in zip(self.sides, walls, strict=True):
            noise = (wall.filter.weights() * wall.filter.noise()).sum(axis=1)
            found.append(side.sign * told[side.number] + wall.k * wall.filter.unit * np.sqrt(noise) <= side.most)
        return np.asarray(np.all(found, axis=0))

    def exceeded(self, told: tuple[Array, ...]) -> Flags:
        """`(lanes, sides)`: whether a number was measured beyond its limit."""
        return np.stack([np.greater(side.sign * told[side.number], side.most) for side in self.sides], axis=1)

    def lost(self, walls: tuple[Wall, ...]) -> Flags:
        """(B21) Whether values were beyond a limit so often that the way back is believed wrongly."""
        counts = np.max([wall.beyond for wall in walls], axis=0)
        return np.asarray((counts > 0) & (counts % LOST == 0))

    def fronts(self, walls: tuple[Wall, ...]) -> tuple[Front, ...]:
        """The bounds that the walls stand for."""
        return tuple(_front(side, wall) for side, wall in zip(self.sides, walls, strict=True))

    def standings(self, walls: tuple[Wall, ...], phi: Array | None) -> list[Standing]:
        """The numbers at the operating point for functions phi of the context."""
        found = []
        for side, wall, front in zip(self.sides, walls, self.fronts(walls), strict=True):
            centre = np.zeros((len(wall.k), self.bank.columns.dim))
            x = features(self.bank.columns, centre, np.zeros(len(centre)), phi)
            unit = np.where(front.measured, np.where(front.differs, wall.filter.unit, 1.0), math.nan)
            level, bound = (side.most + unit * upper(front, x, cautious) for cautious in (False, True))
            found.append(Standing(level, bound, wall.k / _quantile(side.risk), wall.since))
        return found

    def moved(self, walls: tuple[Wall, ...], step: Array) -> tuple[Wall, ...]:
        """The same limits, seen from a centre that has moved (in radii)."""
        found = []
        for wall in walls:
            mean, cov = seen_from(self.bank.columns, wall.mean[:, None], wall.cov[:, None], step)
            found.append(
                wall._replace(filter=banks.moved(self.bank, wall.filter, step), mean=mean[:, 0], cov=cov[:, 0])
            )
        return tuple(found)

    def renewed(self, walls: tuple[Wall, ...], renewal: Renewal) -> tuple[Wall, ...]:
        """(B14) The same limits in a new standardisation of the contexts."""
        found = (banks.renewed(self.bank, wall.filter, renewal, np.zeros(len(wall.k))) for wall in walls)
        return tuple(_merged(wall._replace(filter=f)) for wall, f in zip(walls, found, strict=True))


def _unless(mask: Flags, old: Wall, new: Wall) -> Wall:
    """The new wall, except in the lanes of the mask: those keep the old one to the last bit."""
    found: Wall = Lanes.merge(mask, old, new) if mask.any() else new
    return found


@lru_cache
def _quantile(risk: float) -> float:
    """Φ⁻¹(1 − risk)."""
    from statistics import NormalDist  # slow to import, and not needed without limits

    return NormalDist().inv_cdf(1.0 - risk)


def merged(filter: Filter) -> tuple[Array, Array]:
    """Mean and covariance of θ over the bank, in units of the filter."""
    weight = filter.weights()
    mean = (weight[..., None] * filter.mean).sum(axis=1)
    off = filter.mean - mean[:, None]
    cov = ((weight * filter.noise())[..., None, None] * filter.cov).sum(axis=1)
    return mean, cov + (weight[..., None, None] * (off[..., :, None] * off[..., None, :])).sum(axis=1)


def _merged(wall: Wall) -> Wall:
    mean, cov = merged(wall.filter)
    return wall._replace(mean=mean, cov=cov)


def _learnt(
    bank: Bank, side: Side, wall: Wall, x: Array, number: Array, age: Array, unknown: Flags | None, behind: Flags
) -> Wall:
    """(B19) The filter after a number: bad news is believed at once; k follows the exceedances.

    behind: lanes in which the filters are in the round of the query, not a round ahead.
    """
    before = wall.filter.learnt
    filter = wall.filter._replace(origin=np.where(before > 0, wall.filter.origin, math.nan))
    filter, found = banks.compare(bank, filter, x, number, age, unknown)
    alarm = found.told & (found.shared > 0) & (found.ratio > ALARM * ALARM) & (before > STARTING)
    cov = filter.cov.copy()
    if alarm.any():
        cov[..., LEVEL, LEVEL] += np.where(
            alarm[:, None], np.minimum((found.shared * found.shared)[:, None] / found.noise, CEILING), 0.0
        )
        gain, spread = banks.gain_of(cov, x, found.excess)
        found = found._replace(gain=gain, spread=spread)
    sd = np.sqrt(found.variance)
    filter = banks.absorb(bank, filter._replace(cov=cov), found, found.told, found.told & (before >= STARTING))
    filter = banks.counted(filter, number, found.told)
    compared, least = found.told & (filter.learnt > 1), _quantile(side.risk)
    over = found.y - _scaled_most(side, filter)
    expected = 1.0 / (1.0 + np.exp(np.clip(-1.7 * (over - found.shared) / sd, -99.0, 99.0)))  # the normal's within .01
    news = (found.shared > wall.k * sd) - side.risk + (over > 0) - expected
    k = np.where(compared & (filter.learnt > JUDGED), wall.k + CORRECT * news, wall.k)
    filter = filter._replace(origin=np.where(filter.learnt > 0, filter.origin, 0.0))
    return wall._replace(
        filter=filter,
        k=np.minimum(np.maximum(k, least), LARGEST * least),
        since=np.where(compared, np.where(behind, 0.0, 1.0), wall.since),
    )


def _scaled_most(side: Side, filter: Filter) -> Array:
    """The maximum, in units of the filter."""
    unit = np.where(filter.unit > 0, filter.unit, 1.0)
    return np.asarray(np.clip((side.most - filter.origin) / unit, -FARTHEST, FARTHEST))


def _front(side: Side, wall: Wall) -> Front:
    filter = wall.filter
    dof = np.maximum((filter.weights() * filter.dof).sum(axis=1), 1.0)
    most = _scaled_most(side, filter)
    return Front(wall.mean, wall.cov, wall.k * (1 + STUDENT / dof), most, filter.learnt > 0, filter.unit > 0)


def upper(front: Front, x: Array, cautious: bool = True) -> Array:
    """(B18) U at the features x, `(lanes,)`; its mean alone unless `cautious`. 1 before the first number."""
    found = (front.mean * x).sum(axis=1)
    if cautious:
        found = found + front.margin * np.sqrt(np.maximum(_along(front.cov, x), 0.0))
    return np.where(front.measured, np.where(front.differs, found, 0.0) - front.most, 1.0)


def _along(cov: Array, x: Array) -> Array:
    """xᵀ·cov·x in each lane; not by a matrix product, which rounds otherwise for one lane than for many."""
    return np.asarray(((cov * x[:, None]).sum(axis=-1) * x).sum(axis=-1))


class Plot(NamedTuple):
    """The surroundings of the centre: where limits allow what."""

    columns: Columns
    fronts: tuple[Front, ...]
    phi: Array | None
    """Functions of the context."""
    width: Array
    """`(lanes,)`: of a probe, in radii."""
    project: Callable[[Array], Array]
    """Nearest z in the domain."""

    def beyond(self, z: Array, cautious: bool = True) -> Array:
        """`(lanes, sides)`: U at z."""
        x = features(self.columns, z, np.zeros(len(z)), self.phi)
        return np.stack([upper(front, x, cautious) for front in self.fronts], axis=1)

    def within(self, z: Array, room: Array) -> Array:
        """(B20) z, projected on U + room·|slope| ≤ 0 of each limit in turn, which keeps what is along a wall.

        At most `BACK` radii, or a probe where the slope is not known.
        """
        columns, first, now = self.columns, z, np.zeros(len(z))
        most = np.full(len(z), BACK)
        for front in self.fronts * SWEEPS:
            slope = _slope(columns, front, z, self.phi)
            steep = np.sqrt((slope * slope).sum(axis=1)) + 1e-300
            n = slope / steep[:, None]
            across = _along(front.cov[:, columns.slope, columns.slope], n)
            sure = steep > 2 * np.sqrt(np.maximum(across, 0.0))
            over = np.maximum(upper(front, features(columns, z, now, self.phi)) + room * steep, 0.0)
            if not over.any():
                continue
            z = z - np.minimum(over / np.maximum(steep, over / BACK), BACK)[:, None] * n
            probe = np.minimum(most, self.width * math.sqrt(columns.dim))
            most = np.where((over > 0) & ~sure, probe, most)
        step = z - first
        length = np.sqrt((step * step).sum(axis=1)) + 1e-300
        return np.asarray(first + step * np.minimum(1.0, most / length)[:, None])

    def first(self, options: Iterator[Array], safe: Array, last: Callable[[], Array]) -> tuple[Array, Array]:
        """(B20) The first option that is allowed, else `safe` if its mean is, else the last; and which it was."""
        lanes = len(safe)
        choice, found, number = np.full(lanes, -1), np.zeros_like(safe), 0
        for option in options:
            choice, found = self._chosen(choice, found, number, option, True)
            number += 1
            if (choice >= 0).all():
                return found, choice
        choice, found = self._chosen(choice, found, number, safe, False)
        if (choice < 0).any():
            found = np.where((choice < 0)[:, None], self.project(last()), found)
            choice = np.where(choice < 0, number + 1, choice)
        return found, choice

    def _chosen(self, choice: Array, found: Array, number: int, option: Array, cautious: bool) -> tuple[Array, Array]:
        z = self.project(option)
        take = (choice < 0) & (self.beyond(z, cautious) <= REACHED).all(axis=1)
        return np.where(take, number, choice), np.where(take[:, None], z, found)


def _slope(columns: Columns, front: Front, z: Array, phi: Array | None) -> Array:
    """The slope of a limit's mean at z."""
    mean = front.mean
    bend = np.maximum(mean[:, columns.common], 0.0)[:, None] + mean[:, columns.own]
    slope = mean[:, columns.slope] + bend * z
    if phi is not None:
        further = mean[:, columns.further].reshape(*phi.shape, 1 + columns.dim)
        slope = slope + (phi[..., None] * further[..., 1:]).sum(axis=1)
    return np.asarray(slope)
