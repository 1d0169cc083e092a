"""The only place where a study meets the core: the tuner's setup and state, and everything asked of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from trimtab import core, storage
from trimtab.live.diagnostics import Diagnostics
from trimtab.recipes import Method
from trimtab.setup import Setup
from trimtab.state import State
from trimtab.tuner import Tuner
from trimtab.types import Array


def begin(start: Array, method: Method | None, *, maximise: bool, seed: int | None) -> tuple[Setup, State]:
    """A tuner on shares of the ranges of the knobs; refused where it could not be saved and read back."""
    tuner = Tuner(start, method, bounds=[(0.0, 1.0)] * len(start), maximise=maximise, seed=seed)
    if tuner.setup.method.queries != 1:
        raise ValueError(
            "two-point methods query the same moment twice, which a live system cannot: use another method"
        )
    unpack(pack(tuner.setup, tuner.state))
    return tuner.setup, tuner.state


def pack(setup: Setup, state: State) -> str:
    """As text, exactly."""
    return storage.to_json(setup, state)


def unpack(text: str) -> tuple[Setup, State]:
    """What `pack` gave."""
    return storage.from_json(text)


def ask(setup: Setup, state: State) -> Array:
    """The next query, as shares of the ranges."""
    return core.ask(setup, state).x


def tell(setup: Setup, state: State, value: Any) -> State:
    """The state after the value of the query that `ask` gives; None if there is none."""
    return core.tell(setup, state, value, state.round)


def restart(setup: Setup, state: State, start: Array) -> State:
    """At the start, with nothing learnt; the rounds go on."""
    return core.init(setup, start)._replace(round=state.round)


def retune(setup: Setup, method: Method) -> Setup:
    """The same setup with another method."""
    return replace(setup, method=method)


def centre(state: State) -> list[float]:
    """The operating point, as shares of the ranges (with bounds of 0 and 1, scaled coordinates are shares)."""
    found: list[float] = state.centre.tolist()
    return found


def probe_length(setup: Setup) -> float:
    """Of a probe, in shares of the ranges."""
    return setup.probe_length


def measured(setup: Setup, before: State, after: State, running: Diagnostics, value: float) -> Diagnostics:
    """The figures after a value and the move it led to."""
    method = setup.method
    cap = math.inf if method.max_move is None else method.max_move * setup.probe_length
    near = 1e-9 + setup.method.radius * min(setup.directions.reach(setup.dim)[0], 2.0)
    sides = (after.centre >= 1 - near).astype(float) - (after.centre <= near)
    return running.after(value, after.centre - before.centre, cap, sides)
