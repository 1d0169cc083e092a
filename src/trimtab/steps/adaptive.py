"""A pace and a radius that find themselves: how far the default method goes, and how wide it looks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from trimtab.protocols import Frame, Pacing, Sense
from trimtab.registry import part
from trimtab.state import Look, State, make
from trimtab.steps import following
from trimtab.steps.following import Following
from trimtab.types import Array, Memory, Value
from trimtab.validation import real
from trimtab.xp import power

# Chosen as those of `Plane`.
PACE, POWER = 2.5, 0.55  # a first move has the length of PACE/d^POWER probes
SLOWEST, FASTEST = 0.11, 10.0  # of a
WHITENESS, PER_DIM = 0.075, 0.45  # the rate of log a: min(WHITENESS, PER_DIM/√d), as many rounds as a frame needs
COURSE = 4.0  # √d: the window of the mean course
TURN, STRIDE = 2, 8  # rounds: how often the course is taken, and the trail drawn on, whose window is at least 10
NEWTON = 1 / 3  # of 1/L: what was learnt counts for three rounds, as long as the plane remembers it
STEADY = 3  # contrasts before the pace changes: fewer have no direction
RATIO = 3.0  # √d mean moves: how far the optimum is, and so how wide to look
FOLLOW = 20.0  # rounds: the window of the mean move's length
TOP = 1.7  # times the radius: how wide to look before anything is known of noise
RISE, BEYOND, FALL = 1.2, 1.04, 0.5  # the width changes by no more from round to round; so much beyond that given
MANY = 200.0  # dimensions: in more of them wider probes cost too much before they have told enough
REACH = 0.23  # of the distance to the optimum is the widest look
EDGE, CLIFFS = 0.3, 0.95  # the power of the evenness of surprises (those upwards larger: a cliff is near); with d, more
AHEAD, SURE = 8, 0.13  # one trial of so many looks along the course; the rate of log a by what it finds there
WAVER = 0.15  # the square of the width goes up and down by so much: that is what shows the curvature
PATIENCE = 16.0  # a value that is late by 1 + d/PATIENCE rounds slows nothing: a frame takes longer
LONGEST = 2.0  # probes of the radius given: the longest move


class Pace(NamedTuple):
    """What `Adaptive` remembers."""

    moves: Value
    """How many contrasts it has seen."""
    pace: Value
    """a."""
    trail: Array
    """A running mean of the centres."""
    course: Array
    reach: Value
    """From the trail to the centre, and how far that is."""
    move: Value
    """M: the running mean of the length of moves."""
    width: Value
    """δ_t/δ of the queries from now on, about which they waver."""
    root_signal_share: Value
    """√h of the last contrast."""
    widest: Value
    """What the next width must not exceed."""
    following: Following
    """Where the optimum goes, if it goes on."""


def swells(trial: int) -> int:
    """1 for a trial that looks wider than the width is, 0 for one that looks narrower: the sequence of Thue and Morse.

    >>> [swells(trial) for trial in range(8)]
    [0, 1, 1, 0, 1, 0, 0, 1]
    """
    return trial.bit_count() & 1


def looks_ahead(trial: int) -> bool:
    """Whether a trial looks along the course, forwards or backwards, instead of in a direction of its own.

    >>> [trial for trial in range(24) if looks_ahead(trial)]
    [7, 15, 23]
    """
    return trial % AHEAD == AHEAD - 1


@part
@dataclass(frozen=True)
class Adaptive:
    """A pace by whiteness, in units of the radius given or of Newton's step, and a radius that follows the moves.

    One trial of eight looks along the course, where a single value says of the pace what takes d others. Where the
    optimum goes on steadily the centre is carried along with it (`trimtab.steps.following`). The width wavers from
    trial to trial, by the sequence of Thue and Morse, whose averages hide no drift: from widths that differ, an
    estimator learns the curvature.

    narrowest, widest: the least and the largest width of a probe, in times of the radius.
    """

    narrowest: float = 0.03
    widest: float = 4.0
    scale_free: ClassVar[bool] = True
    needs_sense: ClassVar[bool] = True
    finds_width: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("narrowest", self.narrowest, 0, 1, above=True, why=", in times of the radius")
        real("widest", self.widest, 1, why=", in times of the radius")

    @property
    def constant(self) -> None:
        """It changes."""
        return None

    def start(self, frame: Frame, centre: Array) -> Memory:
        """As wide as the radius given, where it swells."""
        zero, one = frame.zero, frame.zero + 1.0
        wide = one / math.sqrt(1.0 + WAVER)
        move = zero + frame.probe_length / (RATIO * math.sqrt(frame.dim))
        far, nowhere = zero + frame.probe_length, 0.0 * centre
        return Pace(zero, one, centre.copy(), nowhere, far, move, wide, one, one, following.start(centre, zero))

    def bind(self, frame: Frame) -> Pacing:
        """Whiteness for the pace, the moves for the width."""
        xp, root, length = frame.xp, math.sqrt(frame.dim), frame.probe_length
        sqrt, maximum, minimum, where, clip, dot = xp.sqrt, xp.maximum, xp.minimum, xp.where, xp.clip, xp.dot
        drawn_on = 1.0 - (1.0 - 1.0 / max(10.0, COURSE * root)) ** STRIDE
        unit, half = math.sqrt(frame.scale), 0.5 * min(WHITENESS, PER_DIM / root)
        first, patience = PACE * length / frame.dim**POWER, 1.0 + frame.dim / PATIENCE
        narrowest, widest, direction = self.narrowest, self.widest, frame.direction
        longest, follow, some, norm, axpy = LONGEST * length, RATIO * root / length, xp.any, xp.norm, xp.axpy
        merge, times, newest, within = xp.merge, xp.times, 1.0 / FOLLOW, REACH / length
        (weigh, follow_on), level = following.bind(frame), unit / root
        beyond = BEYOND ** min(1.0, PATIENCE / frame.dim)  # a frame has to tell what wider probes cost
        many = min(1.0, MANY / frame.dim)
        less, wary = power(sqrt, many), power(sqrt, EDGE + CLIFFS * (1.0 - many))
        sure, tallest = 0.5 * SURE, frame.radius * frame.tallest
        wavering = math.sqrt(1.0 - WAVER), math.sqrt(1.0 + WAVER)

        def rate(state: State, look: Look, contrast: Value, sense: Sense | None) -> tuple[Value, Memory]:
            if sense is None:  # nothing was learnt
                return 0.0, (*state.pace, 0.0)
            moves, pace, trail, course, reach, move, wide, root_share, top, going = state.pace
            surprise, steepness, size, signal_share, certainty, bent, distance, evenness, jumped = sense
            # Whiteness: at the right pace, what is learnt does not lean on where we have been going.
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
            if some(ahead := look.width == 0):  # along the course itself
                sign = where(dot(look.centre - state.centre, state.pace[3]) < 0, -1.0, 1.0)
                change = where(ahead, sign * sure * clip(surprise, -3.0, 3.0), change)
                towards, per = merge(ahead, state.pace[3], towards), where(ahead, sign / state.pace[4], level)
            # How late what is learnt comes, in times of what a frame takes anyway.
            delay = max(len(state.open) / patience, 1.0) if state.open else 1.0
            # Half the change c of log a, down and up, needs no exponential: (1 − c/2)/(1 + c/2) = e^(−c) + O(c³).
            change = change / delay
            pace = clip(pace * (1.0 - change) / (1.0 + change), SLOWEST, FASTEST)
            if some(jumped):
                pace, wide = where(jumped, maximum(pace, 1.0), pace), where(jumped, maximum(wide, 1.0), wide)
            quick, root_share = maximum(pace, 1.0), sqrt(signal_share)
            # The step: in units of the radius given, or Newton's where the curvature is certain.
            unit_step = 1.0 / ((1.0 - certainty) * steepness / first + bent / NEWTON)
            root_size = sqrt(size)
            step = minimum(unit_step * pace * root_share / delay, longest * quick / root_size)
            # The width: no wider than noise asks for, than is within reach, or than a little more than before.
            top = minimum(less(TOP * sqrt(quick / root_share)), within * distance) * wary(evenness)
            # Is the optimum going on?
            share, heard = minimum(step / unit_step, 1.0), where(moves <= STEADY, 0.0, surprise)
            going, much = weigh(going, towards, per, heard, NEWTON / (unit_step * steepness), share, length * wide)
            return step, (moves, pace, trail, course, reach, move, wide, root_share, top, going, much)

        def carry(pace: Memory) -> Array | None:
            much = pace[-1]
            return times(much, pace[-2].velocity) if some(much != 0) else None

        def settle(pace: Memory, change: Array) -> Memory:
            moves, quickness, trail, course, reach, move, before, root_share, top, going, _ = pace
            move = move + (norm(change) - move) * maximum(1.0 / (moves + 2.0), newest)
            most = minimum(RISE * before, maximum(beyond * before, 1.0))
            wide = clip(clip(minimum(follow * move / root_share, top), FALL * before, most), narrowest, widest)
            return make(Pace, (moves, quickness, trail, course, reach, move, wide, root_share, top, going))

        def width(pace: Memory, id: int) -> Value:
            wide: Value = pace[6] * wavering[swells(id)]
            return minimum(maximum(wide, narrowest), widest)  # type: ignore[no-any-return]

        def aim(state: State, id: int, look: Look) -> Look:
            wide, before = look.width, state.last.width
            narrow = (wide > -narrowest) & (wide < narrowest) & (wide != 0)
            narrow = narrow & (wide != before) & (wide != -before)  # an echo, or a mirror image, is as wide as it was
            if some(narrow):  # what an estimator asks again, closer by
                look = look._replace(width=where(narrow, where(wide < 0, -narrowest, narrowest), wide))
            if not looks_ahead(id):
                return look
            moves, _, _, course, reach, *_ = state.pace
            peak = abs(course).max(axis=-1)
            able = (look.trial == id) & (look.width != 0) & (moves > STEADY) & (peak > 0)
            if not some(able):
                return look
            size = minimum(length / reach, tallest / where(able, peak, 1.0)) * look.width
            forwards = where(direction(state.key, id)[..., 0] < 0, -size, size)  # u itself may be orthogonal to it
            centre, wide = axpy(forwards, course, look.centre), look.width
            return look._replace(centre=merge(able, centre, look.centre), width=where(able, 0.0 * wide, wide))

        return Pacing(width, rate, settle, carry, longest * FASTEST + following.STRAY * widest * length, aim)
