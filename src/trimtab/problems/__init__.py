"""Drifting systems with known optima: `make("quadratic-v1")`, or your own by `from_function`; see `problems.base`."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from trimtab.problems.adversary import Adversary
from trimtab.problems.base import Path, Problem, World, make, register, registry
from trimtab.problems.checking import CheckError, check_problem
from trimtab.problems.constrained import Constrained
from trimtab.problems.convex import Absolute, Corner, LogCosh, Maximum, Quadratic, Walk
from trimtab.problems.function import from_function
from trimtab.problems.landscapes import Peaks, Rosenbrock, Sines
from trimtab.problems.moving import Moving
from trimtab.problems.pricing import Pricing
from trimtab.util.extras import pip_install

if TYPE_CHECKING:
    from trimtab.problems.allocation import Allocation as Allocation
    from trimtab.problems.allocation import PerAgentAllocation as PerAgentAllocation
    from trimtab.problems.lqr import LQR as LQR
    from trimtab.problems.lqr import NoisyLQR as NoisyLQR
    from trimtab.problems.lqr import ZeroMeanLQR as ZeroMeanLQR

# Numba and SciPy are optional and slow to import, so these modules are imported on first use.
_LAZY = {
    "lqr-v1": ("lqr", "LQR"),
    "lqr-zero-mean-v1": ("lqr", "ZeroMeanLQR"),
    "lqr-noisy-v1": ("lqr", "NoisyLQR"),
    "allocation-v1": ("allocation", "Allocation"),
    "allocation-per-agent-v1": ("allocation", "PerAgentAllocation"),
}


def _load(module: str, name: str) -> ModuleType:
    try:
        return import_module(f"trimtab.problems.{module}")
    except ImportError as error:
        raise ImportError(f"{name} needs {error.name or 'more packages'}: {pip_install('lab')}") from error


def _lazy(id: str, module: str) -> Callable[..., Problem]:
    def load_and_make(**parameters: object) -> Problem:
        _load(module, id)  # registers the class in place of this function
        return make(id, **parameters)

    return load_and_make


def __getattr__(name: str) -> object:
    for id, (module, cls) in _LAZY.items():
        if cls == name:
            return getattr(_load(module, id), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _id, (_module, _) in _LAZY.items():
    registry.setdefault(_id, _lazy(_id, _module))

__all__ = [
    "Absolute",
    "Adversary",
    "CheckError",
    "Constrained",
    "Corner",
    "LogCosh",
    "Maximum",
    "Moving",
    "Path",
    "Peaks",
    "Pricing",
    "Problem",
    "Quadratic",
    "Rosenbrock",
    "Sines",
    "Walk",
    "World",
    "check_problem",
    "from_function",
    "make",
    "register",
    "registry",
]
