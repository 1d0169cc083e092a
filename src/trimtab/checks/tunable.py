"""The interface that the checks require of a tuner, which need not share code with this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from trimtab.recipes import BaseMethod
from trimtab.state import Trial
from trimtab.tuner import Told, Tuner
from trimtab.types import Array


class Tunable(Protocol):
    """The interface of a tuner for `check_tuner`."""

    @property
    def centre(self) -> Array:
        """The current operating point."""
        ...

    def ask(self) -> Any:
        """A trial with `id` and `x`; any type."""
        ...

    def tell(self, trial: Any, value: object) -> None:
        """Report the value of a trial, or of its id."""
        ...

    def skip(self, trial: Any) -> None:
        """Report that the measurement of a trial failed."""
        ...

    def to_json(self) -> str:
        """The complete state as text."""
        ...

    @classmethod
    def from_json(cls, text: str) -> Tunable:
        """Restore from the text of `to_json`."""
        ...


class Forgetful(Tunable, Protocol):
    """A tuner that can forget earlier values when they are not comparable with the next."""

    def forget(self) -> None:
        """Make the next value only anchor."""
        ...


Make = Callable[[Array, int], Tunable]
"""(x0, seed) → a tuner."""


class Limited(Tuner):
    """A tuner that derives limits from every value, so that the checks need not supply them."""

    def tell(self, trial: Trial | int, value: object, limits: Told = None) -> None:
        """Tell the value with limits derived from it, invalid if the value is."""
        try:
            limits = np.multiply.outer(np.asarray(value, dtype=float), np.linspace(-0.5, 0.5, self.setup.told - 1))
        except (TypeError, ValueError):
            limits = np.zeros(self.setup.told - 1)
        super().tell(trial, value, limits)


def kind_of(method: BaseMethod) -> type[Tuner]:
    """The tuner class to check a method with: one that supplies limits if the method needs them."""
    return Tuner if method.told == 1 else Limited
