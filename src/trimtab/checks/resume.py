"""Checks of saved state: complete, and bounded in size."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np

from trimtab.checks.objectives import alike, objectives
from trimtab.checks.tunable import Forgetful, Make, Tunable
from trimtab.problems.checking import CheckError
from trimtab.types import Array


def check_resume(make: Make, *, dim: int, queries: int) -> None:
    """Check that a tuner saved and loaded, pickled or copied continues on exactly the same path.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_resume(make, dim=3, queries=1)
    """
    ways: dict[str, Callable[[Tunable], Tunable]] = {
        "saving and loading": lambda t: type(t).from_json(t.to_json()),
        "pickling": lambda t: pickle.loads(pickle.dumps(t)),
        "copying": copy.deepcopy,
    }
    for stop in (0, 1, 7, 20):
        for way, twin_of in ways.items():
            tuner = make(np.zeros(dim), 7)
            drifting = objectives(dim)
            for _, objective in zip(range(stop), drifting, strict=False):
                trial = tuner.ask()
                tuner.tell(trial, objective(trial.x))
            twin = twin_of(tuner)
            for _, objective in zip(range(20), drifting, strict=False):
                trial, other = tuner.ask(), twin.ask()
                if trial.id != other.id or not np.array_equal(trial.x, other.x):
                    raise CheckError(f"after {way} at round {stop}, the queries differ: the random stream was lost")
                tuner.tell(trial, objective(trial.x))
                twin.tell(other, objective(other.x))
                if not np.array_equal(tuner.centre, twin.centre):
                    raise CheckError(f"after {way} at round {stop}, the path differs: part of the memory was lost")


def check_memory(make: Make, *, dim: int, queries: int) -> None:
    """Check that the size of the tuner does not grow with the number of rounds.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_memory(make, dim=3, queries=1)
    """
    tuner = make(np.zeros(dim), 8)
    sizes = []
    for rounds in (200, 2000):
        for _, objective in zip(range(rounds), objectives(dim), strict=False):
            trial = tuner.ask()
            tuner.tell(trial, objective(trial.x))
        sizes.append((len(pickle.dumps(tuner)), len(tuner.to_json())))
    for before, after in zip(*sizes, strict=True):
        if after > before * 1.2 + 64:
            raise CheckError(f"keeps growing: {before} bytes after 200 rounds, {after} after 2200; memory must be O(d)")


def check_forget(make: Callable[[Array, int], Forgetful], *, dim: int, queries: int, anchored: bool) -> None:
    """Check that the first value after `forget` only anchors, also after saving and loading.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_forget(make, dim=3, queries=1, anchored=True)
    """
    if not anchored:
        return
    for round in (1, 2, 12):
        tuner = make(np.zeros(dim), 13)
        for _, objective in zip(range(round), objectives(dim), strict=False):
            trial = tuner.ask()
            tuner.tell(trial, objective(trial.x))
        before = np.array(tuner.centre)
        tuner.forget()
        again = type(tuner).from_json(tuner.to_json())
        again.tell(again.ask(), alike(1e6, queries))
        if not np.array_equal(before, again.centre):
            raise CheckError(
                f"after forget in round {round}, the next value moved the centre: it was compared with an earlier one;"
                " the initial state of an estimator must be NaN where it depends on the first value"
            )
