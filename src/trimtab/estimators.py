"""What does the number tell?  Contrasts: the scalar a_t that multiplies the probing direction.

Every estimate of the gradient of the smoothed objective here is

    ĝ_t = (scale/δ) · a_t · u_t,

and an estimator says only what a_t is, given the measured values and a memory of O(1) numbers. `offsets` are the
queries of a round, x_t + offset·δ·u_t; `lags` say which objective each is measured on (1: that of the round before).
`recall` is the weight of −y_{t−1} in the contrast. A contrast of NaN means that there is none yet: the centre stays.
Values may be floats (one system) or arrays (lanes); noisy values F_t(·; ξ_t) (Section 5) are the same code.

Reference: Zhang, Zhou, Ji, Zavlanos, "Boosting One-Point Derivative-Free Online Optimization via Residual
Feedback", arXiv 2010.07378.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Value = float | NDArray[np.float64]
Memory = tuple[Value, ...]


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
