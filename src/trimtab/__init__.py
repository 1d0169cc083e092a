"""trimtab keeps a live, drifting system at its best operating point, from one measurement per time step.

>>> import trimtab as tt
>>> tuner = tt.Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], seed=0)
>>> trial = tuner.ask()
>>> tuner.tell(trial, 3.4)
"""

import importlib
from typing import TYPE_CHECKING, Any

from trimtab.core import ask, init, tell
from trimtab.directions import Gaussian, Orthogonal, Paired, Rademacher, Sphere
from trimtab.domains import Ball, Box, Domain, Everywhere, Halfspace, Intersection, Polytope, Product, Simplex
from trimtab.estimators import Covariance, HighPass, ModifiedTwoPoint, OnePoint, Plane, Residual, Still, TwoPoint
from trimtab.knobs import Knob, Knobs
from trimtab.methods import (
    Method,
    auto,
    exported,
    high_pass,
    methods,
    modified_two_point,
    one_point,
    residual,
    still,
    two_point,
)
from trimtab.registry import parts
from trimtab.setup import Setup
from trimtab.state import Look, State, Trial
from trimtab.steps import Adaptive, Constant, Normalised, Power, Schedule
from trimtab.tuner import Tuner

if TYPE_CHECKING:
    from trimtab import checks, lab, live, problems, theory

__version__ = "0.1.0"

LATER = ("checks", "lab", "live", "problems", "theory")  # imported when they are first used


def __getattr__(name: str) -> Any:
    if name in LATER:
        return importlib.import_module(f"trimtab.{name}")
    if found := parts.get(name) or exported(name):
        return found
    raise AttributeError(f"module 'trimtab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *parts, *(name.replace("-", "_") for name in methods)})


__all__ = [
    "Adaptive",
    "Ball",
    "Box",
    "Constant",
    "Covariance",
    "Domain",
    "Everywhere",
    "Gaussian",
    "Halfspace",
    "HighPass",
    "Intersection",
    "Knob",
    "Knobs",
    "Look",
    "Method",
    "ModifiedTwoPoint",
    "Normalised",
    "OnePoint",
    "Orthogonal",
    "Paired",
    "Plane",
    "Polytope",
    "Power",
    "Product",
    "Rademacher",
    "Residual",
    "Schedule",
    "Setup",
    "Simplex",
    "Sphere",
    "State",
    "Still",
    "Trial",
    "Tuner",
    "TwoPoint",
    "ask",
    "auto",
    "checks",
    "high_pass",
    "init",
    "lab",
    "live",
    "methods",
    "modified_two_point",
    "one_point",
    "problems",
    "residual",
    "still",
    "tell",
    "theory",
    "two_point",
]
