"""A landscape about a moving point: f_t(x) = h(R(x − c_t)) + b_t, with seven kinds of drift.

    c_0 = 0;  none: c_t = 0                       walk: c_t = c_{t−1} + speed·n_t/√d, n_t ~ N(0, I)
              line: c_t = c_{t−1} + speed·v       jumps: c_t = c_{t−1} + speed·every·v_t, once every `every` rounds
              ramps: a line for `every` rounds, a pause of the same length, another line, …
              circle: one revolution in `every` rounds, in a random plane
              telegraph: from 0 to speed·every·v or back, with probability 1/every in each round
    b_0 = 0;  b_t = b_{t−1} + trend + offset·N(0, 1)

v and v_t are random unit vectors, so `speed` is the distance per round (rms for the walk, mean for the telegraph, while
moving for the ramps). Subclasses define h, with min h = 0.

Noise follows one of three laws: normal, Student's t with 2 degrees of freedom (infinite variance), and relative: normal
times the excess cost over the optimum.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from trimtab.problems.base import ONCE, Path, Problem, World, directions
from trimtab.types import Array
from trimtab.validation import real, whole

Drift = Literal["none", "walk", "line", "jumps", "ramps", "circle", "telegraph"]
NoiseLaw = Literal["normal", "student", "relative"]

HEADING, ROTATION, PLANE, RAMPS = ONCE + 1, ONCE + 2, ONCE + 3, ONCE + 2**40
"""Indices of these draws; `RAMPS` is the first of many."""
FREEDOM = 2.0  # degrees of freedom of Student's t


@dataclass(frozen=True, kw_only=True)
class Moving(Problem):
    """The parameters that all moving problems share.

    >>> from trimtab.problems import Moving, make
    >>> isinstance(make("sines-v1", drift="circle", noise=0.1), Moving)
    True
    """

    dim: int = 10
    drift: Drift = "walk"
    speed: float = 0.02
    every: int = 100
    """Rounds between two jumps, of a ramp, of a circle, and the mean between two switches."""
    offset: float = 0.02
    """The standard deviation of the steps of b_t."""
    trend: float = 0.0
    """The mean of the steps of b_t."""
    noise: float = 0.0
    """The standard deviation of the measurement noise (Student's: its scale; relative: a share of the excess cost)."""
    noise_law: NoiseLaw = "normal"
    rotate: bool = False
    """Rotate the landscape by a random R, different in each trial (d² numbers per trial)."""
    distance: float = 1.0
    """The distance of the start from the optimum of round 0, in a random direction."""
    rounds: int = 2000
    radius: float = 0.1

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        whole("every", self.every, 1)
        whole("rounds", self.rounds, 1)
        real("radius", self.radius, 0, above=True)
        for name in ("speed", "offset", "noise", "distance"):
            real(name, getattr(self, name), 0)
        if self.drift not in get_args(Drift):
            raise ValueError(f"drift={self.drift!r} is unknown: choose one of {', '.join(get_args(Drift))}")
        if self.noise_law not in get_args(NoiseLaw):
            raise ValueError(f"noise_law={self.noise_law!r} is unknown: choose from {', '.join(get_args(NoiseLaw))}")
        real("trend", self.trend)

    @property
    def variation(self) -> float:
        """V_f of Assumption 3.1; inf if the noise is unbounded in rms."""
        if self.noise and self.noise_law != "normal":
            return math.inf
        far = self.speed * self.every
        longest = {"none": 0.0, "jumps": far, "telegraph": far}.get(self.drift, self.speed)
        shift = longest * self.lipschitz if longest else 0.0
        return math.hypot(shift, self.offset, self.trend, math.sqrt(2) * self.noise)

    @abstractmethod
    def height(self, z: Array) -> Array:
        """h(z), over the last axis."""

    @abstractmethod
    def slope(self, z: Array) -> Array:
        """∇h(z)."""

    def lowest(self) -> Array:
        """argmin h: `(d,)`."""
        return np.zeros(self.dim)

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """At the given distance from the optimum of round 0, in a random direction."""
        world = self.world(seed, trials, first)
        return world.optimiser(0) + self.distance * directions(world, ONCE, self.dim)

    def world(self, seed: int, trials: int, first: int = 0) -> MovingWorld:
        """The drift of c_t and b_t in these trials, and their rotations."""
        return MovingWorld(self, seed, trials, first)


@dataclass(frozen=True, kw_only=True)
class Lipschitz(Moving):
    """A landscape with its Lipschitz constant as a parameter."""

    scale: float = 1.0
    """L₀, the Lipschitz constant in the Euclidean norm."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("scale", self.scale, 0, above=True)

    @property
    def lipschitz(self) -> float:
        """L₀: the scale."""
        return self.scale


@dataclass(frozen=True, kw_only=True)
class SmoothLipschitz(Lipschitz):
    """A Lipschitz and smooth landscape, h(z) = (L₀·w/√d)·Σ_j k(z_j/w) with |k′|, |k″| ≤ 1; w is the `width`."""

    width: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        real("width", self.width, 0, above=True)

    @property
    def smoothness(self) -> float:
        """L₁ = L₀/(w√d)."""
        return self.scale / (self.width * math.sqrt(self.dim))


class MovingWorld(World):
    """A realisation of a `Moving` problem: c_t, b_t and R of each trial."""

    def __init__(self, problem: Moving, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(seed, trials, first)
        self.problem = problem
        self._path = Path((np.zeros((trials, problem.dim)), np.zeros(trials)), self._advance)
        straight = problem.drift in ("line", "telegraph")
        self._heading = directions(self, HEADING, problem.dim) if straight else np.empty(0)
        self._plane = self._axes() if problem.drift == "circle" else np.empty(0)
        self._turn = self._rotations() if problem.rotate else None

    def _advance(self, round: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        centre, offset = state
        p = self.problem
        moves = p.drift == "walk" or (p.drift == "jumps" and round % p.every == 0)
        switches = p.drift == "telegraph"
        if p.offset or moves or switches:
            normals = self.drawn(round, lambda rng: rng.standard_normal(1 + p.dim * moves + switches))
            offset = offset + p.offset * normals[:, 0]
            if p.drift == "walk":
                centre = centre + p.speed / math.sqrt(p.dim) * normals[:, 1:]
            elif moves:
                length = np.linalg.norm(normals[:, 1:], axis=-1, keepdims=True)
                centre = centre + p.speed * p.every * normals[:, 1:] / length
            elif switches:
                centre = np.where(normals[:, 1:] < self._rare, p.speed * p.every * self._heading - centre, centre)
        if p.drift == "line":
            centre = centre + p.speed * self._heading
        elif p.drift == "ramps":
            block, resting = divmod((round - 1) // p.every, 2)
            if not resting:
                centre = centre + p.speed * directions(self, RAMPS + block, p.dim)
        elif p.drift == "circle":
            angle = 2 * math.pi * round / p.every
            radius = p.speed * p.every / (2 * math.pi)
            centre = radius * (math.sin(angle) * self._plane[:, 0] + (1 - math.cos(angle)) * self._plane[:, 1])
        return centre, offset + p.trend

    @cached_property
    def _rare(self) -> float:
        """The quantile of the normal law at 1/every."""
        return NormalDist().inv_cdf(1.0 / self.problem.every) if self.problem.every > 1 else math.inf

    def _axes(self) -> Array:
        """Two orthonormal vectors per trial, `(trials, 2, d)`; in one dimension they are equal."""
        first, second = directions(self, PLANE, self.problem.dim), directions(self, PLANE + 1, self.problem.dim)
        if self.problem.dim > 1:
            second = second - (second * first).sum(-1, keepdims=True) * first
            second /= np.linalg.norm(second, axis=-1, keepdims=True)
        return np.stack([first, second], axis=1)

    def _rotations(self) -> Array:
        """Uniform orthogonal matrices: QR of normals, corrected by the signs of R's diagonal (Mezzadri 2007)."""
        q, r = np.linalg.qr(self.drawn(ROTATION, lambda rng: rng.standard_normal((self.problem.dim,) * 2)))
        turn: Array = q * np.sign(np.einsum("tii->ti", r))[:, None, :]
        return turn

    def _local(self, round: int, x: Array) -> Array:
        return self.inward(x - self.middle(round)[:, None])

    def middle(self, round: int) -> Array:
        """c_t: `(trials, d)`."""
        return self._path(round)[0]

    def inward(self, x: Array) -> Array:
        """Rx: points or directions `(trials, k, d)` in the axes of the landscape."""
        return x if self._turn is None else x @ self._turn

    def outward(self, z: Array) -> Array:
        """Rᵀz: the inverse of `inward`."""
        return z if self._turn is None else z @ self._turn.swapaxes(1, 2)

    def cost(self, round: int, x: Array) -> Array:
        """h(R(x − c_t)) + b_t."""
        height: Array = self.problem.height(self._local(round, x)) + self._path(round)[1][:, None]
        return height

    @property
    def sigma(self) -> float:
        """The noise of the problem."""
        return self.problem.noise

    def disturbed(self, round: int, costs: Array, draw: int = 0) -> Array:
        """Add noise to costs; relative noise is proportional to the excess over the optimum."""
        if self.problem.noise_law != "relative" or not self.problem.noise:
            return super().disturbed(round, costs, draw)
        excess = costs - self.optimum(round)[:, None]
        return np.asarray(costs + self.problem.noise * excess * self.noise(round, draw)[:, None])

    def noise(self, round: int, draw: int) -> Array:
        """Standard normal numbers, or Student's t."""
        if self.problem.noise_law != "student":
            return super().noise(round, draw)
        generators = self._noise_keys.generators(round | draw << 40, self.first, self.trials)
        return np.array([rng.standard_t(FREEDOM) for rng in generators])

    def optimum(self, round: int) -> Array:
        """b_t, since min h = 0."""
        return self._path(round)[1].copy()

    def optimiser(self, round: int) -> Array:
        """c_t + Rᵀz*, where h(z*) = 0."""
        lowest = np.broadcast_to(self.problem.lowest(), (self.trials, 1, self.problem.dim))
        best: Array = self.middle(round) + self.outward(lowest)[:, 0]
        return best

    def gradient(self, round: int, x: Array) -> Array:
        """The gradient of the landscape in the original axes."""
        return self.outward(self.problem.slope(self._local(round, x)))
