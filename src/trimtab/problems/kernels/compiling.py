"""Compilation of the kernels, and the number of threads they run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import TypeVar, cast

import numpy as np

from trimtab.types import Array
from trimtab.util.extras import pip_install

try:
    from numba import get_num_threads, njit, prange, set_num_threads
except ImportError as error:
    raise ImportError(f"the simulated problems need Numba: {pip_install('lab')}", name="numba") from error

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile a function, parallel over lanes, with IEEE arithmetic.

    The variants for one thread (`alone`) and for several (`shared`) are compiled on first use, so that single-core
    processes never wait for the second, which takes twice as long. Both give the same numbers.
    """
    assert isinstance(function, FunctionType)
    twin = FunctionType(function.__code__, function.__globals__, function.__name__)
    twin.__qualname__ = f"{function.__qualname__}_shared"  # Numba's cache distinguishes functions by this name
    alone = njit(cache=True, fastmath=False, error_model="numpy")(function)
    shared = njit(parallel=True, cache=True, fastmath=False, error_model="numpy")(twin)

    @wraps(function)
    def call(*arguments: object) -> object:
        return (shared if get_num_threads() > 1 else alone)(*arguments)

    call.alone, call.shared = alone, shared  # type: ignore[attr-defined]
    return cast(Kernel, call)


def inner(function: Kernel) -> Kernel:
    """Compile a function for use inside kernels only: omitting the Python and C wrappers saves a third of the time."""
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = njit(cache=True, fastmath=False, error_model="numpy", **bare)  # type: ignore[call-overload]
    return cast(Kernel, compiled(function))


def part(function: Kernel) -> Kernel:
    """Inline a function into the one kernel that calls it, instead of compiling it twice."""
    return cast(Kernel, njit(inline="always", fastmath=False, error_model="numpy")(function))


def writable(x: Array) -> Array:
    """x in the layout of the kernels, copied if necessary: Numba recompiles for other layouts and read-only arrays."""
    return np.require(x, dtype=np.float64, requirements=["C", "W"])


@contextmanager
def threads(wanted: int) -> Iterator[None]:
    """Run kernels on `wanted` threads, at least one and at most the number that Numba may use.

    Ask for about one per millisecond of work: synchronising threads takes microseconds on an idle machine, but many
    milliseconds on a busy one.
    """
    allowed = get_num_threads()
    if (count := max(1, min(allowed, wanted))) == allowed:
        yield
        return
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(allowed)


__all__ = ["inner", "kernel", "part", "prange", "threads", "writable"]
