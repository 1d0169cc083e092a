"""trimtab keeps a live, drifting system at its best operating point, from one measurement per time step.

>>> import trimtab as tt
>>> tuner = tt.Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], seed=0)
>>> trial = tuner.ask()
>>> tuner.tell(trial, 3.4)
"""

import importlib
from typing import Any

from trimtab import checks, lab, problems, theory
from trimtab.core import Setup, State, ask, init, tell
from trimtab.directions import Echoed, Gaussian, Orthogonal, Paired, Rademacher, Sphere
from trimtab.domains import Ball, Box, Domain, Everywhere, Halfspace, Intersection, Polytope, Product, Simplex
from trimtab.estimators import Covariance, HighPass, ModifiedTwoPoint, OnePoint, Plane, Residual, TwoPoint
from trimtab.methods import Method, auto, high_pass, methods, modified_two_point, one_point, residual, two_point
from trimtab.steps import Adaptive, Constant, Normalised, Power, Schedule
from trimtab.tuner import Trial, Tuner

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`tt.live` needs an extra, so it is imported when it is first used."""
    if name == "live":
        return importlib.import_module("trimtab.live")
    raise AttributeError(f"module 'trimtab' has no attribute {name!r}")


__all__ = [
    "Adaptive",
    "Ball",
    "Box",
    "Constant",
    "Covariance",
    "Domain",
    "Echoed",
    "Everywhere",
    "Gaussian",
    "Halfspace",
    "HighPass",
    "Intersection",
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
    "Trial",
    "Tuner",
    "TwoPoint",
    "ask",
    "auto",
    "checks",
    "high_pass",
    "init",
    "lab",
    "methods",
    "modified_two_point",
    "one_point",
    "problems",
    "residual",
    "tell",
    "theory",
    "two_point",
]
