"""The belief as a rule: three pure functions of an immutable memory.

query     look = centre + width·u                                           (B10, B11), within the limits (B20)
learn     time passes (B1), the value is compared with the prediction (B3–B7, B12), limits learn (B19),
          the centre moves (B8, B9), within the limits (B21)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trimtab.protocols import Frame, LocalModel, Rule, no_limits
from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief import decision
from trimtab.recipes.belief.bank import Bank, Filter, News
from trimtab.recipes.belief.context import Flags, Seen, functions, notice, unseen
from trimtab.recipes.belief.decision import Course, Place, Plan
from trimtab.recipes.belief.limits import CUT, NARROW, ROOM, Front, Limits, Plot, Wall
from trimtab.recipes.belief.model import Constants, features, rescaled
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value

LONGEST_PAUSE = 100.0  # rounds: after a longer one there is little left to forget
OPENING = 3  # queries that are made whatever the limits: as yet, nothing is known of them
SHARES = 0.5, -0.5, 0.2, -0.2, 0.0  # of a probe, about the operating point within the limits
LEARNING = 0.2  # share of a probe where nothing is allowed, so that something is learnt
STEPS = 1.0, 0.5, 0.2, 0.0  # shares of a move that are tried
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
    walls: tuple[Wall, ...] | None = None
    """One for each side of each limit; None without limits."""
    safe: Array | None = None
    """`(lanes, d)`: the last setting where all limits were measured and held, even if noise had lowered them."""

    @property
    def fence(self) -> tuple[Wall, ...]:
        """The walls; none without limits."""
        return self.walls or ()

    @property
    def retreat(self) -> Array:
        """The setting to go back to, where there are limits."""
        assert self.safe is not None
        return self.safe


class Told(NamedTuple):
    """A value, with all that is known of its query; arrays with an axis of lanes first."""

    asked: Array
    point: Array
    value: Array
    context: Array
    numbers: tuple[Array, ...]
    """The value and all limits, as told; NaN where one was not measured."""


def bind(frame: Frame, constants: Constants) -> Rule:
    """Bind the belief to a setup."""
    bank = Bank.of(frame.dim, constants, frame.periods, frame.flatten)
    single = not isinstance(frame.zero, np.ndarray)
    contexts = len(frame.periods)
    place = Place(frame.radius, frame.project, frame.free, frame.longest_move / frame.radius)
    narrow, wide = math.sqrt(1.0 - constants.waver), math.sqrt(1.0 + constants.waver)
    limits, bounded, first_width = Limits(bank, frame.limits), bool(frame.limits), max(NARROW, constants.narrowest)
    together = max(1, CACHE // ((1 + len(frame.limits)) * len(bank.moving) * bank.columns.size**2))

    def start(centre: Array) -> BeliefState:
        lanes = 1 if single else len(centre)
        unit = np.full(lanes, frame.radius)
        filter, course = banks.start(bank, lanes), decision.start(lanes, frame.dim)
        memory = BeliefState(np.full(lanes, -1.0), unit, filter, course, unseen(lanes, contexts), np.zeros(lanes))
        if not bounded:
            return memory
        course = course._replace(width=np.full(lanes, first_width))
        safe = np.array(centre, dtype=float).reshape(lanes, -1)
        return memory._replace(course=course, walls=limits.start(lanes), safe=safe)

    def width(memory: Memory, id: int) -> Value:
        """(B11) The centre, a probe, its mirror image; (B10) then widths alternate, in the order of Thue and Morse."""
        length = memory.course.width * (0.0 if id == 0 else wide if id <= 2 or id.bit_count() & 1 else narrow)
        return float(length[0]) if single else length

    def query(state: State, id: int, context: Array | None = None) -> Look:
        if not bounded or id < OPENING:
            return Look(id, freely_at(state, context), width(state.memory, id), context)
        return limited(state, id, context)

    def limited(state: State, id: int, context: Array | None) -> Look:
        """(B20) The probe that is wanted, or the next best that the limits allow."""
        memory: BeliefState = state.memory
        lanes, length, wanted = len(memory.clock), width(memory, id), freely_at(state, context)
        centre, base = state.centre.reshape(lanes, -1), wanted.reshape(lanes, -1)
        probe = np.reshape(length, (-1, 1)) * frame.direction(state.key, id).reshape(lanes, -1)
        plot = surroundings(memory, centre, id, context)
        origin = (base - centre) / frame.radius
        z = plot.project(origin + probe)
        u, none = z - origin, np.zeros(lanes)

        def options() -> Iterator[Array]:
            yield z
            yield plot.within(z, none)
            yield origin - u
            home = plot.within(origin, none)
            for share in SHARES:
                yield home + share * u

        safe = (memory.retreat - centre) / frame.radius
        point, choice = plot.first(options(), safe, lambda: plot.within(origin, none) + LEARNING * u)
        lost = limits.lost(memory.fence)
        free = (choice == 0) & ~lost
        point = np.where(lost[:, None], 0.0, point)
        point = np.where(free[:, None], base, frame.project(centre + frame.radius * point))
        length = np.where(free, length, 0.0)
        return Look(id, point.reshape(state.centre.shape), float(length[0]) if single else length, context)

    def surroundings(memory: BeliefState, centre: Array, id: int, context: Array | None) -> Plot:
        """The bounds as they are believed to be at round `id`."""
        walls, phi = memory.fence, None
        if (late := np.maximum(id - 1.0 - memory.clock, 0.0)).any():
            walls = limits.let_pass(walls, late)
        if contexts:
            row = np.full((len(centre), contexts), math.nan) if context is None else context.reshape(len(centre), -1)
            phi, _ = functions(bank.basis, memory.seen, row, bank.context.farthest)
        return plot_of(limits.fronts(walls), phi, memory.course.width, centre)

    def plot_of(fronts: tuple[Front, ...], phi: Array | None, width: Array, centre: Array) -> Plot:
        def project(z: Array) -> Array:
            return z if frame.free else (frame.project(centre + frame.radius * z) - centre) / frame.radius

        return Plot(bank.columns, fronts, phi, width, project)

    def at(state: State, context: Array | None) -> Array:
        """(B17) The operating point for a context within the limits, without asking; None: for the mean one."""
        point = freely_at(state, context)
        if not bounded:
            return point
        memory: BeliefState = state.memory
        centre = state.centre.reshape(len(memory.clock), -1)
        plot = surroundings(memory, centre, state.round, context)
        z = plot.within((point.reshape(centre.shape) - centre) / frame.radius, np.zeros(len(centre)))
        return np.asarray(frame.project(centre + frame.radius * z)).reshape(point.shape)

    def freely_at(state: State, context: Array | None) -> Array:
        """(B17) The operating point for a context, whatever the limits."""
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
        numbers = tuple(np.broadcast_to(value, lanes) for value in values)
        value = numbers[0] if bounded else np.where(np.isnan(numbers[0]), 0.0, numbers[0])  # a failed lane stays
        context = np.full((lanes, contexts), math.nan) if look.context is None else look.context.reshape(lanes, -1)
        asked = np.broadcast_to(np.asarray(look.trial, dtype=float), lanes)
        return Told(asked, point.reshape(lanes, -1), value, context, numbers)

    def compared(memory: BeliefState, centre: Array, round: int, told: Told) -> tuple[BeliefState, News]:
        now = np.maximum(told.asked, round - 1)  # a trial that was handed out is one of the rounds that have begun
        rounds = np.minimum(now - memory.clock, LONGEST_PAUSE)
        course = memory.course
        filter = banks.let_pass(bank, memory.value, rounds, course.common, course.width)
        age = now - told.asked
        x, unknown = seen_at(memory, centre, told, age)
        filter, news = banks.learn(bank, filter, x, told.value, age, course.common, course.curvature, unknown)
        course = decision.warned(course, constants, news)
        if bounded and news.anew.any():
            course = course._replace(width=np.where(news.anew, first_width, course.width))
        return memory._replace(clock=now, value=filter, course=course), news

    def seen_at(memory: BeliefState, centre: Array, told: Told, age: Array) -> tuple[Array, Flags | None]:
        """The features of a query, and which functions of context are unknown."""
        z, phi, unknown = (told.point - centre) / frame.radius, None, None
        if contexts:
            phi, unknown = functions(bank.basis, memory.seen, told.context, bank.context.farthest)
        return features(bank.columns, z, age, phi), unknown

    def moved(memory: BeliefState, centre: Array, round: int, told: Told) -> tuple[Array, BeliefState]:
        before = memory
        memory, news = compared(memory, centre, round, told)
        if bounded:
            memory = noticed(before, memory, centre, told)
        state = bank, memory.value, memory.course, centre, place, news
        plan = decision.plan(*state)
        if bounded:
            memory, plan = kept(memory, news, centre, plan, told)
        filter, course = decision.carry_out(*state, plan)
        memory, after = memory._replace(value=filter, course=course), plan.centre
        if bounded:
            memory = memory._replace(walls=limits.moved(memory.fence, (after - centre) / frame.radius))
        return after, with_context(before, memory, told.context) if contexts else memory

    def noticed(before: BeliefState, memory: BeliefState, centre: Array, told: Told) -> BeliefState:
        """(B19) The limits learn what was told. Their filters are a round ahead, unless values came late."""
        rounds = np.minimum(memory.clock - before.clock, LONGEST_PAUSE)
        age = memory.clock - told.asked + (rounds == 0)
        x, unknown = seen_at(memory, centre, told, age)
        walls = limits.notice(memory.fence, x, told.numbers, age, rounds, unknown)
        safe = np.where(limits.clear(walls, told.numbers)[:, None], told.point, memory.retreat)
        return memory._replace(walls=walls, safe=safe)

    def kept(memory: BeliefState, news: News, centre: Array, plan: Plan, told: Told) -> tuple[BeliefState, Plan]:
        """(B21) The plan within the limits: along a wall, and from beyond one only back.

        Where that changes the move, the width is that of the shorter way.
        """
        course, radius, lanes = memory.course, frame.radius, len(centre)
        wanted, nowhere = (plan.centre - centre) / radius, np.zeros_like(centre)
        phi = np.zeros((lanes, bank.columns.functions)) if contexts else None
        plot = plot_of(limits.fronts(memory.fence), phi, course.width, centre)
        back = np.any(plot.beyond(nowhere) > 0, axis=1, keepdims=True)
        way = plot.within(np.where(back, 0.0, wanted), ROOM * course.width)
        beyond = np.where(limits.exceeded(told.numbers), plot.beyond(nowhere, cautious=False), 0.0)
        unknown = np.isnan(np.stack([told.numbers[side.number] for side in limits.sides], axis=1))
        walls = tuple(
            wall._replace(beyond=np.where(u, wall.beyond, np.where(b > 0, wall.beyond + 1.0, 0.0)))
            for wall, b, u in zip(memory.fence, beyond.T, unknown.T, strict=True)
        )
        memory = memory._replace(walls=walls)
        safe = (memory.retreat - centre) / radius
        target, _ = plot.first((share * way for share in STEPS), safe, lambda: way)
        target = np.where(limits.lost(walls)[:, None], safe, target)
        target *= (place.longest / np.maximum(np.sqrt((target * target).sum(axis=1)), place.longest))[:, None]
        off = target - wanted
        far = np.sqrt((off * off).sum(axis=1, keepdims=True)) > CUT
        cut = far & (memory.clock >= OPENING - 1)[:, None]
        if cut.any():
            slope = np.where(cut, -plan.curvature * target, plan.slope)
            again = decision.plan(bank, memory.value, course, centre, place, news, slope)
            point = np.asarray(frame.project(centre + radius * target))
            plan = again._replace(centre=np.where(cut, point, plan.centre))
        return memory, plan

    def exceeds(state: State, points: Array, id: int, context: Array | None) -> Array:
        """(B18) The largest U over the limits, at each of some points `(n, d)`."""
        if not bounded:
            return np.zeros(len(points))
        plot = surroundings(state.memory, state.centre[None], id, context)
        return np.asarray(plot.beyond((points - state.centre) / frame.radius).max(axis=1))

    def beyond(state: State) -> Array:
        """Which sides the operating point was beyond, before it moved."""
        if not bounded:
            return no_limits(state)
        found = np.stack([wall.beyond > 0 for wall in state.memory.fence], axis=-1)
        return found[0] if single else found

    def with_context(before: BeliefState, memory: BeliefState, context: Array) -> BeliefState:
        """(B14, B17) The context is noticed: range, moments and standardisation, and how far it led."""
        phi, _ = functions(bank.basis, before.seen, context, bank.context.farthest)
        way = offset(before, phi)
        far = np.maximum(bank.context.relevance * memory.far, np.sqrt((way * way).sum(axis=-1)))
        seen, renewal = notice(bank.basis, memory.seen, context, bank.context)
        filter = memory.value
        if renewal.again.any() or renewal.joins.any():
            filter = banks.renewed(bank, filter, renewal, memory.course.common)
            if bounded:
                memory = memory._replace(walls=limits.renewed(memory.fence, renewal))
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
        memory = memory._replace(value=memory.value._replace(mean=mean, cov=cov), course=course, far=far)
        return limits_carried(memory, factors, change) if bounded else memory

    def limits_carried(memory: BeliefState, factors: Array, change: Array) -> BeliefState:
        """The limits in other units."""
        walls = []
        for wall in memory.fence:
            each, all = (wall.filter.mean, wall.filter.cov), (wall.mean[:, None], wall.cov[:, None])
            (mean, cov), (one, spread) = (rescaled(bank.columns, *pair, change) for pair in (each, all))
            filter = wall.filter._replace(mean=mean, cov=cov)
            walls.append(wall._replace(filter=filter, mean=one[:, 0], cov=spread[:, 0]))
        return memory._replace(walls=tuple(walls), safe=memory.retreat * np.asarray(factors))

    return Rule(start, query, learn, slope, width, model, carried, at, beyond, exceeds)


def _cut(part: Memory, span: slice) -> Memory:
    """The lanes of a span."""
    if part is None:
        return None
    if type(part) is tuple:
        return tuple(_cut(x, span) for x in part)
    return part[span] if isinstance(part, np.ndarray) else type(part)(*(_cut(x, span) for x in part))


def _joined(parts: list[Memory]) -> Memory:
    """Spans of lanes, side by side again."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if type(first) is tuple:
        return tuple(_joined(list(group)) for group in zip(*parts, strict=True))
    return type(first)(*(_joined(list(group)) for group in zip(*parts, strict=True)))
