"""Follow an optimum that moves steadily: a part of `Adaptive`.

Two hypothetical centres are compared: one moves with the velocity v of recent moves, the other does not. The first is
ahead by a·v, where a is a number of rounds: each round adds 1, and each probe corrects a share h of the difference in
one of d directions. The innovation e of a value measured along û shows which centre is nearer to the optimum. With ω
the probability of the first, and z = L·a·⟨û, v⟩/s its predicted effect on e, in units of the rms s,

    o ← 0.995·o + (ω − ½)·z² − z·e/s,   a ← (1 − h/d)·a + 1,   x ← x + (ω + Δω·a)·v,

where o − 2 are the log odds, which determine ω. This is the likelihood test of two Kalman filters (Magill 1965), one
with a velocity and one without, reduced to one vector of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trimtab.protocols import Frame
from trimtab.rescaling import POWERS, REPAIRS
from trimtab.types import Array, Mask, Value
from trimtab.xp import Lanes, Single

# Tuned like the constants of `Plane`.
LEARNT = 0.58  # share of Newton's step that one value moves the centre by, at pace 1 and without noise
HABIT = 0.1  # rate at which the velocity follows the heading, times d and relative to LEARNT
DOUBTED, FIRM = -2.0, 8.0  # initial log odds, and their largest change
SWAYED, FADING = 2.0, 0.995  # largest effect of one value on the log odds, and their discount per round
IDLE = 0.15  # probabilities up to this count as 0
STRAY, FARTHEST = 0.2, 1.5  # largest move per round, and largest lead of the first centre, in probe lengths
STILL = 1e-100  # speed, in probes per round, added to avoid division by zero


class Following(NamedTuple):
    """Memory of the motion of the optimum."""

    velocity: Array
    """v: the running mean velocity, from the heading."""
    speed: Value
    """‖v‖."""
    ahead: Value
    """a: the lead of the first centre, in rounds."""
    shares: Value
    """The sum of h, in units of `LEARNT`, since the last update of the velocity."""
    odds: Value
    """o: the change of the log odds since the start."""
    belief: Value
    """ω, a function of the odds; stored because the next round needs it."""


def _with_speed(before: Following, after: Following, common: float) -> Following:
    """Compute ‖v‖ from v."""
    return after._replace(speed=(Single if after.velocity.ndim == 1 else Lanes).norm(after.velocity))


POWERS[Following] = {"velocity": 1}
REPAIRS[Following] = _with_speed

Weigh = Callable[[Following, Array, Value, Value, Value, Value, Value], tuple[Following, Value]]
Follow = Callable[[Following, Mask, Value, Array], Following]


def start(centre: Array, zero: Value) -> Following:
    """The memory of an optimum at rest."""
    return Following(0.0 * centre, zero, zero, zero, zero, zero)


def bind(frame: Frame) -> tuple[Weigh, Follow]:
    """Build two functions: one updates the memory by a value, the other updates the velocity.

    (memory, towards, per, surprise, bend, share, probe) → the memory after a value, and the move of x in units of v.
    û = per·towards; surprise: e/s; bend: L/s; share: h/LEARNT; probe: the length of a probe.
    (memory, mask, per, course) → the memory with a new velocity in the lanes of the mask, towards per·course.
    """
    xp, share_of, habit = frame.xp, LEARNT / frame.dim, HABIT * LEARNT / frame.dim
    sqrt, maximum, minimum, clip = xp.sqrt, xp.maximum, xp.minimum, xp.clip
    axpy, times, dot, norm, merge, some = xp.axpy, xp.times, xp.dot, xp.norm, xp.merge, xp.any

    def weigh(
        memory: Following, towards: Array, per: Value, surprise: Value, bend: Value, share: Value, probe: Value
    ) -> tuple[Following, Value]:
        velocity, speed, ahead, shares, odds, before = memory
        seen = bend * ahead * per * dot(towards, velocity)
        odds = clip(FADING * odds + clip(((before - 0.5) * seen - surprise) * seen, -SWAYED, SWAYED), -FIRM, FIRM)
        off = odds + DOUBTED
        belief = maximum(0.5 + 0.5 * off / sqrt(4.0 + off * off) - IDLE, 0.0) / (1.0 - IDLE)
        slow = speed / probe + STILL
        ahead, carried = minimum(ahead * (1.0 - share_of * share) + 1.0, FARTHEST / slow), 0.0
        if some(belief + before > 0):
            carried = clip(belief + (belief - before) * ahead, -STRAY / slow, STRAY / slow)
        return Following(velocity, speed, ahead, shares + share, odds, belief), carried

    def follow(memory: Following, mask: Mask, per: Value, course: Array) -> Following:
        velocity, speed, ahead, shares, odds, belief = memory
        new = minimum(habit * shares, 1.0)
        velocity = merge(mask, axpy(new * per, course, times(1.0 - new, velocity)), velocity)
        speed, shares = merge(mask, norm(velocity), speed), xp.where(mask, 0.0, shares)
        return Following(velocity, speed, ahead, shares, odds, belief)

    return weigh, follow
