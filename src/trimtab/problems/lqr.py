"""Nonstationary LQR control (the paper's first experiment), in three versions.

In round t a gain K ∈ ℝ^{n_u × n_x} controls one episode of the system

    x_{k+1} = A_t x_k + B_t u_k + w_k,   u_k = K x_k,   w_k ~ N(0, σ_w² I),

and costs V_t(K) = E Σ_{k<H} γᵏ (x_kᵀ Q x_k + u_kᵀ R u_k). From round to round

    A_{t+1} = A_t + s·M_t,   B_{t+1} = B_t + s·N_t,   entries of M_t and N_t uniform, those of A_0 and B_0 N(0, 0.1²).

The paper gives n_x = n_u = 6, γ = 0.5, H = 50, s = 0.01 and entries of M_t, N_t in [0, 1]. This drift has a nonzero
mean: near t = 49 the uncontrolled system becomes unstable (√γ ρ(A_t) > 1), and V_t(0) explodes. `lqr-zero-mean-v1` is a
variant with a stationary mean; `lqr-noisy-v1` measures one noisy rollout instead of the exact expectation. The paper
leaves Q, R, the laws of x_0 and w, K_0 and the number of rounds open.

Reference: Zhang, Zhou, Ji, Zavlanos, "Boosting One-Point Derivative-Free Online Optimization via Residual Feedback",
arXiv 2010.07378, Section 6.1 and Appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from trimtab.problems.base import ONCE, Path, Problem, World, register
from trimtab.problems.kernels.compiling import threads, writable
from trimtab.problems.kernels.lqr import lqr_gradients, lqr_rollouts, lqr_values
from trimtab.problems.kernels.riccati import riccati
from trimtab.types import Array
from trimtab.validation import real, whole

Weight = float | Sequence[Sequence[float]]


BLOCK = 32  # rounds of drift drawn at once
CACHED = 2**19  # cached numbers of optimisers per problem, seed and trials: 4 MB


@register("lqr-v1")
@dataclass(frozen=True, kw_only=True)
class LQR(Problem):
    """The paper's drift, taken literally; a measurement is exactly V_t(K), with E x_0x_0ᵀ = I.

    A point is the gain K, row by row.

    >>> problem = LQR()
    >>> world = problem.world(seed=0, trials=2)
    >>> no_control = np.zeros((2, 1, problem.dim))
    >>> world.cost(0, no_control).shape, bool((world.regret(40, no_control) > 1).all())
    ((2, 1), True)
    """

    id = "lqr-v1"

    n_x: int = 6
    n_u: int = 6
    gamma: float = 0.5
    horizon: int = 50
    Q: Weight = 1.0
    """A number (times I) or a matrix; positive semidefinite."""
    R: Weight = 1.0
    """A number (times I) or a matrix; positive definite."""
    drift: float = 0.01
    """s, the step size of A and B."""
    drift_range: tuple[float, float] = (0.0, 1.0)
    """The interval of the uniform entries of M and N."""
    initial_std: float = 0.1
    """The standard deviation of the entries of A_0 and B_0."""
    gain_std: float = 0.0
    """The standard deviation of the entries of the initial gain K_0, with mean 0."""
    sigma_w: float = 0.0
    redraw: bool = True
    """Draw x_0 ~ N(0, I) for each rollout; otherwise x_0 = (1, …, 1)."""
    exact: bool = True
    """Measure V_t(K) exactly; otherwise the cost of one rollout."""
    rounds: int = 50
    radius: float = 0.05
    dim: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("n_x", "n_u", "horizon", "rounds"):
            whole(name, getattr(self, name), 1)
        for name in ("drift", "initial_std", "gain_std", "sigma_w"):
            real(name, getattr(self, name), 0)
        real("radius", self.radius, 0, above=True)
        real("gamma", self.gamma, 0, 1, above=True)
        low, high = self.drift_range
        if not -np.inf < low <= high < np.inf:
            raise ValueError(f"drift_range={self.drift_range!r} is not an interval: give finite numbers, low <= high")
        for name, size, definite in (("Q", self.n_x, False), ("R", self.n_u, True)):
            object.__setattr__(self, name, _weight(name, getattr(self, name), size, definite))
        object.__setattr__(self, "dim", self.n_x * self.n_u)

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """K_0 = gain_std·N(0, 1), entry by entry."""
        gains: Array = self.gain_std * self.world(seed, trials, first).drawn(
            ONCE + 1, lambda rng: rng.standard_normal(self.dim)
        )
        return gains

    def world(self, seed: int, trials: int, first: int = 0) -> LQRWorld:
        """The drift of A_t and B_t in these trials."""
        return LQRWorld(self, seed, trials, first)


@register("lqr-zero-mean-v1")
@dataclass(frozen=True, kw_only=True)
class ZeroMeanLQR(LQR):
    """Entries of M_t and N_t in [−1, 1]: the drift has mean zero, and the system stays controllable for long."""

    id = "lqr-zero-mean-v1"

    drift_range: tuple[float, float] = (-1.0, 1.0)
    gain_std: float = 0.5
    rounds: int = 500
    radius: float = 0.1


@register("lqr-noisy-v1")
@dataclass(frozen=True, kw_only=True)
class NoisyLQR(LQR):
    """A measurement is one rollout from x_0 = (1, …, 1), with process noise.

    With `redraw=True` x_0 is redrawn in each rollout; its noise then outweighs the advantage of residual over one-point
    feedback.
    """

    id = "lqr-noisy-v1"

    sigma_w: float = 0.1
    redraw: bool = False
    exact: bool = False
    rounds: int = 40


class LQRWorld(World):
    """A realisation of the drift of A_t and B_t in each trial."""

    def __init__(self, problem: LQR, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(seed, trials, first)
        self.problem = problem
        self._q, self._r = _matrix(problem.Q, problem.n_x), _matrix(problem.R, problem.n_u)
        self._moment = np.eye(problem.n_x) if problem.redraw else np.ones((problem.n_x, problem.n_x))
        shape = (problem.n_x, problem.n_x + problem.n_u)
        start = problem.initial_std * self.drawn(ONCE, lambda rng: rng.standard_normal(shape))
        self._drift: dict[int, Array] = {}
        self._path = Path(start, self._advance)
        self._split: tuple[int | None, Array, Array] = (None, start, start)
        self._best = _solutions(problem, seed, trials, first)

    def _advance(self, round: int, both: Array) -> Array:
        block, row = divmod(round, BLOCK)
        if block not in self._drift:
            low, high = self.problem.drift_range
            shape = (BLOCK, *both.shape[1:])
            self._drift = {block: self.problem.drift * self.drawn(block, lambda rng: rng.uniform(low, high, shape))}
        moved: Array = both + self._drift[block][:, row]
        return moved

    def system(self, round: int) -> tuple[Array, Array]:
        """A_t `(trials, n_x, n_x)` and B_t `(trials, n_x, n_u)`."""
        if round != self._split[0]:
            both, n_x = self._path(round), self.problem.n_x
            self._split = round, writable(both[:, :, :n_x]), writable(both[:, :, n_x:])
        return self._split[1:]

    @property
    def noisy(self) -> bool:
        """Whether a measurement is a rollout rather than V_t(K)."""
        return not self.problem.exact

    def cost(self, round: int, x: Array) -> Array:
        """V_t(K), exact; inf where it overflows."""
        a, b = self.system(round)
        gains = self._gains(x)
        with threads(gains.size // 10_000):
            return lqr_values(a, b, gains, *self._law())

    def gradient(self, round: int, x: Array) -> Array:
        """∇V_t(K), exact; NaN where it overflows."""
        a, b = self.system(round)
        gains = self._gains(x)
        with threads(gains.size // 600):
            return lqr_gradients(a, b, gains, *self._law()).reshape(x.shape)

    def measure(self, round: int, x: Array, draw: int = 0) -> Array:
        """V_t(K), or the cost of one rollout, whose noise is the same for all points of a trial."""
        p = self.problem
        if p.exact:
            return self.cost(round, x)
        a, b = self.system(round)
        gains = self._gains(x)
        starts, noise = np.ones((self.trials, p.n_x)), np.empty((self.trials, p.horizon, p.n_x))
        for trial, rng in enumerate(self._noise_keys.generators(round | draw << 40, self.first, self.trials)):
            rng.standard_normal(out=noise[trial])
            if p.redraw:
                rng.standard_normal(out=starts[trial])
        noise *= p.sigma_w
        with threads(gains.size // 10_000):
            return lqr_rollouts(a, b, gains, self._q, self._r, starts, noise, float(p.gamma))

    def optimum(self, round: int) -> Array:
        """V_t at the optimiser; NaN in trials where it is unknown."""
        return self._solution(round)[0].copy()

    def optimiser(self, round: int) -> Array:
        """The gain from the Riccati equation with √γ-scaled (A_t, B_t); NaN in trials where it is not optimal to 1e-9.

        It is optimal for the infinite horizon. For H steps, the cost of the best static gain lies between its cost and
        that of the best policy, which follows from H steps of the Riccati recursion; the two must agree.
        """
        return self._solution(round)[1].copy()

    def _solution(self, round: int) -> tuple[Array, Array]:
        if round not in self._best:
            a, b = self.system(round)
            with threads(b.size // 1_000):
                gains, bounds = riccati(a, b, *self._law())
            points = gains.reshape(self.trials, -1)
            values = self.cost(round, points[:, None])[:, 0]
            unknown = ~(values - bounds <= 1e-9 * values)
            values[unknown] = np.nan
            points[unknown] = np.nan
            while len(self._best) >= max(64, CACHED // points.size):
                self._best.pop(next(iter(self._best)), None)
            self._best[round] = values, points
        return self._best[round]

    def _gains(self, x: Array) -> Array:
        p = self.problem
        if x.ndim != 3 or x.shape[0] != self.trials or x.shape[2] != p.dim:
            raise ValueError(f"x of shape {x.shape} does not fit: give (trials, k, d) = ({self.trials}, k, {p.dim})")
        return writable(x).reshape(self.trials, x.shape[1], p.n_u, p.n_x)

    def _law(self) -> tuple[Array, Array, Array, float, float, int]:
        p = self.problem
        return self._q, self._r, self._moment, float(p.gamma), float(p.sigma_w) ** 2, p.horizon


@lru_cache(maxsize=8)
def _solutions(problem: LQR, seed: int, trials: int, first: int) -> dict[int, tuple[Array, Array]]:
    """Cache of optima and optimisers by round, shared by the worlds of the same trials."""
    return {}


def _matrix(weight: Weight, size: int) -> Array:
    matrix: Array = np.asarray(weight, dtype=float)
    return matrix * np.eye(size) if matrix.ndim == 0 else matrix


def _weight(name: str, value: object, size: int, definite: bool) -> Weight:
    """Validate a weight of `size` numbers and return a float or a tuple of rows, which can be compared and hashed."""
    try:
        given: Array = np.asarray(value, dtype=float)
        matrix = _matrix(given.tolist(), size)
        fits = matrix.shape == (size, size) and bool(np.isfinite(matrix).all()) and np.array_equal(matrix, matrix.T)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(f"{name}={value!r} is not a valid weight: give a number, or a symmetric matrix of {size} rows")
    lowest = np.linalg.eigvalsh(matrix)[0]
    if lowest < 0 or (definite and lowest == 0):
        kind = "positive definite" if definite else "positive semidefinite"
        raise ValueError(f"{name}={value!r} has the eigenvalue {lowest:g}: make it {kind}")
    return float(given) if given.ndim == 0 else tuple(tuple(float(entry) for entry in row) for row in given)
