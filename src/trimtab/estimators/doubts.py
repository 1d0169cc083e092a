"""Rounds of `Plane` that are not routine: at the start, after a surprise, and where a query is repeated."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from trimtab.estimators.base import STEEPEST
from trimtab.protocols import Frame
from trimtab.state import Look, State
from trimtab.types import Array, Value
from trimtab.xp import TINY

# Chosen as those of `Plane`.
NOTHING = 1e-300  # a mean square up to this is that of zeros
SETTLED = 5  # surprises before any is doubted: fewer do not make a scale
ECHOES = 1 / 20.0  # the least weight of an echo in the running mean square of the noise
TRUST = 0.8  # of what an echo differs by counts as noise; the rest may be drift of the level
DOUBT = 10.0  # over n more, while n echoes were heard: two values may agree by chance
JUMP, ALONE = 20.0, 3.0  # a surprise that repeats counts up to so many rms, one that does not up to so many
CLOSER = 0.25  # of the width: where a surprise is asked again; beyond a cliff one does not look twice
SAME = 0.5  # a value repeats if it differs by less than this much of the surprise
WILD, LOUD = 3.0, 5.0  # in the running rms a surprise counts as so many of them at most; in that of the values
PROOF = 1.5  # times its variance is what the curvature's square must stand out of
FINEST = 1e-12  # of the square of a bend is noise at least: what is not known to be noisy is not infinitely certain
FORGOTTEN = 0.25  # is what counts of the curvature after a surprise beyond the limit: it may be another objective
CERTAIN = 1e140  # 1/rms of what the opening says of the curvature is at most so much: its square is still a number
GUARD = 0.01  # of all surprises is noise at least, over the echoes heard: one echo may be silent by chance


class Doubts(NamedTuple):
    """What changes in special rounds alone: at the start, after a surprise, and where a query is repeated."""

    phase: Value
    """Values told since the start, 3 at most: 0 the centre, 1 a probe, 2 its mirror image are due."""
    run: Value
    """2^(surprises in a row that were beyond the limit)."""
    doubt: Value
    """The surprise that is being asked again; 0 if there is none."""
    echoes: Value
    noise: Value
    """How many queries were repeated, and the mean square by which the second value differed from the first."""
    rest: Value
    """The value at the centre itself, measured last."""
    bend: Value
    """By how much the values at a probe and its mirror image were above it, in the mean: ½L·l²."""
    curvature: Value
    """L = 2·bend/l²."""
    weight: Value
    """1/variance of it, by what is known of the noise."""


def special_rounds(frame: Frame, clip: float) -> Callable[..., tuple[Any, ...]]:
    """A round that opens, is beyond the limit, asks again or comes soon after: what of its surprise counts.

    An outlier is alone, a jump repeats: the first surprise beyond the limit is asked again, closer by, before it is
    learnt from.
    """
    xp, unit2 = frame.xp, frame.probe_length**2
    where, minimum = xp.where, xp.minimum

    def special(
        state: State, look: Look, query: Array, value: Value, error: Value, length2: Value
    ) -> tuple[object, ...]:
        fit: Any = state.slope
        square, doubts = fit.square, fit.doubts
        phase, run, doubt = doubts[:3]
        typical, asked, scaled = xp.sqrt(square * length2), doubt != 0, (fit.learnt > SETTLED) & (square > NOTHING)
        beyond = scaled & (abs(error) > clip * run * typical)
        opening = (phase < 2) | (fit.level != fit.level)  # nothing to be contrasted with: it only anchors
        idle = opening | (beyond & (run == 1) & (asked == 0))
        opened = doubts._replace(phase=phase + 1.0, rest=where(look.width == 0, value, doubts.rest))
        probe2, special = unit2 * (look.width * look.width), fit._replace(calm=frame.zero - 1.0)
        anchored = special._replace(level=value, anchor=query, spread=probe2, doubts=opened)
        fit = xp.merge(opening, anchored, special._replace(doubts=doubts._replace(doubt=error)))
        jumped = beyond & asked & (abs(value - state.values[0]) < SAME * abs(doubt))
        counted = where(asked, where(jumped, JUMP, ALONE), 0.5 * JUMP * run) * typical
        counted = where(beyond, counted, abs(error))
        run = where(beyond, where(asked, 2.0, minimum(2.0 * run, 2.0**20)), 1.0)
        phase = minimum(phase + 1.0, 3.0)
        most = where(scaled, (WILD * run) * (WILD * run) * square, STEEPEST * STEEPEST)
        at_most = where((fit.learnt > SETTLED) & (fit.power > NOTHING), LOUD * LOUD * fit.power, math.inf)
        doubts = doubts._replace(phase=phase, run=run, doubt=0.0 * doubt)
        return idle, jumped, xp.clip(error, -counted, counted), most, at_most, doubts, fit

    return special


def repetitions(xp: Any) -> Callable[..., tuple[Value, Value, Doubts]]:
    """A round that repeats or mirrors the query before: the noise, and what the opening says of the curvature."""
    where, maximum, minimum = xp.where, xp.maximum, xp.minimum

    def repeated(
        state: State, look: Look, value: Value, probe2: Value, powered: Value, doubts: Doubts
    ) -> tuple[Value, Value, Doubts]:
        fit, last, before = state.slope, state.last, state.values[0]
        _, _, _, echoes, noise, rest, bend, curvature, weight = doubts
        same = (look.trial == last.trial) & (fit.doubts.doubt == 0) & (fit.doubts.phase > 1)
        repeat, mirrored = same & (look.width == last.width), same & (look.width == -last.width)
        mirrored = mirrored & (look.width != 0) & (rest == rest)  # late values may come before the centre's
        limit = where((echoes > 3) & (noise > 0), LOUD * LOUD * noise, math.inf)
        difference = minimum((value - before) * (value - before), limit) - noise
        noise = noise + repeat * difference * maximum(1.0 / (echoes + 1.0), ECHOES)
        echoes, power = echoes + repeat, where(repeat, fit.power, powered)
        loud = TRUST * (1.0 + DOUBT / maximum(echoes, 1.0)) * noise
        bend = where(mirrored, maximum(0.5 * (before + value) - rest, 0.0), bend)
        curvature = where(mirrored, 2.0 * bend / where(mirrored, probe2, 1.0), curvature)
        doubtful = maximum(loud, GUARD * power / maximum(echoes, 1.0), FINEST * bend * bend, TINY)
        root = minimum(bend / maximum(curvature, TINY) / xp.sqrt(doubtful), CERTAIN)
        weight = where(repeat & (bend > 0), root * root, weight)
        return power, loud, doubts._replace(echoes=echoes, noise=noise, bend=bend, curvature=curvature, weight=weight)

    return repeated
