"""An adversary that chooses the objective (Appendix I), before or after seeing the query.

f_t(x) = L₀·(√(1 + ‖x‖²) − 1) + b_t: the adversary raises or lowers the whole function by at most V_f per round,
b_t = b_{t−1} ± V_f. The optimiser stays at 0 and the regret f_t(x) − min f_t does not contain b_t, so all harm is done
through the gradient estimate: residual feedback uses y_t − y_{t−1} = … ± V_f, times u_t/δ.
With a `budget`, changes stop before the sum of their squares exceeds W̃_T.

* `order="before"`: the sign is chosen knowing everything except u_t. Then E[±V_f·u_t/δ] = 0: the estimate is unbiased,
  as the paper's proofs require, and the adversary can only add variance. It uses the sign of the difference y_t −
  y_{t−1} that it expects without a change, ½[f(x_t + v) + f(x_t − v)] − f(x_{t−1} + v) with v = δu_{t−1}.
* `order="after"`: the sign is chosen knowing the query x_t + δu_t, the order that Appendix I describes. It uses
  −sign⟨u_t, x_t⟩, which pushes the step away from the optimum. Then u_t is not independent of f_t, and for
  Gaussian u the estimate has the bias −√(2/π)·(V_f/δ)·x_t/‖x_t‖, at the same V_f: the agent settles where the slope
  L₀·r/√(1+r²) balances √(2/π)·V_f/δ, or diverges if V_f/δ > √(π/2)·L₀.

Two queries of the same f_t (two-point feedback) cancel b_t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from trimtab.problems.base import Problem, World, register
from trimtab.types import Array
from trimtab.validation import real, whole

Order = Literal["before", "after"]


@register("adversary-v1")
@dataclass(frozen=True, kw_only=True)
class Adversary(Problem):
    """Bounded adversary (Appendix I): f_t(x) = L₀·(√(1 + ‖x‖²) − 1) + b_t, b_t = b_{t−1} ± V_f.

    >>> problem = Adversary(dim=2, order="after")
    >>> world = problem.world(seed=0, trials=1)
    >>> centre, query = np.array([[[3.0, 0.0]]]), np.array([[[3.1, 0.2]]])
    >>> for round in range(2):
    ...     world.play(round, centre, query)
    >>> world.optimum(0), world.optimum(1)
    (array([0.]), array([-0.05]))
    """

    id = "adversary-v1"

    dim: int = 10
    order: Order = "before"
    power: float = 0.05
    """V_f, the largest change of the function in a round."""
    budget: float = math.inf
    """W̃_T, the largest sum of squared changes; once it is spent, the function no longer changes."""
    scale: float = 1.0
    """L₀, the Lipschitz constant."""
    distance: float = 1.0
    """The distance of the start from the optimum."""
    rounds: int = 2000
    radius: float = 0.1

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        whole("rounds", self.rounds, 1)
        real("power", self.power, 0)
        if not self.budget >= 0:
            raise ValueError(f"budget={self.budget!r} must be a number >= 0: give inf for no limit")
        real("distance", self.distance, 0)
        real("scale", self.scale, 0, above=True)
        real("radius", self.radius, 0, above=True)
        if self.order not in get_args(Order):
            raise ValueError(f"order={self.order!r} is unknown: choose 'before' or 'after'")

    @property
    def lipschitz(self) -> float:
        """L₀: the slope is L₀·‖x‖/√(1 + ‖x‖²)."""
        return self.scale

    @property
    def smoothness(self) -> float:
        """L₁ = L₀: the curvature is largest at 0."""
        return self.scale

    @property
    def variation(self) -> float:
        """V_f, caused by the adversary alone."""
        return self.power

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """(1, …, 1), at the given distance from the optimum 0."""
        return np.full((trials, self.dim), self.distance / math.sqrt(self.dim))

    def world(self, seed: int, trials: int, first: int = 0) -> AdversaryWorld:
        """One adversary per trial, before round 0."""
        return AdversaryWorld(self, seed, trials, first)


class AdversaryWorld(World):
    """One adversary for the agent of each trial; its choices depend on the centres and queries.

    Before the first `play` f_t = f_0. After it, every round must be played, in order, before its cost is evaluated.
    The last round may be played again; playing round 0 again starts over.
    """

    listens = True

    def __init__(self, problem: Adversary, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(seed, trials, first)
        self.problem = problem
        self._offsets: list[Array] = []
        self._probes: list[tuple[Array, Array]] = []  # x_t and x_t + δu_t of the last two rounds

    def play(self, round: int, centre: Array, query: Array) -> None:
        """Choose b_t = b_{t−1} ± V_f from the information that the adversary has in this round."""
        last = len(self._offsets) - 1
        if round not in (0, max(last, 0), last + 1):
            raise ValueError(f"round {round} cannot be played: the next round is {last + 1}; play rounds in order")
        for name, x in (("centre", centre), ("query", query)):
            if x.shape != (self.trials, 1, self.problem.dim):
                raise ValueError(
                    f"{name} has the shape {x.shape}, not {(self.trials, 1, self.problem.dim)}: give one query per"
                    " trial (the first, for two-point feedback), and every method its own world"
                )
        if round == 0:
            self._offsets, self._probes = [np.zeros(self.trials)], []
        else:
            if round == last:
                del self._offsets[-1], self._probes[-1]
            affordable = round * self.problem.power**2 <= self.problem.budget
            self._offsets.append(self._offsets[-1] + affordable * self.problem.power * self._sign(centre, query))
        self._probes = [*self._probes[-1:], (centre.copy(), query.copy())]

    def _sign(self, centre: Array, query: Array) -> Array:
        if self.problem.order == "after":
            return np.where(((query - centre) * centre).sum((1, 2)) > 0.0, -1.0, 1.0)
        before, seen = self._probes[-1]
        v = seen - before
        expected = 0.5 * (self._height(centre + v) + self._height(centre - v)) - self._height(seen)
        return np.where(expected[:, 0] >= 0.0, 1.0, -1.0)

    def _height(self, x: Array) -> Array:
        square = (x * x).sum(-1)
        return np.asarray(self.problem.scale * square / (np.sqrt(1.0 + square) + 1.0))

    def optimum(self, round: int) -> Array:
        """min f_t = b_t."""
        if not self._offsets:
            return np.zeros(self.trials)
        if not 0 <= round < len(self._offsets):
            raise ValueError(f"round {round} has not been played yet: call play(round, centre, query) first")
        return self._offsets[round].copy()

    def cost(self, round: int, x: Array) -> Array:
        """L₀·(√(1 + ‖x‖²) − 1) + b_t."""
        height: Array = self._height(x) + self.optimum(round)[:, None]
        return height

    def optimiser(self, round: int) -> Array:
        """0 in every round."""
        return np.zeros((self.trials, self.problem.dim))

    def gradient(self, round: int, x: Array) -> Array:
        """L₀·x/√(1 + ‖x‖²)."""
        slope: Array = self.problem.scale * x / np.sqrt(1.0 + (x * x).sum(-1, keepdims=True))
        return slope


__all__ = ["Adversary", "AdversaryWorld"]
