"""The belief as a rule: three pure functions of an immutable memory.

query     look = centre + width·u                                                                       (B10, B11)
learn     time passes (B1), the value is compared with the prediction (B3–B7, B12), the centre moves    (B8, B9)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trimtab.protocols import Frame, LocalModel, Rule
from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief import decision
from trimtab.recipes.belief.bank import Bank, Filter, News
from trimtab.recipes.belief.context import Seen, functions, notice, unseen
from trimtab.recipes.belief.decision import Course, Place
from trimtab.recipes.belief.model import Constants, features, rescaled
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value

LONGEST_PAUSE = 100.0  # rounds: after a longer one there is little left to forget
CACHE = 2**16  # numbers of the covariances that are worked on together, so that they stay in the processor's cache


class BeliefState(NamedTuple):
    """The memory of the method. Its arrays have an axis of lanes first, of length 1 for a single system."""

    clock: Array
    """`(lanes,)`: the round up to which time has passed."""
    radius: Array
    """`(lanes,)`: the unit of z."""
    value: Filter
    course: Course
    seen: Seen
    """The contexts so far."""
    far: Array
    """`(lanes,)`: the longest way from the centre to an operating point that was played lately, in radii."""


class Told(NamedTuple):
    """A value, with all that is known of its query; arrays with an axis of lanes first."""

    asked: Array
    point: Array
    value: Array
    context: Array


def bind(frame: Frame, constants: Constants) -> Rule:
    """Bind the belief to a setup."""
    bank = Bank.of(frame.dim, constants, frame.periods, frame.flatten)
    single = not isinstance(frame.zero, np.ndarray)
    contexts = len(frame.periods)
    place = Place(frame.radius, frame.project, frame.free, frame.longest_move / frame.radius)
    narrow, wide = math.sqrt(1.0 - constants.waver), math.sqrt(1.0 + constants.waver)
    together = max(1, CACHE // (len(bank.moving) * bank.columns.size**2))

    def start(centre: Array) -> BeliefState:
        lanes = 1 if single else len(centre)
        unit = np.full(lanes, frame.radius)
        filter, course = banks.start(bank, lanes), decision.start(lanes, frame.dim)
        return BeliefState(np.full(lanes, -1.0), unit, filter, course, unseen(lanes, contexts), np.zeros(lanes))

    def width(memory: Memory, id: int) -> Value:
        """(B11) The centre, a probe, its mirror image; (B10) then widths alternate, in the order of Thue and Morse."""
        length = memory.course.width * (0.0 if id == 0 else wide if id <= 2 or id.bit_count() & 1 else narrow)
        return float(length[0]) if single else length

    def query(state: State, id: int, context: Array | None = None) -> Look:
        return Look(id, at(state, context), width(state.memory, id), context)

    def at(state: State, context: Array | None) -> Array:
        """(B17) The operating point for a context, without asking; None: for the mean one."""
        if not contexts or context is None:
            return state.centre
        memory: BeliefState = state.memory
        lanes = len(memory.clock)
        phi, _ = functions(bank.basis, memory.seen, context.reshape(lanes, -1), bank.context.farthest)
        point = state.centre + frame.radius * offset(memory, phi).reshape(state.centre.shape)
        return np.asarray(point if frame.free else frame.project(point))

    def offset(memory: BeliefState, phi: Array) -> Array:
        """(B17) o = −Σ_j φ_j·g_j/H in radii; at most a probe longer than the longest that was played."""
        mean = (memory.value.weights()[..., None] * memory.value.mean[..., bank.columns.further]).sum(axis=1)
        slopes = mean.reshape(len(phi), bank.columns.functions, -1)[..., 1:]
        way = -(phi[..., None] * slopes).sum(axis=1) / memory.course.curvature
        most = memory.far + memory.course.width * math.sqrt(frame.dim)
        length = np.sqrt((way * way).sum(axis=-1)) + 1e-300
        return np.asarray(way * np.minimum(1.0, most / length)[:, None])

    def told(look: Look, point: Array, values: tuple[Value, ...], lanes: int) -> Told:
        value = np.broadcast_to(values[0], lanes)
        value = np.where(np.isnan(value), 0.0, value)  # of a lane that failed, which stays as it was
        context = np.full((lanes, contexts), math.nan) if look.context is None else look.context.reshape(lanes, -1)
        asked = np.broadcast_to(np.asarray(look.trial, dtype=float), lanes)
        return Told(asked, point.reshape(lanes, -1), value, context)

    def compared(memory: BeliefState, centre: Array, round: int, told: Told) -> tuple[BeliefState, News]:
        now = np.maximum(told.asked, round - 1)  # a trial that was handed out is one of the rounds that have begun
        rounds = np.minimum(now - memory.clock, LONGEST_PAUSE)
        course = memory.course
        filter = banks.let_pass(bank, memory.value, rounds, course.common, course.width)
        age = now - told.asked
        z, phi, unknown = (told.point - centre) / frame.radius, None, None
        if contexts:
            phi, unknown = functions(bank.basis, memory.seen, told.context, bank.context.farthest)
        x = features(bank.columns, z, age, phi)
        filter, news = banks.learn(bank, filter, x, told.value, age, course.common, course.curvature, unknown)
        course = decision.warned(course, constants, news)
        return memory._replace(clock=now, value=filter, course=course), news

    def moved(memory: BeliefState, centre: Array, round: int, told: Told) -> tuple[Array, BeliefState]:
        before = memory
        memory, news = compared(memory, centre, round, told)
        state = bank, memory.value, memory.course, centre, place, news
        plan = decision.plan(*state)
        filter, course = decision.carry_out(*state, plan)
        memory, after = memory._replace(value=filter, course=course), plan.centre
        return after, with_context(before, memory, told.context) if contexts else memory

    def with_context(before: BeliefState, memory: BeliefState, context: Array) -> BeliefState:
        """(B14, B17) The context is noticed: range, moments and standardisation, and how far it led."""
        phi, _ = functions(bank.basis, before.seen, context, bank.context.farthest)
        way = offset(before, phi)
        far = np.maximum(bank.context.relevance * memory.far, np.sqrt((way * way).sum(axis=-1)))
        seen, renewal = notice(bank.basis, memory.seen, context, bank.context)
        filter = memory.value
        if renewal.again.any() or renewal.joins.any():
            filter = banks.renewed(bank, filter, renewal, memory.course.common)
        return memory._replace(value=filter, seen=seen, far=far)

    def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, BeliefState]:
        memory: BeliefState = state.memory
        lanes = len(memory.clock)
        centre, news = state.centre.reshape(lanes, -1), told(look, point, values, lanes)
        if lanes <= together:
            after, memory = moved(memory, centre, state.round, news)
        else:
            spans = [slice(first, first + together) for first in range(0, lanes, together)]
            found = [moved(_cut(memory, s), centre[s], state.round, _cut(news, s)) for s in spans]
            after, memory = np.concatenate([x for x, _ in found]), _joined([m for _, m in found])
        return after.reshape(state.centre.shape), memory

    def slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
        lanes = len(state.memory.clock)
        centre = state.centre.reshape(lanes, -1)
        memory, news = compared(state.memory, centre, state.round, told(look, point, values, lanes))
        mean, _ = decision.mixed(memory.value)
        found = mean[:, bank.columns.slope] * (memory.value.unit / frame.radius)[:, None]
        return np.where(news.compared[:, None], found, math.nan).reshape(state.centre.shape)

    def model(state: State) -> LocalModel:
        memory: BeliefState = state.memory
        mean, variance = decision.mixed(memory.value)
        columns, unit = bank.columns, memory.value.unit
        bend = mean[:, columns.common] + mean[:, columns.own].mean(axis=-1)
        doubt = variance[:, columns.common] / np.maximum(bend * bend, 1e-300)
        known = (memory.value.learnt > banks.STARTING) & (bend > 0)
        certainty = np.where(known, np.maximum(1.0 - doubt, 0.0), 0.0)
        bent = certainty * bend * unit / frame.radius**2
        gradient = mean[:, columns.slope].reshape(state.centre.shape)
        width, scale = memory.course.width, unit / frame.radius
        if single:
            return LocalModel(float(scale[0]), gradient, float(certainty[0]), float(bent[0]), float(width[0]))
        return LocalModel(scale, gradient, certainty, bent, width)

    def carried(memory: BeliefState, factors: Array) -> BeliefState:
        change = np.asarray(factors) * (memory.radius[0] / frame.radius)
        width = np.clip(memory.course.width, constants.narrowest, constants.widest)
        memory = memory._replace(
            radius=np.full(len(memory.clock), frame.radius), course=memory.course._replace(width=width)
        )
        if (change == 1.0).all():
            return memory
        mean, cov = rescaled(bank.columns, memory.value.mean, memory.value.cov, change)
        course, squares = memory.course, change**-2.0
        course = course._replace(
            move=course.move * change, common=course.common * squares.mean(), curvature=course.curvature * squares
        )
        far = memory.far * float(np.max(change))
        return memory._replace(value=memory.value._replace(mean=mean, cov=cov), course=course, far=far)

    return Rule(start, query, learn, slope, width, model, carried, at)


def _cut(part: Memory, span: slice) -> Memory:
    """The lanes of a span."""
    return part[span] if isinstance(part, np.ndarray) else type(part)(*(_cut(x, span) for x in part))


def _joined(parts: list[Memory]) -> Memory:
    """Spans of lanes, side by side again."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    return type(first)(*(_joined(list(group)) for group in zip(*parts, strict=True)))
