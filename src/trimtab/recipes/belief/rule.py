"""The belief as a rule: three pure functions of an immutable memory.

query     look = centre + width·u            (B10, B11)
learn     time passes (B1), the value is compared with what was predicted (B3–B7, B12), the centre moves (B8, B9)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trimtab.protocols import Frame, Rule
from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief import decision
from trimtab.recipes.belief.bank import Bank, Filter, News
from trimtab.recipes.belief.decision import Course, Place
from trimtab.recipes.belief.model import Constants, features
from trimtab.state import Look, State, make
from trimtab.types import Array, Memory, Value

LONGEST_PAUSE = 100  # rounds: after more of them no more can be forgotten


class Belief(NamedTuple):
    """The memory of the method. Its arrays have an axis of lanes first, of length 1 for a single system."""

    clock: Array
    """`(lanes,)`: the round up to which time has passed."""
    value: Filter
    course: Course


def bind(frame: Frame, constants: Constants) -> Rule:
    """Bind the belief to a setup."""
    bank, single = Bank.of(frame.dim, constants), not isinstance(frame.zero, np.ndarray)
    place = Place(frame.radius, frame.project, frame.free)
    narrow, wide = math.sqrt(1.0 - constants.waver), math.sqrt(1.0 + constants.waver)

    def start(centre: Array) -> Belief:
        lanes = 1 if single else len(centre)
        return Belief(np.full(lanes, -1.0), banks.start(bank, lanes), decision.start(lanes, frame.dim))

    def width(memory: Memory, id: int) -> Value:
        """(B11) The centre, a probe, its mirror image; (B10) then widths alternate, in the order of Thue and Morse."""
        length = memory.course.width * (0.0 if id == 0 else wide if id <= 2 or id.bit_count() & 1 else narrow)
        return float(length[0]) if single else length

    def query(state: State, id: int) -> Look:
        return make(Look, (id, state.centre, width(state.memory, id)))

    def compared(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Belief, Filter, News]:
        memory: Belief = state.memory
        asked = look.trial
        now = np.maximum(asked, state.round - 1)  # a trial that was handed out is one of the rounds that have begun
        rounds = np.minimum(now - memory.clock, LONGEST_PAUSE)
        age = rounds * 0.0 + (now - asked)
        z = ((point - state.centre) / frame.radius).reshape(-1, frame.dim)
        value = np.nan_to_num(np.atleast_1d(values[0]), nan=0.0)  # of a lane that failed, which stays as it was
        course = memory.course
        filter = banks.let_pass(bank, memory.value, rounds, course.common, course.width)
        x = features(bank.columns, z, age)
        filter, news = banks.learn(bank, filter, x, value, age, course.common, course.curvature)
        course = decision.shrunk(course, constants, news.rise)
        return Belief(now + 0.0 * memory.clock, filter, course), filter, news

    def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, Belief]:
        memory, filter, news = compared(state, look, point, values)
        centre = state.centre.reshape(-1, frame.dim)
        filter, course, after = decision.decide(bank, filter, memory.course, centre, place, news)
        return after.reshape(state.centre.shape), memory._replace(value=filter, course=course)

    def slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
        _, filter, news = compared(state, look, point, values)
        mean, _ = decision.mixed(filter)
        found = mean[:, bank.columns.slope] * (filter.unit / frame.radius)[:, None]
        return np.where(news.compared[:, None], found, math.nan).reshape(state.centre.shape)

    return Rule(start, query, learn, slope, width)
