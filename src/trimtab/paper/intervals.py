"""Intervals of medians and ratios over trials, paired if two methods ran the same; numbers of the document as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypedDict

import numpy as np

from trimtab.lab.bootstrap import bootstrap, interval
from trimtab.lab.sim.provenance import plain
from trimtab.lab.sim.record import divided, quantiles
from trimtab.paper.result_types import Number, Spread
from trimtab.types import Array


class Ratio(TypedDict):
    """The ratio of two medians with an interval of about 95 % coverage; less for few trials, see `covered`."""

    ratio: Number
    low: Number
    high: Number


def spread(values: Array) -> Spread:
    """Median and quartiles over trials, and the 95 % interval of the median."""
    low, high = interval(_medians(values.tobytes(), 1)[1:])
    q25, median, q75 = quantiles(values)
    return {
        "median": plain(median), "q25": plain(q25), "q75": plain(q75), "low": plain(low), "high": plain(high)
    }  # fmt: skip


def paired(pairs: Sequence[tuple[Array, Array]]) -> Ratio:
    """The median over groups (one group: the trials of an experiment; five: networks) of median(a)/median(b).

    Trials are resampled in pairs, within their group; with several groups, these are resampled too.

    >>> found = paired([(np.arange(1.0, 41.0), 2 * np.arange(1.0, 41.0))])
    >>> found["ratio"], found["low"] == found["high"] == 0.5
    (0.5, True)
    """
    ratios = np.array([divided(*(_medians(part.tobytes(), n) for part in pair)) for n, pair in enumerate(pairs, 1)])
    if (groups := len(ratios)) > 1:
        chosen = np.random.default_rng(groups).integers(groups, size=(groups, ratios.shape[1] - 1))
        ratios[:, 1:] = np.take_along_axis(ratios[:, 1:], chosen, axis=0)
    ratio = quantiles(ratios, (0.5,))[0]
    low, high = interval(ratio[1:])
    return {"ratio": plain(ratio[0]), "low": plain(low), "high": plain(high)}


def covered(trials: int) -> float:
    """The probability that the median lies between the smallest and the largest of n trials: 1 − 2^{1−n}.

    >>> covered(4)
    0.875
    """
    return 1.0 - 2.0 ** (1 - trials)


def value(number: Number) -> float:
    """Convert a number of the document to a float."""
    return math.inf if number == "inf" else math.nan if number is None else float(number)


def written(number: Number) -> str:
    """Format a number with three significant digits: 0.0264, 18.7, 1580, 3.2·10⁻⁵.

    >>> [written(v) for v in (0.02642, 18.66, 1582.2, 3.16e-5, 1e-7, "inf", None)]
    ['0.0264', '18.7', '1580', '3.2·10⁻⁵', '10⁻⁷', '∞', '–']
    """
    if number is None:
        return "–"
    if isinstance(number, str):
        return number.replace("inf", "∞")
    if number and not 1e-3 <= abs(number) < 1e6:
        digits, power = f"{number:.1e}".split("e")
        raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{raised}" if digits == "1.0" else f"{digits.removesuffix('.0')}·10{raised}"
    rounded = float(f"{number:.3g}")
    return f"{rounded:.0f}" if abs(rounded) >= 1000 else f"{rounded:.3g}"


@lru_cache(maxsize=4096)  # a method is compared with many others
def _medians(values: bytes, salt: int) -> Array:
    """The median of the trials, then those of their resamples."""
    return bootstrap(np.frombuffer(values), seed=[len(values) // 8, salt])
