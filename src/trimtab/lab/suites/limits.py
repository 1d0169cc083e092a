"""The suite `limits`: systems with measured numbers that must not exceed a maximum, beside the value.

A quadratic in the box [0, 1]^d with curvatures from e^−0.7 to e^0.7 per squared radius (0.05). In radii from the
start, a wall stands at 3 along a random unit vector n, and the optimum is at 6·n (beyond), 3·n (at) or 0 (inside), and
3 or 4 along the wall; with two walls, at 6 along both normals. The number is the distance beyond the wall:

    number = nᵀz − room,    z = (x − start)/0.05,    to be at most 0

The noise of the value is in per cent of 8, that of a number in per cent of 4. The scores are the mean cost above the
best allowed setting of each round, from the first round on; what a forbidden setting saves counts as 0. Beside them
stand the share of queries that are beyond in truth, in the first 30 rounds and after, and the longest run of them.
`limits` is the belief, told of the limits; `belief` the same, not told; `primal-dual` has its step, its dual step, the
length of its probes and a margin chosen in hindsight: the cheapest whose share beyond is at most the risk, else the one
with the least share.
"""

from __future__ import annotations

import itertools
import math
import warnings
import zlib
from typing import NamedTuple

import numpy as np

from trimtab.lab.sim.provenance import Plain
from trimtab.lab.step_search import build
from trimtab.lab.suites.drift import Cell
from trimtab.lab.suites.scores import Outcome, Result
from trimtab.recipes import belief
from trimtab.recipes.primal_dual import primal_dual
from trimtab.tuner import Tuner
from trimtab.types import Array, Document
from trimtab.util.advice_warning import AdviceWarning

WALLS = "walls"  # in place of the id of a problem
TOLD, DUAL = "limits", "primal-dual"
RADIUS, BENT, ROOM, ALONG = 0.05, 0.7, 3.0, 3.0
FIRST = 30  # rounds that are counted apart
ROUNDS = 300
SWING, CYCLE, WALK, JUMP = 1.5, 150, 0.03, 2.0  # of a wall, and the walk of the optimum, in radii
PERIOD = 40  # of a load
GROWS = 3.0  # growing noise: at the end, relative to the start
STEEP = 10.0  # cost per radius beyond the wall, where the value has a cliff
CURVED = {"curved": 10.0, "bowl": 4.0}  # radius of the ball that is allowed, in radii
KIND: dict[str, Plain] = {"dim": 2, "where": "beyond", "moves": "still", "noise": 3.0, "risk": 0.01}
ALSO = {"law": "normal", "wall": "plane", "walls": 1, "every": 1, "load": "none", "cliff": False}
"""Noise: normal, t3 or growing; a wall: plane, curved, bowl or steep; how many walls; rounds from one measurement of
the numbers to the next; a load that moves the wall: none, told or untold; whether the value has a cliff at the wall."""
STEPS, DUALS, MARGINS, WIDTHS = (0.003, 0.01, 0.03, 0.1), (1.0, 10.0), (0.0, 1.0, 2.0), (0.3, 1.0)
"""For `primal-dual`: steps in units of radius², dual steps relative to them; margins, and its probes, in radii."""


def _cell(group: str, rounds: int = ROUNDS, **more: Plain) -> Cell:
    return Cell(group, WALLS, {**KIND, **more}, rounds)


def _places() -> tuple[Cell, ...]:
    moves = {"still": "still", "drift": "drifting", "jump": "jumping"}
    found = [
        _cell({"at": "at the wall", "inside": "never binds"}.get(where, moves[move]), dim=dim, where=where, moves=move)
        for where in ("beyond", "at", "inside")
        for move in moves
        for dim in (2, 5, 10)
    ]
    found += [_cell("two limits", walls=2, dim=dim) for dim in (2, 5, 10)]
    found += [_cell("two limits", walls=2, moves=move) for move in ("drift", "jump")]
    for wall in ("curved", "bowl", "steep"):
        found += [_cell(wall, wall=wall, dim=dim) for dim in (2, 5)]
        found += [_cell(wall, wall=wall, moves="drift")]
    found += [_cell("cliff", cliff=True, dim=dim) for dim in (2, 5)]
    found += [_cell("noise 10 %", noise=10.0, moves=move) for move in ("still", "drift")]
    found += [_cell(f"{law} noise", law=law, moves=move) for law in ("t3", "growing") for move in moves]
    found += [_cell("one of three", every=3, moves=move) for move in moves]
    found += [_cell("one of three", every=3, moves="drift", dim=5)]
    found += [_cell("load told", load="told", dim=dim) for dim in (2, 5)]
    found += [_cell("load not told", load="untold")]
    found += [_cell(f"risk {risk:g}", risk=risk, moves=move) for risk in (0.001, 0.05, 0.2) for move in moves]
    return tuple(found)


LIMITS = _places()


