"""Nonstationary resource allocation on a grid (the paper's second experiment).

In round t, for one episode, agent i holds m_i(k), needs d_i(k) and sends the fraction a_ij(k) of its stock to each
neighbour j ∈ N_i, including itself ("keep"):

    m_i(k+1) = m_i(k) − Σ_{j∈N_i} a_ij(k) m_i(k) + Σ_{j∈N_i} a_ji(k) m_j(k) − d_i(k),
    d_i(k) = ψ_i sin(ω_i k + φ_i) + w_{i,k},   w ~ N(0, noise²),
    a_ij = exp(z_ij)/Σ_j exp(z_ij),   z_ij = Σ_p θ_ij(p) ‖o_i − c_p‖²,   o_i = (m_i(k), d_i(k)),

and the policy θ costs J_t(θ) = E Σ_i Σ_{k=0}^{H} γᵏ ζ_t min(m_i(k), 0)². The weight of shortage drifts:
ζ_{t+1} = ζ_t + 0.1·U[−1, 1].

The paper gives 16 agents on a 4 × 4 grid, 64 actions (48 directed edges and 16 self-loops) of 9 features each, so
d = 576, γ = 0.75, H = 30 and ζ_0 = 1. It leaves m(0), ψ, ω, φ, the noise and the c_p open. Unbounded, ζ_t would
eventually become negative and reward shortage; here it is reflected into an interval.

Reference: Zhang, Zhou, Ji, Zavlanos, "Boosting One-Point Derivative-Free Online Optimization via Residual Feedback",
arXiv 2010.07378, Section 6.2 and Appendix A.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path as File

import numpy as np

from trimtab import randomness
from trimtab.problems import base
from trimtab.problems.base import ONCE, Path, Problem, World, register
from trimtab.problems.kernels import allocation as kernels
from trimtab.problems.kernels import compiling, matrices
from trimtab.problems.kernels.compiling import threads, writable
from trimtab.randomness import DRIFT, Keyed
from trimtab.types import Array, Integers
from trimtab.util.extras import pip_install
from trimtab.util.files import cache_folder, write_atomically
from trimtab.validation import real, whole


@register("allocation-v1")
@dataclass(frozen=True, kw_only=True)
class Allocation(Problem):
    """One ζ_t for all agents: the drift scales the cost and does not move the best policy.

    A point is θ: the 9 coefficients of each action, agent by agent; the first action of an agent is to keep.

    >>> problem = Allocation()
    >>> problem.actions, problem.dim, problem.coordinates(0)
    (64, 576, slice(0, 27, None))
    >>> problem.world(seed=0, trials=2).cost(0, np.zeros((2, 1, 576))).shape
    (2, 1)
    """

    id = "allocation-v1"
    per_agent = False

    rows: int = 4
    columns: int = 4
    torus: bool = False
    """The other reading of 64 actions on a 4 × 4 grid: a torus, without the action to keep."""
    gamma: float = 0.75
    horizon: int = 30
    stock: float = 1.0
    """m_i(0)."""
    amplitude: tuple[float, float] = (0.5, 1.5)
    """The interval of the uniform ψ_i; like the ω_i and the φ_i (uniform in [0, 2π]), drawn once per trial."""
    frequency: tuple[float, float] = (0.2, 1.0)
    network: int | None = 12
    """The seed of ψ, ω, φ, shared by all trials, which then differ only in noise and drift; None: new ones for every
    trial. They determine the level of J: at the uniform policy it is 0.2 to 14 in 90 % of the draws, and 18 here, with
    5 for the best policy."""
    noise: float = 0.1
    centres: tuple[float, ...] = (-1.0, 0.0, 1.0)
    """The c_p are all pairs of these."""
    zeta_step: float = 0.1
    zeta_range: tuple[float, float] = (0.5, 1.5)
    """ζ_t is reflected at the ends of this interval; it starts at 1."""
    draws: int = 4
    """The number of noise paths that `cost` averages over, in pairs w, −w."""
    offline_draws: int = 64
    """The number of other noise paths used for the offline optimum."""
    offline_steps: int = 500
    rounds: int = 4000
    radius: float = 0.03
    dim: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "horizon", "offline_steps", "rounds"):
            whole(name, getattr(self, name), 1)
        for name in ("draws", "offline_draws"):
            if whole(name, getattr(self, name), 2) % 2:
                raise ValueError(
                    f"{name}={getattr(self, name)} is odd, but noise paths come in pairs: give an even number"
                )
        if self.network is not None:
            whole("network", self.network, 0)
        real("stock", self.stock)
        real("noise", self.noise, 0)
        real("radius", self.radius, 0, above=True)
        real("gamma", self.gamma, 0, 1, above=True)
        for name in ("amplitude", "frequency", "zeta_range"):
            low, high = getattr(self, name)
            if not -math.inf < low <= high < math.inf:
                raise ValueError(f"{name}={(low, high)!r} is not an interval: give finite numbers, low <= high")
        low, high = self.zeta_range
        if not 0 <= low <= 1 <= high:
            raise ValueError(
                f"zeta_range={self.zeta_range!r} must contain the initial value, 1, and no negative number"
            )
        if real("zeta_step", self.zeta_step, 0) > high - low:
            raise ValueError(
                f"zeta_step={self.zeta_step!r} jumps across zeta_range={self.zeta_range!r}: give a smaller step"
            )
        if not self.centres or not all(math.isfinite(centre) for centre in self.centres):
            raise ValueError(f"centres={self.centres!r} must be a list of finite numbers, at least one")
        object.__setattr__(self, "centres", tuple(float(centre) for centre in self.centres))
        object.__setattr__(self, "dim", self.actions * len(self.centres) ** 2)

    @property
    def agents(self) -> int:
        """The number of agents, one per cell of the grid."""
        return self.rows * self.columns

    @property
    def actions(self) -> int:
        """The number of actions: edges of the grid, in both directions, and (except on a torus) a "keep" per agent."""
        return len(self._heads)

    def neighbours(self, agent: int) -> tuple[int, ...]:
        """N_i: the agent itself, then those above, below, left and right of it; on a torus only those four."""
        row, column = divmod(agent, self.columns)
        sides = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        if self.torus:
            return tuple(r % self.rows * self.columns + c % self.columns for r, c in sides)
        return agent, *(r * self.columns + c for r, c in sides if 0 <= r < self.rows and 0 <= c < self.columns)

    def coordinates(self, agent: int) -> slice:
        """The slice of an agent's parameters in θ."""
        start, stop = self._firsts[agent : agent + 2] * len(self.centres) ** 2
        return slice(int(start), int(stop))

    @cached_property
    def _heads(self) -> Integers:
        return np.array([j for i in range(self.agents) for j in self.neighbours(i)], dtype=np.int64)

    @cached_property
    def _firsts(self) -> Integers:
        return np.cumsum([0, *(len(self.neighbours(i)) for i in range(self.agents))], dtype=np.int64)

    @cached_property
    def _basis(self) -> Array:
        """Row p: ‖o − c_p‖² = (m² + d², m, d, 1)·row."""
        m, d = (axis.ravel() for axis in np.meshgrid(self.centres, self.centres, indexing="ij"))
        return np.stack([np.ones(m.size), -2 * m, -2 * d, m**2 + d**2], axis=1)

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """θ = 0: every agent sends equal shares to its neighbours and itself."""
        return np.zeros((trials, self.dim))

    def world(self, seed: int, trials: int, first: int = 0) -> AllocationWorld:
        """The random walk of ζ in each trial, with one network for all trials or one each."""
        return AllocationWorld(self, seed, trials, first)


