"""Results of a suite as ratios to a reference method, with bootstrap intervals.

A ratio divides two medians over trials. Its interval resamples the trials within each cell, paired since both methods
had the same drift and noise; it covers other trials, not other cells.

A median is infinite if most trials diverged. The ratio is then infinite if only the method diverged, LEAST if only the
reference did, and 1 if both did. Cells in which the reference has a median ≤ 0 are left out; `entered` counts the
others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trimtab.lab.bootstrap import bootstrap, interval
from trimtab.lab.sim.provenance import Plain, plain
from trimtab.lab.sim.record import divided, spread
from trimtab.lab.suites.drift import Cell
from trimtab.lab.suites.scores import SCORES, Outcome, Score
from trimtab.types import Array, Document

RESAMPLES, BOOTSTRAP = 1000, 0xB007
REFERENCES = ("residual", "two-point", "oracle")
OF_SUITE = {"context": ("belief", "fixed"), "limits": ("still", "belief")}
"""References of suites: the method that is not told of the load, and the best fixed setting; the start, and, where the
limit never binds, the method that is not told of it."""
FREE = "never binds"  # a group of the suite `limits`
LEAST = 0.01  # lower limit of ratios, so that a single 0 does not make the geometric mean 0


class Ratio(NamedTuple):
    """A ratio with its interval.

    >>> print(Ratio(0.531, 0.512, 0.534))
    0.53 (0.51–0.53)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"

    def plainly(self) -> dict[str, Plain]:
        """The ratio as JSON values."""
        return {name: plain(value) for name, value in self._asdict().items()}


class Beyond(NamedTuple):
    """Shares of queries that are beyond a limit in truth.

    >>> Beyond(0.0, 0.01, 2.0).after
    0.01
    """

    first: float
    """The share in the first 30 rounds."""
    after: float
    """The share in the rounds after these."""
    longest: float
    """The longest run of such queries."""

    def plainly(self) -> dict[str, Plain]:
        """The figures as JSON values."""
        return {name: plain(value) for name, value in self._asdict().items()}


