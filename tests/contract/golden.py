"""Paths of the methods in all surroundings. After a change that is meant: `python -m tests.contract.golden`."""

import math
import zlib
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import trimtab as tt

from ..golden import digest, record, written

FILE = Path(__file__).with_name("golden_paths.json")
ROUNDS = 120
LANES = 5
FAILING = 3  # the lane that brings no value for a while
PENDING = 4

METHODS = {
    "auto": lambda: tt.auto(radius=0.05),
    "auto narrow": lambda: tt.auto(radius=0.1, narrowest=0.3, widest=1.0),
    "residual": lambda: tt.residual(radius=0.05, step=3e-3),
    "one-point": lambda: tt.one_point(radius=0.1, step=1e-3),
    "two-point": lambda: tt.two_point(radius=0.05, step=0.01),
    "two-point forward": lambda: tt.two_point(radius=0.05, step=0.01, form="forward"),
    "hlf-szo": lambda: tt.hlf_szo(radius=0.05, step=1e-3),
    "reszo": lambda: tt.reszo(radius=0.05, step=3e-3),
    "pbgd": lambda: tt.pbgd(radius=0.1, step=1e-3),
}
WAYS = ("one", "lanes", "pending")
WEATHERS = ("calm", "hostile")


@cache
def place(name, dim):
    """(start, where the best one is, the unit of each coordinate, what says to the tuner where it may be)."""
    one, odd = np.ones(dim), np.arange(dim) % 2
    if name == "bounds":  # of different size, and where there are many, one of them fixed
        low, high = -1.0 - np.arange(dim), 3.0 + 10.0 * odd
        if dim > 2:
            high[2] = low[2]
        unit = np.where(high > low, high - low, 1.0)
        return low + 0.3 * (high - low), low + 0.7 * (high - low), unit, {"bounds": np.stack([low, high], axis=1)}
    if name == "simplex":
        return one / dim, np.eye(dim)[0], one, {"domain": tt.Simplex()}
    if name == "polytope":  # a corner cut off a box
        matrix = np.vstack([one, np.eye(dim), -np.eye(dim)])
        limits = np.concatenate([[0.5 * dim], 2 * one, one])
        return 0.1 * one, 0.9 * one, one, {"domain": tt.Polytope(matrix, limits)}
    domains = {
        "free": {},
        "box": {"domain": tt.Box(-1.0, 1.5)},
        "ball": {"domain": tt.Ball(1.2)},
        "edge": {"domain": tt.Box(-1.0, 0.3)},
        "halfspace": {"domain": tt.Halfspace(1.0 + odd, 0.5)},
        "intersection": {"domain": tt.Intersection(tt.Ball(1.0), tt.Halfspace(one, 0.5))},
        "product": {"domain": tt.Product((tt.Simplex(2.0), 3), (tt.Ball(1.0), dim - 3))} if dim > 3 else {},
    }
    start = np.where(odd == 1, 0.3, -0.2)
    if name == "product":
        start = np.concatenate([np.full(3, 2 / 3), start[3:]])
    if name == "edge":
        start = np.where(odd == 1, 0.3, -1.0)
    return start, np.where(odd == 1, -0.4, 0.5), one, domains[name]


@dataclass(frozen=True)
class Case:
    """One path: what is tuned, where, and what happens to it."""

    name: str
    method: Any
    where: str = "free"
    dim: int = 2
    weather: str = "hostile"
    way: str = "one"
    rounds: int = ROUNDS
    limits: int = 0
    copies: int = 1
    common: bool = True  # run by default
    options: dict = field(default_factory=dict)

    @property
    def seed(self):
        """A seed of 64 bits; half of these do not fit in signed integers."""
        return zlib.crc32(self.name.encode()) * (2**32 + 1)


def values(case, x, best, unit, trial, rng):
    """Measure a drifting valley at x with noise; in hostile weather, with all kinds of faults."""
    drifting = best + unit * (0.2 * trial / case.rounds)
    squares = np.square((x - drifting) / unit).sum(-1)
    height = 10.0 + 4.0 * squares / (4.0 + squares)  # never so steep that a path explodes
    height = height + 0.02 * rng.standard_normal(np.shape(height))
    if case.weather == "calm":
        return height
    if trial % 23 == 11:
        height = height + 50.0
    if 40 <= trial < 52:
        height = height * 1000.0
    if np.ndim(x) > 1 and case.way == "lanes" and 20 <= trial < 60:
        height[FAILING] = math.nan
    return math.nan * height if trial % 13 == 5 else height


