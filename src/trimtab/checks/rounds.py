"""Checks of a round: its queries, its values, failed measurements and errors."""

from __future__ import annotations

import math
import pickle
import random

import numpy as np

from trimtab.checks.objectives import alike, objectives
from trimtab.checks.tunable import Make
from trimtab.problems.checking import CheckError
from trimtab.types import Array


def check_queries(make: Make, *, dim: int, queries: int, probes: bool = True) -> None:
    """Check that queries have the declared shape, repeat when asked again, and use no global randomness.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_queries(make, dim=3, queries=1)
    """
    shape = (dim,) if queries == 1 else (queries, dim)
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    tuner = make(np.zeros(dim), 1)
    for round, objective in zip(range(20), objectives(dim), strict=False):
        first, again = tuner.ask(), tuner.ask()
        if np.shape(first.x) != shape:
            raise CheckError(
                f"measures {np.size(first.x) // dim} points of shape {np.shape(first.x)} in one round,"
                f" but {queries} of shape {shape} was promised"
            )
        if first.id != again.id or not np.array_equal(first.x, again.x):
            raise CheckError("asking twice gives different queries: the direction must be a function of (seed, round)")
        if first.id != round:
            raise CheckError(f"round {round} has the trial id {first.id}: every tell must end exactly one round")
        tuner.tell(first, objective(first.x))

    def second(seed: int) -> Array:
        tuner = make(np.zeros(dim), seed)
        tuner.tell(tuner.ask(), alike(1.0, queries))
        x: Array = tuner.ask().x
        return x

    if not np.array_equal(second(1), second(1)):
        raise CheckError("the same seed gives different queries: all randomness must come from the seed")
    if probes and all(np.array_equal(second(1), second(seed)) for seed in range(2, 42)):
        raise CheckError("different seeds give the same query: the seed is not used")
    if before != (random.getstate(), pickle.dumps(np.random.get_state())):  # noqa: NPY002
        raise CheckError("uses the global random state: two tuners in one process would disturb each other")


def check_still(make: Make, *, dim: int, queries: int, anchored: bool = True) -> None:
    """Check that a constant value does not move the centre and that the first value only anchors.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_still(make, dim=3, queries=1)
    """
    start = np.linspace(-0.2, 0.2, dim)
    for value in (0.0, 5.0) if anchored or queries > 1 else (0.0,):
        tuner = make(start, 3)
        before = np.array(tuner.centre)
        for _ in range(10):
            trial = tuner.ask()
            tuner.tell(trial, alike(value, queries))
            if not np.allclose(tuner.centre, before, rtol=0, atol=1e-12):
                raise CheckError(
                    f"the centre moved from {before} to {tuner.centre} on a constant value of {value}:"
                    " a step must start from the centre, not from the query, and a constant value must not cause one"
                )
    if anchored:
        tuner = make(start, 4)
        tuner.tell(tuner.ask(), 1e6)
        if not np.array_equal(tuner.centre, make(start, 4).centre):
            raise CheckError("the first measurement moved the centre: without an earlier value it must only anchor")


def check_skips(make: Make, *, dim: int, queries: int) -> None:
    """Check that a skipped round (skip, None, NaN) changes nothing except the round number.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_skips(make, dim=3, queries=1)
    """
    for way in ("skip", "None", "NaN"):
        tuner, twin = make(np.zeros(dim), 5), make(np.zeros(dim), 5)
        objective = next(objectives(dim))
        for t in range(12):
            trial, other = tuner.ask(), twin.ask()
            if t in (3, 4, 8):
                centre = np.array(tuner.centre)
                if way == "skip":
                    tuner.skip(trial)
                else:
                    tuner.tell(trial, None if way == "None" else alike(math.nan, queries))
                twin.skip(other)
                if not np.array_equal(centre, tuner.centre):
                    raise CheckError(f"a failed measurement ({way}) moved the centre: it must not count as a bad value")
                if tuner.ask().id != trial.id + 1:
                    raise CheckError(f"a failed measurement ({way}) did not end the round")
            else:
                tuner.tell(trial, objective(trial.x))
                twin.tell(other, objective(other.x))
        if not np.array_equal(tuner.centre, twin.centre):
            raise CheckError(f"{way} and skip lead to different centres")


def check_errors(make: Make, *, dim: int, queries: int) -> None:
    """Check that infinite values, non-numbers and invalid ids raise errors and leave the state unchanged.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_errors(make, dim=3, queries=1)
    """
    tuner = make(np.zeros(dim), 6)
    objective = next(objectives(dim))
    for _ in range(4):
        trial = tuner.ask()
        tuner.tell(trial, objective(trial.x))
    good = alike(1.0, queries)
    bad: list[tuple[str, object, object]] = [
        ("an infinite value", tuner.ask(), alike(math.inf, queries)),
        ("minus infinity", tuner.ask(), alike(-math.inf, queries)),
        ("a word", tuner.ask(), "seven"),
        ("a value of the wrong shape", tuner.ask(), [1.0, 2.0, 3.0]),
        ("an id that was told before", 1, good),
        ("an id that was never asked", 99, good),
        ("a negative id", -1, good),
    ]
    before = tuner.to_json()
    for name, trial, value in bad:
        try:
            tuner.tell(trial, value)
        except (ValueError, TypeError, KeyError) as error:
            if not str(error):
                raise CheckError(f"{name} is refused without a message: say what is wrong and what to do") from None
        else:
            raise CheckError(f"{name} was accepted: it must be an error")
        if tuner.to_json() != before:
            raise CheckError(f"{name} was refused, but changed the state")
