"""Adapters to other libraries, one module each, imported on first use; each has an extra of its own.

`trimtab.adapters.bluesky`, `.gest` (Xopt, Badger, blop, libEnsemble), `.gymnasium`, `.optax`, `.optuna`, `.scipy` and
`.torch`. docs/adapters describes each, and which guarantees hold there: one query per round, feasible queries, exact
resumption.
"""

from importlib import import_module
from importlib.util import find_spec


def __getattr__(name: str) -> object:
    """Import an adapter on attribute access."""
    module = f"{__name__}.{name}"
    if name.startswith("_") or find_spec(module) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(module)
