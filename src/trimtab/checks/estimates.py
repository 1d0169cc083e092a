"""Where a move goes: down the smoothed gradient, and as far whatever the units of the value."""

from __future__ import annotations

import math

import numpy as np

from trimtab.checks.objectives import objectives, quadratic
from trimtab.checks.tunable import Make
from trimtab.problems.checking import CheckError
from trimtab.setup import Setup

SIGMAS = 6.0  # of the statistical checks: 2e-9 per comparison


def check_unbiased(
    make: Make, *, dim: int, setup: Setup, step: float, turning: bool = True, samples: int = 3000, lanes: bool = False
) -> None:
    """The mean move is −η·∇f_δ: against the analytic smoothed gradient of a linear plus quadratic objective.

    f(x) = ⟨b, x − x_0⟩ + ½(x − x_0)ᵀA(x − x_0) has ∇f_δ = ∇f for every symmetric law of u. For a domain with a plane
    the gradient is its part in that plane. turning: the objective is another one in the round before. lanes: the
    samples are the lanes of one tuner (of which `check_lanes` says that each is as if alone), not a tuner each.

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
    # Where the first probes are mirrored, the value before tells of the gradient too, and must be of this f.
    mirrored = setup.directions.partner(1) == 0
    then = quadratic(a, b)
    first = then if mirrored or not turning else quadratic(a, -b, 0.3 * setup.probe_length)
    found = []
    for tuner in [make(np.tile(x0, (samples, 1)), 0)] if lanes else (make(x0, seed) for seed in range(samples)):
        for objective in (first, then, then, then) if mirrored else (first, then):
            before = np.array(tuner.centre)
            trial = tuner.ask()
            tuner.tell(trial, objective(trial.x - start))
        # The centre may have moved before the last round: the gradient's change on the way is known.
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
    """a·f + b, a > 0, has the same path as f.

    It is promised as long as changes of the value are between 1e-140 and 1e140 in size: beyond, squares of them have no
    digits left, and values are taken as ±1e140.

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
            raise CheckError(f"claims to be scale-free, but {a:g}·f + {b:g} leads elsewhere than f")
