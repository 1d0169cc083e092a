"""Calls to the core: the only module of this package that works on the tuner's setup and state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trimtab import core, storage
from trimtab.context import Context, context_row
from trimtab.domains import Domain
from trimtab.explanation import Explanation, explanation
from trimtab.inputs import LARGEST
from trimtab.inputs import beside as with_limits
from trimtab.limit import Limit
from trimtab.monitor.diagnostics import Diagnostics, LimitDistance
from trimtab.recipes import BaseMethod, Explained
from trimtab.recipes.base import RADII
from trimtab.recipes.belief import Belief, BeliefState
from trimtab.recipes.belief.context import Basis, relevance
from trimtab.recipes.belief.listening import Heard
from trimtab.setup import Setup
from trimtab.spec.knob_encoding import Knob, Knobs, Level, Setting
from trimtab.state import Look, State
from trimtab.tuner import Tuner, allowed
from trimtab.types import Array, Document, Value
from trimtab.validation import real

ENOUGH = 20  # values, before which nothing is said about whether a context matters
MISSING = math.nan
Row = list[float | None]
"""A context in the order it was declared; None in place of a number not known."""


def begin(
    knobs: Knobs,
    method: BaseMethod | None,
    *,
    maximise: bool,
    seed: int | None,
    limits: int = 0,
    max_pending: int = 1,
    contexts: Sequence[Context] = (),
    bounded: Sequence[Limit] = (),
) -> tuple[Setup, State]:
    """Create a tuner in the coordinates of the knobs, and check that it can be saved and read back.

    limits: the number of those that `primal_dual` keeps; bounded: those with a risk.
    """
    if method is not None and method.queries != 1:
        raise ValueError(
            "two-point methods query the same moment twice, which a live system cannot: use another method"
        )
    check_radii(knobs)
    tuner = Tuner(
        knobs=knobs.all,
        method=method,
        maximise=maximise,
        seed=seed,
        max_pending=max_pending,
        context=contexts,
        limits=bounded,
    )
    if not bounded and tuner.setup.told != 1 + limits:
        raise ValueError(
            f"a study with {limits} limits tells {1 + limits} numbers a round, but {method} takes {tuner.setup.told}:"
            f" leave out the method, or give method=tt.primal_dual(radius=..., step=..., limits={limits})"
            if limits
            else f"a study tells one number a round, but {method} also needs those of its limits: give limits="
        )
    unpack(pack(tuner.setup, tuner.state))
    return tuner.setup, tuner.state


def check_radii(knobs: Knobs) -> None:
    """Refuse a knob's own radius if its square would underflow or the probes would leave the range."""
    for knob in knobs.all:
        if knob.radius is not None:
            real(f"knob {knob.name!r}: radius", knob.radius, RADII[0], 0.5, below=True, why=" of the range")


def pack(setup: Setup, state: State, beside: Document | None = None) -> str:
    """Serialise setup and state without loss; `beside` is stored with them."""
    return storage.to_json(setup, state, beside, indent=None)


def unpack(text: str, *, verified: bool = True) -> tuple[Setup, State, Document]:
    """Read the result of `pack`. verified=False: the text may come from outside a store, and is checked."""
    document, arrays = storage.parsed(text)
    setup, state = storage.revive(document, arrays, None, verified=verified)
    return setup, state, document.get("knobs", {})


def ask(setup: Setup, state: State, trial: int | None = None) -> Array:
    """Return the next query, or that of an open trial, in the coordinates of the knobs."""
    return core.ask(setup, state, trial).x


def hand_out(knobs: Knobs, setup: Setup, state: State, context: Row | None = None) -> State:
    """Return the state after opening the next trial; with contexts, in place of an open one if only one may be."""
    if setup.contexts and setup.max_pending == 1 and state.open:
        state = state._replace(round=state.open[0][0], open=())
    return allowed(setup, knobs, *core.hand_out(setup, state, None if context is None else _numbers(context)))[1]


def next_round(setup: Setup, state: State) -> int:
    """Return the round of the next trial; that of the open one, if it is a trial for a context and only one may be."""
    alone = setup.contexts and setup.max_pending == 1 and state.open
    return state.open[0][0] if alone else state.round


def read_context(setup: Setup, given: Mapping[str, float | None] | None) -> Row | None:
    """Check a context by name; return its numbers in the declared order, or None if none was declared."""
    row = context_row(setup.contexts, given, None, "declare it when the study is created, context={}")
    return None if row is None else [None if math.isnan(x) else x for x in row.tolist()]


def named(setup: Setup, row: Row | None) -> dict[str, float | None] | None:
    """Return a context by name."""
    return None if row is None else dict(zip([each.name for each in setup.contexts], row, strict=True))


