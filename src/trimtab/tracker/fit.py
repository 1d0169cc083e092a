"""The estimator of the default method: a plane fitted to the values, with estimates of scale, noise and curvature.

Based on the affine projection filter (Kaczmarz, NLMS) with an intercept; docs/auto.md derives the extensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from trimtab.protocols import Frame, LocalModel
from trimtab.rescaling import POWERS, REPAIRS
from trimtab.state import Look, State
from trimtab.tracker.doubts import (
    CLOSER,
    FINEST,
    FORGOTTEN,
    JUMP,
    LOUD,
    PROOF,
    SETTLED,
    WILD,
    Doubts,
    repetitions,
    special_rounds,
)
from trimtab.tracker.sense import Sense
from trimtab.types import Array, Memory, Value
from trimtab.xp import TINY

# Tuned on cells of `trimtab.lab.suites.held_out` under other seeds, with radii up to four times too large or small.
NOWHERE = 1e100  # distance to the optimum while the curvature is unknown
SLOW = 150.0  # rounds: window of the rms slope, too long to follow a single jump
OTHERS = 1 / 100.0  # smallest weight of an innovation in the mean square of values
LEAST, FEW, ENOUGH = 0.15, 3.0, 16.0  # the smallest signal share is LEAST over the number of replicates, FEW to ENOUGH
UNHEARD, SILENT = 0.02, 0.25  # largest signal share before the first replicate: at first, and later (late values)
FAR = 13.0  # added to d in the distance: in few dimensions the plane already predicts most of the slope
HASTE, SLOWEST_LEVEL = 0.09, 0.2  # adaptation rate of the level's gain, and its smallest value
STEEP = 0.03  # smallest evenness of innovations
REMEMBERED = 1.0 - 1 / 400.0  # discount per round of the curvature estimate from widths
FLOOR = 1e-280  # keeps quotients of squares finite
OUTLIER = 0.1  # share of a squared innovation that counts as noise of the curvature estimate; 1 before a replicate


class Fit(NamedTuple):
    """Memory of `Plane`. An innovation is the part of a value that the plane did not predict."""

    calm: Value
    """The limit of squared innovations per squared length in a routine round; −1 if the next round is special."""
    learnt: Value
    """The number of innovations learnt from."""
    level: Value
    anchor: Array
    slope: Array
    fade: Value
    """g = fade·slope, so that the decay only changes one number."""
    size: Value
    """‖g‖²."""
    spread: Value
    """W: the squared probe length that the level refers to."""
    gain: Value
    """β, the gain of the level."""
    agreement: Value
    """The last innovation, normalised; consecutive ones of equal sign increase the gain of the level."""
    square: Value
    """s²: the running mean square of innovations per unit length."""
    usual: Value
    """The running mean of innovations per unit length, not 0 if the level drifts."""
    rise_square: Value
    drop_square: Value
    """The mean squares of innovations above and below that mean."""
    power: Value
    """The mean square of innovations, without those of replicates."""
    loud: Value
    """The part of it that may be noise."""
    certainty: Value
    """Confidence in the curvature, given the noise: 0 (unknown) to 1."""
    bent: Value
    """certainty·L."""
    weight: Value
    bend: Value
    """The estimate of L from probe widths: bend/weight, with variance 1/weight."""
    doubts: Doubts


def _resized(before: Any, after: Any, common: float) -> Memory:
    """Compute ‖g‖² from g, and keep the negative values of `calm`, which are flags."""
    squares, new = (np.sum(np.square(fit.slope), axis=-1) for fit in (before, after))
    size = before.size * np.where(squares > 0, new / np.where(squares > 0, squares, 1.0), common**-2.0)
    calm = np.where(before.calm < 0, before.calm, after.calm)
    if not np.ndim(size):
        size, calm = float(size), float(calm)
    return after._replace(size=size, calm=calm)


_EXPONENTS = {
    -2: ("square", "rise_square", "drop_square", "calm", "size", "bent"),
    -1: ("slope", "usual"),
    1: ("anchor",),
    2: ("spread", "bend"),
    4: ("weight",),
}
POWERS[Fit] = {name: power for power, names in _EXPONENTS.items() for name in names}
REPAIRS[Fit] = _resized


Sensed = tuple[Value, Value, Array, Memory, Sense | None]
"""An `Estimate`, and the statistics behind it; None if the value only set the anchor."""
LookOf = Callable[[State, int, Value], Look]
Learn = Callable[[State, Look, Array, tuple[Value, ...]], Sensed]


def start(frame: Frame, centre: Array, level: float) -> Fit:
    """A memory without values."""
    zero, nothing = frame.zero, np.zeros_like(centre)
    one, unknown = zero + 1.0, zero + math.nan
    doubts = Doubts(zero, one, zero, zero, zero, unknown, zero, zero, zero)
    gain = zero + level
    return Fit(-one, zero, unknown, nothing, nothing, one, zero, zero, gain, *(zero,) * 11, doubts)


def model(state: State) -> LocalModel:
    """The local model: the slope of the plane and the mean curvature."""
    fit: Any = state.slope
    return LocalModel(fit.fade, fit.slope, fit.certainty, fit.bent, np.abs(state.last.width))


def interrupted(fit: Any) -> Memory:
    """Restart an incomplete opening, because the centre, a probe and its mirror image belong together."""
    phase = np.asarray(fit.doubts.phase)
    again = phase * (phase > 2)
    return fit._replace(doubts=fit.doubts._replace(phase=again if again.ndim else float(again)))


def bind_look(frame: Frame, echoes: Callable[[int], bool]) -> LookOf:
    """Query the centre, a probe and its mirror image; then probes, replicates, repeats of large innovations."""
    xp, zero = frame.xp, frame.zero
    any_, merge, where = xp.any, xp.merge, xp.where

    def look(state: State, id: int, width: Value) -> Look:
        fit, next_look = state.slope, Look(id, state.centre, width, None)
        echo, special = echoes(id), any_(fit.calm < 0)
        if not (echo or special):
            return next_look
        (phase, _, doubt, *_), last = fit.doubts, state.last
        just = (state.told == id - 1) & (id > 0)
        if special:
            if any_(phase == 0) and not state.open:  # of several open trials, only one queries the centre
                next_look = next_look._replace(width=where(phase == 0, zero, width))
            doubted, mirrored = just & (doubt != 0), just & (phase == 2) & (last.width != 0)
            if any_(doubted | mirrored):
                next_look = merge(mirrored, last._replace(width=-last.width), next_look)
                next_look = merge(doubted, last._replace(width=CLOSER * last.width), next_look)
        return merge(just & (phase > 2) & (doubt == 0), last, next_look) if echo else next_look

    return look


def bind_learn(frame: Frame, *, window: float, learning: float, clip: float) -> Learn:
    """Update the plane by the innovation, and derive scale, noise and curvature."""
    xp, unit2, far = frame.xp, frame.probe_length**2, math.sqrt(frame.dim + FAR)
    all_, any_, sqrt, maximum, minimum, dot = xp.all, xp.any, xp.sqrt, xp.maximum, xp.minimum, xp.dot
    kept, limit = 1.0 - 1.0 / window, clip**2
    kept2, twice, where, fading, within, drawn = kept * kept, 2.0 * kept, xp.where, xp.fading, xp.clip, xp.drawn
    wild2, loud2, least = WILD * WILD, LOUD * LOUD, LEAST
    special, repeated = special_rounds(frame, clip), repetitions(xp)

    def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Sensed:
        fit: Any = state.slope
        (calm, learnt, level, anchor, slope, fade, size, spread, gain, agreement, square, usual, rise_square,
         drop_square, power, loud, certainty, bent, weight, bend, doubts) = fit  # fmt: skip
        width, value = look.width, values[0]
        probe2 = unit2 * (width * width)
        # The innovation.
        if any_(width == 0):  # a point chosen by the step, or the centre at the start
            from_centre = query - state.centre
            probe2 = where(width == 0, dot(from_centre, from_centre), probe2)
        apart = query - anchor
        apart2, ahead = dot(apart, apart), fade * dot(slope, apart)
        length2, wider = maximum(apart2, 0.5 * probe2) + TINY, 0.5 * (probe2 - spread)
        known = ahead + bent * wider
        error = value - level - known
        error2, idle, jumped = error * error, False, False
        if routine := all_(calmly := error2 <= calm * length2):
            most, at_most = wild2 * square, loud2 * power
        else:
            idle, jumped, error, most, at_most, doubts, fit = special(state, look, query, value, error, length2)
            if not any_(idle == 0):
                return frame.zero + math.nan, 0.0, slope, fit, None
            error2, counted = error * error, where(doubts.run > 1, FORGOTTEN, 1.0)
            weight, bend, doubts = counted * weight, counted * bend, doubts._replace(weight=counted * doubts.weight)
        # The rms slope along a probe; mean squares of innovations above and below their mean.
        learnt = minimum(learnt + 1.0, SLOW)
        newest, steep2 = 1.0 / learnt, minimum(error2 / length2, most)
        square = square + (steep2 - square) * newest + TINY
        steepness, along = sqrt(square), error / sqrt(length2)
        unlike = (along if routine else within(along, -JUMP * steepness, JUMP * steepness)) - usual
        usual = usual + newest * unlike
        up, unlike2 = 2.0 * newest * (unlike > 0), minimum(unlike * unlike, wild2 * square)  # not so for a jump
        rise_square = rise_square + up * (unlike2 - rise_square)
        drop_square = drop_square + (2.0 * newest - up) * (unlike2 - drop_square)
        # The curvature from probe widths.
        fresh = look.trial != state.last.trial
        if any_(counts := calmly & fresh):
            lifted, kept_of = bent * wider, REMEMBERED
            own = where(doubts.echoes == 0, 1.0, OUTLIER)  # with late values there are no replicates: be cautious
            unsure = power + own * error2 + FINEST * lifted * lifted + FLOOR * wider * wider + TINY
            trust = wider / unsure
            if not all_(counts):
                trust, kept_of = where(counts, trust, 0.0), where(counts, REMEMBERED, 1.0)
            weight = kept_of * weight + trust * wider
            bend = kept_of * bend + trust * (error + lifted)
        # The plane.
        step = learning * error / length2
        size = maximum(kept2 * size + step * (twice * ahead + step * apart2), TINY)
        slope, fade = fading(slope, fade, kept, step, apart)
        level, spread = level + gain * (known + error), spread + gain * (probe2 - spread)
        anchor, before = drawn(gain, apart, anchor), agreement
        # The noise, from replicates; the gain of the level, from consecutive innovations.
        powered = power + (minimum(error2, at_most) - power) * maximum(newest, OTHERS) + TINY
        if all_(fresh):
            power = powered
        else:
            power, loud, doubts = repeated(state, look, value, probe2, powered, doubts)
        agreement = error / sqrt(powered + error2)
        gain = within(gain * (1.0 + HASTE * agreement * before), SLOWEST_LEVEL, 1.0)
        # The curvature from the opening and from probe widths, relative to its error.
        opening = doubts.weight
        weights = weight + opening
        chance = sqrt(PROOF * weights) + TINY
        bends = maximum(bend + opening * doubts.curvature, chance)
        share = chance / bends
        certainty = 1.0 - share * share
        bent = certainty * (bends / (weights + FLOOR * bends + TINY))
        echoes = doubts.echoes
        signal = maximum(power - loud, least / within(echoes, FEW, ENOUGH) * power) / power
        if any_(echoes == 0):
            at_most = where(learnt > SETTLED, SILENT, UNHEARD)
            signal = where(echoes == 0, minimum(signal, at_most), signal)
        downhill = far * steepness
        distance = downhill / (bent + downhill / NOWHERE + TINY)
        edge = STEEP * rise_square + TINY
        evenness = (minimum(drop_square, rise_square) + edge) / (rise_square + edge)
        surprise, calm = along / steepness, limit * square
        if not routine:
            evenness = where(learnt > SETTLED, evenness, 1.0)
            calm = where((doubts.phase > 2) & (doubts.run == 1) & (learnt > SETTLED), calm, -1.0)
        new = Fit(calm, learnt, level, anchor, slope, fade, size, spread, gain, agreement, square, usual,
                  rise_square, drop_square, power, loud, certainty, bent, weight, bend, doubts)  # fmt: skip
        sense = Sense(surprise, steepness, size, signal, certainty, bent, distance, evenness, jumped)
        if not routine and any_(idle):
            return where(idle, math.nan, error), fade, slope, xp.merge(idle, fit, new), sense
        return error, fade, slope, new, sense

    return learn
