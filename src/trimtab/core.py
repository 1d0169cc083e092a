"""The pure core: `init`, `ask` and `tell`, functions of (setup, state[, values]). One way to move.

    look = (trial, centre, width)                          with the seed, all that a query depends on
    query = centre + δ·width·u(seed, trial)                → measure → values
    contrast, scale, vector, … = learn(state, look, query, values)          what does the number tell: ĝ = scale·vector
    rate = rate(state, look, values, estimate)             how far do we go
    centre ← Π(centre − rate·scale·vector)                 where may we be

`Setup` is what does not change, `State` what does: a few numbers and arrays, immutable. Parts are bound to the setup
once (`bind`), so nothing is decided twice; lanes run the same lines, because `frame.xp` has the same names for one
number and for one per lane. No pending direction is kept, because u is a function of (seed, trial): asking again, also
after a crash, gives the same query.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains import Everywhere
from trimtab.parts import Frame
from trimtab.setup import LARGEST, Setup
from trimtab.state import Look, State, Trial, frozen, make
from trimtab.types import Array, Value

ORIGIN = -1  # the trial before the first
SHORTEST = 1e-200  # of a vector: its square is still a number


class Kernel(NamedTuple):
    """`ask` and `tell`, bound to one setup."""

    ask: Callable[[State, int], Trial]
    tell: Callable[[State, int, Any], State]
    estimate: Callable[[State, int, tuple[Value, ...]], Array]


def init(setup: Setup, x0: ArrayLike) -> State:
    """The state before round 0, at x0, or where x0 is at the edge, at the nearest point whose probes all stay inside.

    With margin="erode" that is no farther than a probe reaches (on a simplex, near a corner, somewhat more); with
    margin="project" it is x0 itself.
    """
    x = np.array(x0, dtype=float)
    if x.shape != setup.shape:
        raise ValueError(f"x0 has shape {x.shape}, but the setup is for {setup.shape}")
    for place in np.argwhere(~np.isfinite(x))[:1]:
        raise ValueError(f"x0{place.tolist()}={x[tuple(place)]} is not a number: every coordinate must be finite")
    if not setup.admits(x):
        setup.outside(x)
    method, frame, centre = setup.method, setup.frame, setup.home.project(setup.inward(x))
    slope, pace = method.estimator.start(frame, centre), method.step.start(frame, centre)
    never, nothing = setup.count(ORIGIN), (frame.zero + math.nan,) * setup.queries * setup.told
    return frozen(State(0, centre, slope, pace, Look(never, centre, frame.zero), nothing, never, setup.count(0), ()))


def ask(setup: Setup, state: State, id: int | None = None) -> Trial:
    """The next trial, or an open one again: its query x, in the user's coordinates, and where it looks from.

    x has the shape `(d,)` or `(lanes, d)`; methods with two queries give `(2, d)` or `(lanes, 2, d)`.
    """
    return kernel(setup).ask(state, state.round if id is None else id)


def hand_out(setup: Setup, state: State) -> tuple[Trial, State]:
    """The next trial, and the state in which it is open: for values that come late (max_pending > 1)."""
    trial = kernel(setup).ask(state, state.round)
    if trial.look is None or len(state.open) >= setup.max_pending:
        raise RuntimeError(
            f"{len(state.open)} trials are open and max_pending={setup.max_pending}:"
            f" tell or skip one of {', '.join(str(id) for id, _ in state.open)} first"
        )
    return trial, state._replace(round=state.round + 1, open=(*state.open, (trial.id, trial.look)))


def tell(setup: Setup, state: State, values: Any, id: int | None = None) -> State:
    """The state after the values of a trial; None or NaN marks a failed measurement, which moves nothing."""
    return kernel(setup).tell(state, state.round if id is None else id, values)


def forget(setup: Setup, state: State) -> State:
    """The state in which the next value only anchors: what is told from now on does not compare with what was.

    What an estimator does not know before its first value, NaN in the memory it starts with, it forgets.
    """
    fresh = setup.method.estimator.start(setup.frame, state.centre)
    unknown = tuple(value + math.nan for value in state.values)
    return frozen(state._replace(values=unknown, told=setup.count(ORIGIN), slope=_forgotten(state.slope, fresh)))


def estimate(setup: Setup, state: State, values: tuple[Value, ...], id: int | None = None) -> Array:
    """ĝ_t, in scaled coordinates, from the values of a round's queries; NaN without a contrast."""
    return kernel(setup).estimate(state, state.round if id is None else id, values)


def kernel(setup: Setup) -> Kernel:
    """The setup's kernel, built once."""
    found = _kernels.get(setup)
    if found is None:
        found = _kernels[setup] = build(setup)
    return found


_kernels: WeakKeyDictionary[Setup, Kernel] = WeakKeyDictionary()