@register("allocation-per-agent-v1")
@dataclass(frozen=True, kw_only=True)
class PerAgentAllocation(Allocation):
    """One ζ_{i,t} per agent: the drift moves the best policy, whose cost is not known."""

    id = "allocation-per-agent-v1"
    per_agent = True


class AllocationWorld(World):
    """A realisation: the demands of each trial, and the random walk of ζ."""

    def __init__(self, problem: Allocation, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(seed, trials, first)
        self.problem = problem
        self._path = Path(np.ones((trials, problem.agents if problem.per_agent else 1)), self._advance)

    def _advance(self, round: int, zeta: Array) -> Array:
        low, high = self.problem.zeta_range
        moved = zeta + self.problem.zeta_step * self.drawn(round, lambda rng: rng.uniform(-1, 1, zeta.shape[1]))
        moved = np.where(moved > high, 2 * high - moved, moved)
        return np.where(moved < low, 2 * low - moved, moved)

    def zeta(self, round: int) -> Array:
        """ζ_{i,t}: `(trials, agents)`."""
        return writable(np.broadcast_to(self._path(round), (self.trials, self.problem.agents)))

    @cached_property
    def demand(self) -> Array:
        """ψ_i sin(ω_i k + φ_i), without noise: `(trials, H, agents)`."""
        p = self.problem

        def constants(rng: np.random.Generator) -> list[Array]:
            return [rng.uniform(low, high, p.agents) for low, high in (p.amplitude, p.frequency, (0, 2 * math.pi))]

        if p.network is None:
            drawn = self.drawn(ONCE, constants)
        else:
            shared = [np.stack(constants(rng)) for rng in Keyed(p.network, DRIFT).generators(ONCE)]
            drawn = np.repeat(np.stack(shared), self.trials, axis=0)
        psi, omega, phi = drawn[:, 0, None], drawn[:, 1, None], drawn[:, 2, None]
        wave: Array = psi * np.sin(omega * np.arange(p.horizon)[:, None] + phi)
        return wave

    def _paths(self, index: int, draws: int) -> Array:
        """Demands under a fixed set of noise, in pairs w, −w: `(trials, draws, H, agents)`."""
        shape = (draws // 2, *self.demand.shape[1:])
        noise = self.problem.noise * self.drawn(index, lambda rng: rng.standard_normal(shape))
        paths: Array = self.demand[:, None] + np.concatenate([noise, -noise], axis=1)
        return paths

    @cached_property
    def _common(self) -> Array:
        return self._paths(ONCE + 1, self.problem.draws)

    def cost(self, round: int, x: Array) -> Array:
        """J_t(θ), averaged over `draws` noise paths: the same paths for every point, method and round.

        So it is an exact, continuously differentiable function of θ, and the sampling error is similar for all methods.
        Against 4000 fresh paths the error of 4 paths is 0.05 (rms over 16 trials) at the uniform policy, where
        J = 18.1, and 0.12 at the best policy, where J = 5.1. Without noise, J would be too low by 0.3 and 0.6.
        """
        return _mean(self._rollouts(x, self._common, self.zeta(round)))

    def measure(self, round: int, x: Array, draw: int = 0) -> Array:
        """J_t under one fresh path of noise in the demand, the same for all points of a trial."""
        zeta, noise = self.zeta(round), np.empty(self.demand.shape)
        for trial, rng in enumerate(self._noise_keys.generators(round | draw << 40, self.first, self.trials)):
            rng.standard_normal(out=noise[trial])
        noise *= self.problem.noise
        noise += self.demand
        return self._rollouts(x, noise[:, None], zeta)[:, :, 0]

    def paid(self, round: int, x: Array, measured: Array) -> Array:
        """The measured value itself: its noise is small, and averaging over `draws` paths is expensive."""
        return measured

    def gradient(self, round: int, x: Array) -> Array:
        """The gradient of `cost`, by the adjoint of the rollout."""
        return self._adjoint(x, self._common, self.zeta(round))[1]

    def optimum(self, round: int) -> Array:
        """`cost` at the best policy found offline, once per trial; NaN with one ζ per agent.

        J is not convex, so this is the local minimum that L-BFGS reaches from θ = 0, not a proven bound. The search
        uses its own noise paths, so it does not overfit those of `cost`.
        """
        if self.problem.per_agent:
            return super().optimum(round)
        best: Array = self._path(round)[:, 0] * self._offline_costs
        return best

    @cached_property
    def _offline_costs(self) -> Array:
        ones = np.ones((self.trials, self.problem.agents))
        return _mean(self._rollouts(self.offline()[:, None], self._common, ones))[:, 0]

    def offline(self) -> Array:
        """The policies that L-BFGS finds for ζ = 1: `(trials, d)`.

        A trial takes a second or two, once: the result is cached on disk, in $TRIMTAB_CACHE, else in trimtab in
        $XDG_CACHE_HOME, else in ~/.cache/trimtab. The best policy is not unique: only 4 of the 9 features are
        independent, and a softmax ignores a common shift.
        """
        if self.problem.network is not None:  # one network, one policy
            return np.repeat(_offline(self.problem, 0, 0)[None], self.trials, axis=0)
        return np.stack([_offline(self.problem, self.seed, self.first + trial) for trial in range(self.trials)])

    def _search(self) -> Array:
        """θ of the first trial."""
        try:
            from scipy.optimize import minimize  # half a second of import, for the offline optimum only
        except ImportError as error:
            raise ImportError(f"the offline optimum needs SciPy: {pip_install('lab')}", name="scipy") from error
        paths = self._paths(ONCE + 2, self.problem.offline_draws)[:1]
        ones = np.ones((1, self.problem.agents))

        def value_and_slope(theta: Array) -> tuple[float, Array]:
            costs, slopes = self._adjoint(theta[None, None], paths, ones)
            return float(costs[0, 0]), slopes[0, 0]

        steps = self.problem.offline_steps
        # More threads would compete for the cores with those of SciPy's linear algebra, and be four times slower.
        with threads(1):
            found = minimize(
                value_and_slope,
                np.zeros(self.problem.dim),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20},
            )
        return np.asarray(found.x, dtype=float)

    def _rollouts(self, x: Array, demand: Array, zeta: Array) -> Array:
        p = self.problem
        law = p._firsts, p._heads, float(p.stock), float(p.gamma)
        with threads(x.shape[1] * demand.size // 25_000):
            scores = kernels.per_edge(self._edges(x, len(demand)), p._basis)
            return kernels.allocation_rollouts(scores, demand, zeta, *law)

    def _adjoint(self, x: Array, demand: Array, zeta: Array) -> tuple[Array, Array]:
        """The mean over the paths, `(trials, k)`, and its gradient, `(trials, k, d)`."""
        p = self.problem
        law = p._firsts, p._heads, float(p.stock), float(p.gamma)
        with threads(x.shape[1] * demand.size // 10_000):
            scores = kernels.per_edge(self._edges(x, len(demand)), p._basis)
            costs, slopes = kernels.allocation_gradients(scores, demand, zeta, *law)
            back = kernels.per_edge(slopes.mean(axis=2), np.ascontiguousarray(p._basis.T))
        return _mean(costs), back.reshape(x.shape)

    def _edges(self, x: Array, trials: int) -> Array:
        p = self.problem
        if x.ndim != 3 or x.shape[0] != trials or x.shape[2] != p.dim:
            raise ValueError(f"x of shape {x.shape} does not fit: give (trials, k, d) = ({trials}, k, {p.dim})")
        return writable(x).reshape(trials, x.shape[1], p.actions, len(self.problem.centres) ** 2)


def _mean(costs: Array) -> Array:
    """The mean over the noise paths."""
    mean: Array = costs.mean(axis=-1)
    return mean


@cache
def _code() -> str:
    """A hash of the source files that an offline optimum depends on."""
    modules = (base, compiling, kernels, matrices, randomness)
    sources = (__file__, *(str(module.__file__) for module in modules))
    return hashlib.sha256(b"\0".join(File(source).read_bytes() for source in sources)).hexdigest()


def _offline(problem: Allocation, seed: int, trial: int) -> Array:
    """The offline policy of a trial, from the cache if possible, else computed."""
    parameters = asdict(problem)
    for irrelevant in ("draws", "radius", "rounds", "zeta_range", "zeta_step"):
        del parameters[irrelevant]
    key = json.dumps([parameters, seed, trial, _code()], sort_keys=True)
    try:
        file = cache_folder() / "allocation" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"
    except RuntimeError:  # no home directory
        return problem.world(seed, 1, trial)._search()
    try:
        theta: Array = np.load(file, allow_pickle=False)
        if theta.shape == (problem.dim,) and theta.dtype == np.float64:
            return theta
    except (OSError, ValueError, EOFError):
        pass
    theta = problem.world(seed, 1, trial)._search()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        np.save(buffer, theta, allow_pickle=False)
        write_atomically(file, buffer.getvalue())
    except OSError:
        pass
    return theta
