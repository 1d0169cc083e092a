"""The suite `context`: systems whose optimum and level depend on a load that is measured before each round.

A quadratic in the box [0, 1]^d with curvatures from e^−0.7 to e^0.7 per squared radius (0.05), where the start is
4 radii from the optimum of the mean load. A load w near ±1 moves the optimum by o(w) and the level by ℓ(w):

    cost = ½·Σ h_i·((x_i − x*_i)/0.05 − o(w)·n_i)² + ℓ(w),    measured with noise, in per cent of 8

o is 4 radii at w = 1, ℓ is 8: linear, saturating (tanh 3w), U-shaped (2w² − 1), or 0. The scores are the mean cost
above the optimum over the second half of the rounds, of the operating points and of the queries. `context` is the
belief, told of the load; `belief` the same, not told; `fixed` stays at the best setting of those rounds, and does not
probe.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

import numpy as np

from trimtab.lab.sim.provenance import Plain
from trimtab.lab.step_search import build
from trimtab.lab.suites.drift import Cell
from trimtab.lab.suites.scores import Outcome, Result
from trimtab.recipes import belief
from trimtab.tuner import Tuner
from trimtab.types import Array, Document

LOADS = "loads"  # in place of the id of a problem
TOLD, FIXED = "context", "fixed"
RADIUS, FAR, HIGH, BENT = 0.05, 4.0, 8.0, 0.7
START = 30  # loads before the first round, so that a walk does not begin at 0
NOTHING = 1e-9  # the cost of the best fixed setting where it is the optimum, but for rounding
AFTER = 100  # rounds that are judged after a jump
KIND: dict[str, Plain] = {"dim": 2, "noise": 3.0, "shape": "linear", "moves": "both", "load": "sine", "period": 40}
ALSO = {"more": 0, "late": 0, "missing": 0.0, "drift": 0.0, "jump": False}
"""Further contexts that are irrelevant; rounds by which the load is told late; the share of loads that are missing;
radii by which the optimum drifts in a round; whether the load jumps to one never seen."""


def shaped(shape: str, w: Array) -> Array:
    """Return what a load does to the optimum and the level, about 1 at w = 1."""
    if shape == "saturating":
        return np.tanh(3 * w)
    return {"linear": w, "U": 2 * w * w - 1, "none": 0 * w}[shape]


def _cell(group: str, rounds: int = 600, **more: Plain) -> Cell:
    return Cell(group, LOADS, {**KIND, **more}, rounds)


def _places() -> tuple[Cell, ...]:
    found = [
        _cell(shape, max(600, 3 * period), shape=shape, period=period)
        for shape in ("linear", "saturating", "U")
        for period in (10, 40, 100, 400)
    ]
    for shape in ("linear", "saturating", "U"):
        found += [_cell("white, walking", shape=shape, load=load) for load in ("white", "walk")]
    for dim in (5, 10):
        found += [_cell(f"d = {dim}", dim=dim, shape=shape) for shape in ("linear", "saturating", "U")]
    for noise in (1, 10, 30):
        found += [_cell(f"noise {noise} %", noise=noise, shape=shape) for shape in ("linear", "U")]
    found += [_cell("level only", moves="level", shape=shape) for shape in ("linear", "U")]
    found += [_cell("optimum only", moves="optimum", shape=shape) for shape in ("linear", "U")]
    found += [_cell("one of two", more=1, shape=shape) for shape in ("linear", "U")]
    found += [
        _cell("irrelevant", shape="none", drift=drift, dim=dim) for dim, drift in ((2, 0.0), (2, 0.03), (5, 0.03))
    ]
    found += [_cell("irrelevant", shape="none", drift=0.03, more=1)]
    found += [_cell("jump", jump=True, period=period) for period in (10, 40, 100)]
    found += [_cell("late", late=1, period=period) for period in (40, 100)]
    found += [_cell("missing", missing=0.3, shape=shape) for shape in ("linear", "U")]
    return tuple(found)


CONTEXT = _places()


class Scene(NamedTuple):
    """A cell with its random numbers drawn, the same for all methods; `(rounds, trials)` and so on."""

    loads: Array
    told: Array
    """`(rounds, trials, contexts)`: what the method is told; NaN where it is missing."""
    optimum: Array
    """`(rounds, trials, d)`"""
    level: Array
    noise: Array
    bend: Array
    """`(trials, d)`"""
    start: Array
    judged: slice


def scene(place: Cell, trials: int, seed: int) -> Scene:
    """Draw the loads, the optimum, the level and the noise of a cell."""
    given: Document = {**ALSO, **place.parameters}
    dim, rounds = given["dim"], place.rounds
    rng = np.random.default_rng([seed, zlib.crc32(repr(sorted(place.parameters.items())).encode())])
    walk = rng.normal(size=(START + rounds, trials))
    phase, times = rng.uniform(0, 2 * math.pi, trials), np.arange(rounds)[:, None]
    if given["load"] == "sine":
        loads = np.sin(2 * math.pi * times / given["period"] + phase) + 0.1 * walk[START:]
    elif given["load"] == "white":
        loads = 0.7 * walk[START:]
    else:
        loads = np.empty_like(walk)
        now = np.zeros(trials)
        for t, step in enumerate(walk):
            now = loads[t] = 0.97 * now + 0.17 * step  # a standard deviation of 0.7, forgotten in 33 rounds
        loads = loads[START:]
    judged = slice(rounds // 2, rounds)
    if given["jump"]:
        at = rounds - AFTER
        loads = np.where(times < at, np.minimum(loads, 0.5), 2.0 + 0.1 * walk[START:])
        judged = slice(at, rounds)
    towards = rng.normal(size=(trials, dim))
    towards /= np.sqrt((towards * towards).mean(axis=1, keepdims=True)) * math.sqrt(dim)
    away = rng.normal(size=(trials, dim))
    away /= np.sqrt((away * away).sum(axis=1, keepdims=True))
    drift = np.cumsum(given["drift"] * rng.normal(size=(rounds, trials, dim)), axis=0)
    change = shaped(given["shape"], loads)
    offset = change * (FAR if given["moves"] != "level" else 0.0)
    middle = 0.5 + rng.uniform(-0.05, 0.05, (trials, dim))
    optimum = middle + RADIUS * (offset[..., None] * towards + drift)
    columns = [loads, *(rng.normal(size=loads.shape) for _ in range(given["more"]))]
    told = np.stack(columns, axis=-1)
    if late := given["late"]:
        told = np.concatenate([told[:1].repeat(late, axis=0), told[:-late]])
    if missing := given["missing"]:
        told = np.where(rng.random(told.shape) < missing, np.nan, told)
    return Scene(
        loads,
        told,
        np.clip(optimum, 0.0, 1.0),
        change * (HIGH if given["moves"] != "optimum" else 0.0),
        0.01 * given["noise"] * HIGH * rng.normal(size=loads.shape),
        np.exp(np.linspace(-BENT, BENT, dim)) * np.ones((trials, 1)),
        np.clip(middle + RADIUS * FAR * away, 0.0, 1.0),
        judged,
    )


def excess(scene: Scene, t: int, x: Array) -> Array:
    """Return the cost above the optimum, one number per trial."""
    z = (x - scene.optimum[t]) / RADIUS
    return np.asarray(0.5 * (scene.bend * z * z).sum(axis=-1))


def run(place: Cell, method: str, trials: int, seed: int) -> Outcome:
    """Run a method without a step in a cell."""
    found = scene(place, trials, seed)
    if method == FIXED:
        x = found.optimum[found.judged].mean(axis=0)  # the best one, since the curvature does not change
        paid = np.mean([excess(found, t, x) for t in range(found.judged.start, place.rounds)], axis=0)
        paid = np.where(paid < NOTHING, 0.0, paid)  # where the optimum stays, no ratio to it is defined
        return {score: Result(paid, 0) for score in ("centre", "played")}
    told, dim = method == TOLD, found.start.shape[-1]
    names = [f"load {n}" for n in range(found.told.shape[-1])]
    tuner = Tuner(
        found.start,
        belief(radius=RADIUS) if told else build(method, RADIUS, None),
        bounds=[(0.0, 1.0)] * dim,
        seed=seed,
        context=names if told else None,
    )
    paid = np.zeros((2, trials))
    for t in range(place.rounds):
        context = dict(zip(names, found.told[t].T, strict=True))
        trial = tuner.ask(context=context) if told else tuner.ask()
        if t >= found.judged.start:
            centre = trial.look.centre if told and trial.look is not None else tuner.centre
            paid += [excess(found, t, centre), excess(found, t, trial.x)]
        tuner.tell(trial, excess(found, t, trial.x) + found.level[t] + found.noise[t])
    centre, played = paid / (place.rounds - found.judged.start)
    return {"centre": Result(centre, 0), "played": Result(played, 0)}
