"""Convert user input to arrays: the start, the bounds and the measured values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.types import Array, Value

LARGEST = 1e140  # larger values are clipped to this, so that their squares stay finite
STEEPEST = 1e145  # largest slope coordinate for values of the largest magnitude; its square is finite
SHORTEST = 1e-200  # smallest length of a vector; its square is positive

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
    """Copy numbers to an array of floats; reject strings and other objects."""
    array = np.asarray(given)
    kind = array.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(isinstance(one, str | bytes) for one in array.flat)):
        raise TypeError
    return array.astype(float)


def measured(given: object) -> Array:
    """Convert measured numbers; masked array entries become NaN. Reject True, False and a masked scalar."""
    if given is np.ma.masked or any(isinstance(one, bool | np.bool_) for one in _each(given)):
        raise TypeError
    return numbers(np.ma.filled(given.astype(float), math.nan) if isinstance(given, np.ma.MaskedArray) else given)


def _each(given: object) -> Iterator[object]:
    """Flatten nested lists; of a numeric array, the first element is enough to tell its type."""
    if isinstance(given, list | tuple):
        for one in given:
            yield from _each(one)
    elif isinstance(given, np.ndarray):
        yield from given.ravel()[:1] if given.dtype.kind != "O" else given.flat
    else:
        yield given


def finite(x0: Array) -> Array:
    """Check that x0 is finite."""
    for index in np.argwhere(~np.isfinite(x0))[:1]:
        raise ValueError(f"x0{index.tolist()}={x0[tuple(index)]} is not a number: every coordinate must be finite")
    return x0


def pairs(bounds: ArrayLike, dim: int) -> Array:
    """Convert bounds to one (low, high) per coordinate, `(d, 2)`, with low < high in at least one."""
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
            " (or equal, to fix the coordinate); for a side without a limit use domain=Box(low, high) with inf"
        )
    size = np.maximum(np.abs(low), np.abs(high))
    for k in np.flatnonzero((size > 1e300) | ((low < high) & (high / 2 - low / 2 < 1e-12 * size)))[:1]:
        raise ValueError(
            f"bounds[{k}]=({low[k]}, {high[k]}) are too close or too large for floating point: shift or rescale"
        )
    if np.all(low == high):
        raise ValueError(f"bounds={shortly(found.tolist())} fix every coordinate: give at least one low < high")
    return locked(found)


def reader(
    lanes: int | None, queries: int, told: int, maximise: bool, largest: float, partial: bool = False
) -> Callable[[object], tuple[Value, ...] | None]:
    """Build the function that converts told values to the values of a round's queries, to be minimised.

    It returns NaN in lanes without a value, and None if no lane has one. told: numbers per query; with limits, each
    value is followed by those of its limits on the last axis, `([lanes,] [queries,] 1 + m)`. Numbers are clipped to
    ±largest. partial: a single system may lack some of its numbers.
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
        if np.isnan(array).all() or (lanes is None and not partial and np.isnan(array).any()):
            return None
        array = np.clip(array, -largest, largest)
        parts = tuple(array.reshape(*in_lanes, -1).T) if several else (array,)
        if maximise:  # limits keep their sign
            parts = tuple(part if k % told else -part for k, part in enumerate(parts))
        return tuple(float(p) for p in parts) if lanes is None else tuple(locked(p) for p in parts)

    return read


def beside(value: object, limits: ArrayLike, count: int) -> Array:
    """Append the values of the limits, `count` of them, to a value."""
    try:
        parts = [measured(value), measured(limits)]
        return np.concatenate([parts[0][..., None], parts[1]], axis=-1)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"value={value!r} and limits={limits!r} do not match: tell one number, and a list of"
            f" {count} (with lanes, one of each per lane)"
        ) from None


def by_name(kind: str, names: Sequence[str], given: Mapping[str, ArrayLike | None], lanes: int | None) -> Array:
    """Convert numbers by name to an array in the order of `names`, on the last axis; NaN where one is missing.

    kind: of the names, for messages.

    >>> by_name("context", ["load", "hour"], {"load": 0.7}, None)
    array([0.7, nan])
    """
    row = np.full((len(names),) if lanes is None else (lanes, len(names)), math.nan)
    for name, value in given.items():
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"declared are {', '.join(names)}"
            raise ValueError(f"{kind} {name!r} was not declared: {hint}")
        row[..., names.index(name)] = _number(kind, name, value, lanes)
    return row


def _number(kind: str, name: str, value: ArrayLike | None, lanes: int | None) -> Array | float:
    if value is None:
        return math.nan
    found = np.asarray(value)
    if found.dtype.kind not in "iuf" or found.shape not in ((), () if lanes is None else (lanes,)):
        want = "a number" if lanes is None else f"a number, or one for each of the {lanes} lanes"
        raise ValueError(f"{kind} {name!r} is {value!r}: give {want}, or None where it is not known")
    if np.isinf(found).any():
        raise ValueError(f"{kind} {name!r} is infinite: give a finite number, or None where it is not known")
    return found.astype(float)


def shortly(value: object) -> str:
    """Convert to text, truncated to 200 characters."""
    text = str(value)
    return text if len(text) <= 200 else text[:190] + " ..."


def locked(x: Numbers) -> Numbers:
    """Make the array read-only."""
    x.setflags(write=False)
    return x
