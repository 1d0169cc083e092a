"""A problem with a measured limit that is active at the optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trimtab.problems.base import ONCE, directions, register
from trimtab.problems.convex import Quadratic
from trimtab.problems.moving import MovingWorld
from trimtab.types import Array
from trimtab.validation import real, whole


@register("constrained-v1")
@dataclass(frozen=True, kw_only=True)
class Constrained(Quadratic):
    """The quadratic with the limit g_t(x) = ⟨n, R(x − c_t)⟩ + e_t ≤ 0, e_t = depth·(1 + sway·sin(2πt/period)).

    n is a random unit vector per trial; the unconstrained optimum c_t exceeds the limit by e_t. With κ = nᵀΛ⁻¹n the
    best point is at R(x − c_t) = −Λ⁻¹n·e_t/κ, ½·e_t²/κ above the unconstrained cost, with the multiplier λ_t = e_t/κ.

    >>> world = Constrained(dim=2, drift="none", sway=0.0).world(seed=0, trials=1)
    >>> best = world.optimiser(0)[:, None]
    >>> bool(abs(world.limits(0, best)).max() < 1e-12), bool(abs(world.cost(0, best) - world.optimum(0)).max() < 1e-12)
    (True, True)
    """

    id = "constrained-v1"

    depth: float = 1.0
    """The mean of e_t, by which the unconstrained optimum exceeds the limit."""
    sway: float = 0.3
    """The relative amplitude of e_t."""
    period: int = 500
    """The period of e_t in rounds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("depth", self.depth, 0, above=True)
        real("sway", self.sway, 0, 1, below=True, why=", so that the limit is always active")
        whole("period", self.period, 1)

    def world(self, seed: int, trials: int, first: int = 0) -> ConstrainedWorld:
        """The drift of the unconstrained optimum, and the limit."""
        return ConstrainedWorld(self, seed, trials, first)


class ConstrainedWorld(MovingWorld):
    """A realisation: the normals n of the limits."""

    problem: Constrained

    def __init__(self, problem: Constrained, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(problem, seed, trials, first)
        self._normal = directions(self, ONCE + 3, problem.dim)
        self._descent = self._normal / problem.curvatures
        self._stiffness = (self._normal * self._descent).sum(-1)

    def _excess(self, round: int) -> float:
        p = self.problem
        return p.depth * (1.0 + p.sway * math.sin(2.0 * math.pi * round / p.period))

    def limits(self, round: int, x: Array) -> Array:
        """g_t(x): `(trials, k, 1)`."""
        along = np.einsum("tkd,td->tk", self._local(round, x), self._normal)
        return np.asarray(along + self._excess(round))[..., None]

    def price(self, round: int) -> Array:
        """λ_t, the multiplier of the limit at the best point: `(trials,)`."""
        return np.asarray(self._excess(round) / self._stiffness)

    def optimum(self, round: int) -> Array:
        """The least cost within the limit: b_t + ½·e_t²/κ."""
        return np.asarray(self._path(round)[1] + 0.5 * self._excess(round) * self.price(round))

    def optimiser(self, round: int) -> Array:
        """The best point within the limit."""
        local = -self.price(round)[:, None] * self._descent
        return np.asarray(self._path(round)[0] + self.outward(local[:, None])[:, 0])
