"""The one way to move: the parts of a method, bound to one setup, as `ask` and `tell`.

    look = (trial, centre, width)                          with the seed, all that a query depends on
    query = centre + δ·width·u(seed, trial)                → measure → values
    contrast, scale, vector, … = learn(state, look, query, values)          what does the number tell: ĝ = scale·vector
    rate = rate(state, look, contrast, sense)              how far do we go
    centre ← Π(centre − rate·scale·vector + carry)         where may we be

Parts are bound to the setup once (`bind`), so nothing is decided twice; lanes run the same lines, because `frame.xp`
has the same names for one number and for one per lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from trimtab.domains import Everywhere
from trimtab.protocols import Frame
from trimtab.setup import Setup
from trimtab.state import NEVER, Look, State, Trial, frozen, make
from trimtab.types import Array, Value

SHORTEST = 1e-200  # of a vector: its square is still a number


class Kernel(NamedTuple):
    """`ask` and `tell`, bound to one setup."""

    ask: Callable[[State, int], Trial]
    tell: Callable[[State, int, object], State]
    estimate: Callable[[State, int, tuple[Value, ...]], Array]


def build(setup: Setup) -> Kernel:
    """Bind every part to the setup."""
    method, frame, project = setup.method, setup.frame, setup.home.project
    xp, estimator = frame.xp, method.estimator
    axpy, missing, some = xp.axpy, xp.failed, xp.any
    free = isinstance(setup.domain, Everywhere)
    next_look, learn, longest_vector = estimator.bind(frame)
    width_of, rate_of, settle, carry_of, own_longest, aim = method.step.bind(frame)
    query_of, longest = _queries(setup, frame, free), setup.longest
    largest = setup.largest
    single, maximise = setup.lanes is None and setup.queries * setup.told == 1, setup.maximise
    one_at_a_time, in_lanes = setup.max_pending == 1, setup.lanes is not None
    # A factor below this makes no move that is too long: no need to measure it.
    plain = longest / longest_vector if own_longest > longest else math.inf
    measured = plain < math.inf
    outward = setup.outward if setup.bounds is not None else np.ndarray.copy if estimator.located else None
    latest: tuple[Any, ...] = (None, NEVER)  # state, id, look, query: tell comes after ask
    if aim is not None:
        next_look = _aimed(next_look, aim, xp.merge, None if free else project)

    def look_of(state: State, id: int) -> Look:
        if state.open:
            for number, look in state.open:
                if number == id:
                    return look
        return next_look(state, id, width_of(state.pace, id))

    def ask(state: State, id: int) -> Trial:
        nonlocal latest
        look = look_of(state, id) if state.open else next_look(state, id, width_of(state.pace, id))
        query = query_of(look)
        latest = (state, id, look, query)  # where it is also in the user's hands, no part reads it
        return make(Trial, (id, outward(query) if outward else query, look, None))

    def tell(state: State, id: int, told: object) -> State:
        round, still_open = (id + 1, ()) if id == state[0] and one_at_a_time else _close(state, id)
        if single and type(told) is float and -largest <= told <= largest:  # the fast way, most of the time
            values: tuple[Value, ...] | None = (-told if maximise else told,)
        else:
            values = setup.read(told)
        if values is None:
            return state._replace(round=round, skipped=state.skipped + 1, open=still_open)
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
        if measured and some(abs(factor) > plain):
            most = longest / xp.maximum(xp.norm(vector), SHORTEST)
            factor = xp.clip(factor, -most, most)
        carried = None if carry_of is None else carry_of(pace)
        if carried is None:
            centre = project(axpy(factor, vector, before))
        else:
            move = axpy(factor, vector, carried)
            if measured:
                room = xp.where(
                    xp.norm(carried) > 0, xp.minimum(longest / xp.maximum(xp.norm(move), SHORTEST), 1.0), 1.0
                )
                move = xp.times(room, move)
            centre = project(before + move)
        if settle is not None:
            pace = settle(pace, centre - before)
        centre.setflags(write=False)  # it will be in the user's hands; the rest of one system's state when that is
        new = make(State, (round, centre, slope, pace, look, values, id, state.skipped, still_open))
        if some_idle:
            new = _keep(xp, failed, idle, state, new)
        return frozen(new) if in_lanes else new

    def estimate(state: State, id: int, values: tuple[Value, ...]) -> Array:
        look = look_of(state, id)
        contrast, scale, vector, *_ = learn(state, look, query_of(look), values)
        return np.asarray(xp.times(xp.where(contrast != contrast, math.nan, scale), vector))

    return Kernel(ask, tell, estimate)


def _aimed(
    look_of: Callable[[State, int, Value], Look],
    aim: Callable[[State, int, Look], Look],
    merge: Callable[[Any, Array, Array], Array],
    project: Callable[[Array], Array] | None,
) -> Callable[[State, int, Value], Look]:
    """Where the estimator looks, or the step, in the trials that are its own; inside the domain."""

    def aimed(state: State, id: int, width: Value) -> Look:
        own = look_of(state, id, width)
        look = aim(state, id, own)
        if project is None or look.centre is own.centre:
            return look
        elsewhere = (look.centre != own.centre).any(
            axis=-1
        )  # a lane that looks from its centre does so to the last bit
        return look._replace(centre=merge(elsewhere, project(look.centre), own.centre))

    return aimed


def _queries(setup: Setup, frame: Frame, free: bool) -> Callable[[Look], Array]:
    """look → its query, or queries: chosen once from how many there are, and whether they are projected back."""
    axpy, direction = frame.xp.axpy, frame.direction
    radius, *more = (offset * setup.method.radius for offset in setup.method.estimator.offsets)

    def one(look: Look) -> Array:
        query: Array = axpy(look.width * radius, direction(look.trial), look.centre)
        return query

    def several(look: Look) -> Array:
        u = direction(look.trial)
        return np.stack([axpy(look.width * r, u, look.centre) for r in (radius, *more)], axis=-2)

    query = several if more else one
    if setup.method.margin != "project" or free:
        return query
    project = setup.home.project
    return lambda look: project(query(look))


def _close(state: State, id: int) -> tuple[int, tuple[tuple[int, Look], ...]]:
    """The number of rounds, and the trials still open, once this one is told."""
    still_open = tuple(pair for pair in state.open if pair[0] != id)
    if len(still_open) == len(state.open):
        reason = f"it was never handed out; the next one is {state.round}"
        if 0 <= id < state.round:
            open_ones = ", ".join(str(number) for number, _ in state.open) or "none"
            reason = f"it was told or skipped before; the open ones are {open_ones} and the next one, {state.round}"
        raise ValueError(f"trial {id} is not open: {reason}")
    return state.round, still_open


def _keep(xp: Any, failed: Any, idle: object, old: State, new: State) -> State:
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
