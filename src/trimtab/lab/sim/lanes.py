"""Run a group of methods in all trials as lanes of one setup; the only interface between the lab and the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab import core
from trimtab.lab.sim.provenance import step_size
from trimtab.limit import Limit
from trimtab.problems import Problem, World
from trimtab.recipes import BaseMethod
from trimtab.setup import Setup
from trimtab.state import Key, State, take
from trimtab.steps import Constant
from trimtab.types import Array

RESAMPLING = 0x5EED_0F_5A3D  # added to the seed, to make resampled directions independent of those of the run


def groups(methods: Mapping[str, BaseMethod]) -> list[dict[str, BaseMethod]]:
    """Group methods that only differ in their step size; each group becomes lanes of one setup."""
    found: list[tuple[BaseMethod | None, dict[str, BaseMethod]]] = []
    for name, method in methods.items():
        common = None if step_size(method) is None else method.changed(step=Constant(1.0))
        for other, members in found:
            if common is not None and common == other:
                members[name] = method
                break
        else:
            found.append((common, {name: method}))
    return [members for _, members in found]


def together(members: Mapping[str, BaseMethod], trials: int) -> BaseMethod:
    """Merge a group into one method with a step per lane, ordered by trial, then by member."""
    method = next(iter(members.values()))
    if len(members) == 1:
        return method
    return method.changed(step=Constant(np.tile([step_size(m) or np.nan for m in members.values()], trials)))


def query(setup: Setup, state: State, trial: int | None = None) -> Array:
    """The queries of the next round, or of an open trial: `(lanes, queries, d)`."""
    x = core.ask(setup, state, trial).x
    return x if x.ndim == 3 else x[:, None]


def tell(setup: Setup, state: State, values: Array, trial: int | None = None) -> State:
    """The state after the values of a round, in the form of `beside`; values that are not finite count as failed."""
    known = np.where(np.isfinite(values), values, np.nan)
    several = tuple(n for n in (setup.queries, setup.told) if n > 1)
    return core.tell(setup, state, known.reshape(len(known), *several), trial)


def beside(values: Array, limits: Array | None) -> Array:
    """Append to each value those of its limits: `(lanes, queries·told)`."""
    flat = values.reshape(-1, values.shape[-1])
    if limits is None:
        return flat
    each = limits.reshape(*flat.shape, -1)
    return np.concatenate([flat[..., None], each], axis=-1).reshape(len(flat), -1)


class Group:
    """The methods of a group in all trials: their common setup, its state, and the values of the current round."""

    def __init__(
        self,
        problem: Problem,
        members: dict[str, BaseMethod],
        x0: Array,
        *,
        seed: int,
        first: int,
        noise: str,
        lag: int,
        limits: int = 0,
    ) -> None:
        self.members, self.noise, self.domain, self.lag = members, noise, problem.domain, lag
        self.method = next(iter(members.values()))
        self.shape = (x0.shape[0], len(members), x0.shape[1])
        self.seed, self.first = seed, first
        self.values: Array = np.empty(0)
        """Measured values of this round: `(trials, members, queries)`."""
        self.limits: Array | None = None
        """Measured limits, if the method uses them: `(trials, members, queries, m)`."""
        self.untold: dict[int, Array] = {}
        """Values to be told, by trial."""
        self.before: State | None = None
        method, x = together(members, x0.shape[0]), np.repeat(x0, len(members), axis=0)
        kept = tuple(Limit(f"g{n}", max=0.0) for n in range(limits)) if method.takes_limits else ()
        pending = 1 if lag == 1 else 2 * lag
        self.setup = Setup(method, x.shape, domain=problem.domain, max_pending=pending, limits=kept)
        self.state = core.init(self.setup, x, seed, first, len(members))

    @property
    def centre(self) -> Array:
        """The centres: `(trials, members, d)`."""
        return self.state.centre.reshape(self.shape)

    def queries(self) -> Array:
        """The queries of this round, which stays open if values are late: `(trials, members, queries, d)`."""
        trials, members, dim = self.shape
        x = query(self.setup, self.state)
        if self.lag > 1:
            self.state = core.hand_out(self.setup, self.state)[1]
        return x.reshape(trials, members, -1, dim)

    def needs(self) -> list[tuple[int, int]]:
        """The (lag, draw) of each query."""
        return [(lag, k if self.noise == "independent" else 0) for k, lag in enumerate(self.method.lags)]

    def looked(self) -> tuple[Array, Array, Array, Array]:
        """The first query of this round, its value, ‖ĝ_t‖² (0 without a contrast), and the gain scale/δ²."""
        first, value = self.queries()[:, :, 0], self.values[:, :, 0]
        estimate = core.estimate(self.setup, self.state, tuple(beside(self.values, self.limits).T))
        gain = self.setup.directions.scale(self.setup.dim) / self.setup.method.radius**2
        moment = np.nan_to_num(np.square(estimate).sum(-1)).reshape(value.shape)
        return first, value, moment, np.full(value.shape, gain)

    def move(self, t: int, diverged: NDArray[np.bool_], trial: int | None) -> None:
        """Keep the values of round t, and tell those of a trial; those of diverged lanes count as failed."""
        told = beside(self.values, self.limits)
        self.untold[t] = np.where(diverged.reshape(-1, 1), np.nan, told)
        if trial is not None:
            self.before = self.state
            self.state = tell(self.setup, self.state, self.untold.pop(trial), trial)

    def variances(self, world: World, common: Array | None, resamples: int, of: slice) -> Array:
        """Trace of the covariance of ĝ_t over new noise and new directions, in this round and that of the anchor.

        `(2, trials, members)`: at each method's own iterate, and at the common one (NaN without one). Without a
        contrast ĝ_t = 0.
        """
        trials, members, dim = self.shape
        found = np.zeros((2, trials, members))
        if self.before is None:
            return found
        setup = Setup(self.method, (trials * resamples, dim), domain=self.domain, limits=self.setup.limits)
        key = Key((self.seed + RESAMPLING) % 2**64, self.first * resamples)
        found[1] = np.nan
        shared = () if common is None else (np.repeat(setup.home.project(common.copy()), resamples, axis=0),)
        for k in range(members):
            lanes = np.repeat(np.arange(trials) * members + k, resamples)
            before, now = take(self.before, lanes), take(self.state, lanes)
            for which, (earlier, later) in enumerate(((before.centre, now.centre), *((x, x) for x in shared))):
                state = before._replace(key=key, centre=earlier)
                state = tell(setup, state, self._resampled(world, setup, state, resamples))._replace(centre=later)
                values = self._resampled(world, setup, state, resamples)
                estimates = core.estimate(setup, state, tuple(values.T))
                estimates[np.isnan(estimates).all(-1) & np.isfinite(values).all(-1)] = 0.0
                spread = estimates.reshape(trials, resamples, dim)[:, :, of].var(axis=1, ddof=1)
                found[which, :, k] = spread.sum(-1)
        return found

    def _resampled(self, world: World, setup: Setup, state: State, resamples: int) -> Array:
        """Values of resampled queries, `(lanes, queries·told)`, with independent noise for each resample."""
        x = query(setup, state).reshape(self.shape[0], resamples, -1, setup.dim)
        columns: Sequence[Array] = [
            _measured(world, max(state.round - lag, 0), np.ascontiguousarray(x[:, :, k]), draw)
            for k, (lag, draw) in enumerate(self.needs())
        ]
        values = np.stack([values.reshape(-1) for values in columns], axis=-1)
        if setup.told == 1:
            return values
        return beside(values, world.limits(state.round, x.reshape(self.shape[0], -1, setup.dim)))


def _measured(world: World, t: int, points: Array, draw: int) -> Array:
    if not world.noisy:
        return world.cost(t, points)
    columns = [world.measure(t, points[:, m : m + 1], draw + 2 * m + 2) for m in range(points.shape[1])]
    return np.concatenate(columns, axis=1)
