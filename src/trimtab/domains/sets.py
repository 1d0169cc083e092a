"""Where may we be?  Convex sets: nearest point, membership, and the smaller set in which centres live.

Queries are centre + δu. If u is bounded, the centre can be kept in a smaller set such that *every* query is inside:

* `erode`: exactly the points whose probes all stay inside, given the largest |δu_j| (`each`) and ‖δu‖ (`length`);
* `scale`: the paper's (1−ξ)X with ξ = δ/r (Lemma H.3), about the middle of an inscribed ball of radius r.

All functions work on the last axis, so x may be `(d,)` or `(lanes, d)`. `inner_radius` and `outer_radius` are those
of balls about `middle` inside and around the set (the paper's r and r̄, whose middle is the origin).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Verdict = Any  # a bool, or an array of bools with lanes

ROUNDING = 16 * float(np.finfo(float).eps)


class Domain(ABC):
    """A closed convex set. Subclasses say how to project, and how they shrink."""

    @property
    def dim(self) -> int | None:
        """The dimension, if the set fixes it."""
        return None

    @abstractmethod
    def project(self, x: Array) -> Array:
        """The nearest point of the set."""

    @abstractmethod
    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        """Whether x is inside, up to a tolerance relative to the size of the set."""

    @abstractmethod
    def erode(self, dim: int, each: float, length: float) -> Domain:
        """The points whose probes, of at most `each` per coordinate and `length` in all, stay inside."""

    @abstractmethod
    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """{c + (1−ξ)(x − c)}: the set shrunk about its middle (or another inner point)."""

    def flatten(self, u: Array) -> Array:
        """The part of a direction that stays in the set's plane, where it has one."""
        return u

    def reach(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """The largest coordinate and length of a direction after `flatten`."""
        return each, length

    def middle(self, dim: int) -> Array:
        """The centre of the inner ball."""
        raise ValueError(f"{self} has no middle, because it is not bounded")

    def inner_radius(self, dim: int) -> float:
        """The radius of a ball about `middle` inside the set (within its plane, where it has one)."""
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
            raise ValueError(f"xi={xi:.4g} leaves nothing of {self}: the radius must be less than the inner radius")
        return self.middle(dim) if about is None else about


def no_room(domain: Domain, share: float) -> ValueError:
    """The error to raise when a probe of the given reach does not fit, and only a share of it would."""
    return ValueError(
        f"the probes do not fit into {domain}: make the radius at most {max(share, 0.0):.3g} times what it is"
    )


def frozen(value: ArrayLike, name: str, *, infinite: bool = False) -> Any:
    """A number or a list of numbers as an array that nobody can change."""
    array = np.array(value, dtype=float)
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if array.ndim > 1 or array.size == 0 or np.any(bad):
        raise ValueError(f"{name}={value!r} must be a number or a list of numbers without NaN")
    array.flags.writeable = False
    return array


def common(*arrays: Array) -> int | None:
    """The dimension that arrays agree on; None if all are single numbers."""
    sizes = {a.size for a in arrays if a.ndim == 1}
    if len(sizes) > 1:
        raise ValueError(f"the parts of the domain disagree on the dimension: {sorted(sizes)}")
    return sizes.pop() if sizes else None


@dataclass(frozen=True, eq=False)
class Everywhere(Domain):
    """The whole space.

    >>> bool(Everywhere().contains([1e9, -3.0]))
    True
    """

    def project(self, x: Array) -> Array:
        return x

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        return np.isfinite(x).all(-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        return self

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        return self


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """{low ≤ x ≤ high}, per coordinate; numbers or lists; ±inf leaves a side open.

    >>> Box(0, [1, 2]).project(np.array([-1.0, 5.0]))
    array([0., 2.])
    """

    low: Any = 0.0
    high: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", frozen(self.low, "low", infinite=True))
        object.__setattr__(self, "high", frozen(self.high, "high", infinite=True))
        common(self.low, self.high)
        if not np.all(self.low < self.high):
            raise ValueError(f"low={self.low} is not below high={self.high} everywhere: swap or widen the bounds")

    @property
    def dim(self) -> int | None:
        return common(self.low, self.high)

    def project(self, x: Array) -> Array:
        inside: Array = np.maximum(x, self.low)
        np.minimum(inside, self.high, out=inside)
        return inside

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        slack = tolerance * self._size()
        return np.all((np.asarray(x) >= self.low - slack) & (np.asarray(x) <= self.high + slack), axis=-1)

    def erode(self, dim: int, each: float, length: float) -> Domain:
        margin = min(each, length)
        share = float(np.min(self.high - self.low)) / (2 * margin) if margin > 0 else math.inf
        margin = margin + ROUNDING * (self._size() + margin)
        if not np.all(self.low + margin < self.high - margin):
            raise no_room(self, share)
        return Box(self.low + margin, self.high - margin)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return Box(c + (1 - xi) * (self.low - c), c + (1 - xi) * (self.high - c))

    def middle(self, dim: int) -> Array:
        if not np.isfinite(self.high - self.low).all():
            return super().middle(dim)
        return np.broadcast_to(0.5 * (self.low + self.high), (dim,)).copy()

    def inner_radius(self, dim: int) -> float:
        return 0.5 * float(np.min(self.high - self.low))

    def outer_radius(self, dim: int) -> float:
        return 0.5 * float(np.linalg.norm(np.broadcast_to(self.high - self.low, (dim,))))

    def _size(self) -> Any:
        """The largest finite number at stake, per coordinate."""
        both = np.abs(np.stack(np.broadcast_arrays(self.low, self.high)))
        return np.where(np.isfinite(both), both, 0.0).max(0)


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """{‖x − centre‖ ≤ radius}.

    >>> Ball(5.0).project(np.array([30.0, 40.0]))
    array([3., 4.])
    """

    radius: float = 1.0
    centre: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", frozen(self.centre, "centre"))
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"radius={self.radius!r} does not make a ball: it must be a finite number > 0")

    @property
    def dim(self) -> int | None:
        return common(self.centre)

    def project(self, x: Array) -> Array:
        offset = x - self.centre
        length = np.linalg.norm(offset, axis=-1, keepdims=True)
        if np.all(length <= self.radius):
            return x
        offset *= np.minimum(1.0, self.radius / np.maximum(length, self.radius))
        offset += self.centre
        return np.where(length <= self.radius, x, offset)

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        length = np.linalg.norm(np.asarray(x, dtype=float) - self.centre, axis=-1)
        return np.asarray(length <= self.radius + tolerance * self._size())[()]

    def erode(self, dim: int, each: float, length: float) -> Domain:
        margin = min(length, each * math.sqrt(dim))
        radius = self.radius - margin - ROUNDING * math.sqrt(dim) * self._size()
        if radius <= 0:
            raise no_room(self, self.radius / margin)
        return Ball(radius, self.centre)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return Ball((1 - xi) * self.radius, c + (1 - xi) * (self.centre - c))

    def middle(self, dim: int) -> Array:
        return np.broadcast_to(self.centre, (dim,)).copy()

    def inner_radius(self, dim: int) -> float:
        return self.radius

    def outer_radius(self, dim: int) -> float:
        return self.radius

    def _size(self) -> float:
        return self.radius + float(np.max(np.abs(self.centre)))


@dataclass(frozen=True, eq=False)
class Simplex(Domain):
    """{Σx_j = total, x_j ≥ floor_j}: shares of a whole. Directions are kept in its plane, so every query adds up too.

    Projection: Duchi et al. 2008, after subtracting the maximum, so that no size of x loses the sum.

    >>> Simplex().project(np.array([0.5, 1.5, -1.0]))
    array([0., 1., 0.])
    """

    total: float = 1.0
    floor: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "floor", frozen(self.floor, "floor"))
        if not (math.isfinite(self.total) and self.total > 0):
            raise ValueError(f"total={self.total!r} does not make a simplex: it must be a finite number > 0")

    @property
    def dim(self) -> int | None:
        return common(self.floor)

    def _spare(self, dim: int) -> float:
        return self.total - float(np.sum(np.broadcast_to(self.floor, (dim,))))

    def project(self, x: Array) -> Array:
        dim = x.shape[-1]
        spare = self._spare(dim)
        w: Array = x - self.floor
        w -= w.max(-1, keepdims=True)
        np.maximum(w, -spare, out=w)
        falling = -np.sort(-w, axis=-1)
        excess = np.cumsum(falling, axis=-1) - spare
        ranks = np.arange(1, dim + 1)
        last = np.sum(falling * ranks > excess, axis=-1, keepdims=True)
        w -= np.take_along_axis(excess, last - 1, -1) / last
        np.maximum(w, 0.0, out=w)
        w += self.floor
        return w

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        x = np.asarray(x, dtype=float)
        adds_up = np.abs(x.sum(-1) - self.total) <= max(tolerance, 1e-12) * self.total
        return np.all(x >= self.floor - tolerance * self.total, axis=-1) & adds_up

    def flatten(self, u: Array) -> Array:
        flat: Array = u - u.mean(-1, keepdims=True)
        return flat

    def reach(self, dim: int, each: float, length: float) -> tuple[float, float]:
        # |u_j − ū| = |⟨Pe_j, u⟩| with ‖Pe_j‖₁ = 2(1 − 1/d) and ‖Pe_j‖₂ = √(1 − 1/d)
        return min(each * 2 * (1 - 1 / dim), length * math.sqrt(1 - 1 / dim)), length

    def erode(self, dim: int, each: float, length: float) -> Domain:
        margin = min(each, length)
        raised = Simplex(self.total, self.floor + margin + ROUNDING * self.total)
        if raised._spare(dim) <= 0:
            raise no_room(self, self._spare(dim) / (dim * margin))
        return raised

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        return Simplex(self.total, xi * self.inner_point(dim, xi, about) + (1 - xi) * self.floor)

    def middle(self, dim: int) -> Array:
        return np.broadcast_to(self.floor + self._spare(dim) / dim, (dim,)).copy()

    def inner_radius(self, dim: int) -> float:
        return self._spare(dim) / math.sqrt(dim * (dim - 1)) if dim > 1 else 0.0

    def outer_radius(self, dim: int) -> float:
        return self._spare(dim) * math.sqrt(1 - 1 / dim)


