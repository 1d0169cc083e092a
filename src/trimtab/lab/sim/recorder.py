"""Collect the arrays of all records during a run, and detect divergence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.lab.sim.provenance import Provenance
from trimtab.lab.sim.record import Record
from trimtab.types import Array


class Recorder:
    """Arrays by name, `(rounds, trials, methods)`, filled round by round."""

    def __init__(self, rounds: int, trials: int, count: int, threshold: float, limits: int = 0) -> None:
        names = ("cost", "played", "incurred", "optimum", "distance", "gradient")
        self.pages = {name: np.full((rounds, trials, count), np.nan) for name in names}
        self.excess = np.full((rounds, trials, count, limits), np.nan)
        self.diverged_at = np.full((trials, count), -1, dtype=np.int64)
        self.diverged = np.zeros((trials, count), dtype=bool)
        self.threshold, self.limit = threshold, np.empty(0)
        self.variances: list[tuple[int, Array]] = []

    def judge(self, t: int, cost: Array, incurred: Array) -> None:
        """Update the mask of diverged trials."""
        if t == 0:
            self.limit = self.threshold * (1 + np.abs(np.where(np.isfinite(cost), cost, 0.0)))
        # NaN and inf at the centre mean divergence; a measurement of NaN has merely failed.
        beyond: NDArray[np.bool_] = ~(np.abs(cost) <= self.limit) | (np.abs(incurred) > self.limit)
        self.diverged_at[beyond & ~self.diverged] = t
        self.diverged |= beyond

    def enter(self, name: str, t: int, values: Array) -> None:
        """Store the values of a round, `(trials, methods)`; infinite in diverged trials."""
        page = self.pages[name][t]
        page[:] = values
        page[self.diverged] = np.inf

    def enter_excess(self, t: int, values: Array) -> None:
        """Store the measured limits of a round, `(trials, methods, m)`; infinite in diverged trials."""
        self.excess[t] = values
        self.excess[t][self.diverged] = np.inf

    def enter_variances(self, t: int, found: Array) -> None:
        """Store variances, `(2, trials, methods)`: at each method's own iterate, and at the common one."""
        found[0][self.diverged] = np.inf
        found[0][np.isnan(found[0])] = np.inf
        self.variances.append((t, found))

    def record(self, k: int, fixed: Array, final: Array, about: Provenance, evidence: dict[str, Array]) -> Record:
        """The finished record of method k."""
        own, common = (
            np.array([v[which, :, k] for _, v in self.variances]).reshape(-1, len(self.diverged)).T.copy()
            for which in (0, 1)
        )
        return Record(
            **{name: np.ascontiguousarray(page[:, :, k].T) for name, page in self.pages.items()},
            fixed=fixed,
            final=final.copy(),
            diverged_at=self.diverged_at[:, k].copy(),
            variance_rounds=np.array([t for t, _ in self.variances], dtype=np.int64),
            variance=own,
            common_variance=common,
            evidence=evidence,
            excess=np.ascontiguousarray(self.excess[:, :, k].swapaxes(0, 1)),
            about=about,
        )
