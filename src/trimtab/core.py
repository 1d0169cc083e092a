"""The pure core: `init`, `ask` and `tell`, functions of (setup, state[, values]).

`Setup` stays fixed; `State` is immutable, a few numbers and arrays; `trimtab.kernel` computes the next one. Directions
are functions of (seed, trial) and not stored: asking again, even after a crash, gives the same query.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimtab.inputs import finite
from trimtab.kernel import Kernel, build
from trimtab.setup import Setup
from trimtab.state import NEVER, Key, Look, State, Trial, frozen
from trimtab.types import Array, Value
from trimtab.validation import whole


def init(setup: Setup, x0: ArrayLike, seed: int = 0, lane: int = 0, copies: int = 1) -> State:
    """The state before round 0, at x0 or, near the edge, at the nearest point whose probes all stay inside.

    With margin="erode" that point is within a probe of x0 (a little farther near the corner of a simplex); with
    margin="project" it is x0 itself. seed, lane, copies: see `trimtab.state.Key`.
    """
    x = np.array(x0, dtype=float)
    if x.shape != setup.shape:
        raise ValueError(f"x0 has shape {x.shape}, but the setup has shape {setup.shape}")
    if not setup.admits(finite(x)):
        setup.outside(x)
    key = Key(whole("seed", seed, 0, 2**64), whole("lane", lane, 0, 2**63), whole("copies", copies, 1, 2**20))
    if (setup.lanes or 1) % copies:
        raise ValueError(f"copies={copies} does not divide the {setup.lanes or 1} lanes")
    zero, centre, never = setup.frame.zero, setup.home.project(setup.inward(x)), setup.count(NEVER)
    nothing, memory = (zero + math.nan,) * setup.queries * setup.told, setup.rule.start(centre)
    missing = np.full((*setup.shape[:-1], len(setup.contexts)), math.nan) if setup.contexts else None
    look = Look(never, centre, zero, missing)
    return frozen(State(key, 0, centre, memory, look, nothing, never, setup.count(0), ()))


def ask(setup: Setup, state: State, id: int | None = None, context: Array | None = None) -> Trial:
    """The next trial, or an open one again: its query x, in the user's coordinates, and its look.

    x has the shape `(d,)` or `(lanes, d)`; methods with two queries give `(2, d)` or `(lanes, 2, d)`.
    context: numbers in the order of the setup's contexts, `(contexts,)` or `(lanes, contexts)`; NaN: not known.
    """
    return kernel(setup).ask(state, state.round if id is None else id, context)


def hand_out(setup: Setup, state: State, context: Array | None = None) -> tuple[Trial, State]:
    """The next trial, and the state in which it is open; for late values (max_pending > 1), and with contexts."""
    if setup.contexts and context is None:
        context = np.full((*setup.shape[:-1], len(setup.contexts)), math.nan)
    trial = kernel(setup).ask(state, state.round, context)
    if trial.look is None or len(state.open) >= setup.max_pending:
        raise RuntimeError(
            f"{len(state.open)} trials are open and max_pending={setup.max_pending}:"
            f" tell or skip one of {', '.join(str(id) for id, _ in state.open)} first"
        )
    return trial, state._replace(round=state.round + 1, open=(*state.open, (trial.id, trial.look)))


def at(setup: Setup, state: State, context: Array | None = None) -> Array:
    """The operating point for a context, in the user's coordinates; without one, that of the mean context."""
    return setup.outward(setup.rule.at(state, context))


def tell(setup: Setup, state: State, values: object, id: int | None = None, played: Array | None = None) -> State:
    """The state after the values of a trial; None or NaN marks a failed measurement, which changes no centre.

    played: where they were measured, in scaled coordinates, if that was not at the query.
    """
    return frozen(kernel(setup).tell(state, state.round if id is None else id, values, played))


def forget(setup: Setup, state: State) -> State:
    """The state in which the next value only sets the anchor, because it does not compare with earlier ones.

    The method forgets quantities that are NaN in its initial memory, because they depend on earlier values.
    """
    memory = _forgotten(state.memory, setup.rule.start(state.centre))
    unknown = tuple(value + math.nan for value in state.values)
    return frozen(state._replace(values=unknown, told=setup.count(NEVER), memory=memory))


def carried(setup: Setup, state: State, factors: Array) -> State:
    """The state of another setup in this one, in the coordinates x′ = factors·x; trials that were open are not."""
    centre, last = (x * factors if np.any(factors != 1.0) else x for x in (state.centre, state.last.centre))
    if not np.all(setup.home.contains(centre)):
        centre = setup.home.project(centre)
    if not np.all(setup.domain.contains(last)):
        last = setup.domain.project(last)
    memory, never = setup.rule.carried(state.memory, factors), state.told * 0 + NEVER
    look = state.last._replace(centre=last)
    return frozen(state._replace(centre=centre, memory=memory, last=look, told=never, open=()))


def estimate(setup: Setup, state: State, values: tuple[Value, ...], id: int | None = None) -> Array:
    """ĝ_t, in scaled coordinates, from the values of a round's queries; NaN without a contrast."""
    return kernel(setup).estimate(state, state.round if id is None else id, values)


def kernel(setup: Setup) -> Kernel:
    """The kernel of the setup: built once and cached on it."""
    found: Kernel | None = vars(setup).get("kernel")
    if found is None:
        found = vars(setup)["kernel"] = build(setup)
    return found


def _forgotten(memory: object, fresh: Any) -> Any:
    if memory is None:
        return None
    if not isinstance(memory, tuple):
        return fresh if np.isnan(fresh).any() else memory
    parts = [_forgotten(a, b) for a, b in zip(memory, fresh, strict=True)]
    return type(memory)(*parts) if hasattr(memory, "_fields") else tuple(parts)
