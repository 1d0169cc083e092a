"""The plane and its pace as one rule: x ← Π(x − η·ĝ + m), where m follows a moving optimum."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from trimtab.inputs import SHORTEST
from trimtab.protocols import Frame, LocalModel, Rule
from trimtab.rescaling import rescaled
from trimtab.state import Look, Parts, State
from trimtab.tracker import fit
from trimtab.tracker.pace import Pacing
from trimtab.types import Array, Memory, Value


class Estimating(Protocol):
    """Configuration of the plane, such as `trimtab.estimators.Plane`."""

    def start(self, frame: Frame, centre: Array) -> Memory:
        """The memory before the first value."""
        ...

    def sensing(self, frame: Frame) -> tuple[fit.LookOf, fit.Learn]:
        """The functions that choose a look, and that learn from a value."""
        ...


class Stepping(Protocol):
    """Configuration of pace and width, such as `trimtab.steps.Adaptive`."""

    @property
    def narrowest(self) -> float:
        """The smallest width of a probe."""
        ...

    @property
    def widest(self) -> float:
        """The largest width of a probe."""
        ...

    def start(self, frame: Frame, centre: Array) -> Memory:
        """The memory before the first value."""
        ...

    def pacing(self, frame: Frame) -> Pacing:
        """Bind the adaptation of pace and width."""
        ...


def bind(plane: Estimating, step: Stepping, frame: Frame) -> Rule:
    """Bind both to a setup and combine them in one rule."""
    xp, project, longest = frame.xp, frame.project, frame.longest_move
    axpy, some, where, norm, minimum, maximum = xp.axpy, xp.any, xp.where, xp.norm, xp.minimum, xp.maximum
    look_of, estimate = plane.sensing(frame)
    width_of, aim, rate_of, settle, own_longest = step.pacing(frame)
    measured = own_longest > longest  # otherwise no move is too long

    def start(centre: Array) -> Parts:
        return Parts(plane.start(frame, centre), step.start(frame, centre))

    def query(state: State, id: int) -> Look:
        look = look_of(state, id, width_of(state.pace, id))
        aimed = aim(state, id, look)
        if frame.free or aimed.centre is look.centre:
            return aimed
        elsewhere = (aimed.centre != look.centre).any(axis=-1)  # a lane at its centre stays there to the last bit
        return aimed._replace(centre=xp.merge(elsewhere, project(aimed.centre), look.centre))

    def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, Parts]:
        contrast, scale, vector, slope, sense = estimate(state, look, point, values)
        before: Array = state.centre
        if sense is None:  # the value only set the anchor
            return before, Parts(slope, state.pace)
        idle = contrast != contrast
        if some_idle := some(idle):
            scale = where(idle, 0.0, scale)
        rate, pace, carried = rate_of(state, look, sense)
        factor: Any = -rate * scale
        if measured and some(abs(factor) > 0.0):
            most = longest / maximum(norm(vector), SHORTEST)
            factor = xp.clip(factor, -most, most)
        if carried is None:
            centre = project(axpy(factor, vector, before))
        else:
            move = axpy(factor, vector, carried)
            if measured:
                room = where(norm(carried) > 0, minimum(longest / maximum(norm(move), SHORTEST), 1.0), 1.0)
                move = xp.times(room, move)
            centre = project(before + move)
        pace = settle(pace, centre - before)
        if some_idle:
            centre, pace = xp.merge(idle, before, centre), xp.merge(idle, state.pace, pace)
        return centre, Parts(slope, pace)

    def slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
        contrast, scale, vector, *_ = estimate(state, look, point, values)
        return np.asarray(xp.times(where(contrast != contrast, math.nan, scale), vector))

    def model(state: State) -> LocalModel:
        return fit.model(state)._replace(width=state.pace.width)

    def carried(memory: Parts, factors: Array) -> Parts:
        slope, pace = memory
        if np.any(factors != 1.0):
            slope, pace = rescaled(slope, factors), rescaled(pace, factors)
        width = min(max(pace.width, step.narrowest), step.widest)
        return Parts(fit.interrupted(slope), pace._replace(width=width))

    return Rule(start, query, learn, slope, lambda memory, trial: width_of(memory.pace, trial), model, carried)
