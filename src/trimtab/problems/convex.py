"""Convex problems with exactly known optima: the paper's toy, a quadratic, and three Lipschitz functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trimtab.domains import Box, Domain
from trimtab.problems.base import Problem, reflect, register
from trimtab.problems.moving import Drift, Lipschitz, Moving, MovingWorld, SmoothLipschitz
from trimtab.types import Array
from trimtab.validation import real, whole


@register("quadratic-v1")
@dataclass(frozen=True, kw_only=True)
class Quadratic(Moving):
    """f_t(x) = ½ (x − c_t)ᵀ Rᵀ Λ R (x − c_t) + b_t: curvatures Λ from 1 down to 1/condition, geometrically spaced.

    >>> problem = Quadratic(dim=2, condition=100, drift="none", distance=3)
    >>> world = problem.world(seed=0, trials=1)
    >>> world.cost(0, np.array([[[2.0, 0.0], [0.0, 2.0]]]))
    array([[2.  , 0.02]])
    """

    id = "quadratic-v1"

    condition: float = 10.0
    """The largest curvature divided by the smallest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("condition", self.condition, 1)

    @cached_property
    def curvatures(self) -> Array:
        """Λ: `(d,)`."""
        return np.geomspace(1.0, 1.0 / self.condition, self.dim)

    @property
    def smoothness(self) -> float:
        """L₁: the largest curvature is 1."""
        return 1.0

    def height(self, z: Array) -> Array:
        """½ Σ_j a_j z_j²."""
        return np.asarray(0.5 * np.einsum("...d,...d,d->...", z, z, self.curvatures))

    def slope(self, z: Array) -> Array:
        """a_j z_j."""
        return self.curvatures * z


