"""trimtab where its users are: one short module for each host, imported when it is asked for, an extra each.

`trimtab.adapters.bluesky`, `.gest` (Xopt, Badger, blop, libEnsemble), `.gymnasium`, `.optax`, `.optuna`, `.scipy` and
`.torch`. docs/adapters has a page on each, with what it keeps of the promises: one query per round, every query
feasible, resumed bit by bit.
"""

from importlib import import_module
from importlib.util import find_spec


def __getattr__(name: str) -> object:
    """`trimtab.adapters.scipy`, without a line that imports it."""
    module = f"{__name__}.{name}"
    if name.startswith("_") or find_spec(module) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(module)
