"""One set of functions for single numbers, one for a number per lane; chosen when a part is bound to its setup.

Python's own functions are several times faster on single numbers than NumPy's; the results are identical to the bit.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from operator import truth
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trimtab.types import Array, Mask, Memory, Value

TINY = float(np.finfo(float).tiny)
FAINT = 2.0**-40  # smaller factors are multiplied into their vector
FINE = 6  # binary digits of an exponent
T = TypeVar("T")


def power(sqrt: Callable[[Value], Value], exponent: float) -> Callable[[Value], Value]:
    """x → x^exponent by square roots and products alone; the exponent is rounded to a multiple of 1/64.

    Unlike powers, these round identically on every processor, for one number and for many.

    >>> power(math.sqrt, 0.75)(16.0), power(np.sqrt, 1.5)(np.array([4.0, 9.0]))
    (8.0, array([ 8., 27.]))
    """
    digits = round(exponent * 2**FINE)
    whole, roots = digits >> FINE, [digits >> (FINE - 1 - n) & 1 for n in range(FINE)]
    while roots and not roots[-1]:
        roots.pop()

    def raised(x: Value) -> Value:
        found: Value = 1.0
        root = x
        for _ in range(whole):
            found = found * x
        for wanted in roots:
            root = sqrt(root)
            if wanted:
                found = found * root
        return found

    return raised


class Single:
    """One system: values are floats, vectors `(d,)`."""

    all, any, sqrt, maximum, minimum = truth, truth, math.sqrt, builtins.max, builtins.min

    @staticmethod
    def where(condition: Value, a: T, b: T) -> T:
        """a where the condition holds, else b."""
        return a if condition else b

    @staticmethod
    def clip(x: float, low: float, high: float) -> float:
        """x limited to [low, high]."""
        return low if x < low else high if x > high else x

    @staticmethod
    def dot(x: Array, y: Array) -> float:
        """⟨x, y⟩."""
        return float(x.dot(y))

    @staticmethod
    def norm(x: Array) -> float:
        """‖x‖."""
        return math.sqrt(x.dot(x))

    @staticmethod
    def times(a: float, x: Array) -> Array:
        """a·x, a value times a vector."""
        return a * x

    @staticmethod
    def axpy(a: float, x: Array, y: Array) -> Array:
        """a·x + y."""
        out = a * x
        out += y
        return out

    @staticmethod
    def drawn(a: float, x: Array, y: Array) -> Array:
        """a·x + y, written over x."""
        x *= a
        x += y
        return x

    @staticmethod
    def fading(vector: Array, fade: float, kept: float, gain: float, news: Array) -> tuple[Array, float]:
        """A vector and its factor, fade, whose product is kept·(fade·vector) + gain·news: only a number decays."""
        fade = fade * kept
        if fade < FAINT:
            vector, fade = fade * vector, 1.0
        out = (gain / fade) * news
        out += vector
        return out, fade

    @staticmethod
    def failed(values: tuple[float, ...], partial: bool = False) -> bool:
        """Whether a value is missing: never, since a single system skips a round without a value."""
        return False

    @staticmethod
    def merge(mask: bool, old: T, new: T) -> T:
        """`old` if the mask is true, else `new`; numbers, arrays or tuples of them."""
        return old if mask else new


class Lanes:
    """Many systems: values are arrays `(lanes,)`, vectors `(lanes, d)`."""

    sqrt, minimum, where = np.sqrt, np.minimum, np.where

    @staticmethod
    def all(mask: Mask) -> bool:
        """Whether the mask is true in every lane."""
        return bool(mask.all() if isinstance(mask, np.ndarray) else mask)

    @staticmethod
    def any(mask: Mask) -> bool:
        """Whether the mask is true in any lane."""
        return bool(mask.any() if isinstance(mask, np.ndarray) else mask)

    @staticmethod
    def clip(x: Value, low: Value, high: Value) -> Array:
        """x limited to [low, high]; faster than np.clip."""
        clipped: Array = np.minimum(np.maximum(x, low), high)
        return clipped

    @staticmethod
    def maximum(a: Value, *others: Value) -> Value:
        """The largest in each lane."""
        for b in others:
            a = np.maximum(a, b)
        return a

    @staticmethod
    def dot(x: Array, y: Array) -> Array:
        """⟨x, y⟩ of each lane."""
        return np.asarray(np.matmul(x[:, None, :], y[:, :, None])[:, 0, 0])

    @classmethod
    def norm(cls, x: Array) -> Array:
        """‖x‖ of each lane."""
        return np.asarray(np.sqrt(cls.dot(x, x)))

    @staticmethod
    def times(a: Value, x: Array) -> Array:
        """a·x, the value of each lane (or one for all) times its vector."""
        return np.asarray(np.asarray(a)[..., None] * x)

    @staticmethod
    def axpy(a: Value, x: Array, y: Array) -> Array:
        """a·x + y in each lane."""
        out = np.asarray(np.asarray(a)[..., None] * x)
        out += y
        return out

    @staticmethod
    def drawn(a: Value, x: Array, y: Array) -> Array:
        """a·x + y in each lane, written over x."""
        x *= np.asarray(a)[..., None]
        x += y
        return x

    @classmethod
    def fading(cls, vector: Array, fade: Array, kept: float, gain: Array, news: Array) -> tuple[Array, Array]:
        """A vector and its factor, fade, whose product is kept·(fade·vector) + gain·news in each lane."""
        fade = fade * kept
        if (faint := fade < FAINT).any():
            vector = np.where(faint[:, None], cls.times(fade, vector), vector)
            fade = np.where(faint, 1.0, fade)
        return cls.axpy(gain / fade, news, vector), fade

    @staticmethod
    def failed(values: tuple[Array, ...], partial: bool = False) -> NDArray[np.bool_]:
        """The lanes in which a value is missing; partial: those in which all are."""
        missing = np.isnan(values[0])
        for value in values[1:]:
            missing = missing & np.isnan(value) if partial else missing | np.isnan(value)
        return missing

    @classmethod
    def merge(cls, mask: Mask, old: Memory, new: Memory) -> Memory:
        """`old` in the lanes of the mask, else `new`; a single bool applies to all lanes."""
        if isinstance(mask, bool):
            return old if mask else new
        if new is None:
            return None
        if isinstance(new, tuple):
            parts = [cls.merge(mask, a, b) for a, b in zip(old, new, strict=True)]
            return type(new)(*parts) if hasattr(new, "_fields") else tuple(parts)
        return np.where(mask.reshape(-1, *(1,) * (np.ndim(new) - 1)) if np.ndim(new) > 1 else mask, old, new)
