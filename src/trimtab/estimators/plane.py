"""A plane through the values, which knows its own scale, noise and curvature: what the default method learns by.

References: the affine projection (Kaczmarz, NLMS) filter, with an intercept; docs/auto.md derives what is added to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trimtab.arithmetic import TINY
from trimtab.estimators.base import STEEPEST, OneQuery, running_mean_square
from trimtab.parts import Estimate, Estimation, Frame, Sense
from trimtab.registry import part
from trimtab.state import Look, State, make
from trimtab.types import Array, Memory, Value
from trimtab.validation import real, whole

# Chosen on the cells for choosing of the suite `drift`, at a quarter of the radius, at the radius and at four times it.
NOWHERE = 1e100  # the distance to an optimum of which nothing is known
SETTLED = 5  # surprises before any is doubted: fewer do not make a scale
SLOW = 300.0  # rounds: the window of the rms slope, so long that it does not follow a single jump
ECHO_WINDOW, OTHER_WINDOW = 20.0, 100.0  # echoes, and other surprises, in the two running mean squares
TRUST = 0.8  # of what an echo differs by counts as noise; the rest may be drift of the level
DOUBT = 1.6  # over √n more, while n echoes were heard: two values may agree by chance
LEAST = 0.04  # the least share of signal, so that a step is never zero
JUMP, ALONE = 20.0, 3.0  # a surprise that repeats counts up to so many rms, one that does not up to so many
SAME = 0.5  # a value repeats if it differs by less than this much of the surprise
WILD = 3.0  # in the running rms a surprise counts as so many of them at most
CLOSER = 0.5  # a surprise upwards is asked again at so much of the width: it may have been a cliff
RENEWAL = 8  # rounds after which a confirmed jump has the curvature measured again
PROOF = 1.9  # times the noise: what the bend must stand out of
GUARD = 0.01  # of all surprises is noise at least, over the echoes heard: one echo may be silent by chance
ACCEPTED = 0.5  # a curvature measured later replaces the one before if its square stands out of the noise by 1/this
FAR = 16.0  # added to d in the distance: in few dimensions the plane has predicted most of the slope already


class Fit(NamedTuple):
    """What `Plane` remembers."""

    phase: Value
    """Values told since the start, or since the last jump: 0 the centre, 1 a probe, 2 its mirror image are due."""
    learnt: Value
    """How many surprises it has learnt from."""
    level: Value
    anchor: Array
    slope: Array
    spread: Value
    """W: the square of the probe's length that the level is meant for."""
    square: Value
    """s²: the running mean square of surprises per unit of length."""
    drops: Value
    drop_square: Value
    """The same of surprises downwards alone, which cliffs do not inflate, and how many there were."""
    run: Value
    """2^(surprises in a row that were beyond the limit)."""
    doubt: Value
    """The surprise that is being asked again; 0 if there is none."""
    echoes: Value
    noise: Value
    """The mean square by which a repeated query's value differs from its first, and how many there were."""
    contrasts: Value
    contrast_power: Value
    """The mean square of all other surprises, and how many there were."""
    rest: Value
    """The value at the centre itself, measured last."""
    bend: Value
    """By how much the values at a probe and its mirror image were above it, in the mean: ½L·l²."""
    curvature: Value
    certainty: Value


