"""The step of the default method, which adapts its pace and the width of its probes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from trimtab.protocols import Frame
from trimtab.rescaling import POWERS
from trimtab.state import Look, State
from trimtab.tracker import following
from trimtab.tracker.following import Following
from trimtab.tracker.sense import Sense
from trimtab.types import Array, Value
from trimtab.xp import power

# Tuned like the constants of `Plane`. The heading is the direction from the running mean of centres to the centre.
PACE, POWER = 2.5, 0.55  # the first move has the length of PACE/d^POWER probes
SLOWEST, FASTEST = 0.11, 10.0  # limits of the pace a
WHITENESS, PER_DIM = 0.075, 0.45  # adaptation rate of log a: min(WHITENESS, PER_DIM/√d)
COURSE = 4.0  # window of the heading, in units of √d rounds
TURN, STRIDE = 2, 8  # rounds between updates of the heading, and of the mean of centres, whose window is at least 10
NEWTON = 1 / 3  # of Newton's step 1/L, because the plane remembers, and uses, a value for about three rounds
STEADY = 3  # contrasts before the pace adapts, since there is no heading before
RATIO = 3.0  # assumed distance to the optimum, in units of √d mean moves
FOLLOW = 20.0  # rounds: window of the mean length of moves
TOP = 1.7  # largest width while the noise is unknown
RISE, BEYOND, FALL = 1.2, 1.04, 0.5  # largest growth, growth beyond the initial radius, largest shrinkage per round
MANY = 200.0  # beyond this dimension wider probes cost too much before they pay off
REACH = 0.23  # largest width, relative to the distance to the optimum
EDGE, CLIFFS = 0.3, 0.95  # exponent of the evenness, which is small near a cliff, in low and in high dimension
AHEAD, SURE = 8, 0.13  # every AHEAD-th trial probes along the heading; adaptation rate of log a in these trials
WAVER = 0.15  # the squared width alternates by ±WAVER, which makes the curvature observable
PATIENCE = 16.0  # values late by up to 1 + d/PATIENCE rounds do not slow the step
LONGEST = 2.0  # longest move, in probes of the given radius


class Pace(NamedTuple):
    """Memory of `Adaptive`."""

    moves: Value
    """The number of contrasts so far."""
    pace: Value
    """a, the pace."""
    trail: Array
    """A running mean of the centres."""
    course: Array
    reach: Value
    """The heading: the vector from the trail to the centre, and its length."""
    move: Value
    """M: the running mean of the length of moves."""
    width: Value
    """δ_t/δ of the next queries, before it is varied by ±WAVER."""
    root_signal_share: Value
    """√h of the last contrast."""
    widest: Value
    """The upper limit of the next width."""
    following: Following
    """The estimated motion of the optimum."""


POWERS[Pace] = {"trail": 1, "course": 1, "reach": 1, "move": 1}


class Pacing(NamedTuple):
    """Step size and width, bound to a setup."""

    width: Callable[[Pace, int], Value]
    """(pace, id) → δ_t/δ of trial `id`."""
    aim: Callable[[State, int, Look], Look]
    """(state, id, look) → another look for trial `id`; a probe along the heading has width 0."""
    rate: Callable[[State, Look, Sense], tuple[Value, Pace, Array | None]]
    """(state, look, sense) → η_t, the memory before the move, and an additional move that follows a moving optimum."""
    settle: Callable[[Pace, Array], Pace]
    """(pace, move of the centre) → the new memory, with its width."""
    longest: float
    """An upper bound on the length of its moves."""


def swells(trial: int) -> int:
    """1 for trials with a wider probe, 0 for those with a narrower one: the Thue–Morse sequence.

    >>> [swells(trial) for trial in range(8)]
    [0, 1, 1, 0, 1, 0, 0, 1]
    """
    return trial.bit_count() & 1


def looks_ahead(trial: int) -> bool:
    """Whether a trial probes along the heading, forwards or backwards, instead of in a direction of its own.

    >>> [trial for trial in range(24) if looks_ahead(trial)]
    [7, 15, 23]
    """
    return trial % AHEAD == AHEAD - 1


def start(frame: Frame, centre: Array) -> Pace:
    """A memory without contrasts; wider probes have the given radius."""
    zero, one = frame.zero, frame.zero + 1.0
    wide = one / math.sqrt(1.0 + WAVER)
    move = zero + frame.probe_length / (RATIO * math.sqrt(frame.dim))
    far, nowhere = zero + frame.probe_length, 0.0 * centre
    return Pace(zero, one, centre.copy(), nowhere, far, move, wide, one, one, following.start(centre, zero))


def bind(frame: Frame, narrowest: float, widest: float) -> Pacing:
    """Bind the adaptation of pace and width."""
    xp, root, length = frame.xp, math.sqrt(frame.dim), frame.probe_length
    sqrt, maximum, minimum, where, clip, dot = xp.sqrt, xp.maximum, xp.minimum, xp.where, xp.clip, xp.dot
    drawn_on = 1.0 - (1.0 - 1.0 / max(10.0, COURSE * root)) ** STRIDE
    unit, half = math.sqrt(frame.scale), 0.5 * min(WHITENESS, PER_DIM / root)
    first, patience = PACE * length / frame.dim**POWER, 1.0 + frame.dim / PATIENCE
    direction = frame.direction
    longest, follow, some, norm, axpy = LONGEST * length, RATIO * root / length, xp.any, xp.norm, xp.axpy
    merge, times, newest, within = xp.merge, xp.times, 1.0 / FOLLOW, REACH / length
    (weigh, follow_on), level = following.bind(frame), unit / root
    beyond = BEYOND ** min(1.0, PATIENCE / frame.dim)  # the cost of wider probes shows after d rounds
    many = min(1.0, MANY / frame.dim)
    less, wary = power(sqrt, many), power(sqrt, EDGE + CLIFFS * (1.0 - many))
    sure, tallest = 0.5 * SURE, frame.radius * frame.tallest
    wavering = math.sqrt(1.0 - WAVER), math.sqrt(1.0 + WAVER)

    def rate(state: State, look: Look, sense: Sense) -> tuple[Value, Pace, Array | None]:
        moves, pace, trail, course, reach, move, wide, root_share, top, going = state.pace
        surprise, steepness, size, signal_share, certainty, bent, distance, evenness, jumped = sense
        # Whiteness: at the right pace, innovations are uncorrelated with the heading.
        moves = moves + 1.0
        if some(turn := moves % TURN == 0):
            course = merge(turn, state.centre - trail, course)
            square = dot(course, course)
            reach = sqrt(where(square > 0, square, length * length))
            if some(drawn := moves % STRIDE == 0):
                trail = merge(drawn, axpy(drawn_on, course, trail), trail)
                going = follow_on(going, drawn, drawn_on / STRIDE, course)
        towards, per = direction(state.key, look.trial), level
        lean = unit * dot(towards, course) / reach
        if some(seldom := (look.width < 0) | (moves <= STEADY)):
            lean = where(seldom, where(moves <= STEADY, 0.0, -lean), lean)
        change = half * clip(surprise * lean, -3.0, 3.0)
        if some(ahead := look.width == 0):  # a probe along the heading
            sign = where(dot(look.centre - state.centre, state.pace.course) < 0, -1.0, 1.0)
            change = where(ahead, sign * sure * clip(surprise, -3.0, 3.0), change)
            towards, per = merge(ahead, state.pace.course, towards), where(ahead, sign / state.pace.reach, level)
        # The delay of values, relative to the time constant of learning.
        delay = max(len(state.open) / patience, 1.0) if state.open else 1.0
        # Half the change c of log a, down and up, needs no exponential: (1 − c/2)/(1 + c/2) = e^(−c) + O(c³).
        change = change / delay
        pace = clip(pace * (1.0 - change) / (1.0 + change), SLOWEST, FASTEST)
        if some(jumped):
            pace, wide = where(jumped, maximum(pace, 1.0), pace), where(jumped, maximum(wide, 1.0), wide)
        quick, root_share = maximum(pace, 1.0), sqrt(signal_share)
        # The step: relative to the given radius, or Newton's if the curvature is certain.
        unit_step = 1.0 / ((1.0 - certainty) * steepness / first + bent / NEWTON)
        root_size = sqrt(size)
        step = minimum(unit_step * pace * root_share / delay, longest * quick / root_size)
        # The limit of the width, from noise, distance and evenness.
        top = minimum(less(TOP * sqrt(quick / root_share)), within * distance) * wary(evenness)
        # The motion of the optimum.
        share, heard = minimum(step / unit_step, 1.0), where(moves <= STEADY, 0.0, surprise)
        going, much = weigh(going, towards, per, heard, NEWTON / (unit_step * steepness), share, length * wide)
        carried = times(much, going.velocity) if some(much != 0) else None
        return step, Pace(moves, pace, trail, course, reach, move, wide, root_share, top, going), carried

    def settle(pace: Pace, change: Array) -> Pace:
        moves, quickness, trail, course, reach, move, before, root_share, top, going = pace
        move = move + (norm(change) - move) * maximum(1.0 / (moves + 2.0), newest)
        most = minimum(RISE * before, maximum(beyond * before, 1.0))
        wide = clip(clip(minimum(follow * move / root_share, top), FALL * before, most), narrowest, widest)
        return Pace(moves, quickness, trail, course, reach, move, wide, root_share, top, going)

    def width(pace: Pace, id: int) -> Value:
        wide: Value = pace.width * wavering[swells(id)]
        return minimum(maximum(wide, narrowest), widest)  # type: ignore[no-any-return]

    def aim(state: State, id: int, look: Look) -> Look:
        wide, before = look.width, state.last.width
        narrow = (wide > -narrowest) & (wide < narrowest) & (wide != 0)
        narrow = narrow & (wide != before) & (wide != -before)  # replicates and mirror images keep their width
        if some(narrow):  # repeats of large innovations
            look = look._replace(width=where(narrow, where(wide < 0, -narrowest, narrowest), wide))
        if not looks_ahead(id):
            return look
        moves, _, _, course, reach, *_ = state.pace
        peak = abs(course).max(axis=-1)
        able = (look.trial == id) & (look.width != 0) & (moves > STEADY) & (peak > 0)
        if not some(able):
            return look
        size = minimum(length / reach, tallest / where(able, peak, 1.0)) * look.width
        forwards = where(direction(state.key, id)[..., 0] < 0, -size, size)  # a random sign, from the trial's u
        centre, wide = axpy(forwards, course, look.centre), look.width
        return look._replace(centre=merge(able, centre, look.centre), width=where(able, 0.0 * wide, wide))

    return Pacing(width, aim, rate, settle, longest * FASTEST + following.STRAY * widest * length)
