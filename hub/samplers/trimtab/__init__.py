"""trimtab's sampler, as a package of OptunaHub."""

from trimtab.adapters.optuna import Sampler

__all__ = ["Sampler"]
