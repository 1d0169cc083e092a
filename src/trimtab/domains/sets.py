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
from numbers import Real
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
        """The points whose probes, of at most `each` per coordinate and `length` in all, stay inside.

        Where a projection rounds, the set is smaller by that, also for probes of no length.
        """

    @abstractmethod
    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        """{c + (1−ξ)(x − c)}: the set shrunk about its middle (or another inner point)."""

    def flatten(self, u: Array) -> Array:
        """The part of a direction that stays in the set's plane, where it has one."""
        return u

    def reach(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """What `erode` has to be told of directions of at most `each` and `length`: the same after `flatten`.

        Sets made of sets leave it to their parts, which may differ in it.
        """
        return each, length

    def spread(self, dim: int, each: float, length: float) -> tuple[float, float]:
        """The largest coordinate and length of any direction after `flatten`."""
        return self.reach(dim, each, length)

    def middle(self, dim: int) -> Array:
        """The centre of the inner ball."""
        raise ValueError(f"{self} has no middle, because it is not bounded: use margin='erode', or bound every side")

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


def no_room(domain: Domain, room: float, need: float) -> ValueError:
    """The error to raise when the probes need more than there is room for."""
    share = min(1.0, max(0.0, room / need)) if need > 0 else 0.0
    return ValueError(f"the probes do not fit into {domain}: make the radius less than {share:.3g} times what it is")


def pulled_in(domain: Domain, x: Array, inner: Array) -> Array:
    """The rows of x, moved towards an inner point as little (up to a factor of 2) as puts them inside exactly."""
    for k in (*range(-50, -1), *[-1] * 20, 0):
        inside = np.atleast_1d(domain.contains(x, 0.0))
        if inside.all():
            break
        x = np.where(inside[:, None], x, inner + (1.0 - 2.0**k) * (x - inner))
    return x


def frozen(value: ArrayLike, name: str, *, infinite: bool = False) -> Any:
    """A number or a list of numbers as an array that nobody can change."""
    kind = "numbers other than NaN" if infinite else "finite numbers"
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r} is not made of numbers: give a number or a list of {kind}") from None
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if array.ndim > 1 or array.size == 0 or np.any(bad):
        raise ValueError(f"{name}={value!r} must be a number or a list of {kind}")
    array.flags.writeable = False
    return array


def finite(value: Any) -> bool:
    """Whether this is a finite number."""
    return isinstance(value, Real) and math.isfinite(value)


