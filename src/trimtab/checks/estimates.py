"""Checks of moves: along the smoothed gradient, and independent of the units of the value."""

from __future__ import annotations

import math

import numpy as np

from trimtab.checks.objectives import objectives, quadratic
from trimtab.checks.tunable import Make
from trimtab.problems.checking import CheckError
from trimtab.setup import Setup

SIGMAS = 6.0  # tolerance in standard errors: a false-alarm probability of 2e-9 per comparison


def check_unbiased(
    make: Make, *, dim: int, setup: Setup, step: float, turning: bool = True, samples: int = 3000, lanes: bool = False
) -> None:
    """Check that the mean move is −η·∇f_δ, for an objective whose smoothed gradient is known analytically.

    f(x) = ⟨b, x − x_0⟩ + ½(x − x_0)ᵀA(x − x_0) has ∇f_δ = ∇f for every symmetric law of u. On a flat domain only the
    part of the gradient in its plane counts. turning: the round before has a different objective. lanes: the samples
    are lanes of one tuner (`check_lanes` makes sure that they are independent), instead of one tuner each.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_unbiased(make, dim=2, setup=make([0.0, 0.0], 0).setup, step=0.01)
    """
    rng = np.random.default_rng(0)
    m = rng.standard_normal((dim, dim))
    a, b = 0.3 * (m + m.T), rng.standard_normal(dim)
    x0 = np.linspace(-0.3, 0.3, dim)
    start = np.array(make(x0, 0).centre)
    expected = -step * setup.domain.flatten(b)
    # If the first probes are mirrored, the previous value affects the estimate too and must belong to the same f.
    mirrored = setup.directions.partner(1) == 0
    then = quadratic(a, b)
    first = then if mirrored or not turning else quadratic(a, -b, 0.3 * setup.probe_length)
    found = []
    for tuner in [make(np.tile(x0, (samples, 1)), 0)] if lanes else (make(x0, seed) for seed in range(samples)):
        for objective in (first, then, then, then) if mirrored else (first, then):
            before = np.array(tuner.centre)
            trial = tuner.ask()
            tuner.tell(trial, objective(trial.x - start))
        # The centre may have moved before the last round: correct for the known change of the gradient.
        found.append(np.asarray(tuner.centre) - before + step * setup.domain.flatten((before - start) @ a))
    moves = np.reshape(found, (samples, dim))
    error = np.abs(moves.mean(0) - expected)
    spread = moves.std(0) / math.sqrt(samples) + 1e-12 * step
    if np.linalg.norm(SIGMAS * spread) > 0.9 * np.linalg.norm(expected):
        raise CheckError(f"{samples} samples are too few to judge the mean move: use more, or a larger radius")
    if np.any(error > SIGMAS * spread):
        ratio = float(moves.mean(0) @ expected / (expected @ expected))
        raise CheckError(
            f"the mean move is {moves.mean(0)} instead of {expected} = −step·(smoothed gradient), {ratio:.3g} times it,"
            f" {float(np.max(error / spread)):.0f} standard errors away: check the factor 1/radius, and that the"
            " direction is independent of the anchor"
        )


def check_scale_free(make: Make, *, dim: int, queries: int) -> None:
    """Check that a·f + b, a > 0, gives the same path as f.

    This holds while changes of the value are between 1e-140 and 1e140 in size: beyond, their squares underflow, and
    values are clipped to ±1e140.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.auto(radius=0.1), seed=seed)
    >>> check_scale_free(make, dim=3, queries=1)
    """
    for a, b in ((1e-6, 0.0), (1e6, 0.0), (1.0, 100.0), (50.0, -3.0)):
        tuner, twin = make(np.zeros(dim), 9), make(np.zeros(dim), 9)
        for _, objective in zip(range(30), objectives(dim), strict=False):
            trial, other = tuner.ask(), twin.ask()
            tuner.tell(trial, objective(trial.x))
            twin.tell(other, a * objective(other.x) + b)
        if not np.allclose(tuner.centre, twin.centre, rtol=1e-6, atol=1e-9):
            raise CheckError(f"claims to be scale-free, but {a:g}·f + {b:g} gives a different path from f")
