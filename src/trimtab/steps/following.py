"""An optimum that goes on steadily, and a centre that is carried along with it: a part of `Adaptive`.

Two centres are thought of, one that is carried by the velocity v of the moves so far and one that is not; the first is
ahead of the other by λ. Both are corrected by what the probes tell, so that along each of them, û, a share h of λ is
lost, and a value whose surprise is e says which of the two had been nearer to the optimum. With ω the belief in the
first and z = L·⟨û, λ⟩/s what it would make of e in units of its rms s,

    log odds ← 0.995·log odds + (ω − ½)·z² − z·e/s,   λ ← λ − h·û⟨û, λ⟩ + v,   x ← x + ω·v + Δω·λ,

where the belief follows the log odds. It is the test of two Kalman filters by their likelihoods (Magill 1965), one with
a velocity and one without, for which two vectors suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trimtab.arithmetic import TINY
from trimtab.parts import Frame
from trimtab.state import make
from trimtab.types import Array, Value

# Chosen as those of `Plane`.
LEARNT = 0.58  # of Newton's step is what one value moves the centre by, at the pace 1 and without noise
HABIT = 0.1  # over d: how fast the velocity follows the moves, in times of what one value moves the centre by
DOUBTED, FIRM = -2.0, 8.0  # the log odds at first, and the most that they differ from it
SWAYED, FADING = 2.0, 0.995  # the most that one value says; how much is remembered, from round to round
IDLE = 0.15  # belief up to this is none
STRAY, FARTHEST = 0.2, 1.5  # probes: how far the centre is carried in a round; how far ahead λ is at most


class Following(NamedTuple):
    """What is remembered of where the optimum goes."""

    velocity: Array
    """v: the running mean of the moves."""
    lead: Array
    """λ."""
    odds: Value
    """By how much the logarithm of the odds has changed."""


Weigh = Callable[[Following, Array, Value, Value, Value, Value, Value], "tuple[Following, Array | None]"]
Follow = Callable[[Following, Array, Value], Following]


def start(centre: Array, zero: Value) -> Following:
    """Nothing moves."""
    return Following(0.0 * centre, 0.0 * centre, zero)


def bind(frame: Frame) -> tuple[Weigh, Follow]:
    """(memory, towards, per, surprise, bend, share, probe) → the memory after a value, and how far to carry the centre.

    û = per·towards; bend: L/s; share: h/LEARNT; probe: the length of a probe. And (memory, move, share) → the memory
    after the move.
    """
    xp, habit = frame.xp, HABIT * LEARNT / frame.dim
    sqrt, maximum, minimum, clip = xp.sqrt, xp.maximum, xp.minimum, xp.clip
    axpy, times, dot, norm = xp.axpy, xp.times, xp.dot, xp.norm

    def believed(odds: Value) -> Value:
        off = odds + DOUBTED
        belief: Value = maximum(0.5 + 0.5 * off / sqrt(4.0 + off * off) - IDLE, 0.0) / (1.0 - IDLE)
        return belief

    def shortened(vector: Array, most: Value) -> Array:
        room = most / (norm(vector) + TINY)
        return times(minimum(room, 1.0), vector) if xp.any(room < 1.0) else vector

    def weigh(
        memory: Following, towards: Array, per: Value, surprise: Value, bend: Value, share: Value, probe: Value
    ) -> tuple[Following, Array | None]:
        velocity, lead, odds = memory
        along = per * dot(towards, lead)
        seen, before = bend * along, believed(odds)
        odds = clip(FADING * odds + clip(((before - 0.5) * seen - surprise) * seen, -SWAYED, SWAYED), -FIRM, FIRM)
        lead = axpy(-LEARNT * share * along * per, towards, lead)
        lead += velocity
        lead = shortened(lead, FARTHEST * probe)
        belief, carried = believed(odds), None
        if xp.any(belief + before > 0):
            carried = axpy(belief - before, lead, times(belief, velocity))
            carried = shortened(carried, STRAY * probe)
        return make(Following, (velocity, lead, odds)), carried

    def follow(memory: Following, move: Array, share: Value) -> Following:
        velocity, lead, odds = memory
        return make(Following, (axpy(habit * share, move - velocity, velocity), lead, odds))

    return weigh, follow