def build(setup: Setup) -> Kernel:
    """Bind every part to the setup."""
    method, frame, project = setup.method, setup.frame, setup.home.project
    xp, estimator = frame.xp, method.estimator
    axpy, missing, some = xp.axpy, xp.failed, xp.any
    next_look, learn, longest_vector = estimator.bind(frame)
    width_of, rate_of, settle, own_longest = method.step.bind(frame)
    query_of, longest = _queries(setup, frame), setup.longest
    single = setup.lanes is None and setup.queries * setup.told == 1
    one_at_a_time, in_lanes = setup.max_pending == 1, setup.lanes is not None
    # A factor below this makes no move that is too long: no need to measure it.
    plain = longest / longest_vector if own_longest > longest else math.inf
    outward = setup.outward if setup.bounds is not None else _copy if estimator.located else None
    slope_arrays, pace_arrays = (
        [k for k, x in enumerate(part.start(frame, np.empty(0))) if isinstance(x, np.ndarray)]
        for part in (estimator, method.step)
    )
    latest: tuple[Any, ...] = (None, ORIGIN)  # state, id, look, query: tell comes after ask

    def look_of(state: State, id: int) -> Look:
        if state.open:
            for number, look in state.open:
                if number == id:
                    return look
        return next_look(state, id, width_of(state.pace))

    def ask(state: State, id: int) -> Trial:
        nonlocal latest
        look = look_of(state, id)
        query = query_of(look)
        latest = (state, id, look, query)  # where it is also in the user's hands, no part reads it
        return make(Trial, (id, outward(query) if outward else query, look, None))

    def tell(state: State, id: int, told: Any) -> State:
        round, still_open = (id + 1, ()) if id == state[0] and one_at_a_time else _close(state, id)
        if single and type(told) is float and -LARGEST <= told <= LARGEST:  # the fast way, most of the time
            values: tuple[Value, ...] | None = (-told if setup.maximise else told,)
        else:
            values = setup.read(told)
        if values is None:
            return frozen(state._replace(round=round, skipped=state.skipped + 1, open=still_open))
        asked = latest
        if asked[0] is not state or asked[1] != id:
            asked = (state, id, look := look_of(state, id), query_of(look))
        look, query = asked[2], asked[3]
        contrast, scale, vector, slope, sense = learn(state, look, query, values)
        failed = missing(values) if in_lanes else False
        idle = failed | (contrast != contrast)
        if some_idle := some(idle):  # the first value only anchors
            contrast, scale = xp.where(idle, 0.0, contrast), xp.where(idle, 0.0, scale)
        rate, pace = rate_of(state, look, contrast, sense)
        before: Array = state.centre
        factor: Any = -rate * scale
        if some(abs(factor) > plain):
            most = longest / xp.maximum(xp.norm(vector), SHORTEST)
            factor = xp.clip(factor, -most, most)
        centre = project(axpy(factor, vector, before))
        pace = settle(pace, before, centre)
        new = make(State, (round, centre, slope, pace, look, values, id, state.skipped, still_open))
        if some_idle:
            new = _keep(xp, failed, idle, state, new)
        if in_lanes or some_idle:
            return frozen(new)
        centre.setflags(write=False)
        for place in slope_arrays:
            slope[place].setflags(write=False)
        for place in pace_arrays:
            pace[place].setflags(write=False)
        return new

    def estimate(state: State, id: int, values: tuple[Value, ...]) -> Array:
        look = look_of(state, id)
        contrast, scale, vector, *_ = learn(state, look, query_of(look), values)
        return np.asarray(xp.times(xp.where(contrast != contrast, math.nan, scale), vector))

    return Kernel(ask, tell, estimate)


def _copy(query: Array) -> Array:
    return query.copy()


def _queries(setup: Setup, frame: Frame) -> Callable[[Look], Array]:
    """look → its query, or queries: chosen once from how many there are, and whether they are projected back."""
    axpy, direction = frame.xp.axpy, frame.direction
    radius, *others = (offset * setup.method.radius for offset in setup.method.estimator.offsets)

    def one(look: Look) -> Array:
        query: Array = axpy(look.width * radius, direction(look.trial), look.centre)
        return query

    def several(look: Look) -> Array:
        u = direction(look.trial)
        return np.stack([axpy(look.width * r, u, look.centre) for r in (radius, *others)], axis=-2)

    query = several if others else one
    if setup.method.margin != "project" or isinstance(setup.domain, Everywhere):
        return query
    project = setup.home.project
    return lambda look: project(query(look))


def _forgotten(memory: Any, fresh: Any) -> Any:
    if not isinstance(memory, tuple):
        return fresh if np.isnan(fresh).any() else memory
    parts = [_forgotten(a, b) for a, b in zip(memory, fresh, strict=True)]
    return type(memory)(*parts) if hasattr(memory, "_fields") else tuple(parts)


def _close(state: State, id: int) -> tuple[int, tuple[tuple[int, Look], ...]]:
    """The number of rounds, and the trials still open, once this one is told."""
    still_open = tuple(pair for pair in state.open if pair[0] != id)
    if len(still_open) == len(state.open):
        reason = f"it was never asked; the next one is {state.round}"
        if 0 <= id < state.round:
            open_ones = ", ".join(str(number) for number, _ in state.open) or "none"
            reason = f"it was told or skipped before; open are: {open_ones}, and the next one, {state.round}"
        raise ValueError(f"trial {id} is not open: {reason}")
    return state.round, still_open


def _keep(xp: Any, failed: Any, idle: Any, old: State, new: State) -> State:
    """What a lane without a value, or without a contrast, does not change."""
    return new._replace(
        centre=xp.merge(idle, old.centre, new.centre),
        pace=xp.merge(idle, old.pace, new.pace),
        slope=xp.merge(failed, old.slope, new.slope),
        last=xp.merge(failed, old.last, new.last),
        values=xp.merge(failed, old.values, new.values),
        told=xp.merge(failed, old.told, new.told),
        skipped=new.skipped + failed,
    )