def context_of(setup: Setup, state: State, trial: int) -> Row | None:
    """Return the context that an open trial is for; None without one."""
    look = next((look for id, look in state.open if id == trial), None)
    if not setup.contexts or look is None or look.context is None:
        return None
    return [None if math.isnan(x) else x for x in look.context.tolist()]


def opened(knobs: Knobs, setup: Setup, state: State, trial: int, context: Row | None) -> State:
    """Return the state in which the trial of a study with contexts is open, for this context.

    None: the trial keeps its context, if it is open already. With limits and discrete knobs, a trial is opened, too:
    its setting is one that the limits allow.
    """
    if not setup.contexts and not (setup.limits and knobs.rounded):
        return state
    if trial != state.round:
        known = context_of(setup, state, trial)
        if known is None or context in (None, known) or setup.max_pending > 1:
            return state
        state = state._replace(round=trial, open=())
    row = _numbers(context or [None] * len(setup.contexts)) if setup.contexts else None
    asked = core.ask(setup, state, trial, row)
    assert asked.look is not None
    return allowed(setup, knobs, asked, state._replace(round=trial + 1, open=(*state.open, (trial, asked.look))))[1]


def at(knobs: Knobs, setup: Setup, state: State, context: Row | None) -> Setting:
    """Return the setting at which the study operates under a context, as learnt so far."""
    return knobs.setting(core.at(setup, state, None if context is None else _numbers(context)).tolist())


class ContextBelief(NamedTuple):
    """The belief about one context."""

    low: float | None
    """The range it was seen in; None before it was seen."""
    high: float | None
    share: float | None
    """The share of the belief that depends on it, 0 to 1: near 0 if it explains nothing. None before ENOUGH values."""


def context_beliefs(setup: Setup, state: State) -> list[ContextBelief]:
    """Return the belief about each context, in the declared order."""
    memory = state.memory
    if not setup.contexts or not isinstance(memory, BeliefState):
        return []
    seen, basis = memory.seen, Basis.of(setup.frame.periods)
    shares = relevance(basis, memory.value.weights()[0]).tolist()
    known = memory.value.learnt[0] >= ENOUGH
    return [
        ContextBelief(low if number else None, high if number else None, share if known else None)
        for low, high, number, share in zip(
            seen.low[0].tolist(), seen.high[0].tolist(), seen.number[0], shares, strict=True
        )
    ]


def _numbers(context: Row) -> Array:
    return np.array([MISSING if x is None else x for x in context], dtype=float)


def tell(
    knobs: Knobs,
    setup: Setup,
    state: State,
    value: object,
    excesses: Sequence[float] | None = None,
    trial: int | None = None,
    played: Array | None = None,
) -> State:
    """Return the state after the value of the query that `ask` returns; None for no value.

    excesses: g of each limit; for limits with a risk the numbers themselves, NaN or None if they were not measured.

    played: the coordinates of the setting that was measured, if it was not the one that was drawn.
    """
    told = _told(setup, value, excesses)
    trial = state.round if trial is None else trial
    if setup.max_pending > 1 and trial == state.round:
        state = hand_out(knobs, setup, state)
    else:
        state = opened(knobs, setup, state, trial, None)
    if played is None and told is not None and setup.method.learns_settings and knobs.rounded:
        played = knobs.drawn(core.ask(setup, state, trial).x, state.key.seed, trial)
    return core.tell(setup, state, told, trial, None if played is None else setup.inward(played))


def _told(setup: Setup, value: object, beside: Sequence[float] | None) -> object:
    """Return the value with the numbers beside it; None if there is nothing to learn."""
    if not setup.limits:
        return value if value is None or not beside else with_limits(value, beside, len(beside))
    numbers = beside or [MISSING] * (setup.told - 1)
    if not numbers or (value is None and np.isnan(numbers).all()):
        return value
    return with_limits(MISSING if value is None else value, numbers, len(numbers))


def tell_at(
    knobs: Knobs,
    setup: Setup,
    state: State,
    value: float,
    applied: Setting,
    excesses: Sequence[float] | None = None,
    trial: int | None = None,
) -> State:
    """Return the state after a value at another setting than the query p = c + wδu.

    The displacement d from the query is split. Its part along the probe changes the width, w′ = w·(1 + d·p̂/|p − c|),
    limited to half to twice w. The rest shifts the centre of the probe to c′, so that c′ + w′δu is the applied setting.
    """
    number = state.round if trial is None else trial
    asked = core.ask(setup, state, number)
    look, query = asked.look, setup.inward(asked.x)
    assert look is not None
    off = setup.inward(knobs.coordinates(applied)) - setup.inward(
        knobs.coordinates(knobs.probe(asked.x, state.key.seed, number))
    )
    probe = query - look.centre
    square = float(probe @ probe)
    factor = min(max(1 + float(off @ probe) / square, 0.5), 2.0) if square else 1.0
    centre = setup.domain.project(look.centre + off - (factor - 1) * probe)
    moved = look._replace(centre=centre, width=look.width * factor)
    if number == state.round:
        state = state._replace(open=(*state.open, (number, moved)), round=number + 1)
    else:
        state = state._replace(open=tuple((id, moved if id == number else seen) for id, seen in state.open))
    played = knobs.coordinates(applied) if setup.method.learns_settings else None
    return tell(knobs, setup, state, value, excesses, number, played)


