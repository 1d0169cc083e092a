"""Configuration of the default method's estimator; `trimtab.tracker` implements it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from trimtab.estimators.base import OneQuery
from trimtab.protocols import Estimate, Estimation, Frame
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.tracker import fit
from trimtab.types import Array, Memory, Value
from trimtab.validation import real, whole


@part
@dataclass(frozen=True)
class Plane(OneQuery):
    """A plane fitted to the values, y ≈ b + ⟨g, p − r⟩, updated by the innovation e. With D = p − r,

        e = y − b − ⟨g, D⟩ − ½·c·L·(l² − W),   g ← (1 − 1/window)·g + learning·e·D/‖D‖²,
        b ← b + β·(y − b)  (with e clipped),   r ← r + β·D,   W ← W + β·(l² − W).

    ĝ = g. Effects that the plane predicts do not appear in e: earlier probes, moves of the centre, the offset and, once
    the mean curvature L is known with certainty c, changes of the probe length l. L is estimated from the first three
    rounds, the centre, a probe and its mirror image, and then from probes of different widths, by weighted least
    squares of e on ½(l² − W). β starts at `level`; it grows while consecutive innovations have equal signs (the level
    drifts) and shrinks otherwise (noise). The noise is estimated from replicates, rounds that repeat the previous query
    (`echoes`). If e exceeds `clip` times its running rms, the query is repeated closer to the centre before anything is
    learnt: an outlier does not repeat, a jump does. For a static function E ĝ is a positive multiple of the gradient,
    not the gradient itself; under drift it lags by about `window` rounds. Memory is O(d).

    settings: of a discrete knob, learn at the setting that was drawn, instead of at the query it was drawn for. Studies
    that were begun without go on without.
    """

    window: float = 3.0
    level: float = 0.5
    learning: float = 0.58
    clip: float = 12.0
    every: int = 64
    first: int = 4
    settings: bool = False
    unbiased: ClassVar[bool] = False
    located: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("window", self.window, 1, why=" of rounds")
        for name, largest in (("level", 1.0), ("learning", 1.0), ("clip", math.inf)):
            real(name, getattr(self, name), 0, largest, above=True)
        for name in ("every", "first"):
            whole(name, getattr(self, name), 2)

    def start(self, frame: Frame, centre: Array) -> Memory:
        """A memory without values."""
        return fit.start(frame, centre, self.level)

    def echoes(self, trial: int) -> bool:
        """Whether a trial is a replicate, which repeats the previous query: at powers of two, then at equal intervals.

        >>> [t for t in range(200) if Plane().echoes(t)]
        [3, 7, 15, 31, 63, 127, 191]
        """
        n = trial + 1
        if n >= self.every:
            return n % self.every == 0
        times, rest = divmod(n, self.first)
        return rest == 0 < times and times & (times - 1) == 0

    def sensing(self, frame: Frame) -> tuple[fit.LookOf, fit.Learn]:
        """The functions that choose a look, and that learn from a value."""
        learn = fit.bind_learn(frame, window=self.window, learning=self.learning, clip=self.clip)
        return fit.bind_look(frame, self.echoes), learn

    def bind(self, frame: Frame) -> Estimation:
        """Bind it to be used with a step other than `Adaptive`."""
        look_of, sensed = self.sensing(frame)

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            return sensed(state, look, query, values)[:4]

        return Estimation(look_of, learn, model=fit.model, interrupted=fit.interrupted)
