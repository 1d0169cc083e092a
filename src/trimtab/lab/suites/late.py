"""Cells with late values: see `trimtab.lab.sim.simulate`."""

from __future__ import annotations

from trimtab.lab.suites.drift import Cell, sensible_radius

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
