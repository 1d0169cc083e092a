"""Convex domains: projection, membership, and the smaller set that keeps every query inside.

Queries are centre + δu. If u is bounded, the centre can be kept in a smaller set so that *every* query is inside:

* `erode`: exactly the points whose probes all stay inside, given the largest |δu_j| (`each`) and ‖δu‖ (`length`);
* `scale`: the paper's (1−ξ)X with ξ = δ/r (Lemma H.3), about the centre of an inscribed ball of radius r.

All functions work on the last axis, so x may be `(d,)` or `(lanes, d)`. `inner_radius` and `outer_radius` belong to
balls about `middle` inside and around the set (the paper's r and r̄, centred at the origin).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimtab.types import Array

Inside = Any
"""A NumPy bool, or an array of them, one per lane; NumPy's stubs have no common type for both."""

ROUNDING = 16 * float(np.finfo(float).eps)
"""Relative rounding error allowed for a few additions and multiplications."""


class Domain(ABC):
    """A closed convex set. Subclasses define how to project onto it and how to shrink it.

    >>> import trimtab as tt
    >>> isinstance(tt.Ball(2.0), tt.Domain), tt.Ball(2.0).project([3.0, 4.0])
    (True, array([1.2, 1.6]))
    """

    @property
    def dim(self) -> int | None:
        """The dimension, if the set fixes it."""
        return None

    @abstractmethod
    def project(self, x: Array) -> Array:
        """The nearest point of the set."""

    @abstractmethod
    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Inside:
        """Whether x is inside, up to a tolerance relative to the size of the set."""

    @abstractmethod
    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The points whose probes, of at most `each` per coordinate and `length` in all, stay inside.

        The set also shrinks by the rounding error of its projection, even for probes of length zero.
        """

    @abstractmethod
    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """{c + (1−ξ)(x − c)}: the set shrunk about its middle (or another inner point)."""

    def sides(self, dim: int) -> tuple[Array, Array]:
        """A box around the set: lower and upper limits per coordinate, infinite if the set has no simple ones."""
        return np.full(dim, -math.inf), np.full(dim, math.inf)

    def flatten(self, u: Array) -> Array:
        """Project a direction onto the plane of the set, if the set is flat."""
        return u

    def reach(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """The largest coordinate and length after `flatten`, as arguments for `erode`.

        Composite sets return the arguments unchanged: their parts may differ.
        """
        return each, length

    def spread(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """The largest coordinate and length of any direction after `flatten`."""
        return self.reach(dim, each, length)

    def middle(self, dim: int) -> Array:
        """The centre of the inner ball."""
        raise ValueError(f"{self} has no centre, because it is not bounded: use margin='erode', or bound every side")

    def inner_radius(self, dim: int) -> float:
        """The radius of a ball about `middle` inside the set (within its plane, if it is flat)."""
        return math.inf

    def outer_radius(self, dim: int) -> float:
        """The radius of a ball about `middle` around the set; inf if it is unbounded."""
        return math.inf

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name))
            for f in fields(self)  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]

    def inner_point(self, dim: int, xi: float, about: Array | None) -> Array:
        """The point to shrink about."""
        if not 0 <= xi < 1:
            raise ValueError(f"xi={xi:.4g} leaves nothing of {self}: choose a radius below the inner radius")
        return self.middle(dim) if about is None else about

    def _set(self, **values: object) -> None:
        """Set fields in a constructor, although domains are frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def no_room(domain: Domain, room: float, need: float) -> ValueError:
    """The error to raise if the probes do not fit into the domain."""
    share = min(1.0, max(0.0, room / need)) if need > 0 else 0.0
    return ValueError(f"the probes do not fit into {domain}: multiply the radius by less than {share:.3g}")


def pulled_in(domain: Domain, x: Array, inner: Array) -> Array:
    """Move the rows of x that are outside towards an inner point, by at most twice the distance that is needed."""
    for k in (*range(-50, -1), *[-1] * 20, 0):
        inside = np.atleast_1d(domain.contains(x, 0.0))
        if inside.all():
            break
        x = np.where(inside[:, None], x, inner + (1.0 - 2.0**k) * (x - inner))
    return x


def frozen(value: ArrayLike, name: str, *, infinite: bool = False) -> Array:
    """Convert a number or a list of numbers to a read-only array."""
    kind = "numbers other than NaN" if infinite else "finite numbers"
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r} must consist of numbers: give a number or a list of {kind}") from None
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if array.ndim > 1 or array.size == 0 or np.any(bad):
        raise ValueError(f"{name}={value!r} must be a number or a list of {kind}")
    array.flags.writeable = False
    return array


def common(*arrays: Array) -> int | None:
    """The common dimension of the arrays; None if all are single numbers."""
    sizes = {a.size for a in arrays if a.ndim == 1}
    if len(sizes) > 1:
        raise ValueError(f"the parts of the domain disagree on the dimension: {sorted(sizes)}; give all the same")
    return sizes.pop() if sizes else None
