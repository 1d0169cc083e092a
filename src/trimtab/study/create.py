"""Create a study, or check that an existing one matches its definition."""

from __future__ import annotations

import re
import time

from trimtab.context import Context
from trimtab.knobs import SHARE
from trimtab.monitor.baseline import EVERY, BaselineSpec, baseline_fields, read_baseline
from trimtab.monitor.diagnostics import Diagnostics
from trimtab.recipes import BaseMethod, belief, between_limits
from trimtab.setup import Setup
from trimtab.spec.constraints import Limits
from trimtab.spec.current_settings import RunSettings
from trimtab.spec.knob_encoding import Knobs, described, encode
from trimtab.state import State
from trimtab.store.store import Store
from trimtab.store.tables import Event, StudyRow
from trimtab.study import core_calls
from trimtab.study.changes.rules import capped, fields_of, remedy, unlike
from trimtab.study.packed_state import SHAPES, packed
from trimtab.study.position import Position
from trimtab.types import Document, Fields


def check_name(name: str) -> None:
    """Refuse a name that cannot be part of a file name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise ValueError(
            f"name={name!r} is not a valid study name: use at most 64 letters, digits, ., - and _, starting with a"
            " letter or a digit"
        )


def create(
    store: Store,
    name: str,
    knobs: Knobs,
    method: BaseMethod | None,
    maximise: bool | None,
    seed: int | None,
    settings: Fields,
    baseline: BaselineSpec | None,
    limits: Limits | None,
    more: Document | None = None,
    max_pending: int = 1,
    contexts: tuple[Context, ...] = (),
) -> StudyRow:
    """Create a study that starts at the present setting; `more` is stored beside its knobs."""
    limits, given_knobs = limits or Limits(), knobs
    if method is None:
        knobs = knobs.with_default_radii()
        method = belief(radius=SHARE) if contexts or limits.has_risk else None
    if largest := settings.get("guard.largest_move"):
        method = between_limits(knobs.movable) if method is None else method
        method = capped(method, Knobs(knobs.all, method.radius), largest)
    told, goal = len(limits.all), bool(maximise)
    setup, state = core_calls.begin(
        *(knobs, method),
        maximise=goal,
        seed=seed,
        limits=told,
        max_pending=max_pending,
        contexts=contexts,
        bounded=limits.declared,
    )
    knobs = Knobs(knobs.all, setup.method.radius)
    plan = read_baseline(EVERY if baseline is None else baseline, knobs)
    given = {**settings, **({} if baseline is None else baseline_fields(plan))}
    terms = RunSettings(knobs, said=fields_of(Knobs(given_knobs.all, knobs.radius), setup.method, given)).with_settings(
        settings
    )
    begin = Position(setup, state, Diagnostics(), terms, limits=limits).planned(*plan)
    centre = encode(knobs, knobs.values(core_calls.centre(state)))
    start = Event(0, 0, "start", None, None, centre, time.time(), None)
    shape = SHAPES.of(begin)
    return store.add(
        name,
        {**described(knobs), **(more or {})},
        begin.status(knobs, 0, None),
        [start],
        [begin.snapshot(0)],
        state=lambda uid: packed(shape, uid, begin, 0, 0),
    )


def compare(
    name: str,
    knobs: Knobs,
    setup: Setup,
    state: State,
    wanted: Knobs | None,
    method: BaseMethod | None,
    maximise: bool | None,
    seed: int | None,
    contexts: tuple[Context, ...] | None = None,
) -> None:
    """Refuse to continue a study that differs from its definition."""
    if maximise is not None and maximise != setup.maximise:
        goals = ["minimise", "maximise"]
        differs: str | None = f"its goal is to {goals[setup.maximise]}, but its definition says {goals[maximise]}"
    elif seed is not None and seed != state.key.seed:
        differs = f"its seed is {state.key.seed}, but its definition says {seed}"
    elif contexts is not None and contexts != setup.contexts:
        now, wants = (", ".join(map(_described, each)) or "none" for each in (setup.contexts, contexts))
        differs = f"its context is {now}, but its definition says {wants}"
    else:
        differs = unlike(knobs, setup, wanted, method)
    if differs:
        raise ValueError(f"study {name!r} does not match its definition: {differs}; {remedy(name)}")


def _described(context: Context) -> str:
    return context.name if context.period is None else f"{context.name} (period {context.period:g})"
