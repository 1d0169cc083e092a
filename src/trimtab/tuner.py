"""The stateful face of the core: `Tuner` holds one setup and one state, and delegates."""

from __future__ import annotations

import operator
import os
import threading
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimtab import core
from trimtab.domains import Domain, Everywhere
from trimtab.methods import Method, auto
from trimtab.setup import Setup
from trimtab.state import State, Trial, frozen
from trimtab.types import Array, Integers

SHARE = 0.05  # the default radius, as a share of the range (or of the size of x0)


class Tuner:
    """Keeps a drifting system at its best operating point, from one measurement per round.

    x0: where the system is now; `(d,)`, or `(lanes, d)` for many systems at once.
    method: one of `trimtab.methods`; by default `auto`, which needs no step size.
    bounds: (low, high) per coordinate; coordinates are scaled to the range, so the method's radius is a share of it.
    domain: any other set that queries have to stay in (its coordinates are not scaled).
    seed: of the probing directions; by default a fresh one, kept in the saved state. `lane` numbers the first lane.
    max_pending: how many trials may be open at once, for values that come late or out of order.
    `ask` and `tell` may be called from several threads.

    >>> tuner = Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], seed=0)
    >>> for _ in range(500):
    ...     trial = tuner.ask()
    ...     tuner.tell(trial, (trial.x[0] - 0.6) ** 2 + (trial.x[1] / 100 - 0.7) ** 2)
    >>> bool(abs(tuner.centre[0] - 0.6) < 0.1), bool(abs(tuner.centre[1] - 70) < 10)
    (True, True)
    """

    setup: Setup
    state: State

    def __init__(
        self,
        x0: ArrayLike,
        method: Method | None = None,
        *,
        bounds: ArrayLike | None = None,
        domain: Domain | None = None,
        seed: int | None = None,
        maximise: bool = False,
        max_pending: int = 1,
        lane: int = 0,
    ) -> None:
        try:
            x = np.array(x0)
            x = np.array(x0 if x.dtype.kind in "biufO" else "no numbers", dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"x0={x0!r} is not a list of real numbers") from None
        if x.ndim not in (1, 2) or x.size == 0:
            raise ValueError(f"x0 has shape {x.shape}: give (d,) for one system, or (lanes, d) for several")
        if bounds is not None and domain is not None:
            raise ValueError("give either bounds or a domain; for both, use Intersection(Box(low, high), domain)")
        if method is None:
            method = auto(radius=_default_radius(x, bounds, domain))
        setup = Setup(
            method,
            x.shape,
            domain=Everywhere() if domain is None else domain,
            bounds=bounds,
            seed=int.from_bytes(os.urandom(8)) >> 1 if seed is None else seed,
            lane=lane,
            maximise=maximise,
            max_pending=max_pending,
        )
        self.__setstate__((setup, core.init(setup, x)))

    @property
    def centre(self) -> Array:
        """The operating point now (not "the best so far", which means nothing under drift)."""
        return self.setup.outward(self.state.centre)

    @property
    def round(self) -> int:
        """The number of the next new trial."""
        return self.state.round

    @property
    def skipped(self) -> int | Integers:
        """How many rounds brought no value (one number per lane)."""
        return self.state.skipped

    @property
    def pending(self) -> tuple[Trial, ...]:
        """The trials handed out and not yet told (with max_pending > 1), as they were handed out."""
        return tuple(self._kernel.ask(self.state, id) for id, _ in self.state.open)

    def ask(self) -> Trial:
        """The next query. Asking again before telling gives the same one, unless several may be pending."""
        if self._alone:
            state = self.state
            return self._kernel.ask(state, state.round)
        with self._lock:
            trial, self.state = core.hand_out(self.setup, self.state)
        return trial

    def tell(self, trial: Trial | int, value: Any) -> None:
        """The measured value(s) of a trial; None or NaN if the measurement failed."""
        id = trial.id if isinstance(trial, Trial) else _id(trial)
        with self._lock:
            self.state = self._kernel.tell(self.state, id, value)

    def skip(self, trial: Trial | int) -> None:
        """The measurement failed: the round passes, the centre and the anchor stay."""
        self.tell(trial, None)

    def to_json(self) -> str:
        """Setup and state, exact, for humans."""
        text: str = _storage().to_json(self.setup, self.state)
        return text

    @classmethod
    def from_json(cls, text: str, *, method: Method | None = None) -> Tuner:
        """The tuner that `to_json` wrote; `method` replaces one that could not be written (a schedule)."""
        return cls._of(*_storage().from_json(text, method=method))

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file, written atomically: JSON if its name ends with .json, else compact binary (for large d)."""
        _storage().save(path, self.setup, self.state)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, method: Method | None = None) -> Tuner:
        """The tuner that `save` wrote."""
        return cls._of(*_storage().load(path, method=method))

    @classmethod
    def _of(cls, setup: Setup, state: State) -> Tuner:
        tuner = cls.__new__(cls)
        tuner.__setstate__((setup, state))
        return tuner

    def __getstate__(self) -> tuple[Setup, State]:
        return self.setup, self.state

    def __setstate__(self, saved: tuple[Setup, State]) -> None:
        self.setup, state = saved
        self.state = frozen(state)
        self._kernel = core.build(self.setup)
        self._alone = self.setup.max_pending == 1
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return (
            f"<Tuner round={self.round} centre={np.array2string(self.centre, threshold=6)} method={self.setup.method}>"
        )


def _storage() -> ModuleType:
    """Imported when something is saved or loaded: files and JSON are not what a tuner starts with."""
    return import_module("trimtab.storage")


def _id(trial: Any) -> int:
    if isinstance(trial, bool) or not hasattr(trial, "__index__"):
        raise TypeError(f"trial={trial!r} is neither a Trial nor its id: tell(trial, value)")
    return operator.index(trial)


def _default_radius(x: Array, bounds: ArrayLike | None, domain: Domain | None) -> float:
    if bounds is not None:
        return SHARE
    if domain is not None and np.isfinite(inner := domain.inner_radius(x.shape[-1])):
        return SHARE * inner
    radius = SHARE * (float(np.abs(x).max()) or 1.0)
    warnings.warn(
        f"no method and no bounds given: probing with radius={radius:.3g}, {SHARE:.0%} of the largest coordinate of x0;"
        " give bounds=, or method=tt.auto(radius=...), to choose it",
        stacklevel=3,
    )
    return radius