class Scene(NamedTuple):
    """A cell with its random numbers drawn, the same for all methods; lengths are in radii from the start."""

    optimum: Array
    """`(rounds, trials, d)`, as if there were no wall."""
    normals: Array
    """`(trials, walls, d)`"""
    room: Array
    """`(rounds, trials)`: the distance of the walls from the start."""
    ball: float
    """The radius of the ball that is allowed; infinite for a plane wall."""
    loads: Array
    """`(rounds, trials)`"""
    noise: Array
    """`(rounds, trials)`, of the value."""
    numbers_noise: Array
    """`(rounds, trials, walls)`"""
    bend: Array
    """`(d,)`"""
    best: Array
    """`(rounds, trials)`: the least cost that is allowed."""


def scene(place: Cell, trials: int, seed: int) -> Scene:
    """Draw the walls, the optimum, the load and the noise of a cell."""
    given: Document = {**ALSO, **place.parameters}
    dim, walls, rounds = given["dim"], given["walls"], place.rounds
    drawn = sorted((name, value) for name, value in place.parameters.items() if name != "risk")  # alike for all risks
    rng = np.random.default_rng([seed, zlib.crc32(repr(drawn).encode())])
    frames = np.swapaxes(np.linalg.qr(rng.normal(size=(trials, dim, 2)))[0], 1, 2)  # two orthogonal unit vectors
    times = np.arange(rounds)[:, None]
    room = np.full((rounds, trials), ROOM)
    walk = np.zeros((rounds, trials, dim))
    if given["moves"] == "drift":
        room += SWING * np.sin(2 * math.pi * times / CYCLE) * rng.choice([-1.0, 1.0], trials)
        walk = np.cumsum(WALK * rng.normal(size=walk.shape), axis=0)
    elif given["moves"] == "jump":
        room -= JUMP * (times > rounds // 2)  # two rounds before the next number, where one of three is measured
    loads = np.sin(2 * math.pi * times / PERIOD + rng.uniform(0, 2 * math.pi, trials))
    loads += 0.1 * rng.normal(size=loads.shape)
    if given["load"] != "none":
        room += SWING * loads
    towards = {"beyond": 2 * ROOM, "at": ROOM, "inside": 0.0}[given["where"]]
    along = towards if walls == 2 else ALONG + (given["where"] == "inside")
    optimum = (np.array([towards, along]) @ frames)[None] + walk
    draws = rng.normal(size=(2, rounds, trials, 2))
    if given["law"] == "t3":
        draws = rng.standard_t(3, size=draws.shape) / math.sqrt(3)
    elif given["law"] == "growing":
        draws = draws * (1 + (GROWS - 1) * times / rounds)[..., None]
    draws = 0.01 * given["noise"] * draws
    bend = np.exp(np.linspace(-BENT, BENT, dim))
    ball = CURVED.get(given["wall"], math.inf)
    normals = frames[:, :walls]
    best = _best_within(ball, normals, room, optimum, bend)
    return Scene(optimum, normals, room, ball, loads, 8 * draws[0, ..., 0], 4 * draws[1, ..., :walls], bend, best)


def _best_within(ball: float, normals: Array, room: Array, optimum: Array, bend: Array) -> Array:
    """The least cost that is allowed in every round, as the largest value of the dual problem."""
    if math.isfinite(ball):
        return _best_in_ball(ball, normals[:, 0], room, optimum, bend)
    over = np.einsum("rtd,twd->rtw", optimum, normals) - room[..., None]
    gram = np.einsum("twd,tvd->twv", normals / bend, normals)
    found = np.zeros_like(room)
    for count in range(1, normals.shape[1] + 1):
        for some in map(list, itertools.combinations(range(normals.shape[1]), count)):
            inverse = np.linalg.inv(gram[:, some][..., some])
            prices = np.einsum("twv,rtv->rtw", inverse, over[..., some])
            value = 0.5 * (prices * over[..., some]).sum(axis=-1)
            found = np.where((prices >= 0).all(axis=-1), np.maximum(found, value), found)
    return found


def _best_in_ball(ball: float, normal: Array, room: Array, optimum: Array, bend: Array) -> Array:
    middle = (room - ball)[..., None] * normal
    offset = optimum - middle
    low, high = np.zeros(room.shape), np.full(room.shape, 1e6)
    for _ in range(100):  # the price at which the best setting is on the sphere, or 0
        price = 0.5 * (low + high)
        z = bend * offset / (bend + price[..., None])
        outside = (z * z).sum(axis=-1) > ball * ball
        low, high = np.where(outside, price, low), np.where(outside, high, price)
    z = bend * offset / (bend + high[..., None]) - offset
    return np.asarray(0.5 * (bend * z * z).sum(axis=-1))


def beyond(scene: Scene, t: int, x: Array) -> Array:
    """Return the distance beyond each wall, `(trials, walls)`, in radii; 0 on it."""
    z, room = (x - 0.5) / RADIUS, scene.room[t][:, None]
    if math.isfinite(scene.ball):
        z = z[:, None] - (room - scene.ball)[..., None] * scene.normals
        return np.asarray(((z * z).sum(axis=-1) - scene.ball * scene.ball) / (2 * scene.ball))
    return np.asarray(np.einsum("td,twd->tw", z, scene.normals) - room)


def numbers(place: Cell, over: Array) -> Array:
    """Return what is measured at such distances beyond the walls: e^distance − 1 for a steep wall."""
    return np.expm1(np.minimum(over, 5.0)) if place.parameters.get("wall") == "steep" else over


def cost(place: Cell, scene: Scene, t: int, x: Array) -> Array:
    """Return the true cost, one number per trial."""
    z = (x - 0.5) / RADIUS - scene.optimum[t]
    found = 0.5 * (scene.bend * z * z).sum(axis=-1)
    if place.parameters.get("cliff"):
        found = found + STEEP * np.maximum(beyond(scene, t, x), 0.0).sum(axis=-1)
    return np.asarray(found)


def run(place: Cell, method: str, trials: int, seed: int) -> Outcome:
    """Run a method in a cell; `primal-dual` with what is best in hindsight."""
    found = scene(place, trials, seed)
    if method != DUAL:
        return _play(place, found, method, _tuner(place, found, method, seed))
    tried = (
        _play(place, found, method, _priced(found, seed, width, step, dual), margin)
        for width, step, dual, margin in itertools.product(WIDTHS, STEPS, DUALS, MARGINS)
    )
    return min(tried, key=lambda outcome: _rank(outcome, _number(place, "risk")))


def _rank(outcome: Outcome, risk: float) -> tuple[float, float]:
    share = float(outcome["whole"].values.mean())
    return (share if share > risk else 0.0), outcome["played"].median


def _number(place: Cell, name: str) -> float:
    return float({**ALSO, **place.parameters}[name])  # type: ignore[arg-type]


def _names(scene: Scene) -> list[str]:
    return [f"number {n}" for n in range(scene.normals.shape[1])]


def _tuner(place: Cell, scene: Scene, method: str, seed: int) -> Tuner:
    """The belief with limits, or a method that is not told of them."""
    trials, _, dim = scene.normals.shape
    told, risk = method == TOLD, _number(place, "risk")
    return Tuner(
        np.full((trials, dim), 0.5),
        belief(radius=RADIUS) if told else build(method, RADIUS, None),
        bounds=[(0.0, 1.0)] * dim,
        seed=seed,
        limits={name: {"max": 0.0, "risk": risk} for name in _names(scene)} if told else None,
        context=["load"] if told and place.parameters.get("load") == "told" else None,
    )


def _priced(scene: Scene, seed: int, width: float, step: float, dual: float) -> Tuner:
    trials, walls, dim = scene.normals.shape
    step_of = step * RADIUS * RADIUS
    method = primal_dual(radius=width * RADIUS, step=step_of, limits=walls, dual_step=dual * step)
    return Tuner(np.full((trials, dim), 0.5), method, bounds=[(0.0, 1.0)] * dim, seed=seed)


def _play(place: Cell, scene: Scene, method: str, tuner: Tuner, margin: float = 0.0) -> Outcome:
    """Run a tuner from the first query on; what it pays, and when it is beyond a wall."""
    rounds, trials = scene.room.shape
    names, every = _names(scene), int(_number(place, "every"))
    paid, out = np.zeros((2, trials)), np.zeros((rounds, trials), bool)
    measured = np.full((trials, len(names)), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)  # that a wall has jumped, for example
        for t in range(rounds):
            given = {"context": {"load": scene.loads[t]}} if tuner.setup.contexts else {}
            trial = tuner.ask(**given)
            centre = trial.look.centre if given and trial.look is not None else tuner.centre
            paid += [np.maximum(cost(place, scene, t, x) - scene.best[t], 0.0) for x in (centre, trial.x)]
            over = beyond(scene, t, trial.x)
            out[t] = (over > 0).any(axis=1)
            value = cost(place, scene, t, trial.x) + scene.noise[t]
            if fresh := t % every == 0:
                measured = numbers(place, over) + scene.numbers_noise[t]
            if method == DUAL:
                tuner.tell(trial, value, limits=measured + margin)  # the last numbers, where they are not measured
            elif method == TOLD:
                tuner.tell(trial, value, limits=dict(zip(names, measured.T, strict=True)) if fresh else {})
            else:
                tuner.tell(trial, value)
    scores = {"centre": paid[0] / rounds, "played": paid[1] / rounds, "whole": out.mean(axis=0)}
    scores |= {"first": out[:FIRST].mean(axis=0), "after": out[FIRST:].mean(axis=0), "longest": longest_run(out)}
    return {name: Result(values, 0) for name, values in scores.items()}


def longest_run(out: Array) -> Array:
    """Return the largest number of consecutive rounds beyond, per trial.

    >>> longest_run(np.array([[True], [False], [True], [True]]))
    array([2.])
    """
    now, most = np.zeros(out.shape[1]), np.zeros(out.shape[1])
    for row in out:
        now = np.where(row, now + 1, 0.0)
        most = np.maximum(most, now)
    return most
