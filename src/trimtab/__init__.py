"""trimtab keeps a live, drifting system at its best operating point, from one measurement per time step.

>>> import trimtab as tt
>>> tuner = tt.Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], seed=0)
>>> trial = tuner.ask()
>>> tuner.tell(trial, 3.4)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab import adapters as adapters
    from trimtab import checks as checks
    from trimtab import lab as lab
    from trimtab import live as live
    from trimtab import plotting as plotting
    from trimtab import problems as problems
    from trimtab import theory as theory
    from trimtab.client import Client as Client
    from trimtab.context import Context as Context
    from trimtab.core import ask as ask
    from trimtab.core import init as init
    from trimtab.core import tell as tell
    from trimtab.directions import *  # noqa: F403
    from trimtab.domains import *  # noqa: F403
    from trimtab.estimators import *  # noqa: F403
    from trimtab.explanation import Explanation as Explanation
    from trimtab.knobs import Knob as Knob
    from trimtab.knobs import Knobs as Knobs
    from trimtab.limit import Limit as Limit
    from trimtab.recipes import *  # noqa: F403
    from trimtab.registry import part as part
    from trimtab.setup import Setup as Setup
    from trimtab.state import Look as Look
    from trimtab.state import State as State
    from trimtab.state import Trial as Trial
    from trimtab.steps import *  # noqa: F403
    from trimtab.tuner import Tuner as Tuner
    from trimtab.util.advice_warning import AdviceWarning as AdviceWarning

__version__ = "0.1.0"

MODULES = ("adapters", "checks", "lab", "live", "plotting", "problems", "theory")
EXPORTS = {
    "trimtab.util.advice_warning": ("AdviceWarning",),
    "trimtab.client": ("Client",),
    "trimtab.context": ("Context",),
    "trimtab.core": ("ask", "init", "tell"),
    "trimtab.directions": ("Gaussian", "Orthogonal", "Paired", "Rademacher", "Sphere"),
    "trimtab.domains": (
        *("Ball", "Box", "Domain", "Everywhere", "Halfspace", "Intersection", "Polytope", "Product", "Simplex"),
    ),
    "trimtab.estimators": (
        *("Covariance", "HighPass", "ModifiedTwoPoint", "OnePoint", "Plane", "Residual", "Still", "TwoPoint"),
    ),
    "trimtab.explanation": ("Explanation",),
    "trimtab.knobs": ("Knob", "Knobs"),
    "trimtab.limit": ("Limit",),
    "trimtab.recipes": (
        *("BaseMethod", "Method", "auto", "high_pass", "methods", "modified_two_point", "one_point", "plane"),
        *("register", "residual", "still", "two_point"),
    ),
    "trimtab.registry": ("part",),
    "trimtab.setup": ("Setup",),
    "trimtab.state": ("Look", "State", "Trial"),
    "trimtab.steps": ("Adaptive", "Constant", "Normalised", "Power", "Schedule"),
    "trimtab.tuner": ("Tuner",),
}
"""Imported when they are first used, so that the program can answer before NumPy is there."""
_homes = {name: module for module, names in EXPORTS.items() for name in names}

__all__ = [*MODULES, *_homes]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"trimtab.{name}")
    if name in _homes:
        found = getattr(import_module(_homes[name]), name)
    elif name.startswith("_") or not (found := _registered(name)):
        raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
    globals()[name] = found
    return found


def _registered(name: str) -> object:
    """A part or a method that made itself known, in a file of its own."""
    methods = import_module("trimtab.recipes")
    return import_module("trimtab.registry").parts.get(name) or methods.exported(name)


def __dir__() -> list[str]:
    methods = import_module("trimtab.recipes").methods
    parts = import_module("trimtab.registry").parts
    return sorted({*__all__, *parts, *(name.replace("-", "_") for name in methods)})
