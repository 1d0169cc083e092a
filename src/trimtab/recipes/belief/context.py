"""Context: measured numbers, such as a load or the hour, that the level and the slope may depend on.

A context w enters as polynomials φ_1 … φ_4 of its standardised value, or as cosines and sines of its angle. Each has
a level and a slope of its own, the further columns of θ: y = … + Σ_j φ_j·(1, z)·(b_j, g_j)                  (B13, B14)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.types import Array

DEGREES = 4
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ContextConstants:
    """The numbers of context; in brackets the values that were tried."""

    level: float = 10.0
    """Prior: what a context changes, in standard deviations of the noise (2, 10, 30)."""
    depends: float = 1.0
    """Prior: by how many radii the optimum moves per standard deviation of a context (1, 3, 10)."""
    relevance: float = 0.995
    """Memory of the evidence for a context, per value (.98, .99, .995, .999)."""
    patience: float = 3.0
    """Windows of members with context are this many times longer (1, 3, 10)."""
    farthest: float = 2.5
    """Standard deviations from its mean beyond which a context counts no further (2, 2.5, 3)."""
    stretch: float = 0.1
    """Largest growth of the range of a context per round, as a share of it (not varied)."""
    renewal: float = 0.2
    """A context is standardised anew if its mean, in standard deviations, or the log of these is off by this much."""
    first: int = 8
    """Contexts seen before they count (8, 16)."""


def _hermite() -> Array:
    """Coefficients of He_0 … He_4, each scaled to the variance 1 under a normal context."""
    rows = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [-1, 0, 1, 0, 0], [0, -3, 0, 1, 0], [3, 0, -6, 0, 1]]
    return np.array(rows) / np.sqrt([[math.factorial(p)] for p in range(1 + DEGREES)])


HERMITE = _hermite()
UNHERMITE = np.linalg.inv(HERMITE)


class Basis(NamedTuple):
    """The functions φ_j of all contexts."""

    periods: tuple[float, ...]
    """One for each context; 0 for a number that is not an angle."""
    owner: NDArray[np.int64]
    """`(functions,)`: the number of the context."""
    degree: NDArray[np.int64]
    """`(functions,)`: of the polynomial, or the multiple of the angle."""

    @classmethod
    def of(cls, periods: Sequence[float]) -> Basis:
        """Four polynomials of a number, four cosines and sines of an angle.

        >>> Basis.of([0, 24]).owner.tolist()
        [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
        """
        found = [
            (number, degree)
            for number, period in enumerate(periods)
            for degree in range(1, 1 + DEGREES)
            for _ in range(2 if period else 1)
        ]
        owner, degree = np.array(found, dtype=int).reshape(-1, 2).T
        return cls(tuple(periods), owner, degree)

    def masks(self, dim: int) -> Flags:
        """`(masks, functions·(1 + dim))`: which coefficients a member may use.

        No context; each alone, then all together, with slopes of degree 1 or 2. An optimum that moves by o changes the
        level by ½h·o², so that levels have twice the degree.
        """
        contexts = len(self.periods)
        groups = [[i] for i in range(contexts)] + ([list(range(contexts))] if contexts > 1 else [])
        found = [np.zeros((len(self.owner), 1 + dim), dtype=bool)]
        for group in groups:
            mine = np.isin(self.owner, group)[:, None]
            found += [mine & (self.degree[:, None] <= [2 * p] + [p] * dim) for p in (1, 2)]
        return np.stack(found).reshape(len(found), -1)


def relevance(basis: Basis, weights: Array) -> Array:
    """The share of the belief that depends on each context, `(contexts,)`, from the weights of all members.

    >>> relevance(Basis.of([0]), np.array([0.2, 0.5, 0.3])).tolist()
    [0.8]
    """
    masks = basis.masks(0)
    uses = np.stack([masks[:, basis.owner == i].any(axis=1) for i in range(len(basis.periods))], axis=1)
    share: Array = weights.reshape(len(masks), -1).sum(axis=1) @ uses
    return share


class Seen(NamedTuple):
    """The contexts so far, `(lanes, contexts)` each."""

    number: Array
    """The number of them."""
    mean: Array
    squares: Array
    """The sum of squared deviations from the mean."""
    low: Array
    high: Array
    shift: Array
    spread: Array
    """The standardisation in use: (w − shift)/spread; a spread of 0 before there is one."""


def unseen(lanes: int, contexts: int) -> Seen:
    """Before any context."""
    none = np.zeros((lanes, contexts))
    return Seen(none, none, none, none, none, none, none)


def functions(basis: Basis, seen: Seen, context: Array, farthest: float) -> tuple[Array, Flags]:
    """(B14) φ_j of a context `(lanes, contexts)`, and which of them are unknown: 0, their mean, where it is missing.

    A context is held to the range seen so far, so that nothing is extrapolated.
    """
    ready = (seen.spread > 0) & np.isfinite(context)
    columns = []
    for i, period in enumerate(basis.periods):
        on = ready[:, i]
        now, spread = np.where(on, context[:, i], 0.0), np.where(on, seen.spread[:, i], 1.0)
        if period:
            angle = (2 * math.pi / period) * now[:, None] * np.arange(1, 1 + DEGREES)
            each = math.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(len(now), -1)
        else:
            held = np.minimum(np.maximum(now, seen.low[:, i]), seen.high[:, i])
            u = np.where(on, held - seen.shift[:, i], 0.0) / spread
            u = np.minimum(np.maximum(u, -farthest), farthest)[:, None]
            powers = np.concatenate([np.ones_like(u), u, u * u, u * u * u, u * u * u * u], axis=1)
            each = (powers[:, None] * HERMITE).sum(axis=-1)[:, 1:]
        columns.append(np.where(on[:, None], each, 0.0))
    return np.concatenate(columns, axis=1), ((seen.spread > 0) & ~ready)[:, basis.owner]


class Renewal(NamedTuple):
    """A change of the standardisation, `(lanes, contexts)` each: u_old = a·u_new + b."""

    a: Array
    b: Array
    joins: Flags
    """Contexts that are standardised for the first time."""
    again: Flags
    """Contexts that are standardised anew."""


def notice(basis: Basis, seen: Seen, context: Array, c: ContextConstants) -> tuple[Seen, Renewal]:
    """(B14) Moments and range after one more context; a new standardisation where the one in use is off."""
    there, ready, circular = np.isfinite(context), seen.spread > 0, np.array(basis.periods) > 0
    context, count = np.where(there, context, seen.mean), seen.number + there
    gap = (context - seen.mean) / np.maximum(count, 1.0)
    mean, squares = seen.mean + gap, seen.squares + (count - 1) * count * gap * gap
    low, high = (np.where(seen.number > 0, x, context) for x in (seen.low, seen.high))
    most = np.where(ready, c.stretch * (high - low), np.inf)  # so that one wild number does not stretch the range
    low = np.where(there, np.minimum(low, np.maximum(context, low - most)), seen.low)
    high = np.where(there, np.maximum(high, np.minimum(context, high + most)), seen.high)
    deviation, used = np.sqrt(squares / np.maximum(count, 1.0)), np.where(ready, seen.spread, 1.0)
    varies = circular | (deviation > 1e-9 * np.abs(mean))
    joins = there & ~ready & (count >= c.first) & varies
    off = np.maximum(np.abs(np.log(np.maximum(deviation, 1e-300) / used)), np.abs(mean - seen.shift) / used)
    again = there & ready & ~circular & (off > c.renewal)
    spread = np.where(joins | again, np.where(circular, 1.0, deviation), seen.spread)
    shift = np.where(joins | again, mean, seen.shift)
    a, b = np.where(again, spread / used, 1.0), np.where(again, (shift - seen.shift) / used, 0.0)
    return Seen(count, mean, squares, low, high, shift, spread), Renewal(a, b, joins, again)


def change_of_basis(a: float, b: float) -> Array:
    """The matrix M with φ(a·u + b) = M·φ(u), for φ = (1, φ_1, …, φ_4): exact, since both sides are polynomials.

    >>> np.allclose(change_of_basis(1.0, 0.0), np.eye(5))
    True
    """
    power = np.zeros((1 + DEGREES, 1 + DEGREES))  # (a·u + b)^p = Σ_r (p over r)·a^r·b^(p − r)·u^r
    for p in range(1 + DEGREES):
        for r in range(1 + p):
            power[p, r] = math.comb(p, r) * a**r * b ** (p - r)
    return np.asarray(HERMITE @ power @ UNHERMITE)