def run(case):
    """Everything a user sees: each query and its number, the centre after each value, skipped trials."""
    if case.copies > 1:
        return run_copies(case)
    start, best, unit, options = place(case.where, case.dim)
    if case.way == "lanes":
        start = np.tile(start, (LANES, 1))
    pending = PENDING if case.way == "pending" else 1
    method = case.method()
    tuner = tt.Tuner(start, method, seed=case.seed, max_pending=pending, **options, **case.options)
    again = {} if saved_whole(method) else {"method": method}
    rng, lines, waiting = np.random.default_rng(case.seed), [], []
    for turn in range(case.rounds):
        if turn == case.rounds // 2:
            tuner = tt.Tuner.from_json(tuner.to_json(), **again)
            if case.way == "pending":
                waiting = list(tuner.pending)
                lines += [written([trial.id, trial.x]) for trial in waiting]
        if turn == case.rounds * 3 // 4:
            tuner.forget()
        while len(waiting) < pending:
            waiting.append(tuner.ask())
            lines.append(written([waiting[-1].id, waiting[-1].x]))
        trial = waiting.pop((7 * turn + 3) % pending)
        if case.weather == "hostile" and trial.id % 29 == 7:
            tuner.skip(trial)
        else:
            found = values(case, trial.x, best, unit, trial.id, rng)
            shares = (trial.x - best) / unit
            limits = [shares[..., 0] + 0.3 * k for k in range(case.limits)]
            tuner.tell(trial, found, **({"limits": np.stack(limits, -1)} if limits else {}))
        lines.append(written([tuner.centre, tuner.round]))
    return [*lines, written([tuner.skipped, tuner.last_value])]


def saved_whole(method):
    """Whether a file has all of it: a function cannot be written."""
    return not isinstance(method.step, tt.Schedule)


def run_copies(case):
    """Lanes that share directions, through the functions of the core."""
    start, best, unit, options = place(case.where, case.dim)
    start = np.tile(start, (2 * case.copies, 1))
    setup = tt.Setup(case.method(), start.shape, **options)
    state, rng, lines = tt.init(setup, start, case.seed, 3, case.copies), np.random.default_rng(case.seed), []
    for _ in range(case.rounds):
        trial = tt.ask(setup, state)
        state = tt.tell(setup, state, values(case, trial.x, best, unit, trial.id, rng))
        lines.append(written([trial.id, trial.x, setup.outward(state.centre)]))
    return [*lines, written(state.skipped)]


def matrix():
    """All methods in all surroundings; of those, a quarter by default, in which each choice meets each other."""
    choices = [
        list(enumerate(some)) for some in (METHODS, ("free", "box", "ball", "bounds"), (1, 2, 7), WEATHERS, WAYS)
    ]
    for (i, method), (j, where), (k, dim), (n, weather), (m, way) in product(*choices):
        common = (i + j + k + 2 * n + 3 * m) % 4 == 0
        name = f"{method}, {where}, d={dim}, {weather}, {way}"
        yield Case(name, METHODS[method], where, dim, weather, way, common=common)


def large():
    """Many coordinates, for longer: more than a block of directions."""
    for dim, (method, make), where in product((60, 300), METHODS.items(), ("box", "bounds")):
        common = where == "box" and method in ("auto", "residual") and dim == 60
        name = f"{method}, {where}, d={dim}"
        yield Case(name, make, where, dim, weather="calm", rounds=max(ROUNDS, dim + 60), common=common)


def parts():
    """Laws of directions, estimators, steps, domains and limits that the matrix has not."""
    residual, law = tt.residual, {"radius": 0.05, "step": 3e-3}
    methods = {
        "primal-dual": ("box", lambda: tt.primal_dual(radius=0.05, step=0.01, limits=2, dual_step=0.02), {"limits": 2}),
        "fading prices": ("bounds", lambda: tt.primal_dual(radius=0.05, step=0.01, decay=0.1), {"limits": 1}),
        "covariance": ("ball", lambda: tt.Method(estimator=tt.Covariance(5), margin="project", **law), {}),
        "covariance of two": (
            "box",
            lambda: tt.Method(estimator=tt.Covariance(2), radius=0.05, step=tt.Normalised()),
            {},
        ),
        "plane": ("box", lambda: tt.Method(estimator=tt.Plane(), directions=tt.Orthogonal(), **law), {}),
        "plane, normalised": (
            "free",
            lambda: tt.Method(estimator=tt.Plane(), radius=0.05, step=tt.Normalised(1.0)),
            {},
        ),
        "high-pass": ("free", lambda: tt.high_pass(radius=0.05, step=3e-3, beta=0.7), {}),
        "modified-two-point": ("box", lambda: tt.modified_two_point(radius=0.05, step=0.01), {}),
        "still": ("free", tt.still, {}),
        "momentum of residual": ("box", lambda: tt.Method(estimator=tt.Momentum(tt.Residual(), alpha=0.5), **law), {}),
        "hedged residual": ("ball", lambda: tt.pbgd(radius=0.05, step=3e-3, base=tt.Residual(), count=5), {}),
        "reszo of many": ("box", lambda: tt.reszo(radius=0.05, step=3e-3, m=20), {}),
        "paired": ("box", lambda: residual(**law, directions=tt.Paired()), {}),
        "paired sphere": ("free", lambda: tt.high_pass(**law, directions=tt.Paired(tt.Sphere())), {}),
        "sphere": ("ball", lambda: residual(radius=0.1, step=3e-3, directions=tt.Sphere()), {}),
        "sphere, scaled": ("ball", lambda: residual(**law, directions=tt.Sphere(), margin="scale"), {}),
        "gaussian, may leave": ("box", lambda: residual(**law, directions=tt.Gaussian(), margin="none"), {}),
        "orthogonal": ("bounds", lambda: residual(**law, directions=tt.Orthogonal()), {}),
        "power": ("box", lambda: residual(radius=0.05, step=tt.Power(0.05, exponent=0.5)), {}),
        "schedule": ("box", lambda: residual(radius=0.05, step=lambda t: 0.02 / (1 + 0.1 * t)), {}),
        "normalised, short moves": ("box", lambda: residual(radius=0.05, step=tt.Normalised(1.0), max_move=0.5), {}),
        "maximise": ("bounds", METHODS["auto"], {"options": {"maximise": True}}),
        "later lanes": ("box", METHODS["auto"], {"options": {"lane": 7}}),
        **{f"residual in {where}": (where, METHODS["residual"], {}) for where in ("edge", "halfspace")},
        **{
            f"{name} in {where}": (where, make, {})
            for where in ("simplex", "polytope", "product", "intersection")
            for name, make in [("auto", METHODS["auto"]), ("residual", lambda: residual(radius=0.01, step=1e-3))]
        },
        "auto at the edge": ("edge", METHODS["auto"], {}),
    }
    for (name, (where, make, more)), way in product(methods.items(), WAYS):
        dim = 7 if where in ("product", "bounds") else 3
        yield Case(f"{name}, {way}", make, where, dim, way=way, common=way == "one" or name == "primal-dual", **more)
    each, thrice = 1e-3 * 2.0 ** np.arange(LANES), np.tile(1e-3 * 2.0 ** np.arange(3), 2)
    yield Case("a step per lane", lambda: residual(radius=0.05, step=each), "box", 3, way="lanes")
    yield Case("copies", lambda: residual(radius=0.05, step=thrice), "box", 3, way="lanes", copies=3)
    yield Case("copies of auto", METHODS["auto"], "bounds", 7, way="lanes", copies=5)


