"""Arithmetic for a number, or for one number per lane, under the same names: `of(x)` says which is meant.

Python's own functions are several times faster on single numbers than NumPy's. Both give the same to the last bit.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np


class One:
    """One system: numbers are floats, vectors `(d,)`."""

    larger, smaller, root, some = builtins.max, builtins.min, math.sqrt, bool

    @staticmethod
    def within(x: Any, low: Any, high: Any) -> Any:
        """x, clipped to [low, high]."""
        return low if x < low else high if x > high else x

    @staticmethod
    def choose(condition: Any, a: Any, b: Any) -> Any:
        """a where the condition holds, else b."""
        return a if condition else b

    @staticmethod
    def exponential(x: Any) -> Any:
        """eˣ."""
        return float(np.exp(x))

    @staticmethod
    def dot(x: Any, y: Any) -> Any:
        """⟨x, y⟩."""
        return float(x.dot(y))

    @staticmethod
    def times(a: Any, x: Any) -> Any:
        """a·x, a number times a vector."""
        return a * x


class Many:
    """Many systems: numbers are arrays `(lanes,)`, vectors `(lanes, d)`."""

    larger, smaller, root, some, choose = np.maximum, np.minimum, np.sqrt, np.any, np.where
    within, exponential = np.clip, np.exp

    @staticmethod
    def dot(x: Any, y: Any) -> Any:
        """⟨x, y⟩ of each lane."""
        return np.matmul(x[:, None, :], y[:, :, None])[:, 0, 0]

    @staticmethod
    def times(a: Any, x: Any) -> Any:
        """a·x, the number of each lane times its vector."""
        return np.asarray(a)[..., None] * x


def of(x: Any) -> Any:
    """`Many` for an array, `One` for a number."""
    return Many if isinstance(x, np.ndarray) else One
