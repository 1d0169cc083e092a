"""How a study begins, and whether one that exists is the one described."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

from trimtab.live import engine
from trimtab.live.baseline import EVERY, Wanted, read_baseline
from trimtab.live.diagnostics import Diagnostics
from trimtab.live.history import Position
from trimtab.live.knobs import Knob, Knobs, described, encode
from trimtab.live.limits import Limits
from trimtab.live.schema import Event, Saved
from trimtab.live.store import Store
from trimtab.recipes import Method
from trimtab.setup import Setup


def check_name(name: str) -> None:
    """It becomes part of the name of a file."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise ValueError(f"name={name!r} is no name for a study: use letters, digits, - and _, at most 64")


def create(
    store: Store,
    name: str,
    knobs: Knobs,
    method: Method | None,
    maximise: bool | None,
    seed: int | None,
    baseline: Wanted | None,
    limits: Limits | None,
    more: dict[str, Any] | None = None,
) -> Saved:
    """A new study, where the system is now; `more` is kept beside its knobs."""
    limits, baseline = limits or Limits(), EVERY if baseline is None else baseline
    setup, state = engine.begin(knobs, method, maximise=bool(maximise), seed=seed, limits=len(limits.all))
    knobs = Knobs(knobs.all, setup.method.radius)
    begin = Position(setup, state, Diagnostics(), limits=limits).planned(*read_baseline(baseline, knobs))
    centre = encode(knobs, knobs.values(engine.centre(state)))
    start = Event(0, 0, "start", None, None, centre, time.time(), None)
    return store.add(
        name, {**described(knobs), **(more or {})}, begin.status(knobs, 0, None), [start], [begin.snapshot(0)]
    )


def compare(
    name: str,
    knobs: Knobs,
    setup: Setup,
    wanted: Knobs | None,
    method: Method | None,
    maximise: bool | None,
    seed: int | None,
) -> None:
    """Refuse to go on with a study that is not the one described."""
    differs = ""
    if wanted is not None and _ranges(wanted) != _ranges(knobs):
        differs = "its knobs"
    elif maximise is not None and maximise != setup.maximise:
        differs = "its goal"
    elif seed is not None and seed != setup.seed:
        differs = f"its seed ({setup.seed})"
    elif method is not None and replace(method, max_move=None) != replace(setup.method, max_move=None):
        differs = f"its method ({setup.method})"
    if differs:
        raise ValueError(
            f"study {name!r} exists with another setup: {differs} cannot change on the way; put it back, or"
            " give the study a new name, with start where the system is now (trimtab show tells)"
        )


def _ranges(knobs: Knobs) -> list[Knob]:
    """Where a study started, and units, do not matter later."""
    return [replace(knob, start=knob.low, unit="") for knob in knobs.all]
