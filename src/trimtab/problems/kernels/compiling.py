"""How the kernels are compiled, and on how many threads they run."""

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
    """Compiled, parallel over lanes, with IEEE arithmetic.

    It is compiled for one thread (`alone`) and for several (`shared`), either when it is first needed: processes that
    have one core each never wait for the second, which takes twice as long to compile. The numbers are the same.
    """
    assert isinstance(function, FunctionType)
    twin = FunctionType(function.__code__, function.__globals__, function.__name__)
    twin.__qualname__ = f"{function.__qualname__}_shared"  # Numba's cache tells functions apart by this name
    alone = njit(cache=True, fastmath=False, error_model="numpy")(function)
    shared = njit(parallel=True, cache=True, fastmath=False, error_model="numpy")(twin)

    @wraps(function)
    def call(*arguments: object) -> object:
        return (shared if get_num_threads() > 1 else alone)(*arguments)

    call.alone, call.shared = alone, shared  # type: ignore[attr-defined]
    return cast(Kernel, call)


def inner(function: Kernel) -> Kernel:
    """Compiled for use inside kernels alone: what Python and C need to call it takes a third of the time to compile."""
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = njit(cache=True, fastmath=False, error_model="numpy", **bare)  # type: ignore[call-overload]
    return cast(Kernel, compiled(function))


def part(function: Kernel) -> Kernel:
    """Written into the one kernel that calls it before anything is compiled, instead of compiled twice."""
    return cast(Kernel, njit(inline="always", fastmath=False, error_model="numpy")(function))


def writable(x: Array) -> Array:
    """x as the kernels want it, copied if need be: Numba compiles anew for another layout, or for a read-only array."""
    return np.require(x, dtype=np.float64, requirements=["C", "W"])


@contextmanager
def threads(wanted: int) -> Iterator[None]:
    """Run kernels on so many threads, at least one and at most those that Numba may use.

    Ask for one per millisecond of work or so: to wait for another thread takes microseconds on an idle machine, but
    many milliseconds on a busy one.
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
