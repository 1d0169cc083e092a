"""The slope as a covariance of values and queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from trimtab.estimators.base import OneQuery
from trimtab.protocols import Estimate, Estimation, Frame, fresh_look
from trimtab.registry import part
from trimtab.rescaling import POWERS
from trimtab.state import Look, State
from trimtab.types import Array, Memory, Value
from trimtab.validation import whole


class Window(NamedTuple):
    """The last m values and their queries: `([lanes,] m)`, NaN until known, and `([lanes,] m, d)`."""

    values: Array
    queries: Array

    @classmethod
    def empty(cls, frame: Frame, m: int) -> Window:
        """A window without values."""
        shape = (*np.shape(frame.zero), m)
        return cls(np.full(shape, math.nan), np.zeros((*shape, frame.dim)))

    def moved(self, value: Value, query: Array) -> Window:
        """Append one value and drop the first."""
        values = np.concatenate([self.values[..., 1:], np.asarray(value)[..., None]], axis=-1)
        return Window(values, np.concatenate([self.queries[..., 1:, :], query[..., None, :]], axis=-2))


POWERS[Window] = {"queries": 1}


@part
@dataclass(frozen=True)
class Covariance(OneQuery):
    """The slope as a covariance, over the last n = min(t + 1, m) queries p_i and their values y_i:

        ĝ = Σ_i (y_i − ȳ)(p_i − p̄)/((n − 1)·δ²)

    Unbiased for a static function and every n ≥ 2 (n = 2 is a symmetric form of the residual). Under drift it lags by
    (n − 1)/2 rounds: E ĝ = (1/n)·Σ_i ∇f_i, the mean gradient over the window. Memory is O(m·d).

    >>> import trimtab as tt
    >>> method = tt.Method(estimator=tt.Covariance(m=8), radius=0.05, step=3e-3)
    """

    m: int = 5
    located: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("m", self.m, 2, why=": fewer queries have no covariance")

    def start(self, frame: Frame, centre: Array) -> Memory:
        """An empty window of m values."""
        return Window.empty(frame, self.m)

    def bind(self, frame: Frame) -> Estimation:
        """Contrast: that of residual feedback, for steps that use it."""
        unit = frame.dim / frame.probe_length**2

        def learn(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            y, p = window = state.slope.moved(values[0], query)
            known = ~np.isnan(y)
            count = known.sum(-1)
            mean = np.where(known, y, 0.0).sum(-1) / np.maximum(count, 1)
            weights = np.where(known, y - mean[..., None], 0.0) / np.maximum(count - 1, 1)[..., None]
            slope = np.einsum("...m,...md->...d", weights, p - query[..., None, :])  # Σ weights = 0
            return values[0] - state.values[0], unit / np.square(look.width), slope, window

        return Estimation(fresh_look, learn)
