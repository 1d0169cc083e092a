"""Special rounds of `Plane`: at the start, after a large innovation, and replicates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from trimtab.inputs import STEEPEST
from trimtab.protocols import Frame
from trimtab.rescaling import POWERS
from trimtab.state import Look, State
from trimtab.types import Array, Value
from trimtab.xp import TINY

# Tuned like the constants of `Plane`.
NOTHING = 1e-300  # mean squares up to this count as 0
SETTLED = 5  # innovations before any counts as large, since fewer give no scale
ECHOES = 1 / 20.0  # smallest weight of a replicate in the running mean square of the noise
TRUST = 0.8  # share of the squared difference of replicates that counts as noise; the rest may be drift
DOUBT = 10.0  # the noise estimate from n replicates is increased by DOUBT/n, since two values may agree by chance
JUMP, ALONE = 20.0, 3.0  # limits, in rms, of a large innovation that is confirmed by a repeat, and of one that is not
CLOSER = 0.25  # relative width of the repeat of a large innovation, which avoids probing beyond a cliff again
SAME = 0.5  # a repeat confirms an innovation if the values differ by less than this share of it
WILD, LOUD = 3.0, 5.0  # limits, in rms, of an innovation in the running rms, and in the mean square of values
PROOF = 1.5  # the squared curvature must exceed this multiple of its variance
FINEST = 1e-12  # smallest noise, relative to the square of `bend`
FORGOTTEN = 0.25  # weight kept on the curvature after a large innovation, which may be a new objective
CERTAIN = 1e140  # limit on 1/rms of the curvature from the opening; its square is finite
GUARD = 0.01  # smallest noise, relative to all innovations, divided by the number of replicates


class Doubts(NamedTuple):
    """The part of the memory that only changes in special rounds."""

    phase: Value
    """Values since the start, at most 3; the next query is the centre at 0, a probe at 1, its mirror image at 2."""
    run: Value
    """2^(number of consecutive large innovations)."""
    doubt: Value
    """The large innovation whose query is being repeated; 0 without one."""
    echoes: Value
    noise: Value
    """The number of replicates, and the mean squared difference from the original value."""
    rest: Value
    """The last value measured at the centre itself."""
    bend: Value
    """The mean excess of a probe and its mirror image over that value: ½L·l²."""
    curvature: Value
    """L = 2·bend/l²."""
    weight: Value
    """1/variance of `curvature`, from the noise estimate."""


POWERS[Doubts] = {"curvature": -2, "weight": 4}


def special_rounds(frame: Frame, clip: float) -> Callable[..., tuple[Any, ...]]:
    """Build the handler of rounds at the start, with or after a large innovation, which limits the innovation.

    The first large innovation is repeated closer to the centre before anything is learnt from it: an outlier does not
    repeat, a jump does.
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
        opening = (phase < 2) | (fit.level != fit.level)  # no earlier value to compare with: only set the anchor
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
    """Build the handler of rounds that repeat or mirror the previous query, which estimates noise and curvature."""
    where, maximum, minimum = xp.where, xp.maximum, xp.minimum

    def repeated(
        state: State, look: Look, value: Value, probe2: Value, powered: Value, doubts: Doubts
    ) -> tuple[Value, Value, Doubts]:
        fit, last, before = state.slope, state.last, state.values[0]
        _, _, _, echoes, noise, rest, bend, curvature, weight = doubts
        same = (look.trial == last.trial) & (fit.doubts.doubt == 0) & (fit.doubts.phase > 1)
        repeat, mirrored = same & (look.width == last.width), same & (look.width == -last.width)
        mirrored = mirrored & (look.width != 0) & (rest == rest)  # with late values, that of the centre may be missing
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
