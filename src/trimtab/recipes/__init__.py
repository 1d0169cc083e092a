"""Ready-made methods by name: `methods["residual"]`, `methods["auto"]`, ….

To add one, write one file in this folder: a constructor with `@register("its-name")`, and its own parts with `@part`.
Files are imported automatically; the decorators take care of saving, exports and contract tests.
"""

import pkgutil
from importlib import import_module

from trimtab.recipes.auto import SHARE, auto, between_limits, informed, plane
from trimtab.recipes.base import BaseMethod
from trimtab.recipes.belief import Belief, belief
from trimtab.recipes.belief.listening import Explained
from trimtab.recipes.method import Method, exported, methods, register
from trimtab.recipes.paper import high_pass, modified_two_point, one_point, residual, still, two_point

for _module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")

__all__ = [
    "SHARE",
    "BaseMethod",
    "Belief",
    "Explained",
    "Method",
    "auto",
    "belief",
    "between_limits",
    "exported",
    "high_pass",
    "informed",
    "methods",
    "modified_two_point",
    "one_point",
    "plane",
    "register",
    "residual",
    "still",
    "two_point",
]
