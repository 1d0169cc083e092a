"""Decisions from a belief: where the centre goes, and how wide the next probes are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief.bank import Bank, Filter, News
from trimtab.recipes.belief.model import Constants
from trimtab.types import Array

BLOCKED = 1e-9  # radii between where the centre wanted to go and where it may


class Course(NamedTuple):
    """The last decision, per lane."""

    move: Array
    """`(lanes, d)`: the last move, in radii: it is undone when the next value is worse than expected."""
    width: Array
    """`(lanes,)`: the length of a probe per coordinate, in radii."""
    common: Array
    """`(lanes,)`: the common curvature, cautiously: its mean and `doubt` standard deviations."""
    curvature: Array
    """`(lanes, d)`: the curvature along each coordinate, cautiously; positive."""


class Place(NamedTuple):
    """The set of centres, and the unit of moves."""

    radius: float
    project: Callable[[Array], Array]
    free: bool
    """Whether there are no bounds."""
    longest: float
    """The longest move, in radii."""


def start(lanes: int, dim: int) -> Course:
    """Before any value: probes as wide as the radius."""
    return Course(np.zeros((lanes, dim)), np.ones(lanes), np.zeros(lanes), np.ones((lanes, dim)))


def mixed(filter: Filter) -> tuple[Array, Array]:
    """Mean and variance of θ over the bank, `(lanes, columns)`: of the members' mixture."""
    weight = filter.weights()[..., None]
    mean = (weight * filter.mean).sum(axis=1)
    spread = filter.noise()[..., None] * np.einsum("lkii->lki", filter.cov)
    second = (weight * (filter.mean * filter.mean + spread)).sum(axis=1)
    return mean, np.maximum(second - mean * mean, 0.0)


def warned(course: Course, constants: Constants, news: News) -> Course:
    """(B12) After a value much worse than expected the next probes are shorter; after an outlier all begins anew."""
    if news.rise.any():
        width = np.maximum(course.width / constants.growth**2, constants.narrowest)
        course = course._replace(width=np.where(news.rise, width, course.width))
    if news.anew.any():
        course = Course(*banks.chosen(news.anew, start(*course.move.shape), course))
    return course


class Plan(NamedTuple):
    """The next centre, and the width of the probes around it."""

    centre: Array
    width: Array
    common: Array
    curvature: Array
    slope: Array
    """The mean slope it is made for."""


def plan(
    bank: Bank, filter: Filter, course: Course, centre: Array, place: Place, news: News, slope: Array | None = None
) -> Plan:
    """(B8) Move to where the optimum is believed, as far as that can be trusted; (B9) choose the width of probes.

    slope: another slope than the mean one.
    """
    columns, c, d = bank.columns, bank.constants, bank.columns.dim
    mean, variance = mixed(filter)
    slope = mean[:, columns.slope] if slope is None else slope
    unsure, slack = variance[:, columns.slope], np.sqrt(variance[:, columns.common])
    common = np.maximum(mean[:, columns.common], 0.0) + c.doubt * slack + 1e-300
    curvature = np.maximum(mean[:, columns.own] + common[:, None], c.flattest * common[:, None])
    newton = slope / curvature
    trust = np.maximum(course.width, 1.0) * math.sqrt(d)  # a probe, or the radius
    cut = np.minimum(1.0, trust / (np.sqrt((newton * newton).sum(axis=1)) + 1e-300))
    cut = np.where(filter.learnt >= 3, cut, 0.0)[:, None]
    carry = np.where(filter.learnt > 3, 1.0, 0.0)[:, None] * mean[:, columns.velocity]
    move = np.where(news.rise[:, None], -course.move, -(slope * cut + carry) / curvature)  # up a cliff: undo the last
    short = place.longest / np.maximum(np.sqrt((move * move).sum(axis=1)), place.longest)
    wanted = centre + place.radius * np.where(news.compared[:, None], move * short[:, None], 0.0)
    after = wanted if place.free else place.project(wanted)
    # (B9) Probes cost what is left at the centre: ½w²ΣH = reach·½Σ(left² + Var g)/H, of what can still be moved to.
    left = np.sqrt((slope * (1.0 - cut)) ** 2 + unsure) / curvature
    if not place.free:
        left = _within(after, wanted, left, place)
    aim = np.sqrt(c.reach * (left * left * curvature).sum(axis=1) / curvature.sum(axis=1))
    aim = np.where(mean[:, columns.common] > slack, aim, np.maximum(course.width, 1.0))  # unless curvature is unknown
    most = np.maximum(np.minimum(c.growth * course.width, 1.0), c.growth ** (1 / d) * course.width)
    width = np.minimum(np.maximum(aim, course.width / c.growth), most)
    return Plan(after, np.minimum(np.maximum(width, c.narrowest), c.widest), common, curvature, slope)


def carry_out(
    bank: Bank, filter: Filter, course: Course, centre: Array, place: Place, news: News, plan: Plan
) -> tuple[Filter, Course]:
    """The filter seen from the new centre, and the last decision."""
    step = (plan.centre - centre) / place.radius
    filter = banks.moved(bank, banks.join(bank, filter, plan.common, filter.noise()), step)
    ready, each = news.compared, news.compared[:, None]
    course = Course(
        np.where(each, np.where(news.odd[:, None], 0.0, step), course.move),
        np.where(ready & (filter.learnt > 3), plan.width, course.width),
        np.where(ready, plan.common, course.common),
        np.where(each, plan.curvature, course.curvature),
    )
    return filter, course


def _within(centre: Array, wanted: Array, left: Array, place: Place) -> Array:
    """The distance that the centre can still move, in radii: at a wall the slope never vanishes, and is not learnt."""
    beyond = wanted - centre
    blocked = np.abs(beyond) > BLOCKED * place.radius
    if not blocked.any():
        return left
    further = place.project(centre + place.radius * np.where(blocked, np.copysign(left, beyond), 0.0))
    return np.where(blocked, (further - centre) / place.radius, left)