@dataclass(frozen=True)
class SuiteResult:
    """Results of a suite: `outcomes[n]`, by method, belongs to the cell `places[n]`.

    >>> from trimtab.lab import judge
    >>> standings: Standings = judge(methods=["residual", "still"], trials=2, every=60)
    >>> standings.mean("still", "residual", "played").value > 1  # no tuning costs more
    True
    """

    suite: str
    held_out: bool
    places: tuple[Cell, ...]
    outcomes: tuple[dict[str, Outcome], ...]
    complete: bool = True
    _logs: dict[tuple[int, str, str, Score], Array] = field(default_factory=dict, init=False, repr=False)

    @property
    def methods(self) -> list[str]:
        """The methods that were run."""
        return list(dict.fromkeys(name for outcomes in self.outcomes for name in outcomes))

    @property
    def references(self) -> list[str]:
        """The reference methods that were run."""
        wanted = OF_SUITE.get(self.suite, REFERENCES)
        return [name for name in wanted if name in self.methods]

    @property
    def groups(self) -> list[str]:
        """The names of the groups, in order."""
        return list(dict.fromkeys(place.group for place in self.places))

    @property
    def trials(self) -> int:
        """The number of trials per cell."""
        found = (len(result.values) for o in self.outcomes for outcome in o.values() for result in outcome.values())
        return next(found, 0)

    def cells(self, method: str, reference: str, group: str | None = None) -> list[int]:
        """The indices of the cells (of a group) with results of both methods.

        In the suite `limits`, a method that is not told of them is a reference only where they never bind.
        """
        free = self.suite == "limits" and reference == "belief"
        return [
            n
            for n, place in enumerate(self.places)
            if group in (None, place.group)
            and {method, reference} <= self.outcomes[n].keys()
            and (not free or place.group == FREE)
        ]

    def ratio(self, n: int, method: str, reference: str, score: Score = "centre") -> float:
        """The ratio of medians in cell n; infinite if most trials diverged, NaN if undefined."""
        return float(np.exp(self._log_ratios(n, method, reference, score)[0]))

    def mean(self, method: str, reference: str, score: Score = "centre", group: str | None = None) -> Ratio:
        """The geometric mean of the ratios over cells."""
        return self._over(np.mean, self.cells(method, reference, group), method, reference, score)

    def worst(self, method: str, reference: str, score: Score = "centre") -> Ratio:
        """The largest ratio over all cells."""
        return self._over(np.max, self.cells(method, reference), method, reference, score)

    def entered(self, method: str, reference: str, score: Score = "centre") -> int:
        """The number of cells with a ratio, which `mean` and `worst` are over."""
        return sum(not math.isnan(self.ratio(n, method, reference, score)) for n in self.cells(method, reference))

    def diverged(self, method: str, score: Score = "centre") -> int:
        """The number of diverged trials in all cells."""
        return sum(outcomes[method][score].diverged for outcomes in self.outcomes if method in outcomes)

    def beyond(self, method: str, group: str | None = None) -> Beyond:
        """The queries beyond a limit, in the suite `limits`: means of cells and trials, and the longest of all runs."""
        some = [
            outcomes[method]
            for place, outcomes in zip(self.places, self.outcomes, strict=True)
            if group in (None, place.group) and method in outcomes and "longest" in outcomes[method]
        ]
        if not some:
            return Beyond(math.nan, math.nan, math.nan)
        first, after = (float(np.mean([outcome[name].values for outcome in some])) for name in ("first", "after"))
        return Beyond(first, after, float(max(outcome["longest"].values.max() for outcome in some)))

    def _over(
        self, statistic: Callable[..., Array], cells: Sequence[int], method: str, reference: str, score: Score
    ) -> Ratio:
        logs = [self._log_ratios(n, method, reference, score) for n in cells]
        known = [log for log in logs if not math.isnan(log[0])]
        if not known:
            return Ratio(math.nan, math.nan, math.nan)
        with np.errstate(over="ignore"):
            found = np.exp(statistic(known, axis=0))
        # Undefined ratios widen the interval at both ends.
        low, high = (
            interval(np.where(np.isnan(found[1:]), limit, found[1:]))[k] for k, limit in enumerate((0.0, np.inf))
        )
        return Ratio(float(found[0]), low, high)

    def _log_ratios(self, n: int, method: str, reference: str, score: Score) -> Array:
        """The log ratio of the cell, followed by those of its resamples."""
        key = (n, method, reference, score)
        if key not in self._logs:
            top, bottom = (
                bootstrap(self.outcomes[n][name][score].values, seed=[BOOTSTRAP, n], resamples=RESAMPLES)
                for name in (method, reference)
            )
            top, bottom = np.where(np.isnan(top), np.inf, top), np.where(bottom > 0, bottom, np.nan)
            self._logs[key] = np.log(np.maximum(divided(top, bottom), LEAST))
        return self._logs[key]

    def summary(self) -> Document:
        """Means by group and overall, the worst cell, and the results of each cell, for both scores, as JSON values."""
        return {
            "suite": self.suite,
            "cells are": "held out" if self.held_out else "for choosing",
            "complete": self.complete,
            "trials": self.trials,
            "methods": {name: self._of(name) for name in self.methods},
            "cells": [
                {**place._asdict(), "methods": {name: _in_cell(outcome) for name, outcome in outcomes.items()}}
                for place, outcomes in zip(self.places, self.outcomes, strict=True)
            ],
        }

    def _of(self, name: str) -> Document:
        found: Document = {"diverged": {score: self.diverged(name, score) for score in SCORES}}
        if self.suite == "limits":
            found["beyond"] = {group: self.beyond(name, group).plainly() for group in self.groups}
        for reference in self.references:
            found[f"to {reference}"] = {
                "cells": self.entered(name, reference),
                "cells_played": self.entered(name, reference, "played"),
                "mean": self.mean(name, reference).plainly(),
                "played": self.mean(name, reference, "played").plainly(),
                "worst": self.worst(name, reference).plainly(),
                "worst_played": self.worst(name, reference, "played").plainly(),
                "groups": self._by_group(name, reference, "centre"),
                "groups_played": self._by_group(name, reference, "played"),
            }
        return found

    def _by_group(self, name: str, reference: str, score: Score) -> dict[str, Plain]:
        return {group: self.mean(name, reference, score, group).plainly() for group in self.groups}


def _in_cell(outcome: Outcome) -> dict[str, Plain]:
    centre, played = outcome["centre"], outcome["played"]
    beyond = {name: spread(outcome[name].values) for name in ("first", "after", "longest") if name in outcome}
    return {
        **({"beyond": beyond} if beyond else {}),
        "regret": spread(centre.values),
        "played": spread(played.values),
        "diverged": {"centre": centre.diverged, "played": played.diverged},
        "step": {"centre": centre.step, "played": played.step},
        "step_at_edge": {"centre": centre.at_edge, "played": played.at_edge},
    }
