"""Exact interval for a share that was counted (Clopper–Pearson)."""

from __future__ import annotations

import math

DOUBT = 0.05  # of the interval, half on each side
HALVINGS = 60  # of a bisection: to the last digits of a share
TERMS = 20_000  # of a continued fraction; it needs about √n
TINY = 1e-300


def share_between(count: int, of: int) -> tuple[float, float]:
    """Return the ends of the 95 % interval for the share behind `count` of `of` independent trials.

    >>> low, high = share_between(3, 420)
    >>> round(low, 4), round(high, 4)
    (0.0015, 0.0207)
    >>> share_between(0, 0)
    (0.0, 1.0)
    """
    low = 0.0 if count == 0 else _quantile(DOUBT / 2, count, of - count + 1)
    high = 1.0 if count == of else _quantile(1 - DOUBT / 2, count + 1, of - count)
    return low, high


def _quantile(share: float, a: float, b: float) -> float:
    """The x at which the beta distribution with parameters a and b reaches this share."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, a, b) < share else (low, middle)
    return (low + high) / 2


def _below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function."""
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _below(1.0 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 1 + d₁/(1 + d₂/(1 + …)) of the incomplete beta function, by Lentz's method."""
    found, c, d = 1.0, 1.0, 0.0
    for n in range(1, TERMS):
        m, odd = divmod(n, 2)
        if odd:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / (1.0 + term * d or TINY)
        c = 1.0 + term / c or TINY
        found *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return found
