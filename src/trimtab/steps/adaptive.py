"""A pace that finds itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from trimtab.arithmetic import TINY
from trimtab.parts import Frame, Pacing
from trimtab.registry import part
from trimtab.types import Array, Memory, Value

LARGE = float(np.finfo(float).max)
SLOWEST = 0.1
ECHOES, OTHERS = 20, 150
TRUST, DOUBT, LEAST = 0.75, 2.0, 0.04
FEW = 3.0


class Pace(NamedTuple):
    """What `Adaptive` remembers."""

    seen: Value
    square: Value
    pace: Value
    share: Value
    echoes: Value
    noise: Value
    others: Value
    power: Value
    course: Array


@part
@dataclass(frozen=True)
class Adaptive:
    """A pace that finds itself."""

    gain: float = 6.0
    window: float = 500.0
    rate_of_change: float = 0.8
    caution: float = 0.35
    widest: float = 3.0
    narrowest: float = 0.03
    scale_free: ClassVar[bool] = True
    needs_sense: ClassVar[bool] = False

    @property
    def constant(self) -> None:
        """It changes."""
        return None

    def start(self, frame: Frame, centre: Array) -> Memory:
        """Nothing."""
        zero = frame.zero
        return Pace(zero, zero, zero + 1.0, zero + 1.0, zero, zero, zero, zero, np.zeros_like(centre))

    def bind(self, frame: Frame) -> Pacing:
        """Whiteness."""
        k, root, most = frame.xp, math.sqrt(frame.dim), self.widest**2
        kappa, careful = min(0.1, self.rate_of_change / root), min(0.2, self.caution / root)
        gain, memory, unit = (
            self.gain / frame.dim**1.5 * min(1.0, root / FEW),
            1.0 / max(10.0, 2.0 * root),
            math.sqrt(frame.scale),
        )

        def width(pace):
            return k.sqrt(k.minimum(k.maximum(pace.pace, 1.0) / pace.share, most))

        def rate(state, look, contrast, sense):
            seen, square, pace, share, echoes, noise, others, power, course = state.pace
            seen, length = seen + 1.0, frame.probe_length * look.width
            square = square + (contrast * contrast - square) * k.maximum(1.0 / seen, 1.0 / self.window)
            scale = k.sqrt(k.maximum(square, TINY))
            along = k.dot(frame.direction(look.trial), course) / k.maximum(k.norm(course), 1e-300) * unit
            again = tally(k, power, others, contrast, 1 / OTHERS)
            if look is not state.last and not np.any(look.trial == state.last.trial):
                power, others = again
            else:
                fresh = (state.told < 0) | (look.trial != state.last.trial)
                heard = tally(k, noise, echoes, contrast, 1 / ECHOES)
                noise, echoes = k.where(fresh, noise, heard[0]), k.where(fresh, echoes, heard[1])
                power, others = k.where(fresh, again[0], power), k.where(fresh, again[1], others)
            if k.any(echoes):
                loud = noise * TRUST * (1.0 + DOUBT / k.sqrt(k.maximum(echoes, 1.0)))
                share = k.maximum(1.0 - loud / k.maximum(k.maximum(power, 1e-9 * loud), TINY), LEAST)
                share = k.where((echoes > 0) & (others > 2), share, 1.0)
            evidence = k.clip(contrast / scale * along, -3.0, 3.0)
            change = k.exp(-kappa * (evidence + careful * (1.0 - share)))
            pace = k.where(seen > 3, k.clip(pace * change, SLOWEST, most), pace)
            rate = gain * length * length / scale * k.minimum(pace, 1.0) * k.sqrt(share * k.sqrt(share))
            return rate, Pace(seen, square, pace, share, echoes, noise, others, power, course)

        def settle(pace, before, after):
            change = after - before
            change -= pace.course
            change *= memory
            change += pace.course
            return Pace(*pace[:-1], change)

        return Pacing(width, rate, settle)


def tally(k, mean, count, contrast, slowest):
    limit = k.where((count > 3) & (mean > 0), 25.0 * mean, LARGE)
    count = count + 1.0
    return mean + (k.minimum(contrast * contrast, limit) - mean) * k.maximum(1.0 / count, slowest), count