KNOBS = {
    "plain": [
        {"name": "heat", "low": 150, "high": 220, "start": 180},
        {"name": "gain", "low": 0.5, "high": 100.0, "start": 2.0, "scale": "log"},
        {"name": "held", "low": 3.0, "high": 3.0, "start": 3.0},
    ],
    "mixed": [
        {"name": "size", "type": "integer", "low": 1, "high": 256, "start": 8, "scale": "log"},
        {"name": "codec", "choices": ["gzip", "zstd", "lz4"], "start": "gzip"},
        {"name": "cache", "type": "bool", "start": True},
        {"name": "rate", "low": 0.0, "high": 1.0, "start": 0.5, "step": 0.1, "radius": 0.12},
    ],
    "few": [{"name": "threads", "type": "integer", "low": 1, "high": 5, "start": 2}],
}
KNOB_METHODS = {"default": None, "auto": tt.auto(radius=0.1), "residual": tt.residual(radius=0.05, step=1e-3)}


def cost(setting):
    """Cost of a setting: numbers and switches by distance from the best one, texts by length."""
    return sum(
        len(level) if isinstance(level, str) else math.sqrt(1.0 + (float(level) - 3.0 - n) ** 2)
        for n, level in enumerate(setting.values())
    )


def run_knobs(kind, method, pending, seed):
    tuner = tt.Tuner(
        knobs=KNOBS[kind], method=KNOB_METHODS[method], seed=seed, max_pending=pending, maximise=kind == "few"
    )
    rng, lines, waiting = np.random.default_rng(1), [], []
    for turn in range(ROUNDS):
        if turn == ROUNDS // 2:
            tuner = tt.Tuner.from_json(tuner.to_json())
            waiting = list(tuner.pending)
        while len(waiting) < pending:
            waiting.append(tuner.ask())
            lines.append(written([waiting[-1].id, waiting[-1].x, waiting[-1].knobs]))
        trial = waiting.pop((7 * turn + 3) % pending)
        failed = turn % 11 == 4
        tuner.tell(trial, None if failed else cost(trial.knobs) * (1.0 + 0.01 * rng.standard_normal()))
        lines.append(written([tuner.centre, tuner.setting]))
    return [*lines, written(tuner.skipped)]


def knob_paths():
    """Name → what `run_knobs` takes: tuners with named knobs."""
    return {
        f"knobs {kind}, {method}, {pending} open": (kind, method, pending, seed)
        for kind, method, (pending, seed) in product(KNOBS, KNOB_METHODS, [(1, 2**64 - 1), (PENDING, 4)])
    }


CASES = {case.name: case for cases in (matrix(), large(), parts()) for case in cases}


KNOBBED = knob_paths()
NAMES = [*CASES, *KNOBBED]


def hash_of(name):
    """The hash of one path."""
    return digest(run(CASES[name]) if name in CASES else run_knobs(*KNOBBED[name]))


if __name__ == "__main__":
    record(FILE, {name: hash_of(name) for name in NAMES})