@part
@dataclass(frozen=True)
class Plane(OneQuery):
    """A plane through the values, y ≈ b + ⟨g, p − r⟩, corrected by e, what it fails to predict: with D = p − r,

        e = y − b − ⟨g, D⟩ − ½·c·L·(l² − W),   g ← (1 − 1/window)·g + learning·e·D/‖D‖²,
        b ← b + level·(y − b)  (with e clipped),   r ← r + level·D,   W ← W + level·(l² − W).

    ĝ = g. What the plane knows is no noise in e: the probes before, the movement of the centre, the offset, and, where
    the mean curvature L is known with the certainty c, a change of the probe's length l. It knows L from the first
    three rounds, the centre, a probe and its mirror image; the noise from echoes, rounds that repeat the query before
    (`echoes`); and what is beyond `clip` times the running rms of e is asked again before anything is learnt from it:
    an outlier is alone, a jump repeats. Of a function that stands still, ĝ is in the mean a positive multiple of the
    gradient, not the gradient itself; under drift it lags by some `window` rounds. Needs O(d).
    """

    window: float = 4.0
    level: float = 0.5
    learning: float = 0.65
    clip: float = 10.0
    every: int = 64
    first: int = 4
    unbiased: ClassVar[bool] = False
    located: ClassVar[bool] = True
    senses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("window", self.window, 1, why=" of rounds")
        for name, largest in (("level", 1.0), ("learning", 1.0), ("clip", math.inf)):
            real(name, getattr(self, name), 0, largest, above=True)
        for name in ("every", "first"):
            whole(name, getattr(self, name), 2)

    def start(self, frame: Frame, centre: Array) -> Memory:
        """Nothing is known."""
        zero, unknown, nothing = frame.zero, frame.zero + math.nan, np.zeros_like(centre)
        return Fit(
            *(zero, zero, unknown, nothing, nothing, *(zero,) * 4, zero + 1.0, *(zero,) * 5, unknown, zero, zero, zero)
        )

    def echoes(self, trial: int) -> bool:
        """Whether a trial repeats the query before it: every so many trials, and before that by powers of two.

        >>> [t for t in range(200) if Plane().echoes(t)]
        [3, 7, 15, 31, 63, 127, 191]
        """
        n = trial + 1
        if n >= self.every:
            return n % self.every == 0
        times, rest = divmod(n, self.first)
        return rest == 0 < times and times & (times - 1) == 0

    def bind(self, frame: Frame) -> Estimation:
        """The centre, a probe, its mirror image; then probes, echoes, and again where in doubt."""
        return Estimation(self._look(frame), self._learn(frame))

    def _look(self, frame: Frame) -> Callable[[State, int, Value], Look]:
        xp, echoes, zero = frame.xp, self.echoes, frame.zero
        any_, merge, where = xp.any, xp.merge, xp.where

        def look(state: State, id: int, width: Value) -> Look:
            fit, last, next_look = state.slope, state.last, make(Look, (id, state.centre, width))
            if any_(fit.phase == 0) and not state.open:  # only one of several open trials is the centre
                next_look = next_look._replace(width=where(fit.phase == 0, zero, width))
            just = (state.told == id - 1) & (id > 0)
            doubted, mirrored = just & (fit.doubt != 0), just & (fit.phase == 2) & (last.width != 0)
            if any_(doubted | mirrored):
                next_look = merge(mirrored, last._replace(width=-last.width), next_look)
                least = xp.minimum(frame.narrowest / xp.maximum(abs(last.width), TINY), 1.0)
                closer = last.width * where(fit.doubt > 0, xp.maximum(CLOSER, least), 1.0)
                next_look = merge(doubted, last._replace(width=closer), next_look)
            if echoes(id):
                next_look = merge(just & (fit.phase > 2) & (fit.doubt == 0), last, next_look)
            return next_look

        return look

    def _learn(self, frame: Frame) -> Callable[[State, Look, Array, tuple[Value, ...]], Estimate]:
        xp, unit2, far = frame.xp, frame.probe_length**2, math.sqrt(frame.dim + FAR)
        any_, sqrt, maximum, minimum, where, dot = xp.any, xp.sqrt, xp.maximum, xp.minimum, xp.where, xp.dot
        kept, learning, level_rate, clip = 1.0 - 1.0 / self.window, self.learning, self.level, self.clip
        unlimited = STEEPEST * STEEPEST

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            fit, last, value = state.slope, state.last, values[0]
            phase, learnt, level, anchor, slope, spread, square, drops, drop_square = fit[:9]
            run, doubt, echoes, noise, contrasts, contrast_power, rest, bend, curvature, certainty = fit[9:]
            probe2 = unit2 * (look.width * look.width)
            # The surprise: what the plane did not predict.
            apart = query - anchor
            length2 = maximum(dot(apart, apart), 0.5 * probe2, TINY)
            known = dot(slope, apart) + 0.5 * certainty * curvature * (probe2 - spread)
            error = value - level - known
            # An outlier is alone, a jump repeats: the first surprise beyond the limit is asked again.
            typical, asked, jumped, some_idle = sqrt(square * length2), doubt != 0, False, False
            beyond = (learnt > SETTLED) & (square > 0) & (abs(error) > clip * run * typical)
            opening = (phase < 2) | (level != level)  # nothing to be contrasted with: it only anchors
            if any_(opening | beyond | asked):
                idle = opening | (beyond & (run == 1) & (asked == 0))
                some_idle = any_(idle)
                opened = fit._replace(phase=phase + 1, level=value, anchor=query, spread=probe2)
                opened = opened._replace(rest=where(look.width == 0, value, rest))
                fit = xp.merge(opening, opened, fit._replace(doubt=error))
                if not any_(idle == 0):
                    return frame.zero + math.nan, 0.0, slope, fit, None
                jumped = beyond & asked & (abs(value - state.values[0]) < SAME * abs(doubt))
                counted = where(asked, where(jumped, JUMP, ALONE), 0.5 * JUMP * run) * typical
                counted = where(beyond, counted, abs(error))
                error = xp.clip(error, -counted, counted)
                run = where(beyond, where(asked, 2.0, minimum(2.0 * run, 2.0**20)), 1.0)
                phase, doubt = where(jumped & (phase > RENEWAL), -1.0, phase - asked), 0.0 * doubt
            elif any_(run > 1):
                run = run * 0.0 + 1.0
            # The rms slope along a probe, of all surprises and of those downwards.
            per_length = error / sqrt(length2)
            most = (WILD * run) * (WILD * run) * square + unlimited * ((learnt <= SETTLED) | (square == 0))
            steep2, learnt = minimum(per_length * per_length, most), learnt + 1.0
            square = square + (steep2 - square) * maximum(1.0 / learnt, 1.0 / SLOW)
            steepness = sqrt(maximum(square, TINY))
            if any_(down := error < 0):
                drops = drops + down
                newest = maximum(1.0 / maximum(drops, 1.0), 1.0 / SLOW)
                drop_square = drop_square + down * (steep2 - drop_square) * newest
            # The plane.
            slope = slope * kept
            slope += xp.times(learning * error / length2, apart)
            level, spread = level + level_rate * (known + error), spread + level_rate * (probe2 - spread)
            apart *= level_rate
            apart += anchor
            # The noise, from values of the same query; the curvature, from the centre, a probe and its mirror image.
            powered = running_mean_square(xp, contrast_power, contrasts, error, OTHER_WINDOW)
            if any_(look.trial == last.trial):
                same = (look.trial == last.trial) & (asked == 0) & (phase > 1)
                repeat, mirrored = same & (look.width == last.width), same & (look.width == -last.width)
                echoed = running_mean_square(xp, noise, echoes, value - state.values[0], ECHO_WINDOW)
                noise, echoes = where(repeat, echoed, noise), echoes + repeat
                contrast_power, contrasts = where(repeat, contrast_power, powered), contrasts + (repeat == 0)
                doubtful = PROOF * maximum(_loud(xp, noise, echoes), GUARD * contrast_power / maximum(echoes, 1.0))
                seen = 0.5 * (state.values[0] + value) - rest
                taken = mirrored & (seen > 0) & ((bend == 0) | (doubtful < ACCEPTED * seen * seen))
                bend = where(taken, seen, bend)
                curvature = where(taken, 2.0 * seen / where(taken, probe2, 1.0), curvature)
                bend2 = bend * bend
                sure = maximum((bend2 - doubtful) / maximum(bend2, doubtful, TINY), 0.0)
                certainty = where(same, where((echoes > 0) & (bend > 0), sure, 0.0), certainty)
            else:
                contrast_power, contrasts = powered, contrasts + 1.0
            loud = _loud(xp, noise, echoes)
            signal = maximum(1.0 - loud / maximum(contrast_power, 1e-9 * loud, TINY), LEAST)
            distance = NOWHERE
            if any_(bent := certainty * curvature):
                downhill = far * where(drops > 2, minimum(steepness, sqrt(drop_square)), steepness)
                distance = downhill / maximum(bent, downhill / NOWHERE, TINY)
            new = make(
                Fit,
                (
                    *(phase + 1.0, learnt, level, apart, slope, spread, square, drops, drop_square),
                    *(run, doubt, echoes, noise, contrasts, contrast_power, rest, bend, curvature, certainty),
                ),
            )
            surprise, size = per_length / steepness, dot(slope, slope)
            sense = make(Sense, (surprise, steepness, size, signal, curvature, certainty, distance, jumped))
            if some_idle:
                return where(idle, math.nan, error), 1.0, slope, xp.merge(idle, fit, new), sense
            return error, 1.0, slope, new, sense

        return learn


def _loud(xp: Any, noise: Value, echoes: Value) -> Value:
    """What of a surprise's square may be noise, after so many echoes."""
    found: Value = TRUST * (1.0 + DOUBT / xp.sqrt(xp.maximum(echoes, 1.0))) * noise
    return found
