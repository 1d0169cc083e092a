"""Estimators with two queries per round: benchmarks for simulations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trimtab.estimators.base import OneQuery, slope_along
from trimtab.protocols import Estimate, Estimation, Frame, fresh_look
from trimtab.registry import part
from trimtab.state import Look, State
from trimtab.types import Array, Value


class _TwoQueries(OneQuery):
    lags: ClassVar[tuple[int, ...]] = (0, 0)
    anchored: ClassVar[bool] = False
    weight: ClassVar[float] = 0.5

    def bind(self, frame: Frame) -> Estimation:
        """Contrast: the weighted difference of the two values."""
        slope, weight = slope_along(frame), self.weight

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            contrast = weight * (values[0] - values[1])
            scale, vector = slope(state, look, contrast)
            return contrast, scale, vector, ()

        return Estimation(fresh_look, learn, frame.longest)


@part
@dataclass(frozen=True)
class TwoPoint(_TwoQueries):
    """Two queries of the same f_t, hence for simulation only.

    symmetric: a_t = ½(f_t(x_t + δu_t) − f_t(x_t − δu_t))  (Bach & Perchet 2016)
    forward:   a_t = f_t(x_t + δu_t) − f_t(x_t)            (Eq. 1)

    >>> TwoPoint().offsets, TwoPoint("forward").offsets
    ((1.0, -1.0), (1.0, 0.0))
    """

    form: Literal["symmetric", "forward"] = "symmetric"

    def __post_init__(self) -> None:
        if self.form not in ("symmetric", "forward"):
            raise ValueError(f"form={self.form!r} is unknown: choose 'symmetric' or 'forward'")

    @property
    def offsets(self) -> tuple[float, ...]:  # type: ignore[override]
        """Queries at x ± δu, or at x + δu and x."""
        return (1.0, -1.0) if self.form == "symmetric" else (1.0, 0.0)

    @property
    def weight(self) -> float:  # type: ignore[override]
        """The weight of the difference: ½ for the symmetric form."""
        return 0.5 if self.form == "symmetric" else 1.0


@part
@dataclass(frozen=True)
class ModifiedTwoPoint(_TwoQueries):
    """a_t = ½(f_t(x_t + δu_t) − f_{t−1}(x_t − δu_t)): Remark 2.5, to show its bias ½(∇f_{δ,t−1} − ∇f_{δ,t}).

    The second value is that of the previous objective (`lags`): for simulation only.

    >>> ModifiedTwoPoint().lags
    (0, 1)
    """

    offsets: ClassVar[tuple[float, ...]] = (1.0, -1.0)
    lags: ClassVar[tuple[int, ...]] = (0, 1)
