"""The linear model of a cost near the operating point, and how its coefficients change.

With z = (query − centre)/radius, u = (1, z), and age the rounds since the query was asked, a value is

    y = u·(b, g) − age·u·(T, r) + ½·h·|z|² + ½·Σ_i e_i·z_i² + noise                                              (B2)

It is linear in θ = (b, g; T, r; h, e): level b and slope g, their changes per round T and r (trend and velocity), the
common curvature h, and what each coordinate has beyond it, e. So is θ after a move of the centre, or after a round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trimtab.types import Array

LEVEL = 0  # the column of b


@dataclass(frozen=True)
class Constants:
    """All numbers of the method; in brackets the values that were tried. None was polished beyond a factor of two."""

    reach: float = 1.0
    """Probes may cost this many times what the uncertainty of the centre costs (¼, ½, 1, 2; theory says ½)."""
    fading: float = 0.98
    """Memory of weights and of the noise's variance, per value (not varied)."""
    waver: float = 0.4
    """Squared widths alternate by ± this share, which separates curvature from level (0, .4)."""
    recall: float = 300.0
    """Rounds over which curvature is remembered, plus 10·d (100, 300, 1000)."""
    doubt: float = 0.5
    """Standard deviations added to the curvature; prior of e and of r per width, in units of h (.5, 1)."""
    effect: float = 2.0
    """Prior: what the first probe changes, in standard deviations of the noise (1, 2, 4, 10)."""
    surprise: float = 12.0
    """Squared standardised innovation that is held back; a third of it, next, confirms a jump (6, 9, 12, none)."""
    growth: float = 1.3
    """Largest change of a width per round; beyond the radius, upwards, in d rounds (1.3, 2)."""
    flattest: float = 0.05
    """Least curvature of a coordinate, in units of the common one (.02, .05)."""
    narrowest: float = 0.05
    """Narrowest width, in radii (.02, .05)."""
    widest: float = 4.0
    """Largest width, in radii (1, 2, 4)."""
    trend: float = 0.01
    """Largest variance of the level's trend, in noise variances (0, .01)."""
    short: float = 3.0
    """The short window: rounds for the level, frames of d rounds for the slope (2, 3, 8)."""
    long: float = 20.0
    """The long window, also of members with a velocity (8, 20, 40)."""
    steady: float = 10.0
    """The trend is remembered this many times longer than the level (not varied)."""
    dormant: float = -8.0
    """Least log weight: no member is ruled out for good (not varied)."""


class Columns(NamedTuple):
    """The places of the coefficients in θ."""

    dim: int
    position: slice
    """b, g: what a value at u = (1, z) is made of."""
    slope: slice
    """g."""
    change: slice
    """T, r: what they change by per round."""
    trend: int
    """T."""
    velocity: slice
    """r."""
    common: int
    """h."""
    own: slice
    """e."""
    further: slice
    """b_j, g_j of each function φ_j of context."""
    functions: int
    """The number of functions of context."""
    size: int

    @classmethod
    def of(cls, dim: int, functions: int = 0) -> Columns:
        """The columns for this number of coordinates, and of functions of context.

        >>> Columns.of(2).size, Columns.of(2).velocity, Columns.of(2, functions=4).size
        (9, slice(4, 6, None), 21)
        """
        one = 1 + dim
        return cls(
            dim,
            slice(0, one),
            slice(1, one),
            slice(one, 2 * one),
            one,
            slice(one + 1, 2 * one),
            2 * one,
            slice(2 * one + 1, 3 * one),
            slice(3 * one, (3 + functions) * one),
            functions,
            (3 + functions) * one,
        )


def features(columns: Columns, z: Array, age: Array, phi: Array | None = None) -> Array:
    """x with y = x·θ (B2), for queries `(lanes, d)` seen from the present centre; an old one saw an earlier b and g.

    phi: `(lanes, functions)`, the functions of context (B13).
    """
    x = np.empty((len(z), columns.size))
    x[:, LEVEL] = 1.0
    x[:, columns.slope] = z
    np.multiply(x[:, columns.position], -age[:, None], out=x[:, columns.change])
    half = np.multiply(z, z, out=x[:, columns.own])
    half *= 0.5
    x[:, columns.common] = half.sum(axis=1)
    if phi is not None:
        x[:, columns.further] = (phi[:, :, None] * x[:, None, columns.position]).reshape(len(z), -1)
    return x


