"""A belief that listens beside another method, which decides: it learns from the same values, and explains.

A filter of a linear model learns from any query, and follows any move of the centre exactly. So the belief needs no say
in either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from trimtab.protocols import Directions, Frame, LocalModel, Rule
from trimtab.recipes.base import BaseMethod, Margin
from trimtab.recipes.belief import Belief, BeliefState, decision, rule
from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief.bank import Bank
from trimtab.recipes.belief.decision import Place
from trimtab.recipes.belief.model import Constants, features
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value

FAR = 1e4  # radii: what was learnt from farther away says nothing here
DERIVED: Any = None  # fields that are those of the method


class Heard(NamedTuple):
    """The memory of both."""

    decides: Memory
    """The method's."""
    belief: BeliefState


@part
@dataclass(frozen=True, kw_only=True)
class Explained(BaseMethod):
    """A method, and a belief beside it that learns from the same values: what `Tuner(…, explain=True)` makes.

    method: decides all queries and moves, exactly as it would alone.

    >>> import trimtab as tt
    >>> Explained(method=tt.auto(radius=0.05)).radius
    0.05
    """

    method: BaseMethod
    radius: float = field(init=False, default=DERIVED)
    directions: Directions | None = field(init=False, default=DERIVED)
    max_move: float | None = field(init=False, default=DERIVED)
    margin: Margin = field(init=False, default=DERIVED)

    def __post_init__(self) -> None:
        method = self.method
        if method.queries > 1 or method.told > 1:
            raise ValueError(f"a belief beside a method needs one value a round, and {method} has more: explain=False")
        for name in ("radius", "directions", "max_move", "margin"):
            object.__setattr__(self, name, getattr(method, name))
        super().__post_init__()

    offsets = property(lambda self: self.method.offsets)
    lags = property(lambda self: self.method.lags)
    anchored = property(lambda self: self.method.anchored)
    unbiased = property(lambda self: self.method.unbiased)
    located = property(lambda self: self.method.located)
    learns_settings = property(lambda self: self.method.learns_settings)
    scale_free = property(lambda self: self.method.scale_free)
    finds_width = property(lambda self: self.method.finds_width)
    narrowest = property(lambda self: self.method.narrowest)
    widest = property(lambda self: self.method.widest)
    constant = property(lambda self: self.method.constant)
    kind = property(lambda self: self.method.kind)
    parts = property(lambda self: self.method.parts)

    def changed(self, **fields: Any) -> Explained:
        """The same with another method."""
        return replace(self, method=self.method.changed(**fields))

    def bind(self, frame: Frame) -> Rule:
        """Bind both to a setup."""
        if isinstance(frame.zero, np.ndarray):
            raise ValueError("a belief beside a method is for a single system: give explain=False for lanes")
        beside = Belief(radius=self.radius).bind(frame)
        decides, follow = self.method.bind(frame), _follower(frame, beside)

        def alone(state: State) -> State:
            return state._replace(memory=state.memory.decides)

        def start(centre: Array) -> Heard:
            return Heard(decides.start(centre), beside.start(centre))

        def query(state: State, id: int) -> Look:
            return decides.query(alone(state), id)

        def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, Heard]:
            centre, memory = decides.learn(alone(state), look, point, values)
            belief = follow(state, look, point, values[0], centre)
            return centre, Heard(memory, belief)

        def slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
            return decides.slope(alone(state), look, point, values)

        def width(memory: Heard, id: int) -> Value:
            return decides.width(memory.decides, id)

        def model(state: State) -> LocalModel | None:
            return decides.model(alone(state))

        def carried(memory: Heard, factors: Array) -> Heard:
            return Heard(decides.carried(memory.decides, factors), beside.carried(memory.belief, factors))

        return Rule(start, query, learn, slope, width, model, carried)


def _follower(frame: Frame, beside: Rule) -> Callable[[State, Look, Array, Value, Array], BeliefState]:
    """Bind (state, look, point, value, centre) → the belief after this value, and a move to this centre."""
    constants, radius = Constants(), frame.radius
    bank = Bank.of(frame.dim, constants, (), frame.flatten)
    place = Place(radius, frame.project, frame.free, frame.longest_move / radius)

    def follow(state: State, look: Look, point: Array, value: Value, after: Array) -> BeliefState:
        memory: BeliefState = state.memory.belief
        # A look may be that of an earlier trial once more: the round in which this one was handed out is with the open.
        asked = next((float(id) for id, other in state.open if other is look), float(state.round))
        now = np.maximum(np.full(1, asked), state.round - 1)
        rounds, age, centre = np.minimum(now - memory.clock, rule.LONGEST_PAUSE), now - asked, state.centre[None]
        width = np.full(1, max(abs(float(look.width)), constants.narrowest))
        course = memory.course._replace(width=width)
        filter = banks.let_pass(bank, memory.value, rounds, course.common, course.width)
        z, step = (point - centre) / radius, (after - centre) / radius
        if max(np.abs(z).max(), np.abs(step).max()) > FAR:
            fresh: BeliefState = beside.start(after)
            return fresh._replace(clock=now)
        x = features(bank.columns, z, age)
        filter, news = banks.learn(bank, filter, x, np.full(1, value), age, course.common, course.curvature)
        course = decision.warned(course, constants, news)
        plan = decision.plan(bank, filter, course, centre, place, news)._replace(centre=after[None], width=width)
        filter, course = decision.carry_out(bank, filter, course, centre, place, news, plan)
        return memory._replace(clock=now, value=filter, course=course._replace(width=width))

    return follow
