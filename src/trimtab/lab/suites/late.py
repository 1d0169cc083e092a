"""Late values: each round hands out a trial, whose value is told some rounds later.

With lag k, the value of round t is told at the end of round t + k − 1 (at once if k = 1). If permuted, the values of
each k rounds are told in random order, one per round, with the same mean delay. Up to 2k trials are open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from trimtab import core
from trimtab.lab.sim import lanes
from trimtab.lab.sim.provenance import describe_run
from trimtab.lab.sim.record import Record
from trimtab.lab.sim.recorder import Recorder
from trimtab.lab.sim.simulate import THRESHOLD
from trimtab.lab.suites.drift import Cell, sensible_radius
from trimtab.problems import Problem
from trimtab.recipes import BaseMethod
from trimtab.setup import Setup
from trimtab.types import Array

LAGS = (1, 2, 4, 8, 16)
SPEEDS = {2: 0.01, 10: 0.005, 100: 0.002}  # speed of the optimum, by dimension


def _places() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"d = {dim}, lag {lag}{', permuted' if permuted else ''}",
            "quadratic-v1",
            {"dim": dim, "speed": speed, "noise": 0.003, "offset": 0.002, "radius": sensible_radius(dim)},
            1000,
            lag,
            permuted,
        )
        for dim, speed in SPEEDS.items()
        for permuted in (False, True)
        for lag in LAGS
        if not (permuted and lag == 1)
    )


LATE = _places()


def due(rounds: int, lag: int, *, permuted: bool, seed: int = 0) -> list[int | None]:
    """The trial told at the end of each round; None if there is none.

    >>> due(6, 3, permuted=False)
    [None, None, 0, 1, 2, 3]
    """
    if not permuted:
        return [t - lag + 1 if t >= lag - 1 else None for t in range(rounds)]
    rng = np.random.default_rng(seed)
    order = [lag * block + int(j) for block in range(math.ceil(rounds / lag)) for j in rng.permutation(lag)]
    return [order[t - lag + 1] if t >= lag - 1 else None for t in range(rounds)]


def simulate_late(
    problem: Problem,
    methods: Mapping[str, BaseMethod],
    *,
    lag: int,
    permuted: bool,
    rounds: int,
    trials: int,
    seed: int = 0,
) -> dict[str, Record]:
    """Run methods with one query per round side by side, with late values."""
    x0, world = problem.start(seed, trials), problem.world(seed, trials)
    told = due(rounds, lag, permuted=permuted, seed=seed)
    found: dict[str, Record] = {}
    for members in lanes.groups(methods):
        method, count = lanes.together(members, trials), len(members)
        if method.queries > 1:
            raise ValueError(f"{next(iter(members))} measures twice per round: late values need one query per round")
        x = np.repeat(x0, count, axis=0)
        setup = Setup(method, x.shape, domain=problem.domain, max_pending=2 * lag)
        state, open_values = core.init(setup, x, seed, copies=count), dict[int, Array]()
        recorder = Recorder(rounds, trials, count, THRESHOLD)
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(rounds):
                centre = state.centre.reshape(trials, count, -1)
                trial, queries, state = lanes.hand_out(setup, state)
                points = queries.reshape(trials, count, -1)
                cost, played = world.cost(t, centre), world.cost(t, points)
                values = world.measure(t, points)
                recorder.judge(t, cost, values)
                for name, page in (("cost", cost), ("played", played), ("incurred", values)):
                    recorder.enter(name, t, page)
                recorder.pages["optimum"][t] = world.optimum(t)[:, None]
                open_values[trial] = np.where(recorder.diverged, np.nan, values).reshape(-1, 1)
                if (now := told[t]) is not None:
                    state = lanes.tell(setup, state, open_values.pop(now), now)
        fixed, final = np.full((trials, rounds), np.nan), state.centre.reshape(trials, count, -1)
        for k, name in enumerate(members):
            made = describe_run(
                *(problem, name, members[name]), seed=seed, first=0, noise="independent", threshold=THRESHOLD
            )
            found[name] = recorder.record(k, fixed, final[:, k], made, {})
    return {name: found[name] for name in methods}
