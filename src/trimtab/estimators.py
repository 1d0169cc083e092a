"""What does the number tell?  Contrasts: the scalar a_t that multiplies the probing direction.

Every estimate of the gradient of the smoothed objective here is

    ĝ_t = (scale/δ) · a_t · u_t,

and an estimator says only what a_t is, given the measured values and a memory of O(1) numbers. `offsets` are the
queries of a round, x_t + offset·δ·u_t; `lags` say which objective each is measured on (1: that of the round before).
`recall` is the weight of −y_{t−1} in the contrast. A contrast of NaN means that there is none yet: the centre stays.
Values may be floats (one system) or arrays (lanes); noisy values F_t(·; ξ_t) (Section 5) are the same code.

`Covariance` and `Plane` remember queries too, and give the slope ĝ_t itself (`learn`), beside a contrast for the step.

Reference: Zhang, Zhou, Ji, Zavlanos, "Boosting One-Point Derivative-Free Online Optimization via Residual
Feedback", arXiv 2010.07378.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from trimtab import lanes

Value = float | NDArray[np.float64]
Memory = tuple[Any, ...]

SETTLED, SCALE = 5, 100.0  # `Plane`: contrasts before anything is clipped, and the window of their rms
TREND = 64.0  # the window of its trend


class Estimator(Protocol):
    """What an estimator has to say of itself."""

    @property
    def offsets(self) -> tuple[float, ...]: ...
    @property
    def lags(self) -> tuple[int, ...]: ...
    @property
    def recall(self) -> float: ...

    def start(self, blank: Value) -> Memory:
        """The memory before anything was measured; `blank` is NaN in the shape of a value."""
        ...

    def contrast(self, memory: Memory, values: tuple[Value, ...]) -> tuple[Value, Memory]:
        """a_t from the values of this round's queries, and the new memory."""
        ...


class _OneQuery:
    offsets: ClassVar[tuple[float, ...]] = (1.0,)
    lags: ClassVar[tuple[int, ...]] = (0,)


@dataclass(frozen=True)
class OnePoint(_OneQuery):
    """a_t = f_t(x_t + δu_t): conventional one-point feedback (Eq. 2; Flaxman et al. 2005, Gasnikov et al. 2017).

    >>> OnePoint().contrast((), (3.0,))
    (3.0, ())
    """

    recall: ClassVar[float] = 0.0

    def start(self, blank: Value) -> Memory:
        return ()

    def contrast(self, memory: Memory, values: tuple[Value, ...]) -> tuple[Value, Memory]:
        return values[0], memory


@dataclass(frozen=True)
class Residual(_OneQuery):
    """a_t = f_t(x_t + δu_t) − f_{t−1}(x_{t−1} + δu_{t−1}): residual feedback (Eq. 3; stochastic form in Section 5).

    Unbiased for ∇f_{δ,t}(x_t), because u_t has zero mean and is independent of the anchor (Lemma 2.4).

    >>> Residual().contrast((2.0,), (3.0,))
    (1.0, (3.0,))
    """

    recall: ClassVar[float] = 1.0

    def start(self, blank: Value) -> Memory:
        return (blank,)

    def contrast(self, memory: Memory, values: tuple[Value, ...]) -> tuple[Value, Memory]:
        return values[0] - memory[0], values


