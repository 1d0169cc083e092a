"""The paper's family of methods, composed of directions, an estimator, a step and a domain:

ĝ = scale·vector      learn(state, look, point, values)        estimator
η = rate(state, look, contrast)                                step
x ← Π(x − η·ĝ)                                                 domain
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trimtab.inputs import SHORTEST
from trimtab.protocols import Estimator, Frame, Rule, Step
from trimtab.rescaling import rescaled
from trimtab.state import Look, Parts, State
from trimtab.types import Array, Value


def bind(estimator: Estimator, step: Step, frame: Frame) -> Rule:
    """Bind an estimator and a step to a setup and combine them in one rule."""
    xp, project, longest = frame.xp, frame.project, frame.longest_move
    axpy, some = xp.axpy, xp.any
    look_of, estimate, longest_vector, model, interrupted = estimator.bind(frame)
    width_of, rate_of = step.bind(frame)
    plain = longest / longest_vector  # a move with a factor below this cannot be too long

    def start(centre: Array) -> Parts:
        return Parts(estimator.start(frame, centre), step.start(frame, centre))

    def query(state: State, id: int) -> Look:
        return look_of(state, id, width_of(state.pace, id))

    def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, Parts]:
        contrast, scale, vector, slope = estimate(state, look, point, values)
        idle = contrast != contrast
        if some_idle := some(idle):  # the first value only anchors
            contrast, scale = xp.where(idle, 0.0, contrast), xp.where(idle, 0.0, scale)
        rate, pace = rate_of(state, look, contrast)
        factor: Any = -rate * scale
        if some(abs(factor) > plain):
            most = longest / xp.maximum(xp.norm(vector), SHORTEST)
            factor = xp.clip(factor, -most, most)
        centre = project(axpy(factor, vector, state.centre))
        if some_idle:
            centre, pace = xp.merge(idle, state.centre, centre), xp.merge(idle, state.pace, pace)
        return centre, Parts(slope, pace)

    def slope(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> Array:
        contrast, scale, vector, *_ = estimate(state, look, point, values)
        return np.asarray(xp.times(xp.where(contrast != contrast, math.nan, scale), vector))

    def carried(memory: Parts, factors: Array) -> Parts:
        slope, pace = memory
        if np.any(factors != 1.0):
            slope, pace = rescaled(slope, factors), rescaled(pace, factors)
        if interrupted is not None:
            slope = interrupted(slope)
        return Parts(slope, pace)

    return Rule(start, query, learn, slope, lambda memory, trial: width_of(memory.pace, trial), model, carried)
