"""Fixed lists of cells, problem × dimension × drift × noise, on which all methods are judged together.

Methods with a step are tuned in hindsight, on the very trials that are reported, in each cell: no user could do
better with them. Half of the cells are held out: used for reporting, never for choosing constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trimtab.lab.about import plain
from trimtab.lab.comparing import compute
from trimtab.lab.record import Record, quantiles, spread
from trimtab.lab.sweeping import Cell, Report, sweep
from trimtab.lab.tuning import build

STEPS = tuple(np.geomspace(1e-7, 1.0, 15).tolist())  # half a decade apart; the best one is refined
METHODS = ("residual", "one-point", "two-point", "auto", "still")


class Place(NamedTuple):
    """One cell of a suite."""

    group: str
    held_out: bool
    problem: str
    parameters: dict[str, Any]
    rounds: int


def _convex(id: str, dim: int, drift: str, speed: float, noise: float, **more: Any) -> tuple[str, dict[str, Any]]:
    """A landscape about a moving point, a unit away at the start, probed by 0.2 of that."""
    radius = round(0.2 / math.sqrt(dim), 4)
    return id, {"dim": dim, "drift": drift, "speed": speed, "noise": noise, "radius": radius, **more}


def _drift() -> list[Place]:
    places: list[Place] = []

    def add(group: str, rounds: int, *pairs: tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]) -> None:
        for pair in pairs:
            places.extend(Place(group, bool(k), *cell, rounds) for k, cell in enumerate(pair))

    def q(
        dim: int, condition: float, drift: str, speed: float, noise: float, **more: Any
    ) -> tuple[str, dict[str, Any]]:
        more = {"offset": 0.002, "condition": condition, **more}
        return _convex("quadratic-v1", dim, drift, speed, noise, **more)

    def box(dim: int, condition: float, drift: str, speed: float, noise: float) -> tuple[str, dict[str, Any]]:
        return _convex("corner-v1", dim, drift, speed, noise, condition=condition, offset=0.002)

    def kink(id: str, dim: int, drift: str, speed: float, noise: float) -> tuple[str, dict[str, Any]]:
        return _convex(id, dim, drift, speed, noise, offset=0.002)

    literal, zero, noisy = "lqr-v1", "lqr-zero-mean-v1", "lqr-noisy-v1"
    add("LQR", 50, ((literal, {}), (literal, {"radius": 0.1})))
    add("LQR", 80, ((literal, {"drift": 0.006}), (literal, {"drift": 0.006, "gain_std": 0.2})))
    add("LQR 0-mean", 200, ((zero, {}), (zero, {"radius": 0.05})), ((zero, {"drift": 0.02}), (zero, {"gain_std": 0.2})))
    add(
        "LQR noisy", 40, ((noisy, {}), (noisy, {"radius": 0.1})), ((noisy, {"sigma_w": 0.3}), (noisy, {"sigma_w": 0.2}))
    )
    add("allocation", 200, (("allocation-v1", {}), ("allocation-per-agent-v1", {})))
    add(
        *("d = 2", 1000),
        (q(2, 1, "walk", 0.01, 0.0), q(2, 1, "walk", 0.02, 0.003)),
        (q(2, 100, "line", 0.003, 0.003), q(2, 100, "line", 0.005, 0.0)),
        (q(2, 1, "line", 0.03, 0.01), q(2, 10, "line", 0.02, 0.01)),
        (q(2, 100, "walk", 0.003, 0.1), q(2, 1, "walk", 0.005, 0.1)),
    )
    add(
        *("d = 10", 1000),
        (q(10, 1, "walk", 0.01, 0.003), q(10, 1, "walk", 0.02, 0.0)),
        (q(10, 100, "line", 0.003, 0.0), q(10, 100, "line", 0.002, 0.003)),
        (q(10, 1, "line", 0.01, 0.01), q(10, 10, "line", 0.01, 0.01)),
        (q(10, 100, "walk", 0.003, 0.1, rotate=True), q(10, 1, "walk", 0.005, 0.1)),
    )
    add(
        *("d = 100", 1500),
        (q(100, 1, "walk", 0.003, 0.003), q(100, 1, "walk", 0.006, 0.0)),
        (q(100, 100, "line", 0.001, 0.0), q(100, 100, "line", 0.0005, 0.003)),
        (q(100, 1, "line", 0.003, 0.01), q(100, 10, "line", 0.002, 0.01)),
        (q(100, 100, "walk", 0.001, 0.05), q(100, 1, "walk", 0.002, 0.05)),
    )
    add(
        *("d = 1000", 1500),
        (q(1000, 1, "walk", 0.001, 0.003), q(1000, 1, "line", 0.0003, 0.001)),
        (q(1000, 100, "line", 0.0003, 0.0), q(1000, 100, "walk", 0.001, 0.003)),
    )
    add(
        *("nonsmooth", 1000),
        (kink("absolute-v1", 10, "walk", 0.01, 0.003), kink("absolute-v1", 10, "line", 0.003, 0.0)),
        (kink("absolute-v1", 100, "line", 0.001, 0.0), kink("absolute-v1", 50, "walk", 0.003, 0.01)),
        (kink("logcosh-v1", 10, "line", 0.005, 0.01), kink("logcosh-v1", 20, "walk", 0.01, 0.003)),
    )
    add(
        *("jumps", 1000),
        (q(2, 1, "jumps", 0.01, 0.003, every=100), q(2, 10, "jumps", 0.005, 0.0, every=200)),
        (q(10, 10, "jumps", 0.005, 0.003, every=200), q(10, 1, "jumps", 0.01, 0.01, every=200)),
        (q(50, 1, "jumps", 0.004, 0.0, every=500), q(50, 10, "jumps", 0.002, 0.003, every=500)),
    )
    add(
        *("box", 1000),
        (box(2, 1, "walk", 0.01, 0.003), box(2, 10, "line", 0.003, 0.0)),
        (box(10, 10, "line", 0.003, 0.003), box(10, 1, "walk", 0.01, 0.01)),
        (box(100, 1, "walk", 0.003, 0.0), box(100, 10, "walk", 0.003, 0.003)),
    )
    return places


SUITES = {"drift": tuple(_drift())}


@dataclass(frozen=True)
class Verdict:
    """The records of all methods in all cells of a suite; `records[n]` belongs to `places[n]`."""

    suite: str
    places: tuple[Place, ...]
    records: tuple[dict[str, Record], ...]
    complete: bool = True

    @property
    def methods(self) -> list[str]:
        """Those that were run."""
        return list(dict.fromkeys(name for records in self.records for name in records))

    def ratio(self, n: int, method: str, reference: str, of: str = "centre") -> float:
        """Median regret of a method in cell n, at the centre or "incurred", divided by that of a reference."""
        mine, other = (float(quantiles(self.records[n][name].score(of), (0.5,))[0]) for name in (method, reference))
        return math.inf if math.isinf(mine) or math.isnan(mine) else mine / other

    def ratios(self, method: str, reference: str, held_out: bool | None = None, of: str = "centre") -> list[float]:
        """The ratios of all cells (of one half) where both are known."""
        return [
            self.ratio(n, method, reference, of)
            for n, place in enumerate(self.places)
            if held_out in (None, place.held_out) and {method, reference} <= self.records[n].keys()
        ]

    def summary(self) -> dict[str, Any]:
        """Geometric means by group, half and over all, the worst cell, what was played and the diverged, by method."""
        cells = [
            {
                **place._asdict(),
                "methods": {
                    name: {"regret": spread(r.score()), "diverged": int(r.diverged.sum()), "step": r.about["step"]}
                    for name, r in records.items()
                },
            }
            for place, records in zip(self.places, self.records, strict=True)
        ]
        first = next((r for records in self.records for r in records.values()), None)
        return {
            "suite": self.suite,
            "complete": self.complete,
            "trials": first.trials if first else None,
            "methods": {name: self._of(name) for name in self.methods},
            "cells": cells,
        }

    def _of(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {"diverged": sum(int(r[name].diverged.sum()) for r in self.records if name in r)}
        for reference in ("residual", "two-point"):
            if reference not in self.methods:
                continue
            halves = {"all": None, "held out": True, "for choosing": False}
            to = {half: self.ratios(name, reference, which) for half, which in halves.items()}
            found[f"to {reference}"] = {
                "mean": {half: plain(geometric_mean(ratios)) for half, ratios in to.items()},
                "worst": {half: plain(max(ratios, default=math.nan)) for half, ratios in to.items()},
                "played": {
                    half: plain(geometric_mean(self.ratios(name, reference, which, "incurred")))
                    for half, which in halves.items()
                },
                "groups": {
                    group: plain(geometric_mean(self._group(group).ratios(name, reference))) for group in self.groups
                },
            }
        return found

    @property
    def groups(self) -> list[str]:
        """Their names, in order."""
        return list(dict.fromkeys(place.group for place in self.places))

    def _group(self, group: str) -> Verdict:
        these = [n for n, place in enumerate(self.places) if place.group == group]
        return Verdict(self.suite, tuple(self.places[n] for n in these), tuple(self.records[n] for n in these))


def geometric_mean(ratios: Sequence[float]) -> float:
    """exp of the mean logarithm; infinite if one of them is.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def judge(
    suite: str = "drift",
    methods: Sequence[str] = METHODS,
    *,
    trials: int = 20,
    seed: int = 0,
    every: int = 1,
    jobs: int = 1,
    backend: str = "loky",
    folder: str | Path | None = None,
    report: Report | None = None,
) -> Verdict:
    """Run methods over a suite; see `sweep` for jobs, backend, folder and report.

    every: take one of so many cells of each half, for a quick look.

    >>> verdict = judge(methods=["auto", "still"], trials=2, every=30)
    >>> len(verdict.places), verdict.methods
    (2, ['auto', 'still'])
    """
    if suite not in SUITES:
        raise ValueError(f"there is no suite {suite!r}: choose from {', '.join(SUITES)}")
    for name in methods:
        build(name, 1.0, 1.0)  # unknown names are told before the work begins
    halves = ([p for p in SUITES[suite] if p.held_out == held] for held in (False, True))
    places = tuple(place for half in halves for place in half[::every])
    cells = [_cell(place, name, trials, seed) for place in places for name in methods]
    done = iter(sweep(compute, cells, jobs=jobs, backend=backend, folder=folder, report=report))
    records = [{name: record for name in methods if (record := next(done)) is not None} for _ in places]
    complete = all(len(found) == len(methods) for found in records)
    return Verdict(suite, places, tuple(records), complete)


def _cell(place: Place, method: str, trials: int, seed: int) -> Cell:
    return {
        "problem": place.problem,
        "parameters": place.parameters,
        "method": method,
        "radius": None,
        "rounds": place.rounds,
        "trials": trials,
        "seed": seed,
        "noise": "independent",
        "tuning_trials": trials,
        "steps": STEPS,
        "hindsight": True,
        "variance_at": [],
        "static": False,
        "gradients": False,
    }
