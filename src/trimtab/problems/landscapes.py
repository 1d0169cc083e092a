"""Nonconvex problems: a curved valley, an egg box, and peaks that move, rise and fall."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trimtab.domains import Box, Domain
from trimtab.problems.base import ONCE, Path, Problem, World, reflect, register
from trimtab.problems.moving import Moving, SmoothLipschitz
from trimtab.types import Array
from trimtab.validation import real, whole


@register("rosenbrock-v1")
@dataclass(frozen=True, kw_only=True)
class Rosenbrock(Moving):
    """f_t(x) = Σ_j a·(z_{j+1} − z_j²)² + (1 − z_j)² + b_t, z = R(x − c_t): a curved valley (Rosenbrock 1960).

    The optimum is at z = (1, …, 1); in four or more dimensions there is another local one near (−1, 1, …, 1). The
    landscape moves with c_t; a is the `steepness` of the walls.

    >>> world = Rosenbrock(dim=2, drift="none").world(seed=0, trials=1)
    >>> world.cost(0, np.array([[[1.0, 1.0], [-1.2, 1.0]]])).round(9)
    array([[ 0. , 24.2]])
    """

    id = "rosenbrock-v1"

    dim: int = 2
    speed: float = 0.01
    steepness: float = 100.0
    rounds: int = 5000
    radius: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("dim", self.dim, 2)
        real("steepness", self.steepness, 0, above=True)

    def height(self, z: Array) -> Array:
        """Σ_j a·(z_{j+1} − z_j²)² + (1 − z_j)²."""
        bend = z[..., 1:] - z[..., :-1] ** 2
        return np.asarray((self.steepness * bend**2 + (1.0 - z[..., :-1]) ** 2).sum(-1))

    def slope(self, z: Array) -> Array:
        """2a·(z_j − z_{j−1}²) − 4a·z_j·(z_{j+1} − z_j²) − 2·(1 − z_j), without terms beyond the ends."""
        bend = 2.0 * self.steepness * (z[..., 1:] - z[..., :-1] ** 2)
        slope = np.zeros_like(z)
        slope[..., 1:] += bend
        slope[..., :-1] += -2.0 * z[..., :-1] * bend - 2.0 * (1.0 - z[..., :-1])
        return slope

    def lowest(self) -> Array:
        """(1, …, 1)."""
        return np.ones(self.dim)


@register("sines-v1")
@dataclass(frozen=True, kw_only=True)
class Sines(SmoothLipschitz):
    """f_t(x) = (L₀·w/√d)·Σ_j (1 − cos(z_j/w)) + b_t, z = R(x − c_t): an egg box, bounded, L₁ = L₀/(w√d).

    All minima are equally deep; `optimiser` is the one near the start. Smoothing by N(0, δ²I) only flattens the
    landscape, ∇f_δ = exp(−δ²/2w²)·∇f, so gradient norms are known exactly; w is the `width`.

    >>> world = Sines(dim=1, drift="none").world(seed=0, trials=1)
    >>> world.cost(0, np.array([[[0.0], [np.pi], [2 * np.pi]]])).round(9)
    array([[0., 2., 0.]])
    """

    id = "sines-v1"

    width: float = 1.0

    def height(self, z: Array) -> Array:
        """(L₀w/√d)·Σ_j (1 − cos(z_j/w)), as 2 sin²(z_j/2w), which is exact near 0."""
        terms = 2.0 * np.sin(0.5 * z / self.width) ** 2
        return np.asarray(self.scale * self.width / math.sqrt(self.dim) * terms.sum(-1))

    def slope(self, z: Array) -> Array:
        """(L₀/√d)·sin(z_j/w)."""
        return self.scale / math.sqrt(self.dim) * np.sin(z / self.width)


@register("peaks-v1")
@dataclass(frozen=True, kw_only=True)
class Peaks(Problem):
    """Moving peaks (Branke 1999), as a cost: f_t(x) = −max_i [H_i − W_i·‖x − p_i‖] in the box [0, size]^d.

    Every `every` rounds the height H_i and width W_i of each cone take a normal step, reflected into 30…70 and 1…12,
    and its top p_i moves by `shift` in a new direction (correlation 0) or the same (correlation 1), reflected at the
    walls. The best cost is −max_i H_i, at that top; a local method climbs some peak and follows it.

    >>> problem = Peaks(dim=2, peaks=3)
    >>> world = problem.world(seed=0, trials=1)
    >>> bool(world.cost(7, world.optimiser(7)[:, None])[0, 0] == world.optimum(7)[0])
    True
    """

    id = "peaks-v1"

    dim: int = 5
    peaks: int = 10
    size: float = 100.0
    every: int = 100
    """The number of rounds from one change to the next."""
    shift: float = 1.0
    """The distance a top moves in a change."""
    correlation: float = 0.0
    height_step: float = 1.0
    """The standard deviation of the steps of a height."""
    width_step: float = 0.1
    """The standard deviation of the steps of a width."""
    noise: float = 0.0
    """The standard deviation of the measurement noise."""
    rounds: int = 5000
    radius: float = 1.0

    def __post_init__(self) -> None:
        for name in ("dim", "peaks", "every", "rounds"):
            whole(name, getattr(self, name), 1)
        for name in ("shift", "correlation", "height_step", "width_step", "noise"):
            real(name, getattr(self, name), 0)
        real("size", self.size, 0, above=True)
        real("radius", self.radius, 0, above=True)
        if self.correlation > 1:
            raise ValueError(f"correlation={self.correlation} must be between 0 (new direction) and 1 (same direction)")

    @property
    def domain(self) -> Domain:
        """[0, size]^d."""
        return Box(np.zeros(self.dim), np.full(self.dim, self.size))

    @property
    def lipschitz(self) -> float:
        """The largest width of a cone."""
        return WIDTHS[1]

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """The centre of the box."""
        return np.full((trials, self.dim), 0.5 * self.size)

    def world(self, seed: int, trials: int, first: int = 0) -> PeaksWorld:
        """The moving peaks of each trial."""
        return PeaksWorld(self, seed, trials, first)


HEIGHTS, WIDTHS = (30.0, 70.0), (1.0, 12.0)


class PeaksWorld(World):
    """A realisation of `Peaks`; its state is (tops, heights, widths, last moves of the tops)."""

    def __init__(self, problem: Peaks, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(seed, trials, first)
        self.problem = problem
        uniform = self.drawn(ONCE, lambda rng: rng.random((problem.peaks, problem.dim + 2)))
        self._path = Path(
            (
                problem.size * uniform[..., 2:],
                HEIGHTS[0] + (HEIGHTS[1] - HEIGHTS[0]) * uniform[..., 0],
                WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * uniform[..., 1],
                self._new_moves(ONCE + 1),
            ),
            self._advance,
        )

    def _new_moves(self, index: int) -> Array:
        moves = self.drawn(index, lambda rng: rng.standard_normal((self.problem.peaks, self.problem.dim)))
        return self._of_length(moves, self.problem.shift)

    @staticmethod
    def _of_length(moves: Array, length: float) -> Array:
        scaled: Array = moves * (length / np.maximum(np.linalg.norm(moves, axis=-1, keepdims=True), 1e-300))
        return scaled

    def _advance(self, round: int, state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        p = self.problem
        if round % p.every:
            return state
        tops, heights, widths, moves = state
        normals = self.drawn(round, lambda rng: rng.standard_normal((p.peaks, p.dim + 2)))
        fresh = self._of_length(normals[..., 2:], p.shift)
        moves = self._of_length((1.0 - p.correlation) * fresh + p.correlation * moves, p.shift)
        target = tops + moves
        moves = np.where((target < 0.0) | (target > p.size), -moves, moves)
        return (
            reflect(target, 0.0, p.size),
            reflect(heights + p.height_step * normals[..., 0], *HEIGHTS),
            reflect(widths + p.width_step * normals[..., 1], *WIDTHS),
            moves,
        )

    def _cones(self, round: int, x: Array) -> tuple[Array, Array]:
        """The depth of every cone at every point, `(trials, k, peaks)`, and the distances to the tops."""
        tops, heights, widths, _ = self._path(round)
        distances = np.linalg.norm(x[:, :, None] - tops[:, None], axis=-1)
        return widths[:, None] * distances - heights[:, None], distances

    def cost(self, round: int, x: Array) -> Array:
        """min_i [W_i·‖x − p_i‖ − H_i]."""
        lowest: Array = self._cones(round, x)[0].min(-1)
        return lowest

    @property
    def sigma(self) -> float:
        """The noise of the problem."""
        return self.problem.noise

    def optimum(self, round: int) -> Array:
        """−max_i H_i."""
        best: Array = -self._path(round)[1].max(-1)
        return best

    def optimiser(self, round: int) -> Array:
        """The top of the highest cone."""
        tops, heights, _, _ = self._path(round)
        best: Array = tops[np.arange(self.trials), heights.argmax(-1)]
        return best

    def gradient(self, round: int, x: Array) -> Array:
        """W_i·(x − p_i)/‖x − p_i‖ of the cone with the lowest cost at x; 0 at its top."""
        tops, _, widths, _ = self._path(round)
        cones, distances = self._cones(round, x)
        trial = np.arange(self.trials)[:, None]
        active = cones.argmin(-1)
        away = x - tops[trial, active]
        distance = np.take_along_axis(distances, active[..., None], -1)
        slope: Array = widths[trial, active][..., None] * away / np.where(distance > 0.0, distance, 1.0)
        return slope


__all__ = ["Peaks", "PeaksWorld", "Rosenbrock", "Sines"]
