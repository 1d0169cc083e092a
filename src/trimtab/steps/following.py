"""An optimum that goes on steadily, and a centre that is carried along with it: a part of `Adaptive`.

Two centres are thought of, one that is carried by the velocity v of the moves so far and one that is not; the first is
ahead of the other by a·v. Both are corrected by what the probes tell, each in one of d directions, by a share h there,
so that a is a number of rounds; and a value, measured along û, whose surprise is e says which of the two had been
nearer to the optimum. With ω the belief in the first and z = L·a·⟨û, v⟩/s what it would make of e, in units of its rms,

    o ← 0.995·o + (ω − ½)·z² − z·e/s,   a ← (1 − h/d)·a + 1,   x ← x + (ω + Δω·a)·v,

where the log odds are o − 2, and the belief follows them. It is the test of two Kalman filters by their likelihoods
(Magill 1965), one with a velocity and one without, for which one vector suffices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trimtab.protocols import Frame
from trimtab.state import make
from trimtab.types import Array, Mask, Value

# Chosen as those of `Plane`.
LEARNT = 0.58  # of Newton's step is what one value moves the centre by, at the pace 1 and without noise
HABIT = 0.1  # over d: how fast the velocity follows the course, in times of what one value moves the centre by
DOUBTED, FIRM = -2.0, 8.0  # the log odds at first, and the most that they differ from it
SWAYED, FADING = 2.0, 0.995  # the most that one value says; how much is remembered, from round to round
IDLE = 0.15  # belief up to this is none
STRAY, FARTHEST = 0.2, 1.5  # probes: how far the centre is carried in a round; how far ahead the first is at most
STILL = 1e-100  # probes a round: it stands still


class Following(NamedTuple):
    """What is remembered of where the optimum goes."""

    velocity: Array
    """v: the running mean of how far the course goes in a round."""
    speed: Value
    """‖v‖."""
    ahead: Value
    """a."""
    shares: Value
    """The sum of h, in units of `LEARNT`, since the velocity was taken last."""
    odds: Value
    """o: by how much the logarithm of the odds has changed."""
    belief: Value
    """ω, which follows from the odds: kept, because every round needs the one before, too."""


Weigh = Callable[[Following, Array, Value, Value, Value, Value, Value], tuple[Following, Value]]
Follow = Callable[[Following, Mask, Value, Array], Following]


def start(centre: Array, zero: Value) -> Following:
    """Nothing moves."""
    return Following(0.0 * centre, zero, zero, zero, zero, zero)


def bind(frame: Frame) -> tuple[Weigh, Follow]:
    """(memory, towards, per, surprise, bend, share, probe) → the memory after a value, and how many v to carry x.

    û = per·towards; bend: L/s; share: h/LEARNT; probe: the length of a probe. And (memory, mask, per, course) → the
    memory whose velocity was taken anew, in the lanes of the mask: the course goes as far as per·course in a round.
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
        return make(Following, (velocity, speed, ahead, shares + share, odds, belief)), carried

    def follow(memory: Following, mask: Mask, per: Value, course: Array) -> Following:
        velocity, speed, ahead, shares, odds, belief = memory
        new = minimum(habit * shares, 1.0)
        velocity = merge(mask, axpy(new * per, course, times(1.0 - new, velocity)), velocity)
        speed, shares = merge(mask, norm(velocity), speed), xp.where(mask, 0.0, shares)
        return make(Following, (velocity, speed, ahead, shares, odds, belief))

    return weigh, follow
