"""An account of the belief: the filters' view of a coming round, as intervals of 90 %.

A member believes in Student's t of each coefficient, and the bank in the mixture of its members. Intervals are
quantiles of that mixture. The optimum along a coordinate is left of x with the probability that the slope at x is
positive (Fieller), so it has no finite interval while the curvature may be zero.

Two things are known to be too sure, and are widened:

* slopes, by 1 + the share of members with the shortest window: where these predict best, a slope may move faster than
  any member follows;
* curvature, by 30 % of itself: an optimum that swings makes it look flatter, down to 0.6 of the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief.bank import TINY, Bank, Filter
from trimtab.recipes.belief.context import Flags
from trimtab.recipes.belief.decision import Course, mixed
from trimtab.recipes.belief.model import LEVEL, features
from trimtab.types import Array

LEVELS = (0.05, 0.95)  # the ends of an interval
UNEVEN = 0.3  # relative standard deviation added to a curvature
HALVINGS = 45  # of a bracket, which leaves 1e-10 of a standard deviation
DISTANCES = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 46)])  # radii from the middle, where an end is looked for
SMALL = 1e-300
ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)  # Abramowitz and Stegun, 7.1.26: to 1.5e-7


class Interval(NamedTuple):
    """A central interval of 90 %, and its median (of an optimum: the best guess)."""

    low: Array
    middle: Array
    high: Array


class Account(NamedTuple):
    """The belief about one round, in units of the value, and in radii from the centre. Lanes are the first axis."""

    learnt: Array
    """`(lanes,)`: the number of values learnt."""
    held: Array
    """`(lanes,)`: the surprise that awaits confirmation, 0 for none."""
    value: Interval
    """`(lanes,)`: of the value at the query."""
    level: Array
    """`(lanes,)`: the value at the centre, without noise."""
    trend: Array
    """`(lanes,)`: its change per round."""
    noise: Array
    """`(lanes,)`: the standard deviation of a value."""
    slope: Interval
    """`(lanes, d)`."""
    optimum: Interval
    """`(lanes, d)`: its middle is NaN where the curvature may be zero."""
    curvature: Array
    """`(lanes, d)`: NaN where it may be zero."""
    velocity: Array
    """`(lanes, d)`: of the optimum, per round; NaN with the curvature."""
    bent: Flags
    """`(lanes,)`: whether the common curvature stands out, so that probes may narrow."""
    shares: Array
    """`(lanes, members)`: the weights of the members."""
    windows: Array
    """`(members, 2)`: the windows of level and slope, in rounds."""


def account(bank: Bank, filter: Filter, course: Course, rounds: Array, query: Array) -> Account:
    """Give the account of the belief `rounds` later, and of a value at the query z, `(lanes, d)`."""
    columns, functions = bank.columns, bank.columns.functions
    filter = banks.let_pass(bank, filter, rounds, course.common, course.width)
    filter = filter._replace(unit=np.where(filter.unit > 0, filter.unit, math.nan))  # nothing is known without a unit
    lanes, weight, unit = len(query), filter.weights(), filter.unit[:, None]
    noise, dof = np.maximum(filter.squares / filter.dof, TINY), np.maximum(filter.dof, 1.0)
    variance = np.einsum("lkii->lki", filter.cov) * noise[..., None]
    mean, both = mixed(filter)

    x = features(columns, query, np.zeros(lanes), np.zeros((lanes, functions)) if functions else None)
    unknown = np.ones((lanes, functions), dtype=bool) if functions else None
    _, found = banks.compare(bank, filter, x, np.full(lanes, math.nan), np.zeros(lanes), unknown)
    ends = _quantiles(weight, -found.error[..., None], np.sqrt(found.spread * noise)[..., None], dof)
    value = Interval(*(filter.origin + filter.unit * end[:, 0] for end in ends))

    wider = _wider(bank, weight)
    slope = _quantiles(weight, filter.mean[..., columns.slope], wider * np.sqrt(variance[..., columns.slope]), dof)
    curved, optimum = _optimum(bank, filter, noise, dof, wider)
    curvature = np.where(curved, mean[:, columns.common, None] + mean[:, columns.own], math.nan)
    return Account(
        filter.learnt,
        filter.held,
        value,
        filter.origin + filter.unit * mean[:, LEVEL],
        filter.unit * mean[:, columns.trend],
        filter.unit * np.sqrt((weight * noise).sum(axis=1)),
        Interval(*(unit * end for end in slope)),
        optimum,
        unit * curvature,
        -mean[:, columns.velocity] / curvature,
        mean[:, columns.common] > np.sqrt(both[:, columns.common]),
        weight,
        _windows(bank),
    )


def _windows(bank: Bank) -> Array:
    """The windows of level and slope, in rounds: the inverse of λ = 1 − 1/(1 + window)."""
    growth = bank.growth[:, [LEVEL, bank.columns.slope.start]]
    return np.asarray(1.0 / (1.0 - growth**-2.0) - 1.0)


def _wider(bank: Bank, weight: Array) -> Array:
    """1 + the share of the members with the shortest window of the slope, `(lanes, 1, 1)`."""
    slope = _windows(bank)[:, 1]
    shortest = slope < 1.5 * slope.min()
    return np.asarray(1.0 + (weight * shortest).sum(axis=1))[:, None, None]


def student(x: Array, dof: Array) -> Array:
    """The distribution function of Student's t by Wallace's approximation: within 0.01, within 0.001 from ten dof on.

    >>> float(student(np.array(1.812), np.array(10.0)).round(3))
    0.95
    """
    square = np.log1p(x * x / dof) * dof * (0.5 * ((8 * dof + 1) / (8 * dof + 3)) ** 2)
    t = 1.0 / (1.0 + 0.3275911 * np.sqrt(square))
    tail = 0.5 * np.exp(-square) * t * (ERF[0] + t * (ERF[1] + t * (ERF[2] + t * (ERF[3] + t * ERF[4]))))
    return np.asarray(np.where(x < 0, tail, 1.0 - tail))


def _quantiles(weight: Array, mean: Array, scale: Array, dof: Array) -> list[Array]:
    """Low end, median and high end of mixtures of Student's t; `mean` and `scale` are `(lanes, members, n)`."""
    scale = np.maximum(scale, 1e-150)

    def below(x: Array) -> Array:
        each = student((x[:, None] - mean) / scale, dof[..., None])
        return np.asarray((weight[..., None] * each).sum(axis=1))

    far = 1e3 * scale
    low, high = (mean - far).min(axis=1), (mean + far).max(axis=1)
    return [_bisected(below, p, low, high) for p in (LEVELS[0], 0.5, LEVELS[1])]