def restart(setup: Setup, state: State, start: Array) -> State:
    """Return the state at the start with nothing learnt; the round number is kept."""
    return core.init(setup, start)._replace(key=state.key, round=state.round)


def configured(setup: Setup, method: BaseMethod, domain: Domain) -> Setup:
    """Return the setup with another method and domain, which studies of the same configuration share."""
    return storage.shared(replace(setup, method=method, domain=domain))


def limited(setup: Setup, limits: tuple[Limit, ...]) -> Setup:
    """Return the setup with other bounds or risks of its limits."""
    return storage.shared(replace(setup, limits=limits))


def margins(setup: Setup, state: State) -> list[float | None]:
    """Return the room left to each side of each limit at the operating point, for its risk; None if not measured."""
    if not setup.limits or not isinstance(setup.method, Belief):
        return []
    found = setup.method.standings(setup.frame, state.memory, state.round)
    rooms = [side.most - float(each.bound[0]) for side, each in zip(setup.frame.limits, found, strict=True)]
    return [room if math.isfinite(room) else None for room in rooms]


def beyond(setup: Setup, state: State) -> list[bool]:
    """Return which sides of the limits the operating point exceeded at the last value."""
    return [bool(each) for each in setup.rule.beyond(state)] if setup.limits else []


def carried(setup: Setup, state: State, factors: Array) -> State:
    """Return the state carried over to a setup whose coordinates are scaled by `factors` and whose probes differ."""
    return core.carried(setup, state, factors)


def decides(setup: Setup) -> BaseMethod:
    """Return the method that chooses probes and moves, without a belief that listens beside it."""
    method = setup.method
    return method.method if isinstance(method, Explained) else method


def has_belief(setup: Setup) -> bool:
    """Whether the method is a belief itself."""
    return isinstance(setup.method, Belief)


def listening(setup: Setup, state: State, belief: BeliefState | None = None) -> tuple[Setup, State]:
    """Return the setup and state with a belief that listens beside the method; None: it knows nothing yet."""
    setup = configured(setup, Explained(method=setup.method), setup.domain)
    if belief is None:
        belief = setup.rule.start(state.centre).belief._replace(clock=np.full(1, state.round - 1.0))
    return setup, state._replace(memory=Heard(state.memory, belief))


def belief_of(state: State) -> BeliefState:
    """Return the memory of the belief, of the method itself or beside it."""
    found: BeliefState = state.memory.belief if isinstance(state.memory, Heard) else state.memory
    return found


def explained(knobs: Knobs, setup: Setup, state: State) -> Explanation:
    """Return the belief in the words of the knobs."""
    return explanation(setup, state, knobs)


def effects(
    setup: Setup, state: State, middles: Sequence[float], steps: Sequence[float]
) -> list[tuple[float, float, float]]:
    """Return the change of the value by a step along each coordinate: its median and its interval of 90 %.

    middles, steps: in radii, the middle of each step as seen from the centre, and its length.
    """
    method, sign = setup.method, -1.0 if setup.maximise else 1.0
    belief = method if isinstance(method, Belief) else Belief(radius=method.radius)
    found = belief.effects(setup.frame, belief_of(state), state.round, *np.array([[middles], [steps]], dtype=float))
    rows = sign * np.stack(found)[:, 0]
    return [(middle, min(low, high), max(low, high)) for low, middle, high in rows.T.tolist()]


def probe_width(state: State) -> float:
    """Return the length of the belief's probes, in radii."""
    return float(belief_of(state).course.width[0])


def next_look(setup: Setup, state: State, trial: int) -> Look:
    """Return the origin, direction and width of a probe."""
    look = core.ask(setup, state, trial).look
    assert look is not None
    return look


def centre(state: State) -> list[float]:
    """Return the operating point in the coordinates of the knobs."""
    found: list[float] = state.centre.tolist()
    return found


def probe_length(setup: Setup) -> float:
    """Return the length of a probe in the coordinates of the knobs."""
    return setup.probe_length