@dataclass(frozen=True)
class HighPass(_OneQuery):
    """a_t = z_t with z_t = β·z_{t−1} + y_t − y_{t−1}: the value less a running mean b_t of the values before it.

    Written with the mean alone: z_t = y_t − b_t, b_{t+1} = y_t − β·z_t. β = 0 is residual feedback. Unbiased by the
    same argument: all but y_t is independent of u_t. A larger β averages more of the noise and of the probing out of
    the anchor, and follows an offset that drifts more slowly.

    >>> HighPass(0.5).contrast((2.0,), (3.0,))
    (1.0, (2.5,))
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 1:
            raise ValueError(f"beta={self.beta!r} does not make a high-pass filter: choose 0 <= beta < 1")

    @property
    def recall(self) -> float:
        return 1.0 - self.beta

    def start(self, blank: Value) -> Memory:
        return (blank,)

    def contrast(self, memory: Memory, values: tuple[Value, ...]) -> tuple[Value, Memory]:
        contrast = values[0] - memory[0]
        return contrast, (values[0] - self.beta * _or_zero(contrast),)


def _or_zero(contrast: Value) -> Value:
    """Zero where there is no contrast yet."""
    if isinstance(contrast, np.ndarray):
        return np.where(np.isnan(contrast), 0.0, contrast)
    return 0.0 if contrast != contrast else contrast


@dataclass(frozen=True)
class Still:
    """No contrast, ever: the query is the centre itself, and the centre stays. What doing nothing costs.

    >>> Still().contrast((), (3.0,))
    (nan, ())
    """

    offsets: ClassVar[tuple[float, ...]] = (0.0,)
    lags: ClassVar[tuple[int, ...]] = (0,)
    recall: ClassVar[float] = 0.0

    def start(self, blank: Value) -> Memory:
        return ()

    def contrast(self, memory: Memory, values: tuple[Value, ...]) -> tuple[Value, Memory]:
        return values[0] * math.nan, memory


@dataclass(frozen=True)
class TwoPoint:
    """Two queries of the same f_t, hence for simulation only.

    symmetric: a_t = ½(f_t(x_t + δu_t) − f_t(x_t − δu_t))  (Bach & Perchet 2016)
    forward:   a_t = f_t(x_t + δu_t) − f_t(x_t)            (Eq. 1)

    >>> TwoPoint().contrast((), (3.0, 2.0))
    (0.5, ())
    """

    form: Literal["symmetric", "forward"] = "symmetric"
    lags: ClassVar[tuple[int, ...]] = (0, 0)
    recall: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.form not in ("symmetric", "forward"):
            raise ValueError(f"form={self.form!r} is unknown: choose 'symmetric' or 'forward'")

    @property
    def offsets(self) -> tuple[float, ...]:
        return (1.0, -1.0) if self.form == "symmetric" else (1.0, 0.0)

    def start(self, blank: Value) -> Memory:
        return ()

    def contrast(self, memory: Memory, values: tuple[Value, ...]) -> tuple[Value, Memory]:
        difference = values[0] - values[1]
        return (0.5 * difference if self.form == "symmetric" else difference), memory


@dataclass(frozen=True)
class ModifiedTwoPoint:
    """a_t = ½(f_t(x_t + δu_t) − f_{t−1}(x_t − δu_t)): Remark 2.5. It exists to show its bias, ½(∇f_{δ,t−1} − ∇f_{δ,t}).

    The second value is of the objective of the round before (`lags`): for simulation only.

    >>> ModifiedTwoPoint().contrast((), (3.0, 2.0))
    (0.5, ())
    """

    offsets: ClassVar[tuple[float, ...]] = (1.0, -1.0)
    lags: ClassVar[tuple[int, ...]] = (0, 1)
    recall: ClassVar[float] = 0.0

    def start(self, blank: Value) -> Memory:
        return ()

    def contrast(self, memory: Memory, values: tuple[Value, ...]) -> tuple[Value, Memory]:
        return 0.5 * (values[0] - values[1]), memory


class Learner(Protocol):
    """What an estimator that remembers queries has to say of itself, beside offsets, lags and recall."""

    @property
    def unbiased(self) -> bool:
        """Whether E ĝ = ∇f for a quadratic that stands still, from the second value on."""
        ...

    def start(self, blank: Value, centre: Any) -> Memory:
        """The memory before anything was measured; `blank` is NaN in the shape of a value."""
        ...

    def learn(self, memory: Memory, value: Value, query: Any, probe: Value) -> tuple[Value, Any, Memory]:
        """A contrast for the step, ĝ and the new memory; `probe` is the length of a probe, δ·rms‖u‖."""
        ...


class _Remembers(_OneQuery):
    recall: ClassVar[float] = 1.0


@dataclass(frozen=True)
class Covariance(_Remembers):
    """The slope as a covariance, over the last n = min(t + 1, m) queries p_i and their values y_i:

        ĝ = Σ_i (y_i − ȳ)(p_i − p̄)/((n − 1)·δ²)

    Of a function that stands still it is unbiased for every n ≥ 2 (n = 2 is the residual, made symmetric); under drift
    it lags: E ĝ = (1/n)·Σ_i ∇f_i, the mean gradient of the window, which is behind by (n − 1)/2 rounds. Needs O(m·d).

    >>> slope = Covariance(3)
    >>> first = slope.learn(slope.start(float("nan"), np.zeros(2)), 5.0, np.array([1.0, 0.0]), 1.0)
    >>> slope.learn(first[2], 7.0, np.array([0.0, 1.0]), 1.0)[:2]
    (2.0, array([-2.,  2.]))
    """

    m: int = 5
    unbiased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.m, bool) or not isinstance(self.m, int) or self.m < 2:
            raise ValueError(f"m={self.m!r} queries have no covariance: choose a whole number, at least 2")

    def start(self, blank: Value, centre: Any) -> Memory:
        return (blank,) * self.m + (np.zeros_like(centre),) * self.m

    def learn(self, memory: Memory, value: Value, query: Any, probe: Value) -> tuple[Value, Any, Memory]:
        values, queries = (*memory[1 : self.m], value), (*memory[self.m + 1 :], query)
        y = np.array(values)
        known = ~np.isnan(y)
        count = known.sum(0)
        mean = np.where(known, y, 0.0).sum(0) / np.maximum(count, 1)
        weights = np.where(known, y - mean, 0.0) / np.maximum(count - 1, 1) * (query.shape[-1] / np.square(probe))
        slope = sum(w[..., None] * (p - query) for w, p in zip(weights, queries, strict=True))  # Σ weights = 0
        return value - values[-2], slope, values + queries


@dataclass(frozen=True)
class Plane(_Remembers):
    """A plane through the values, y ≈ b + c + ⟨g, p − r⟩, corrected by e, what it fails to predict: with D = p − r,

        b ← b + level·(⟨g, D⟩ + c + e),   c ← c + e/64,   r ← r + level·D,   g ← (1 − 1/window)·g + share·e·D/‖D‖²

    and ĝ = g·d/min(window, d), because g holds about `window` of d directions. What the plane knows already is no
    noise in e: the probes before, the movement of the centre, the offset b and its trend c. e is clipped at `clip`
    times its running rms, so a wild value is one bounded mistake. Of a function that stands still, ĝ is in the mean a
    positive multiple of the gradient, not the gradient itself; under drift it lags by some `window` rounds. Needs O(d).

    Reference: the affine projection (Kaczmarz, NLMS) filter, with an intercept.

    >>> plane = Plane()
    >>> first = plane.learn(plane.start(float("nan"), np.zeros(2)), 5.0, np.array([1.0, 0.0]), 1.0)
    >>> plane.learn(first[2], 7.0, np.array([0.0, 1.0]), 1.0)[:2]
    (2.0, array([-0.65,  0.65]))
    """

    window: float = 4.0
    level: float = 0.5
    share: float = 0.65
    clip: float = 6.0
    unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.window >= 1:
            raise ValueError(f"window={self.window!r} must be at least 1 round")
        for name, largest in (("level", 1.0), ("share", 1.0), ("clip", math.inf)):
            if not 0 < getattr(self, name) <= largest:
                raise ValueError(f"{name}={getattr(self, name)!r} is out of range: choose 0 < {name} <= {largest:g}")

    def start(self, blank: Value, centre: Any) -> Memory:
        zero = np.zeros_like(blank) if isinstance(blank, np.ndarray) else 0.0
        return (zero, zero, blank, zero, np.zeros_like(centre), np.zeros_like(centre))

    def learn(self, memory: Memory, value: Value, query: Any, probe: Value) -> tuple[Value, Any, Memory]:
        k = lanes.of(value)
        seen, square, level, trend, anchor, slope = memory
        first = level != level
        if k.some(first):
            level = k.choose(first, value, level)
            anchor = query if first is True else np.where(first[:, None], query, anchor)
        apart = query - anchor
        part = min(self.window / query.shape[-1], 1.0)  # of all directions, those that the slope holds
        known = part * k.dot(slope, apart) + trend
        error = value - level - known
        limit = k.choose((seen > SETTLED) & (square > 0), self.clip * k.root(square), math.inf)
        error = k.within(error, -limit, limit)
        seen = seen + k.choose(first, 0.0, 1.0)
        square = square + (error * error - square) * k.larger(1.0 / k.larger(seen, 1.0), 1.0 / SCALE)
        gain = self.share / part * error / k.larger(k.dot(apart, apart), 0.5 * probe * probe)
        slope = slope * (1.0 - 1.0 / self.window)
        slope += k.times(gain, apart)
        level, trend = level + self.level * (known + error), trend + error / TREND
        apart *= self.level
        apart += anchor
        return k.choose(first, math.nan, error), slope, (seen, square, level, trend, apart, slope)