def _bisected(below: Callable[[Array], Array], p: float, low: Array, high: Array) -> Array:
    """The x between low and high with below(x) = p."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        under = below(middle) < p
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.asarray(0.5 * (low + high))


def effects(bank: Bank, filter: Filter, course: Course, rounds: Array, middles: Array, steps: Array) -> Interval:
    """Give the change of the value by a step along each coordinate alone, in units of the value.

    middles, steps: `(lanes, d)`, in radii: the middle of each step as seen from the centre, and its length. The change
    is the slope in the middle times the length.
    """
    filter = banks.let_pass(bank, filter, rounds, course.common, course.width)
    unit = np.where(filter.unit > 0, filter.unit, math.nan)[:, None]
    noise, dof = np.maximum(filter.squares / filter.dof, TINY), np.maximum(filter.dof, 1.0)
    mean, scale = _slopes(bank, filter, noise, _wider(bank, filter.weights())).at(middles[:, None])
    low, middle, high = (unit * steps * end for end in _quantiles(filter.weights(), mean, scale, dof))
    return Interval(np.minimum(low, high), middle, np.maximum(low, high))


class Slopes(NamedTuple):
    """The slope g + h·x along each coordinate, `(lanes, members, d)`, x radii from the centre."""

    g: Array
    h: Array
    var_g: Array
    both: Array
    var_h: Array
    noise: Array

    def at(self, x: Array) -> tuple[Array, Array]:
        """Its mean at x, and the scale of its distribution."""
        g, h, var_g, both, var_h, noise = self
        of_slope = np.maximum(var_g + 2 * x * both + x * x * var_h, 0.0) * noise + (UNEVEN * x * h) ** 2
        return g + h * x, np.sqrt(of_slope + SMALL)


def _slopes(bank: Bank, filter: Filter, noise: Array, wider: Array) -> Slopes:
    columns, cov = bank.columns, filter.cov
    slope, own, common, index = columns.slope, columns.own, columns.common, np.arange(columns.dim)
    variance = np.einsum("lkii->lki", cov)
    g, h = filter.mean[..., slope], filter.mean[..., own] + filter.mean[..., common, None]
    var_h = variance[..., own] + variance[..., common, None] + 2 * cov[..., own, common]
    both = wider * (cov[..., slope, common] + cov[..., slope, own][..., index, index])
    return Slopes(g, h, wider * wider * variance[..., slope], both, var_h, noise[..., None])


def _optimum(bank: Bank, filter: Filter, noise: Array, dof: Array, wider: Array) -> tuple[Array, Interval]:
    """Whether each coordinate is surely curved, and the interval of the optimum along it."""
    slopes, weight, dof = _slopes(bank, filter, noise, wider), filter.weights()[..., None], dof[..., None]
    g, h, var_h, noise = slopes.g, slopes.h, slopes.var_h, slopes.noise

    def below(x: Array) -> Array:
        mean, scale = slopes.at(x[:, None])
        return np.asarray((weight * student(mean / scale, dof)).sum(axis=1))

    curved = (weight * student(h / np.sqrt(var_h * noise + SMALL), dof)).sum(axis=1) > LEVELS[1]
    middle = np.where(curved, -(weight * g).sum(axis=1) / np.where(curved, (weight * h).sum(axis=1), 1.0), 0.0)
    low, high = (_end(below, middle, sign, p) for sign, p in zip((-1.0, 1.0), LEVELS, strict=True))
    return curved, Interval(low, np.where(curved, middle, math.nan), high)


def _end(below: Callable[[Array], Array], middle: Array, sign: float, p: float) -> Array:
    """The nearest x with below(x) = p on one side of the middle; infinite if there is none."""
    inner = outer = middle
    found = np.zeros(middle.shape, dtype=bool)
    for distance in DISTANCES:
        there = middle + sign * distance
        crossed = sign * (below(there) - p) > 0
        outer, inner = np.where(found, outer, there), np.where(found | crossed, inner, there)
        found |= crossed
    end = _bisected(below, p, np.minimum(inner, outer), np.maximum(inner, outer))
    return np.where(found, end, sign * math.inf)
