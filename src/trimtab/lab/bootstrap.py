"""Percentile bootstrap over trials; the resamples only depend on a seed and on the number of trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trimtab.lab.sim.record import quantiles
from trimtab.types import Array

LEVEL = 0.95
MEDIANS: Callable[[Array], Array] = lambda drawn: quantiles(drawn, (0.5,), axis=1)[0]  # noqa: E731  infinities rank last


def bootstrap(
    values: Array, statistic: Callable[[Array], Array] = MEDIANS, *, seed: int | Sequence[int], resamples: int = 2000
) -> Array:
    """The statistic, which reduces axis 1, of the values `(trials, …)`, then of each resample: `(1 + resamples, …)`.

    >>> found = bootstrap(np.arange(41.0), seed=0)
    >>> found.shape, float(found[0])
    ((2001,), 20.0)
    """
    drawn = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    return statistic(values[np.concatenate([np.arange(len(values))[None], drawn])])


def interval(resampled: Array) -> tuple[float, float]:
    """The middle 95 % of the statistic of the resamples alone."""
    low, high = quantiles(resampled, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)