@dataclass(frozen=True, eq=False)
class Halfspace(Domain):
    """{⟨normal, x⟩ ≤ offset}.

    >>> Halfspace([1.0, 1.0], 1.0).project(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    """

    normal: Any
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", np.atleast_1d(frozen(self.normal, "normal")))
        if not (np.any(self.normal) and math.isfinite(self.offset)):
            raise ValueError(f"normal={self.normal}, offset={self.offset} do not make a halfspace: the normal is zero")

    @property
    def dim(self) -> int | None:
        return int(self.normal.size)

    def project(self, x: Array) -> Array:
        excess = np.maximum(x @ self.normal - self.offset, 0.0)
        if not np.any(excess):
            return x
        nearest: Array = x - (excess / (self.normal @ self.normal))[..., None] * self.normal
        return nearest

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        size = np.abs(x) @ np.abs(self.normal) + abs(self.offset)
        return np.asarray(np.asarray(x) @ self.normal <= self.offset + max(tolerance, ROUNDING) * size)[()]

    def erode(self, dim: int, each: float, length: float) -> Domain:
        reach = min(each * np.abs(self.normal).sum(), length * float(np.linalg.norm(self.normal)))
        return Halfspace(self.normal, float(self.offset - reach - ROUNDING * (abs(self.offset) + reach)))

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return Halfspace(self.normal, float((1 - xi) * self.offset + xi * (self.normal @ c)))