def common(*arrays: Array) -> int | None:
    """The dimension that arrays agree on; None if all are single numbers."""
    sizes = {a.size for a in arrays if a.ndim == 1}
    if len(sizes) > 1:
        raise ValueError(f"the parts of the domain disagree on the dimension: {sorted(sizes)}; give as many numbers")
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
        return self._shrunk(self.low + margin, self.high - margin, 2 * margin) if margin > 0 else self

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        need = xi * float(np.min(self.high - self.low))
        return self._shrunk(c + (1 - xi) * (self.low - c), c + (1 - xi) * (self.high - c), need)

    def _shrunk(self, low: Array, high: Array, need: float) -> Domain:
        slack = ROUNDING * self._size()
        if not np.all(low + slack < high - slack):
            raise no_room(self, float(np.min(self.high - self.low - 2 * slack)), need)
        return Box(low + slack, high - slack)

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
        if not (finite(self.radius) and self.radius > 0):
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
        return self._shrunk(dim, min(length, each * math.sqrt(dim)), self.centre)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return self._shrunk(dim, xi * self.radius, c + (1 - xi) * (self.centre - c))

    def _shrunk(self, dim: int, margin: float, centre: Array) -> Domain:
        room = self.radius - ROUNDING * math.sqrt(dim) * self._size()
        if margin >= room:
            raise no_room(self, room, margin)
        return Ball(room - margin, centre)

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
        if not (finite(self.total) and self.total > 0):
            raise ValueError(f"total={self.total!r} does not make a simplex: it must be a finite number > 0")
        if self.floor.ndim:
            self._spare(self.floor.size)

    @property
    def dim(self) -> int | None:
        return common(self.floor)

    def _size(self) -> float:
        return max(self.total, float(np.max(np.abs(self.floor))))

    def _spare(self, dim: int) -> float:
        spare = self.total - float(np.sum(self.floor) if self.floor.ndim else dim * self.floor)
        if spare <= 0:
            raise ValueError(
                f"floor={self.floor} in {dim} coordinates leaves nothing of total={self.total}: lower the floor"
            )
        return spare

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
        positive = w > 0  # once more, on what the sum over many coordinates has lost
        w -= (w.sum(-1, keepdims=True) - spare) / positive.sum(-1, keepdims=True) * positive
        np.maximum(w, 0.0, out=w)
        w += self.floor
        return w

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        x = np.asarray(x, dtype=float)
        adds_up = np.abs(x.sum(-1) - self.total) <= max(tolerance, 1e-12) * self._size()
        return np.all(x >= self.floor - tolerance * self._size(), axis=-1) & adds_up

    def flatten(self, u: Array) -> Array:
        flat: Array = u - u.mean(-1, keepdims=True)
        return flat

    def reach(self, dim: int, each: float, length: float) -> tuple[float, float]:
        # |u_j − ū| = |⟨Pe_j, u⟩| with ‖Pe_j‖₁ = 2(1 − 1/d) and ‖Pe_j‖₂ = √(1 − 1/d)
        return min(each * 2 * (1 - 1 / dim), length * math.sqrt(1 - 1 / dim)), length

    def erode(self, dim: int, each: float, length: float) -> Domain:
        margin = min(each, length)
        return self._raised(dim, self.floor + margin, dim * margin)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        floor = xi * self.inner_point(dim, xi, about) + (1 - xi) * self.floor
        return self._raised(dim, floor, xi * self._spare(dim))

    def _raised(self, dim: int, floor: Array, need: float) -> Domain:
        slack = ROUNDING * self._size()
        room = self._spare(dim) - 2 * dim * slack
        if need >= room:
            raise no_room(self, room, need)
        return Simplex(self.total, floor + slack)

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
        if not self.normal @ self.normal > 0:
            raise ValueError(f"normal={self.normal} is zero and makes no halfspace: give the direction that is limited")
        if not finite(self.offset):
            raise ValueError(f"offset={self.offset!r} does not make a halfspace: it must be a finite number")

    @property
    def dim(self) -> int | None:
        return int(self.normal.size)

    def project(self, x: Array) -> Array:
        for _ in range(2):  # from far away, the first time leaves the rounding error of the way
            # (x·normal).sum, not x @ normal, which rounds differently with lanes and without
            excess = np.maximum((x * self.normal).sum(-1, keepdims=True) - self.offset, 0.0)
            if not np.any(excess):
                break
            x = x - excess / (self.normal @ self.normal) * self.normal
        return x

    def contains(self, x: ArrayLike, tolerance: float = 1e-9) -> Verdict:
        along = np.asarray(x) * self.normal
        size = np.abs(along).sum(-1) + abs(self.offset)
        return np.asarray(along.sum(-1) <= self.offset + max(tolerance, ROUNDING) * size)[()]

    def erode(self, dim: int, each: float, length: float) -> Domain:
        reach = min(each * np.abs(self.normal).sum(), length * float(np.linalg.norm(self.normal)))
        return self._shrunk(reach)

    def scale(self, dim: int, xi: float, about: Array | None = None) -> Domain:
        c = self.inner_point(dim, xi, about)
        return self._shrunk(xi * (self.offset - self.normal @ c))

    def _shrunk(self, reach: float) -> Domain:
        return Halfspace(self.normal, float(self.offset - reach - ROUNDING * (abs(self.offset) + reach)))