def passed(columns: Columns, mean: Array, cov: Array, rounds: Array, growth: Array, cap: Array) -> tuple[Array, Array]:
    """Mean and covariance of θ some rounds later (B1): b and g have gone on, and all is known less well.

    growth: by how much standard deviations grow, up to the variances `cap`. Own curvatures and what depends on context
    fade at their caps: e, which only a move can tell from h, would otherwise never go back to 0.
    """
    position, change, own = columns.position, columns.change, slice(columns.own.start, None)
    each = rounds[:, None, None]
    variance = np.array(np.einsum("...ii->...i", cov))
    together = np.einsum("...ii->...i", cov[..., position, change])
    variance[..., position] += each * (2.0 * together + each * variance[..., change])
    factor = np.minimum(growth, np.sqrt(cap / np.maximum(variance, 1e-200)))
    mean = mean.copy()
    mean[..., position] += each * mean[..., change]
    mean[..., own] *= np.sqrt(np.minimum(1.0, factor[..., own] / growth[..., own]))
    cov = cov * (factor[..., :, None] * factor[..., None, :])  # of rows and columns alike: it stays positive definite
    ratio = each * factor[..., position] / np.maximum(factor[..., change], 1e-100)  # a cap may be 0
    cov[..., position, :] += ratio[..., None] * cov[..., change, :]
    cov[..., :, position] += ratio[..., None, :] * cov[..., :, change]
    return mean, cov


def seen_from(columns: Columns, mean: Array, cov: Array, move: Array) -> tuple[Array, Array]:
    """Mean and covariance of θ about a centre that has moved, exactly (B8): b += gᵀΔ + ½ΔᵀHΔ, g += HΔ.

    The covariance is changed in place: it must be the caller's own.
    """
    position, slope, own, common = columns.position, columns.slope, columns.own, columns.common
    half = 0.5 * move * move
    level = np.zeros((len(move), 1, columns.size))  # what b gains from each coefficient
    level[:, 0, slope], level[:, 0, own], level[:, 0, common] = move, half, half.sum(axis=1)
    along = move[:, None]
    mean = mean.copy()
    mean[..., LEVEL] += (mean * level).sum(axis=-1)
    mean[..., slope] += along * (mean[..., own] + mean[..., common, None])
    rows = cov[..., position, :]  # those of b and g, the only ones that change; a copy below
    gained = np.matmul(level[:, :, None], cov)
    rows = np.concatenate([rows[..., :1, :] + gained, rows[..., 1:, :]], axis=-2)
    rows[..., 1:, :] += along[..., None] * (cov[..., own, :] + cov[..., common, None, :])
    corner = rows[..., position].copy()
    corner[..., LEVEL] += np.matmul(rows, level[..., None])[..., 0]
    corner[..., 1:] += along[..., None, :] * (rows[..., own] + rows[..., common, None])
    cov[..., position, :] = rows
    cov[..., :, position] = np.swapaxes(rows, -1, -2)
    cov[..., position, position] = 0.5 * (corner + np.swapaxes(corner, -1, -2))  # symmetric to the last bit, for ever
    if columns.functions:
        _seen_in_context(columns, mean, cov, move)
    return mean, cov


def _seen_in_context(columns: Columns, mean: Array, cov: Array, move: Array) -> None:
    """(B13) b_j += g_jᵀΔ for each function of context, in place."""
    shape, further = (columns.functions, 1 + columns.dim), columns.further
    levels = slice(further.start, further.stop, shape[1])
    along = move[:, None, None]
    slopes = mean[..., further].reshape(*mean.shape[:-1], *shape)[..., 1:]
    mean[..., levels] += (slopes * along).sum(axis=-1)
    rows = cov[..., further, :].reshape(*cov.shape[:-2], *shape, columns.size)
    rows = rows[..., 0, :] + np.matmul(along[..., None, :], rows[..., 1:, :])[..., 0, :]
    slopes = rows[..., further].reshape(*rows.shape[:-1], *shape)[..., 1:]
    corner = rows[..., levels] + (slopes * along[..., None, :]).sum(axis=-1)
    cov[..., levels, :] = rows
    cov[..., :, levels] = np.swapaxes(rows, -1, -2)
    cov[..., levels, levels] = 0.5 * (corner + np.swapaxes(corner, -1, -2))


def turned(mean: Array, cov: Array, turn: Array) -> tuple[Array, Array]:
    """Mean and covariance of turn·θ, for matrices `(lanes, columns, columns)`."""
    cov = turn[:, None] @ cov @ np.swapaxes(turn, -1, -2)[:, None]
    return (turn[:, None] @ mean[..., None])[..., 0], 0.5 * (cov + np.swapaxes(cov, -1, -2))


def rescaled(columns: Columns, mean: Array, cov: Array, factors: Array) -> tuple[Array, Array]:
    """Mean and covariance of θ in z′ = factors·z: slopes shrink by a_j, curvatures by its square; h is their mean."""
    squares, common = factors**-2.0, float(np.mean(factors**-2.0))
    turn = on_slopes(columns, np.diag(1.0 / factors))
    turn[columns.common, columns.common] = common
    turn[columns.own, columns.own] = np.diag(squares)
    turn[columns.own, columns.common] = squares - common
    return turned(mean, cov, turn[None])


def on_slopes(columns: Columns, change: Array) -> Array:
    """The matrix that changes slopes and velocities in this way, and nothing else of θ."""
    turn, one = np.eye(columns.size), 1 + columns.dim
    for first in (columns.slope.start, columns.velocity.start, *range(columns.further.start + 1, columns.size, one)):
        part = slice(first, first + columns.dim)
        turn[part, part] = change
    return turn
