"""`ask` and `tell` for any rule, bound to one setup.

    look = query(state, id)                                determines the query, together with the seed
    point = look.centre + δ·look.width·u(seed, look.trial) → measure → values
    centre, memory = learn(state, look, point, values)

The kernel handles trials, failed measurements and lanes; the rule chooses queries and learns from values. The same code
serves a single system and lanes, because `frame.xp` has the same functions for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from trimtab.setup import Setup
from trimtab.state import NEVER, Key, Look, State, Trial, frozen
from trimtab.types import Array, Value


class Kernel(NamedTuple):
    """`ask` and `tell`, bound to one setup."""

    ask: Callable[..., Trial]
    """(state, id[, context]) → the query."""
    tell: Callable[..., State]
    """(state, id, values[, played]) → the next state. played: where they were measured, if it was not at the query."""
    estimate: Callable[[State, int, tuple[Value, ...]], Array]


def build(setup: Setup) -> Kernel:
    """Bind the method's rule to the setup."""
    method, xp, rule = setup.method, setup.frame.xp, setup.rule
    next_look, learn, point_of, largest = rule.query, rule.learn, _points(setup), setup.largest
    single, maximise = setup.lanes is None and setup.queries * setup.told == 1, setup.maximise
    one_at_a_time, in_lanes, partial = setup.keeps_one, setup.lanes is not None, bool(setup.limits)
    outward = setup.outward if setup.bounds is not None else np.ndarray.copy if method.located else None
    latest: tuple[Any, ...] = (None, NEVER, None, None, None)  # state, id, look, point, context: reused by the tell

    def look_of(state: State, id: int, context: Array | None = None) -> Look:
        for number, look in state.open:
            if number == id:
                return look
        return next_look(state, id) if context is None else next_look(state, id, context)

    def ask(state: State, id: int, context: Array | None = None) -> Trial:
        nonlocal latest
        known = latest
        if outward and known[0] is state and known[1] == id and context is None is known[4]:
            return Trial(id, outward(known[3]), known[2], None, None)  # asked again, for example for its cost
        look = look_of(state, id, context)
        point = point_of(state.key, look)
        latest = (state, id, look, point, context)  # if the user can modify `point` (no `outward`), no rule reads it
        return Trial(id, outward(point) if outward else point, look, None, None)

    def tell(state: State, id: int, told: object, played: Array | None = None) -> State:
        alone = one_at_a_time and id == state.round and not (partial and state.open)  # handed out, with limits
        round, still_open = (id + 1, ()) if alone else _close(state, id)
        if single and type(told) is float and -largest <= told <= largest:  # fast path
            values: tuple[Value, ...] | None = (-told if maximise else told,)
        else:
            values = setup.read(told)
        if values is None:
            return state._replace(round=round, skipped=state.skipped + 1, open=still_open)
        asked = latest
        if asked[0] is not state or asked[1] != id:
            asked = (state, id, look := look_of(state, id), point_of(state.key, look))
        look, point = asked[2], asked[3] if played is None else played
        centre, memory = learn(state, look, point, values)
        centre.setflags(write=False)  # the next trial exposes it; other arrays are frozen when the state is read
        new = State(state.key, round, centre, memory, look, values, id, state.skipped, still_open)
        if not in_lanes:
            return new
        failed = xp.failed(values, partial)
        return frozen(_keep(xp, failed, state, new) if xp.any(failed) else new)

    def estimate(state: State, id: int, values: tuple[Value, ...]) -> Array:
        look = look_of(state, id)
        return rule.slope(state, look, point_of(state.key, look), values)

    return Kernel(ask, tell, estimate)


def _points(setup: Setup) -> Callable[[Key, Look], Array]:
    """Build (key, look) → query, or queries, projected into the domain if the margin requires it."""
    frame = setup.frame
    axpy, direction = frame.xp.axpy, frame.direction
    radius, *more = (offset * setup.method.radius for offset in setup.method.offsets)

    def one(key: Key, look: Look) -> Array:
        point: Array = axpy(look.width * radius, direction(key, look.trial), look.centre)
        return point

    def several(key: Key, look: Look) -> Array:
        u = direction(key, look.trial)
        return np.stack([axpy(look.width * r, u, look.centre) for r in (radius, *more)], axis=-2)

    points = several if more else one
    if setup.method.margin != "project" or frame.free:
        return points
    return lambda key, look: frame.project(points(key, look))


def _close(state: State, id: int) -> tuple[int, tuple[tuple[int, Look], ...]]:
    """The number of rounds and the trials still open after this one is told."""
    still_open = tuple(pair for pair in state.open if pair[0] != id)
    if len(still_open) == len(state.open):
        reason = f"it was never handed out; the next one is {state.round}"
        if 0 <= id < state.round:
            open_ones = ", ".join(str(number) for number, _ in state.open) or "none"
            reason = f"it was told or skipped before; the open ones are {open_ones} and the next one, {state.round}"
        raise ValueError(f"trial {id} is not open: {reason}")
    return state.round, still_open


def _keep(xp: Any, failed: Any, old: State, new: State) -> State:
    """The new state, except that lanes with a failed measurement only count it."""
    merge = xp.merge
    return new._replace(
        centre=merge(failed, old.centre, new.centre),
        memory=merge(failed, old.memory, new.memory),
        last=merge(failed, old.last, new.last),
        values=merge(failed, old.values, new.values),
        told=merge(failed, old.told, new.told),
        skipped=new.skipped + failed,
    )
