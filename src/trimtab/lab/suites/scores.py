"""Outcome of a method in one cell of a suite, by two scores, each with the best step in hindsight.

The scores are the regret at the centre and at the queries ("played"), or total costs if the optimum is unknown. For
each score, a method with a step size gets the best one on a grid, chosen on the reported trials: no user could do
better with it. All steps of a grid run as lanes: first half a decade apart on a few trials, then around the best ones
on all trials, an eighth of a decade apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from trimtab.lab.sim.provenance import plain
from trimtab.lab.sim.record import Record, quantiles
from trimtab.lab.sim.simulate import run
from trimtab.lab.step_search import attempt
from trimtab.problems import Problem
from trimtab.recipes import BaseMethod
from trimtab.types import Array
from trimtab.util.files import write_atomically

Score = Literal["centre", "played"]
SCORES: tuple[Score, ...] = get_args(Score)
FORMAT, VERSION = "trimtab.outcome", 1

SMALLEST, FINEST, COUNT = 1e-7, 8, 57  # steps 1e-7 to 1, eight per decade
COARSE, NEAR = 4, 3  # the first pass tries every fourth step; the second, three on each side of the best
FEW = 6  # trials of the first pass


@dataclass(frozen=True)
class Result:
    """Result by one score."""

    values: Array
    """The score of each trial; infinite if it diverged."""
    diverged: int
    step: float | None = None
    """The best step, if the method has one (for the oracle, γ)."""
    at_edge: bool = False
    """Whether that step is the smallest or largest of the grid."""

    @property
    def median(self) -> float:
        """The median over trials."""
        return float(quantiles(self.values, (0.5,))[0])


Outcome = Mapping[str, Result]
"""Results by score; those of the suite `limits` have the shares of queries beyond a limit, too."""


@dataclass(frozen=True)
class SavedOutcome:
    """An outcome that can be saved."""

    outcome: Outcome

    def save(self, path: Path) -> None:
        """Write one JSON file, `path`.json."""
        found = {
            score: {
                "values": [plain(v) for v in result.values],
                "diverged": result.diverged,
                "step": result.step,
                "at_edge": result.at_edge,
            }
            for score, result in self.outcome.items()
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"format": FORMAT, "version": VERSION, "outcome": found}
        write_atomically(path.with_name(path.name + ".json"), json.dumps(document).encode())

    @classmethod
    def load(cls, path: Path) -> SavedOutcome:
        """Read an outcome written by `save`."""
        document = json.loads(path.with_name(path.name + ".json").read_text())
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise ValueError(f"{path}.json is not an outcome that this trimtab can read: compute it again")
        return cls(
            {
                score: Result(
                    np.array([np.nan if v is None else float(v) for v in found["values"]]),
                    found["diverged"],
                    found["step"],
                    found["at_edge"],
                )
                for score, found in document["outcome"].items()
            }
        )


def result(record: Record, score: Score, step: float | None = None, *, at_edge: bool = False) -> Result:
    """The result of a record by one score."""
    return Result(record.score(score), int(record.diverged.sum()), step, at_edge)


def untuned(problem: Problem, of: Callable[[None], BaseMethod], **options: Any) -> Outcome:
    """The outcome of a method without a step: one run for both scores; for the options see `simulate`."""
    record = run(problem, of(None), **options)
    return {score: result(record, score) for score in SCORES}


def in_hindsight(problem: Problem, of: Callable[[float], BaseMethod], *, trials: int, **options: Any) -> Outcome:
    """The outcome of a method with the best step for each score."""

    def climb(places: Iterable[int], trials: int) -> dict[int, dict[Score, Result]]:
        """Run the steps at these grid positions; the results are keyed by position."""
        records = attempt(problem, lambda k: of(_step(k)), places, trials=trials, **options)
        edge = (0, COUNT - 1)
        return {k: {s: result(r, s, _step(k), at_edge=k in edge) for s in SCORES} for k, r in records.items()}

    few = min(FEW, trials)
    first = climb(range(0, COUNT, COARSE), few)
    best = {score: min(first, key=lambda k: first[k][score].median) for score in SCORES}
    known = first if few == trials else {}
    while wanted := {k for b in best.values() for k in _about(b)} - known.keys():
        known |= climb(sorted(wanted), trials)
        best = {score: min(known, key=lambda k: known[k][score].median) for score in SCORES}
    return {score: known[k][score] for score, k in best.items()}


def _step(k: int) -> float:
    return float(SMALLEST * 10 ** (k / FINEST))


def _about(k: int) -> range:
    return range(max(k - NEAR, 0), min(k + NEAR, COUNT - 1) + 1)
