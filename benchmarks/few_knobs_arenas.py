"""The arenas of `few_knobs.py`: six services and two plants that drift while two to eight knobs are tuned.

An arena is a noise-free cost of a setting, and a course: the state of the world (load, demand, weather, …) by round. A
`World` is an arena with a seed. Cost, measurement and least possible cost are functions of (seed, round) and of the
setting alone, so all contenders of a trial meet the same drift and the same noise. Costs take arrays of settings
(…, knobs) and of states (…, variables), so that the least cost of all rounds is found at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

import trimtab as tt

Array = np.ndarray
DAY = 96  # rounds of a day
COURSE, ROUND = 1, 2  # streams of random numbers: the state of the world, and the noise of a round


@dataclass(frozen=True)
class Arena:
    """A drifting system: its knobs, what a setting costs in each state, and how the state moves."""

    name: str
    about: str
    knobs: tuple[tt.Knob, ...]
    rounds: int
    course: Callable[[np.random.Generator, int], Array]
    """(random numbers, rounds) → states (rounds, variables); more rounds leave the first ones unchanged."""
    cost: Callable[[Array, Array], Array]
    """(settings, states) → costs without noise."""
    observe: Callable[[Array, Array, float, np.random.Generator], float]
    """(setting, state, cost, random numbers of the round) → measurement."""
    missing: float = 0.0
    """The share of measurements that fail."""
    least: float | None = None
    """The least cost in every state, where it is known."""

    def values(self, shares: Array) -> Array:
        """Convert shares of the ranges, 0 to 1, to the nearest settings."""
        columns = [_value(knob, share) for knob, share in zip(self.knobs, np.moveaxis(shares, -1, 0), strict=True)]
        return np.stack(columns, axis=-1)

    @property
    def start(self) -> Array:
        return np.array([knob.start for knob in self.knobs], dtype=float)


def _value(knob: tt.Knob, share: Array) -> Array:
    low, high = float(knob.low), float(knob.high)
    value = low * (high / low) ** share if knob.scale == "log" else low + (high - low) * share
    return np.rint(value) if knob.type == "integer" else value


class World:
    """An arena with a seed."""

    def __init__(self, arena: Arena, seed: int, rounds: int | None = None) -> None:
        self.arena, self.seed, self.rounds = arena, seed, rounds or arena.rounds
        self.states = arena.course(np.random.default_rng([seed, COURSE]), self.rounds)

    def cost(self, round: int, setting: Array) -> float:
        return float(self.arena.cost(setting, self.states[round]))

    def costs(self, settings: Array) -> Array:
        """The cost of one setting for each round."""
        return self.arena.cost(settings, self.states)

    def measure(self, round: int, setting: Array) -> float:
        """The measured cost, NaN where the measurement fails."""
        rng = np.random.default_rng([self.seed, ROUND, round])
        failed = rng.random() < self.arena.missing
        cost = self.cost(round, setting)
        return np.nan if failed else self.arena.observe(setting, self.states[round], cost, rng)

    @cached_property
    def optima(self) -> Array:
        """The least cost of each round."""
        if self.arena.least is not None:
            return np.full(self.rounds, self.arena.least)
        return _least(self.arena, self.states)


def _least(arena: Arena, states: Array) -> Array:
    """The least cost in each state: every combination of whole numbers is tried, the other knobs are searched."""
    whole = [knob.type == "integer" for knob in arena.knobs]
    axes = [np.arange(knob.low, knob.high + 1) for knob, is_whole in zip(arena.knobs, whole, strict=True) if is_whole]
    combinations = np.array(list(product(*axes)), dtype=float)
    if all(whole):
        return np.array([arena.cost(combinations, state).min() for state in states])
    least = np.full(len(states), np.inf)
    for combination in combinations:
        least = np.minimum(least, _searched(arena, states, np.array(whole), combination))
    return least


def _searched(
    arena: Arena, states: Array, whole: Array, combination: Array, points: int = 48, iterations: int = 40
) -> Array:
    """The least cost in each state with these whole numbers, by the cross-entropy method, all states at once."""
    rng, dim, kept = np.random.default_rng(0), int((~whole).sum()), points // 4

    def costs(shares: Array) -> Array:
        full = np.zeros((*shares.shape[:-1], len(whole)))
        full[..., ~whole] = shares
        settings = arena.values(full)
        settings[..., whole] = combination
        return arena.cost(settings, states[:, None])

    shares = np.broadcast_to(rng.random((8 * points, dim)), (len(states), 8 * points, dim))
    least, centre = np.full(len(states), np.inf), np.full((len(states), 1, dim), 0.5)
    for _ in range(iterations):
        found = costs(shares)
        least = np.minimum(least, found.min(axis=1))
        best = np.argpartition(found, kept, axis=1)[:, :kept]
        elite = np.take_along_axis(shares, best[..., None], axis=1)
        away = elite - centre  # from the previous centre, so that the spread does not shrink before it has arrived
        centre = elite.mean(axis=1, keepdims=True)
        spread = np.swapaxes(away, 1, 2) @ away / kept
        root = np.linalg.cholesky(1.5 * spread + 1e-14 * np.eye(dim))
        drawn = centre + rng.standard_normal((points, dim)) @ np.swapaxes(root, 1, 2)
        shares = np.clip(np.concatenate([centre, drawn], axis=1), 0.0, 1.0)
    return least


def wave(rounds: int, period: float, phase: Array | float) -> Array:
    return np.sin(2 * np.pi * (np.arange(rounds)[:, None] / period + phase))


def walk(rng: np.random.Generator, rounds: int, count: int, memory: float = 0.98) -> Array:
    """Random walks that are drawn back to 0, with a standard deviation of 1 in the long run: (rounds, count)."""
    steps = np.sqrt(1 - memory**2) * rng.standard_normal((rounds, count))
    found = np.zeros((rounds, count))
    found[0] = steps[0]
    for t in range(1, rounds):
        found[t] = memory * found[t - 1] + steps[t]
    return found


def gaussian(size: float) -> Callable[[Array, Array, float, np.random.Generator], float]:
    return lambda setting, state, cost, rng: cost + size * rng.standard_normal()


def beyond(excess: Array) -> Array:
    return np.maximum(excess, 0.0)


# A queueing server: latency and wages; beyond saturation the queue grows.


def server_course(rng, rounds):
    phase = rng.random()
    return 900 * (1 + 0.4 * wave(rounds, 2 * DAY, phase)) * np.exp(0.1 * walk(rng, rounds, 1))


def server_cost(v, s):
    workers, batch, load = v[..., 0], v[..., 1], s[..., 0]
    service = 0.02 + 0.004 * batch  # seconds for a batch
    use = load * service / (workers * batch)
    busy = np.minimum(use, 0.97)
    waiting = batch / (2 * load) + service * (1 + 0.5 * busy**8 / (1 - busy))
    return 1000 * waiting + 3 * workers + 2000 * beyond(use - 0.97)


def server_observed(setting, state, cost, rng):
    return cost * (1 + 0.04 * rng.standard_normal())


# A database: cache, workers and memory for sorting share 40 GB; most changes change nothing.


def database_course(rng, rounds):
    phases = rng.random(3)
    drift = np.exp(0.15 * walk(rng, rounds, 3))
    return np.array([22, 40, 6]) * (1 + 0.3 * wave(rounds, 240, phases)) * drift


def database_cost(v, s):
    cache, workers, sort = v[..., 0], v[..., 1], 2.0 ** v[..., 2]  # GB, number, MB
    hot, sorted_, demand = s[..., 0], s[..., 1], s[..., 2]
    reading = 24 * beyond(1 - cache / hot)
    sorting = 4 * np.ceil(np.log2(np.maximum(1, sorted_ / sort)))
    queueing = 2.5 * beyond(np.ceil(demand) - workers) + 0.6 * beyond(workers - 8)
    return 5 + reading + sorting + queueing + 1.5 * beyond(cache + workers * sort / 32 - 40)


# Price and bid: clicks are bought, and some of those who click buy. In hundreds.

COSTS = 4.0  # of one piece


def price_course(rng, rounds):
    phases = rng.random(2)
    drift = walk(rng, rounds, 2)
    worth = 10 + 2 * wave(rounds, 280, phases[0]) + drift[:, :1]
    return np.hstack([worth, 0.6 * np.exp(0.4 * wave(rounds, 190, phases[1]) + 0.15 * drift[:, 1:])])


def price_rates(v, s):
    price, bid, worth, rival = v[..., 0], v[..., 1], s[..., 0], s[..., 1]
    clicks = 400 * bid / (bid + rival)
    return clicks, clicks / (1 + np.exp((price - worth) / 1.5))


def price_cost(v, s):
    clicks, sales = price_rates(v, s)
    return (clicks * v[..., 1] - sales * (v[..., 0] - COSTS)) / 100


def price_observed(setting, state, cost, rng):
    clicks, sales = price_rates(setting, state)
    return (clicks * setting[1] - rng.poisson(sales) * (setting[0] - COSTS)) / 100


# Four magnets: a narrow valley, a hundred times as steep across as along; now and then the beam is lost.

MIXED = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
OPTICS = np.diag([3.0, 1.4, 0.65, 0.3]) @ MIXED


def magnets_course(rng, rounds):
    phases = rng.random(4)
    return 0.6 * wave(rounds, 350, phases) + 0.15 * walk(rng, rounds, 4)


def magnets_cost(v, s):
    return 5 * np.log1p(np.square((v - s) @ OPTICS.T).sum(axis=-1))


# A pump: the valve is best wide open, the speed at the lower end of a dead band.


def pump_course(rng, rounds):
    phase = rng.random()
    return 1 + 0.35 * wave(rounds, DAY, phase) + 0.1 * walk(rng, rounds, 1)


def pump_cost(v, s):
    speed, valve, demand = v[..., 0] / 3000, v[..., 1] / 100, s[..., 0]
    pressure = beyond(9 * speed**2 - 0.5 * np.square(demand / valve))
    return 8 * speed**3 + 30 * np.square(beyond(np.abs(pressure - 4) - 0.3))


# Eight control gains: too high is as bad as too low, and neighbours act together.

WEIGHTS = np.array([2.0, 1.0, 0.5, 0.25] * 2)


def gains_course(rng, rounds):
    phases = rng.random(8)
    return 0.4 * wave(rounds, 400, phases) + 0.1 * walk(rng, rounds, 8)


def gains_cost(v, s):
    off = np.log(v) - s
    together = np.square(off[..., 1:] + off[..., :-1]).sum(axis=-1)
    return 1 + 0.3 * (WEIGHTS * (np.cosh(1.2 * off) - 1)).sum(axis=-1) + 0.1 * together


# Three pumps of a water network: nowhere may the pressure fall short of 3 bar.

REACH = 7 * np.array([[0.6, 0.25, 0.15], [0.25, 0.55, 0.2], [0.1, 0.3, 0.6]])
TARIFF = np.array([1.0, 1.3, 0.8])


def network_course(rng, rounds):
    phase = rng.random()
    day = 0.35 * wave(rounds, DAY, phase + np.array([0.0, 0.03, 0.06]))
    return np.array([0.9, 1.0, 1.1]) * (1 + day + 0.08 * walk(rng, rounds, 3))


def network_cost(v, s):
    speed = v / 50
    pressure = speed @ REACH.T - 2 * s
    return (TARIFF * (4 * speed + 0.5 * speed**2)).sum(axis=-1) + 25 * np.square(beyond(3 - pressure)).sum(axis=-1)


# A feeder: three reactive powers and a tap keep four voltages within 2 % while sun and load move.

REACTANCE = np.array([[1.2, 0.8, 0.8], [0.8, 2.0, 1.2], [0.8, 1.2, 2.6], [0.6, 1.0, 1.6]])  # % for each MVAr
SUNNY, LOADED = np.array([1.0, 2.5, 4.5, 3.0]), np.array([1.5, 2.5, 3.0, 4.0])  # % at full sun and load


def feeder_course(rng, rounds):
    phase = rng.random()
    drift = walk(rng, rounds, 2, memory=0.95)
    sun = beyond(wave(rounds, DAY, phase)) * (0.85 + 0.15 * np.tanh(drift[:, :1]))
    load = 0.6 + 0.25 * wave(rounds, DAY / 2, phase + 0.1) + 0.08 * drift[:, 1:]
    return np.hstack([sun, load])


def feeder_cost(v, s):
    power, tap, sun, load = v[..., :3], v[..., 3], s[..., :1], s[..., 1:]
    off = 1.5 * tap[..., None] + power @ REACTANCE.T + SUNNY * sun - LOADED * load
    losses = 1.2 * np.square(power).sum(axis=-1) + 0.5 * np.abs(power.sum(axis=-1) + load[..., 0])
    return 1 + losses + 0.1 * tap**2 + 2 * np.square(beyond(np.abs(off) - 2)).sum(axis=-1)


SERVICES = ("server", "database", "price", "magnets", "pump", "gains")
WALLS = ("network", "feeder")
ARENAS = {
    arena.name: arena
    for arena in (
        Arena(
            "server",
            "a queueing server with a cliff at saturation, daily load",
            (
                tt.Knob("workers", 1, 32, 30, type="integer"),
                tt.Knob("batch", 1, 64, 48, type="integer", scale="log"),
            ),
            400,
            server_course,
            server_cost,
            server_observed,
        ),
        Arena(
            "database",
            "plateaus and whole numbers: cache, workers, memory for sorting",
            (
                tt.Knob("cache", 1, 48, 4, type="integer"),
                tt.Knob("workers", 1, 16, 15, type="integer"),
                tt.Knob("sort", 0, 7, 0, type="integer"),
            ),
            300,
            database_course,
            database_cost,
            gaussian(0.8),
        ),
        Arena(
            "price",
            "price and bid, with Poisson sales",
            (tt.Knob("price", 4, 20, 15), tt.Knob("bid", 0.05, 5, 2.5, scale="log")),
            300,
            price_course,
            price_cost,
            price_observed,
        ),
        Arena(
            "magnets",
            "four magnets, condition number 100; the beam is lost in 3 % of the rounds",
            tuple(tt.Knob(f"magnet{k}", -2, 2, (-1) ** k * 1.4) for k in range(4)),
            400,
            magnets_course,
            magnets_cost,
            gaussian(0.15),
            missing=0.03,
            least=0.0,
        ),
        Arena(
            "pump",
            "a pump: valve at the end of its range, pressure with a dead band, daily demand",
            (tt.Knob("speed", 600, 3000, 2900), tt.Knob("valve", 25, 100, 40)),
            300,
            pump_course,
            pump_cost,
            gaussian(0.15),
        ),
        Arena(
            "gains",
            "eight control gains that act in pairs",
            tuple(tt.Knob(f"gain{k}", 0.1, 10, 4.0 ** (-1) ** k, scale="log") for k in range(8)),
            400,
            gains_course,
            gains_cost,
            gaussian(0.1),
            least=1.0,
        ),
        Arena(
            "network",
            "three pumps of a water network: pressure must not fall short; daily demand, random walk",
            tuple(tt.Knob(f"pump{k}", 20, 50, 49) for k in range(3)),
            400,
            network_course,
            network_cost,
            gaussian(0.1),
        ),
        Arena(
            "feeder",
            "three reactive powers and a stepped tap: voltages with a dead band; sun and load",
            (
                *(tt.Knob(f"reactive{k}", -1, 1, (-1) ** k * 0.9) for k in range(3)),
                tt.Knob("tap", -3, 3, -3, type="integer"),
            ),
            300,
            feeder_course,
            feeder_cost,
            gaussian(0.1),
        ),
    )
}
