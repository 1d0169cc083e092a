"""Prices of several products while the customers' willingness to pay drifts.

Customers choose one of the products or none, by the multinomial logit model (McFadden 1974): with prices p, willingness
to pay a and patience s (the larger, the less a price difference matters),

    share_j(p) = exp((a_j − p_j)/s_j) / (1 + Σ_i exp((a_i − p_i)/s_i)),

so that a cheaper product also takes customers from the others. Both a and s drift. The cost is minus the profit of a
round, f_t(p) = −customers·Σ_j (p_j − c_j)·share_j(p), where c_j is the unit cost of product j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trimtab.domains import Box, Domain
from trimtab.problems.base import ONCE, Path, Problem, World, reflect, register
from trimtab.types import Array
from trimtab.validation import real, whole


@register("pricing-v1")
@dataclass(frozen=True, kw_only=True)
class Pricing(Problem):
    """Choose the prices of `dim` products, in currency units; the cost is minus the profit per round.

    Unit costs range from 8 to 12. Willingness to pay is 3 to 5 above the unit cost, plus the season (a sine of `period`
    rounds with a random phase per product and trial), plus a random walk of `drift` per round, reflected into ±`band`.
    Patience ranges from 1.5 to 2.5, times the exponential of a random walk of `patience_drift`, reflected into ±0.4.
    Prices may be between the unit cost and twice it, and start at 1.2 times it: cost-plus pricing.

    >>> problem = Pricing(dim=2)
    >>> problem.domain
    Box(low=array([ 8., 12.]), high=array([16., 24.]))
    >>> world = problem.world(seed=0, trials=1)
    >>> bool(-world.optimum(0)[0] > -world.cost(0, problem.start(seed=0, trials=1)[:, None])[0, 0] > 0)
    True
    """

    id = "pricing-v1"

    dim: int = 3
    customers: float = 1000.0
    """The number of customers per round."""
    drift: float = 0.02
    """The standard deviation of the steps of the willingness to pay, in currency units."""
    band: float = 3.0
    """The largest deviation due to the random walk, in currency units."""
    patience_drift: float = 0.005
    """The standard deviation of the relative steps of the patience."""
    season: float = 1.0
    """The amplitude of the season, in currency units."""
    period: float = 500.0
    """The length of the season, in rounds."""
    noise: float = 20.0
    """The standard deviation of the measurement noise of the profit, in currency units."""
    rounds: int = 2000
    radius: float = 0.25

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        whole("rounds", self.rounds, 1)
        for name in ("drift", "patience_drift", "season", "noise"):
            real(name, getattr(self, name), 0)
        for name in ("customers", "band", "period", "radius"):
            real(name, getattr(self, name), 0, above=True)

    @cached_property
    def unit_costs(self) -> Array:
        """c: the unit cost of each product."""
        return np.linspace(8.0, 12.0, self.dim)

    @cached_property
    def _bounds(self) -> Box:
        return Box(self.unit_costs, 2.0 * self.unit_costs)

    @property
    def domain(self) -> Domain:
        """From the unit cost to twice the unit cost of each product."""
        return self._bounds

    def start(self, seed: int, trials: int, first: int = 0) -> Array:
        """Cost-plus pricing: 1.2 times the unit cost."""
        return np.tile(1.2 * self.unit_costs, (trials, 1))

    def world(self, seed: int, trials: int, first: int = 0) -> PricingWorld:
        """The customers of these trials: seasons, and the drift of willingness and patience."""
        return PricingWorld(self, seed, trials, first)


class PricingWorld(World):
    """A realisation of `Pricing`."""

    def __init__(self, problem: Pricing, seed: int, trials: int, first: int = 0) -> None:
        super().__init__(seed, trials, first)
        self.problem = problem
        fixed = self.drawn(ONCE, lambda rng: rng.random((2, problem.dim)))
        self._usual = problem.unit_costs + 3.0 + 2.0 * fixed[:, 0]
        self._phase = 2 * math.pi * fixed[:, 1]
        self._path = Path(np.zeros((trials, 2, problem.dim)), self._advance)
        self._solved: tuple[int, Array] = (-1, self._usual)

    def _advance(self, round: int, walks: Array) -> Array:
        p = self.problem
        if not (p.drift or p.patience_drift):
            return walks
        steps = self.drawn(round, lambda rng: rng.standard_normal((2, p.dim)))
        willingness = reflect(walks[:, 0] + p.drift * steps[:, 0], -p.band, p.band)
        patience = reflect(walks[:, 1] + p.patience_drift * steps[:, 1], -0.4, 0.4)
        return np.stack([willingness, patience], axis=1)

    def willingness(self, round: int) -> Array:
        """a_t: `(trials, d)`."""
        angle = 2 * math.pi * (round / self.problem.period) + self._phase
        level: Array = self._usual + self._path(round)[:, 0] + self.problem.season * np.sin(angle)
        return level

    def patience(self, round: int) -> Array:
        """s_t: `(trials, d)`."""
        level: Array = np.linspace(1.5, 2.5, self.problem.dim) * np.exp(self._path(round)[:, 1])
        return level

    def shares(self, round: int, x: Array) -> Array:
        """The fraction of customers who buy each product at the prices x: `(trials, k, d)`."""
        utility = (self.willingness(round)[:, None] - x) / self.patience(round)[:, None]
        largest = np.maximum(utility.max(-1, keepdims=True), 0.0)
        weights = np.exp(utility - largest)
        shares: Array = weights / (np.exp(-largest) + weights.sum(-1, keepdims=True))
        return shares

    def cost(self, round: int, x: Array) -> Array:
        """−customers·Σ_j (p_j − c_j)·share_j(p)."""
        profit = ((x - self.problem.unit_costs) * self.shares(round, x)).sum(-1)
        return np.asarray(-self.problem.customers * profit)

    @property
    def sigma(self) -> float:
        """The noise of the problem."""
        return self.problem.noise

    def optimum(self, round: int) -> Array:
        """`cost` at the optimiser."""
        return self.cost(round, self.optimiser(round)[:, None])[:, 0]

    def optimiser(self, round: int) -> Array:
        """The global optimum within the bounds, by Dinkelbach's iteration (1967).

        The profit per customer is a ratio N(p)/D(p). For a guess π of its maximum, N(p) − π·D(p) is a sum of functions
        of one price each, (p_j − c_j − π)·exp((a_j − p_j)/s_j), which rise up to p_j = c_j + s_j + π and fall beyond:
        that price, clipped to the bounds, is best. The profit there is a better guess; it converges superlinearly, from
        below, to the maximum. Hence every margin exceeds its own s_j by the same amount.
        """
        if self._solved[0] != round:
            p = self.problem
            floor = p.unit_costs + self.patience(round)
            profit, change = np.zeros((self.trials, 1)), np.inf
            while change > 1e-13 * (1.0 + profit.max()):
                prices = p.domain.project(floor + profit)
                better = -self.cost(round, prices[:, None]) / p.customers
                profit, change = better, (better - profit).max()
            self._solved = round, prices
        return self._solved[1].copy()

    def gradient(self, round: int, x: Array) -> Array:
        """−customers·share_j·(1 − (m_j − Σ_i m_i·share_i)/s_j), where m = p − c are the margins."""
        margin = x - self.problem.unit_costs
        shares = self.shares(round, x)
        profit = (margin * shares).sum(-1, keepdims=True)
        slope: Array = -self.problem.customers * shares * (1.0 - (margin - profit) / self.patience(round)[:, None])
        return slope


__all__ = ["Pricing", "PricingWorld"]
