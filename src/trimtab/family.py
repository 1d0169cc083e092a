"""The paper's family of methods, composed of directions, an estimator, a step and a domain:

ĝ = scale·vector      learn(state, look, point, values)        estimator
η = rate(state, look, contrast)                                step
x ← Π(x − η·ĝ)                                                 domain
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trimtab.protocols import Estimator, Frame, LocalModel, Rule, Step
from trimtab.rescaling import rescaled
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value

SHORTEST = 1e-200  # smallest length of a vector; its square is positive


class Parts(NamedTuple):
    """Memory of a method composed of parts."""

    slope: Memory
    """Memory of the estimator."""
    pace: Memory
    """Memory of the step."""


def bind(estimator: Estimator, step: Step, frame: Frame) -> Rule:
    """Bind an estimator and a step to a setup and combine them in one rule."""
    xp, project, longest = frame.xp, frame.project, frame.longest_move
    axpy, some = xp.axpy, xp.any
    look_of, estimate, longest_vector, model_of, interrupted = estimator.bind(frame)
    width_of, rate_of, settle, carry_of, own_longest, aim = step.bind(frame)
    # Moves with a factor below this cannot be too long, so their length is not computed.
    plain = longest / longest_vector if own_longest > longest else math.inf
    measured = plain < math.inf

    def start(centre: Array) -> Parts:
        return Parts(estimator.start(frame, centre), step.start(frame, centre))

    def query(state: State, id: int) -> Look:
        look = look_of(state, id, width_of(state.pace, id))
        if aim is None:
            return look
        aimed = aim(state, id, look)
        if frame.free or aimed.centre is look.centre:
            return aimed
        elsewhere = (aimed.centre != look.centre).any(axis=-1)  # a lane at its centre stays there to the last bit
        return aimed._replace(centre=xp.merge(elsewhere, project(aimed.centre), look.centre))

    def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, Parts]:
        contrast, scale, vector, slope, sense = estimate(state, look, point, values)
        idle = contrast != contrast
        if some_idle := some(idle):  # the first value only anchors
            contrast, scale = xp.where(idle, 0.0, contrast), xp.where(idle, 0.0, scale)
        rate, pace = rate_of(state, look, contrast, sense)
        before: Array = state.centre
        factor: Any = -rate * scale
        if measured and some(abs(factor) > plain):
            most = longest / xp.maximum(xp.norm(vector), SHORTEST)
            factor = xp.clip(factor, -most, most)
        carried = None if carry_of is None else carry_of(pace)
        if carried is None:
            centre = project(axpy(factor, vector, before))
        else:
            move = axpy(factor, vector, carried)
            if measured:
                room = xp.where(
                    xp.norm(carried) > 0, xp.minimum(longest / xp.maximum(xp.norm(move), SHORTEST), 1.0), 1.0
                )
                move = xp.times(room, move)
            centre = project(before + move)
        if settle is not None:
            pace = settle(pace, centre - before)
        if some_idle:
            centre, pace = xp.merge(idle, before, centre), xp.merge(idle, state.pace, pace)
        return centre, Parts(slope, pace)

    def slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
        contrast, scale, vector, *_ = estimate(state, look, point, values)
        return np.asarray(xp.times(xp.where(contrast != contrast, math.nan, scale), vector))

    def model(state: State) -> LocalModel | None:
        found = model_of(state)
        return found._replace(width=state.pace.width) if found and step.finds_width else found

    def carried(memory: Parts, factors: Array) -> Parts:
        slope, pace = memory
        if np.any(factors != 1.0):
            slope, pace = rescaled(slope, factors), rescaled(pace, factors)
        if interrupted is not None:
            slope = interrupted(slope)
        if step.finds_width:
            pace = pace._replace(width=min(max(pace.width, step.narrowest), step.widest))
        return Parts(slope, pace)

    return Rule(start, query, learn, slope, lambda memory, trial: width_of(memory.pace, trial), model, carried)
