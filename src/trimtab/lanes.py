"""A number, or one per lane: the few operations of which Python has one form and NumPy another, written once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def larger(a: Any, b: Any) -> Any:
    """max(a, b)."""
    return np.maximum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else max(a, b)


def smaller(a: Any, b: Any) -> Any:
    """min(a, b)."""
    return np.minimum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else min(a, b)


def within(x: Any, low: Any, high: Any) -> Any:
    """x, clipped to [low, high]."""
    return smaller(larger(x, low), high)


def root(x: Any) -> Any:
    """√x."""
    return np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x)


def exponential(x: Any) -> Any:
    """eˣ, the same to the last bit in both forms."""
    return np.exp(x) if isinstance(x, np.ndarray) else float(np.exp(x))


def choose(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b."""
    return np.where(condition, a, b) if isinstance(condition, np.ndarray) else a if condition else b


def dot(x: Any, y: Any) -> Any:
    """⟨x, y⟩ of each lane."""
    return np.einsum("ij,ij->i", x, y) if x.ndim == 2 else float(np.einsum("i,i->", x, y))


def times(a: Any, x: Any) -> Any:
    """a·x, a number (per lane) times a vector."""
    return a[:, None] * x if isinstance(a, np.ndarray) else a * x
