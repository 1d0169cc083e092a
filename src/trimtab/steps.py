"""How far do we go?  The rate η_t that multiplies the estimate: Δx = −η_t·ĝ_t.

A step is told the contrast, the round, the length of a probe (δ·rms‖u‖, that is δ√d for Gaussian and Rademacher
directions, δ for the unit sphere) and the dimension. `limit` shortens a move to at most c probe lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from trimtab import lanes

Value = float | NDArray[np.float64]
Memory = tuple[Any, ...]

TINY, LARGE = float(np.finfo(float).tiny), float(np.finfo(float).max)
SLOWEST = 0.1  # the least pace of `Adaptive`
ECHOES, OTHERS = 20, 150  # the windows of its mean squares
TRUST, DOUBT, LEAST = 0.75, 2.0, 0.04  # how much of an echo counts as noise, more while few were heard; the least h
FEW = 3.0  # a typical move has gain/√d probes, but no more than gain/FEW


class Step(Protocol):
    """What a step rule has to say of itself."""

    @property
    def scale_free(self) -> bool:
        """Whether a·f has the same path as f, for every a > 0."""
        ...

    def start(self, blank: Value) -> Memory:
        """The memory before any contrast was seen; `blank` is zero in the shape of a value."""
        ...

    def rate(self, memory: Memory, contrast: Value, round: int, probe: float, dim: int) -> tuple[Value, Memory]:
        """η_t and the new memory."""
        ...


@dataclass(frozen=True)
class Constant:
    """η_t = η; in lanes, a number for all or one for each.

    >>> Constant(0.1).rate((), 5.0, 3, 1.0, 2)
    (0.1, ())
    """

    step: Any
    _rate: Any = field(init=False, repr=False, compare=False)
    scale_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        step = np.asarray(self.step)
        if step.ndim > 1 or step.dtype.kind not in "iuf" or not (np.isfinite(step).all() and (step > 0).all()):
            raise ValueError(f"step={self.step!r} is not a step size: it must be a finite number > 0")
        object.__setattr__(self, "step", float(step) if step.ndim == 0 else tuple(step.tolist()))
        object.__setattr__(self, "_rate", self.step if step.ndim == 0 else step.astype(float))

    def start(self, blank: Value) -> Memory:
        return ()

    def rate(self, memory: Memory, contrast: Value, round: int, probe: float, dim: int) -> tuple[Value, Memory]:
        return self._rate, memory


@dataclass(frozen=True)
class Power:
    """η_t = η/(1 + t)^p: a schedule that can be saved.

    >>> Power(0.5, exponent=1.0).rate((), 5.0, 4, 1.0, 2)
    (0.1, ())
    """

    step: float
    exponent: float = 0.75
    scale_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", float(Constant(self.step).step))
        if not 0 <= self.exponent <= 2:
            raise ValueError(f"exponent={self.exponent!r} is out of range: choose 0 <= exponent <= 2")

    def start(self, blank: Value) -> Memory:
        return ()

    def rate(self, memory: Memory, contrast: Value, round: int, probe: float, dim: int) -> tuple[Value, Memory]:
        return self.step / (1 + round) ** self.exponent, memory


@dataclass(frozen=True)
class Schedule:
    """η_t = function(t): any function of the round. It cannot be saved: give the method again when loading.

    >>> Schedule(lambda t: 1 / (1 + t)).rate((), 5.0, 3, 1.0, 2)
    (0.25, ())
    """

    function: Callable[[int], float]
    scale_free: ClassVar[bool] = False

    def start(self, blank: Value) -> Memory:
        return ()

    def rate(self, memory: Memory, contrast: Value, round: int, probe: float, dim: int) -> tuple[Value, Memory]:
        step = float(self.function(round))
        if not (math.isfinite(step) and step >= 0):
            raise ValueError(f"the schedule gave {step!r} in round {round}: a step must be a finite number >= 0")
        return step, memory


@dataclass(frozen=True)
class Normalised:
    """η_t = gain·ρ²/(d^{3/2}·s_t): the estimate in units of the running rms s_t of its own contrast.

    ρ is the length of a probe. s² ← s² + (a² − s²)·max(1/k, 1/window) over the k contrasts seen so far, the present
    one included, so a single outlier moves the centre by at most √window typical moves. A typical move has the length
    gain·ρ/√d, whatever the units of the objective: a·f has the same path as f.

    >>> Normalised(2.0).rate((0.0, 0.0), 3.0, 0, 1.0, 4)
    (0.08333333333333333, (1.0, 9.0))
    """

    gain: float = 1.0
    window: float = 100.0
    scale_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.gain) and self.gain > 0):
            raise ValueError(f"gain={self.gain!r} must be a finite number > 0")
        if not self.window >= 1:
            raise ValueError(f"window={self.window!r} must be at least 1 round")

    def start(self, blank: Value) -> Memory:
        return (blank, blank)

    def rate(self, memory: Memory, contrast: Value, round: int, probe: float, dim: int) -> tuple[Value, Memory]:
        seen, square = memory
        seen, square, scale = self._scale(lanes.of(contrast), seen, square, contrast)
        return self.gain * probe * probe / dim**1.5 / scale, (seen, square)

    def _scale(self, k: Any, seen: Any, square: Any, contrast: Any) -> tuple[Any, Any, Any]:
        """The number of contrasts, their running mean square with one more, and its root, s."""
        seen = seen + 1.0
        square = square + (contrast * contrast - square) * k.larger(1.0 / seen, 1.0 / self.window)
        return seen, square, k.root(k.larger(square, TINY))


@dataclass(frozen=True)
class Adaptive(Normalised):
    """`Normalised` with a pace that finds itself: η_t = min(a, 1)·h^¾·gain·ρ²/(d·√max(d, 9)·s_t).

    a, by whiteness: with w a running mean of the moves over max(10, 2√d) rounds, c_t the contrast and s its rms,

        a ← clip(a·exp(−κ·(clip(q, ±3) + min(0.2, caution/√d)·(1 − h))), 0.1, widest²),
        q = (c_t/s)·⟨u_t, w⟩/‖w‖,   κ = min(0.1, rate_of_change/√d).

    At the right pace, new slopes do not correlate with recent moves. If going on would be downhill (q < 0), go faster;
    if uphill, it overshot: slow down.
    h, the signal's share of the contrast: 1 − ¾·E[e²]/E[c²]. An echo (`Echoed` directions) repeats the query before it,
    so that e, by which the two values differ, is noise and drift alone. After n echoes E[e²] is taken (1 + 2/√n)
    times as large: two values may agree by chance. h is at least 0.04; without echoes h = 1.
    The probes widen while the optimum runs away or the noise hides what they change: δ_t = δ·√(max(a, 1)/h), at most
    `widest` times δ.

    >>> step = Adaptive(2.0)
    >>> step.rate(step.start(0.0), 3.0, 0, 1.0, 16)[0] == Normalised(2.0).rate((0.0, 0.0), 3.0, 0, 1.0, 16)[0]
    True
    """

    gain: float = 6.0
    window: float = 500.0
    rate_of_change: float = 0.8
    caution: float = 0.35
    widest: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rate_of_change", "caution"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name}={getattr(self, name)!r} must be a finite number >= 0")
        if not 1 <= self.widest < math.inf:
            raise ValueError(f"widest={self.widest!r} must be a finite number >= 1, in times of the radius")

    def start(self, blank: Value) -> Memory:
        return (blank, blank, blank + 1.0, blank + 1.0, blank, blank, blank, blank)

    def rate(
        self, memory: Memory, contrast: Any, round: int, probe: Any, dim: int, along: Any = 0.0, echo: Any = None
    ) -> tuple[Value, Memory]:
        """η_t and the new memory; along: √scale·⟨u, w⟩/‖w‖; echo: what a repeated query brought more than before."""
        k = lanes.of(contrast)
        seen, square, pace, share, echoes, noise, others, power = memory
        seen, square, scale = self._scale(k, seen, square, contrast)
        again = self._tally(k, power, others, contrast, 1 / OTHERS)
        if echo is None:  # most of the time
            power, others = again
        else:
            heard, fresh = self._tally(k, noise, echoes, echo, 1 / ECHOES), echo != echo
            noise, echoes = k.choose(fresh, noise, heard[0]), k.choose(fresh, echoes, heard[1])
            power, others = k.choose(fresh, again[0], power), k.choose(fresh, again[1], others)
        if k.some(echoes):
            loud = noise * TRUST * (1.0 + DOUBT / k.root(k.larger(echoes, 1.0)))
            share = k.larger(1.0 - loud / k.larger(k.larger(power, 1e-9 * loud), TINY), LEAST)
            share = k.choose((echoes > 0) & (others > 2), share, 1.0)
        root = math.sqrt(dim)
        kappa = min(0.1, self.rate_of_change / root)
        evidence = k.within(contrast / scale * along, -3.0, 3.0)
        caution = min(0.2, self.caution / root) * (1.0 - share)
        change = k.exponential(-kappa * (evidence + caution))
        pace = k.choose(seen > 3, k.within(pace * change, SLOWEST, self.widest**2), pace)
        rate: Value = self.gain * probe * probe / dim**1.5 / scale
        rate = rate * min(1.0, root / FEW) * k.smaller(pace, 1.0) * k.root(share * k.root(share))
        return rate, (seen, square, pace, share, echoes, noise, others, power)

    @staticmethod
    def _tally(k: Any, mean: Any, count: Any, contrast: Any, slowest: float) -> tuple[Any, Any]:
        """A running mean square with one more contrast, and their number; a wild one counts as five times the rms."""
        limit = k.choose((count > 3) & (mean > 0), 25.0 * mean, LARGE)
        count = count + 1.0
        return mean + (k.smaller(contrast * contrast, limit) - mean) * k.larger(1.0 / count, slowest), count

    def follow(self, course: Any, move: Any) -> Any:
        """w after a move, whose array is used up."""
        change = np.subtract(move, course, out=move)
        change *= 1.0 / max(10.0, 2.0 * math.sqrt(move.shape[-1]))
        change += course
        return change

    def widening(self, memory: Memory) -> Value:
        """δ_t/δ = clip(√(max(a, 1)/h), 1, widest)."""
        if not memory:
            return 1.0
        pace, share = memory[2:4]
        k = lanes.of(pace)
        wide: Value = k.root(k.smaller(k.larger(pace, 1.0) / share, self.widest**2))
        return wide


def as_step(step: Any) -> Step:
    """A number becomes `Constant`, a function of the round `Schedule`; a step rule stays what it is."""
    if isinstance(step, int | float | np.integer | np.floating | np.ndarray | list | tuple):
        return Constant(step)
    if hasattr(step, "rate"):
        return step  # type: ignore[no-any-return]
    if callable(step):
        return Schedule(step)
    raise TypeError(f"step={step!r} is not a step: give a number, a function of the round, or one of trimtab.steps")