def longest_move(setup: Setup) -> float:
    """Return the cap on a move of the centre, in the coordinates of the knobs; inf without a cap."""
    cap = setup.method.max_move
    return math.inf if cap is None else min(cap * setup.probe_length, LARGEST)  # so that its square is finite


def probing_cost(setup: Setup, state: State, trial: int) -> float | None:
    """Return the estimated cost of the query p above that of the centre x, in the mean over u; None if unknown.

    ½·L·l² + ⟨g, p − x − δu⟩, with the length l of the probe: ⟨g, δu⟩ has the mean 0, so of the slope only what the edge
    of the domain cuts off counts.
    """
    model = setup.rule.model(state)
    if model is None or not model.certainty > 0:
        return None
    x, look = core.ask(setup, state, trial)[1:3]
    if look is None:
        return None
    width, away = float(look.width), x - state.centre
    cut = x - look.centre - width * setup.method.radius * setup.frame.direction(state.key, look.trial)
    square = (setup.probe_length * width) ** 2 if width else float(away @ away)  # a query chosen by the step
    return float(0.5 * (model.bent / model.certainty) * square + model.scale * np.dot(model.slope, cut))


def width(setup: Setup, state: State) -> float:
    """Return the larger of the widths between which the next probes alternate, in units of the radius."""
    return max(float(setup.rule.width(state.memory, state.round + n)) for n in range(3))  # no three are narrow ones


def spans(knobs: Knobs, setup: Setup, state: State, width: float) -> dict[str, tuple[Level, Level]]:
    """Return the lowest and highest setting that a probe of this width can reach, by moving numeric knob."""
    size = width * setup.frame.tallest * setup.method.radius
    found = {}
    for knob, share in zip(knobs.all, knobs.shares(centre(state)), strict=True):
        if share and knob.choices is None:
            low, high = knobs.extent(knob)
            part = size / (high - low)
            least, largest = max(share[0] - part, 0.0), min(share[0] + part, 1.0)
            found[knob.name] = knob.at([least], 1.0), knob.at([largest], 0.0)  # rounded down and up
    return found


def probes(knobs: Knobs, setup: Setup, state: State) -> dict[str, float]:
    """Return the rms length of a probe by knob, in its units; for a choice, as a share of a weight."""
    width = float(setup.rule.width(state.memory, state.round))
    size = width * setup.method.radius / math.sqrt(setup.directions.scale(setup.dim))
    shares = knobs.shares(centre(state))
    return {
        knob.name: _reach(knob, size / knobs.side(knob), share) for knob, share in zip(knobs.all, shares, strict=True)
    }


def _reach(knob: Knob, size: float, share: list[float]) -> float:
    """Return half the distance between the probes on either side of the centre."""
    if not share:
        return 0.0
    if knob.choices is not None:
        return size
    away = max(size, 1e-9)  # distinguishable in floating point
    low, high = max(share[0] - away, 0.0), min(share[0] + away, 1.0)
    return (knob.value(high) - knob.value(low)) / (high - low) * size


def measured(
    knobs: Knobs, setup: Setup, before: State, after: State, running: Diagnostics, value: float
) -> Diagnostics:
    """Return the diagnostics after a value and the move it led to."""
    cap = longest_move(setup)
    return running.after(value, after.centre - before.centre, cap, edge(knobs, setup, after), setup.probe_length)


def edge(knobs: Knobs, setup: Setup, state: State) -> LimitDistance:
    """Return the limits that the operating point is at, and the slope of the value beyond each; lanes are supported.

    The slope is reduced by the mean curvature times the probe length: near an optimum at the limit, probes that can
    only point inwards see a slope too. A probe is at least as long as the step of an integer knob; there the slope is 0
    while the curvature is unknown.
    """
    radius, model = setup.method.radius, setup.rule.model(state)
    if model is None:
        probe: Value = radius * min(setup.directions.reach(setup.dim)[0], 2.0)
    else:
        probe = radius * _column(model.width)
    low, high, first, last = knobs.ends
    near = 1e-9 + (probe if model is None else 0.5 * probe)
    sides = (state.centre >= high - near).astype(float) - (state.centre <= low + near)
    apart = np.where(sides > 0, last, first)
    if model is None:
        return LimitDistance(sides, sides * (apart <= probe))
    downhill, bent = _column(-model.scale) * model.slope, _column(model.bent)
    outwards = downhill * sides - bent * np.maximum(apart, probe)
    return LimitDistance(sides, sides * np.where((apart > probe) & (bent == 0), 0.0, outwards))


def _column(value: Value) -> Array:
    """Return one number, or one per lane, with an axis added to broadcast over the vectors."""
    return np.asarray(value)[..., None]
