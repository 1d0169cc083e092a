"""What a user gives, as arrays of numbers: the start, the bounds, and the values that are told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.types import Array, Value

LARGEST = 1e140  # values beyond are taken as this, so that their squares stay finite

Numbers = TypeVar("Numbers", bound=NDArray[np.generic])


def starting_point(x0: ArrayLike) -> Array:
    """x0 as an array, `(d,)` or `(lanes, d)`."""
    try:
        x = numbers(x0)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"x0={shortly(repr(x0))} is not a list of real numbers") from None
    if x.ndim not in (1, 2) or x.size == 0:
        raise ValueError(f"x0 has shape {x.shape}: give (d,) for one system, or (lanes, d) for several")
    return finite(x)


def numbers(given: object) -> Array:
    """Numbers as an array of floats of its own: neither texts nor what stands for them."""
    array = np.asarray(given)
    kind = array.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(isinstance(one, str | bytes) for one in array.flat)):
        raise TypeError
    return array.astype(float)


def measured(given: object) -> Array:
    """Read numbers that were measured; NaN where one of an array is masked. Refuse True, False and a masked scalar."""
    if given is np.ma.masked or any(isinstance(one, bool | np.bool_) for one in _each(given)):
        raise TypeError
    return numbers(np.ma.filled(given.astype(float), math.nan) if isinstance(given, np.ma.MaskedArray) else given)


def _each(given: object) -> Iterator[object]:
    """What is in a list of lists, one by one; of an array of numbers, nothing."""
    if isinstance(given, list | tuple):
        for one in given:
            yield from _each(one)
    elif isinstance(given, np.ndarray):
        yield from given.ravel()[:1] if given.dtype.kind != "O" else given.flat
    else:
        yield given


def finite(x0: Array) -> Array:
    """Where to start, which is somewhere."""
    for place in np.argwhere(~np.isfinite(x0))[:1]:
        raise ValueError(f"x0{place.tolist()}={x0[tuple(place)]} is not a number: every coordinate must be finite")
    return x0


def pairs(bounds: ArrayLike, dim: int) -> Array:
    """One (low, high) for each coordinate, `(d, 2)`, with room in at least one of them."""
    wanted = f"give one (low, high) for each of {dim} coordinates"
    try:
        found = np.array(bounds, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"bounds={bounds!r} is not a list of pairs: {wanted}") from None
    if found.shape != (dim, 2):
        raise ValueError(f"bounds has shape {found.shape}: {wanted}")
    low, high = found.T
    for k in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low <= high)))[:1]:
        raise ValueError(
            f"bounds[{k}]=({low[k]}, {high[k]}): every low must be a finite number below its high"
            " (or equal, to hold it fixed); for a side without a limit use domain=Box(low, high) with inf"
        )
    size = np.maximum(np.abs(low), np.abs(high))
    for k in np.flatnonzero((size > 1e300) | ((low < high) & (high / 2 - low / 2 < 1e-12 * size)))[:1]:
        raise ValueError(
            f"bounds[{k}]=({low[k]}, {high[k]}) are too close, or too large, for floating point: shift or rescale"
        )
    if np.all(low == high):
        raise ValueError(f"bounds={shortly(found.tolist())} fix every coordinate: give at least one low < high")
    return locked(found)


def reader(
    lanes: int | None, queries: int, told: int, maximise: bool, largest: float
) -> Callable[[object], tuple[Value, ...] | None]:
    """What is told → the values of a round's queries, to be minimised; NaN in lanes that have none, None if none has.

    told: how many numbers a query brings. Where there are limits, each value is followed by theirs, on the last axis:
    `([lanes,] [queries,] 1 + m)`. Numbers beyond ±largest are taken as that.
    """
    in_lanes = () if lanes is None else (lanes,)
    several = tuple(n for n in (queries, told) if n > 1)
    shape = in_lanes + several
    limits = f", followed by those of {told - 1} limits, tell(..., limits=[...])" if told > 1 else ""

    def read(values: object) -> tuple[Value, ...] | None:
        if values is None:
            return None
        try:
            array = measured(values)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"value={values!r} is not a number: tell a real number, or skip the trial") from None
        if array.shape != shape:
            raise ValueError(
                f"value has shape {array.shape}, but {shape} is needed: one number per lane and query{limits}"
            )
        if np.isinf(array).any():
            raise ValueError(
                f"value={values!r} is infinite: skip the trial if the measurement failed, or tell a finite penalty"
            )
        if np.isnan(array).all() or (lanes is None and np.isnan(array).any()):
            return None
        array = np.clip(array, -largest, largest)
        parts = tuple(array.reshape(*in_lanes, -1).T) if several else (array,)
        if maximise:  # a limit stays a limit
            parts = tuple(part if k % told else -part for k, part in enumerate(parts))
        return tuple(float(p) for p in parts) if lanes is None else tuple(locked(p) for p in parts)

    return read


def beside(value: object, limits: ArrayLike, count: int) -> Array:
    """A value, followed by those of its limits, of which there are `count`."""
    try:
        parts = [measured(value), measured(limits)]
        return np.concatenate([parts[0][..., None], parts[1]], axis=-1)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"value={value!r} and limits={limits!r} do not match: tell one number, and a list of"
            f" {count} (in lanes, one of each for every lane)"
        ) from None


def shortly(value: object) -> str:
    """As text, cut where it gets long."""
    text = str(value)
    return text if len(text) <= 200 else text[:190] + " ..."


def locked(x: Numbers) -> Numbers:
    """The array, which nobody can change from now on."""
    x.setflags(write=False)
    return x
