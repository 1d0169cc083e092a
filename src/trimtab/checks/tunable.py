"""What the checks need of a tuner, so that they can judge one that shares no code with this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from trimtab.recipes import Method
from trimtab.state import Trial
from trimtab.tuner import Tuner
from trimtab.types import Array


class Tunable(Protocol):
    """What `check_tuner` can judge."""

    @property
    def centre(self) -> Array:
        """The operating point now."""
        ...

    def ask(self) -> Any:
        """A trial of its own kind, with `id` and `x`."""
        ...

    def tell(self, trial: Any, value: object) -> None:
        """The value of a trial, or of its id."""
        ...

    def skip(self, trial: Any) -> None:
        """The measurement of a trial failed."""
        ...

    def to_json(self) -> str:
        """All of it, as text."""
        ...

    @classmethod
    def from_json(cls, text: str) -> Tunable:
        """What `to_json` wrote."""
        ...


class Forgetful(Tunable, Protocol):
    """One that can be told that the next values do not compare with those before."""

    def forget(self) -> None:
        """The next value only anchors."""
        ...


Make = Callable[[Array, int], Tunable]
"""(x0, seed) → a tuner."""


class Limited(Tuner):
    """A tuner that is told limits beside every value, made of it, so that the checks need not know of them."""

    def tell(self, trial: Trial | int, value: object, limits: ArrayLike | None = None) -> None:
        """With limits that are as wrong as the value is."""
        try:
            limits = np.multiply.outer(np.asarray(value, dtype=float), np.linspace(-0.5, 0.5, self.setup.told - 1))
        except (TypeError, ValueError):
            limits = np.zeros(self.setup.told - 1)
        super().tell(trial, value, limits)


def kind_of(method: Method) -> type[Tuner]:
    """The tuner whose values need no limits beside them."""
    return Tuner if method.estimator.told == 1 else Limited