@register("corner-v1")
@dataclass(frozen=True, kw_only=True)
class Corner(Quadratic):
    """The quadratic in the box [0, size]^d, its unconstrained optimum near the corner 0 and the best on the boundary.

    With `walls`, that number of coordinates of the unconstrained optimum stay within `gap` of the wall at 0 (negative:
    beyond it), and the others move about the middle of the box.

    >>> world = Corner(dim=2).world(seed=0, trials=20)
    >>> float(world.optimiser(50).min())
    0.0
    """

    id = "corner-v1"

    size: float = 2.0
    walls: int = 0
    """The number of coordinates that stay at a wall; 0: all move about the corner."""
    gap: float = 0.0
    """Their largest distance from the wall."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("size", self.size, 0, above=True)
        whole("walls", self.walls, 0)
        real("gap", self.gap)
        if self.walls > self.dim or abs(self.gap) > self.size:
            raise ValueError(
                f"walls={self.walls}, gap={self.gap} do not fit: choose at most dim={self.dim} walls, and a gap within"
                f" size={self.size}"
            )
        if self.rotate:
            raise ValueError("rotate=True rotates the landscape but not the box, so the optimum would be unknown")

    @property
    def domain(self) -> Domain:
        """[0, size]^d."""
        return Box(0.0, self.size)

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """The start of the quadratic, reflected into the positive orthant and projected onto the box."""
        start = super().start(seed, trials, first)
        return self.domain.project(start if self.walls else np.abs(start))

    def world(self, seed: int, trials: int, first: int = 0) -> CornerWorld:
        """The drift of the unconstrained optimum, and the best point of the box."""
        return CornerWorld(self, seed, trials, first)


class CornerWorld(MovingWorld):
    """A realisation; the curvatures are along the axes, so the best point is the optimum clipped to the box."""

    problem: Corner

    def middle(self, round: int) -> Array:
        free, p = super().middle(round), self.problem
        if not p.walls:
            return free
        low, high = sorted((0.0, p.gap))
        bound = reflect(free[:, : p.walls], low, high) if high > low else np.zeros((self.trials, p.walls))
        return np.concatenate([bound, 0.5 * p.size + free[:, p.walls :]], axis=1)

    def optimiser(self, round: int) -> Array:
        return self.problem.domain.project(super().optimiser(round))

    def optimum(self, round: int) -> Array:
        return self.cost(round, self.optimiser(round)[:, None])[:, 0]


@register("walk-v1")
@dataclass(frozen=True, kw_only=True)
class Walk(Problem):
    """The toy of Section 3: f_0(x) = ½‖x‖², f_t = f_{t−1} + n_t with n_t ~ N(0, std²).

    V_f = std is finite, but the second moment of f_t(x) grows without bound, and so does that of the one-point
    estimate; that of the residual estimate does not.

    >>> problem = Walk()
    >>> problem.variation, problem.world(seed=0, trials=2).cost(0, np.array([[[2.0]], [[-1.0]]])).tolist()
    (1.0, [[2.0], [0.5]])
    """

    id = "walk-v1"

    dim: int = 1
    std: float = 1.0
    distance: float = 1.0
    rounds: int = 1000
    radius: float = 0.1

    def __post_init__(self) -> None:
        real("std", self.std, 0)
        _ = self._quadratic

    @cached_property
    def _quadratic(self) -> Quadratic:
        return Quadratic(
            dim=self.dim,
            condition=1.0,
            drift="none",
            offset=self.std,
            distance=self.distance,
            rounds=self.rounds,
            radius=self.radius,
        )

    @property
    def smoothness(self) -> float:
        """L₁ = 1: f_t is ½‖x‖² plus a number."""
        return 1.0

    @property
    def variation(self) -> float:
        """V_f: the standard deviation of a step."""
        return self._quadratic.variation

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """At the given distance from 0, in a random direction."""
        return self._quadratic.start(seed, trials, first)

    def world(self, seed: int, trials: int, first: int = 0) -> MovingWorld:
        """The static quadratic, with the random walk of its level."""
        return self._quadratic.world(seed, trials, first)


@register("absolute-v1")
@dataclass(frozen=True, kw_only=True)
class Absolute(Lipschitz):
    """f_t(x) = (L₀/√d)·‖R(x − c_t)‖₁ + b_t: convex, with a kink at the optimum in every coordinate, L₀-Lipschitz.

    >>> problem = Absolute(dim=4, scale=2.0, drift="none")
    >>> problem.world(seed=0, trials=1).cost(0, np.array([[[1.0, -1.0, 1.0, 0.0]]]))
    array([[3.]])
    """

    id = "absolute-v1"

    def height(self, z: Array) -> Array:
        """(L₀/√d)·‖z‖₁."""
        return np.asarray(self.scale / math.sqrt(self.dim) * np.abs(z).sum(-1))

    def slope(self, z: Array) -> Array:
        """(L₀/√d)·sign z: 0 in coordinates at a kink."""
        return self.scale / math.sqrt(self.dim) * np.sign(z)


@register("logcosh-v1")
@dataclass(frozen=True, kw_only=True)
class LogCosh(SmoothLipschitz):
    """f_t(x) = (L₀·w/√d)·Σ_j log cosh(z_j/w) + b_t, z = R(x − c_t): L₀-Lipschitz, and smooth with L₁ = L₀/(w√d).

    A parabola near the optimum, a cone (|z_j| − w·log 2) far from it; w is the `width` of the rounded part.

    >>> problem = LogCosh(dim=4, width=0.5, drift="none")
    >>> problem.smoothness, problem.world(seed=0, trials=1).cost(0, np.zeros((1, 1, 4))).tolist()
    (1.0, [[0.0]])
    """

    id = "logcosh-v1"

    def height(self, z: Array) -> Array:
        """(L₀w/√d)·Σ_j log cosh(z_j/w), by |a| + log(1 + e^{−2|a|}) − log 2, which does not overflow."""
        a = np.abs(z / self.width)
        terms = a + np.log1p(np.exp(-2.0 * a)) - math.log(2.0)
        return np.asarray(self.scale * self.width / math.sqrt(self.dim) * terms.sum(-1))

    def slope(self, z: Array) -> Array:
        """(L₀/√d)·tanh(z_j/w)."""
        return self.scale / math.sqrt(self.dim) * np.tanh(z / self.width)


@register("maximum-v1")
@dataclass(frozen=True, kw_only=True)
class Maximum(Lipschitz):
    """f_t(x) = L₀·max_j |z_j| + b_t, z = R(x − c_t): the largest of 2d linear forms. Convex, L₀-Lipschitz, not smooth.

    Only one coordinate matters at a time: the gradient has length L₀ and points along an axis of R.

    >>> problem = Maximum(dim=3, scale=2.0, drift="none")
    >>> problem.world(seed=0, trials=1).cost(0, np.array([[[1.0, -3.0, 0.5]]]))
    array([[6.]])
    """

    id = "maximum-v1"

    def height(self, z: Array) -> Array:
        """L₀·max_j |z_j|."""
        return np.asarray(self.scale * np.abs(z).max(-1))

    def slope(self, z: Array) -> Array:
        """L₀·sign z_j along the largest |z_j|; the first one of equal values."""
        steepest = np.abs(z).argmax(-1)[..., None]
        found = np.zeros_like(z)
        np.put_along_axis(found, steepest, self.scale * np.sign(np.take_along_axis(z, steepest, -1)), -1)
        return found


__all__ = ["Absolute", "Corner", "Drift", "LogCosh", "Maximum", "Quadratic", "Walk"]
