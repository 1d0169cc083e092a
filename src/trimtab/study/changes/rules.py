"""Rules for changes to a running study: which are allowed, how the learnt state is kept, and why others are refused.

A changed limit leaves the coordinates of the tuner as they are (`Knobs.ranges`): only its domain changes, and the
centre is projected into it if necessary. A knob's radius is the scale of its coordinate: the state is rescaled
(`trimtab.rescaling`), which preserves the operating point, the slope per unit of the knob and the curvature. Earlier
queries are neither repeated nor mirrored, because the probes differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from trimtab.estimators import Plane
from trimtab.knobs import SHARE, Knob, Knobs
from trimtab.monitor.baseline import EVERY, read_baseline
from trimtab.monitor.savings import Ledger
from trimtab.recipes import BaseMethod, between_limits
from trimtab.recipes.method import Method, name_of
from trimtab.setup import Setup
from trimtab.spec.current_settings import DEFAULTS, RunSettings
from trimtab.study import core_calls
from trimtab.study.position import Position
from trimtab.types import Document, Fields
from trimtab.util.durations import in_seconds
from trimtab.validation import choose, near, real

Changes = dict[str, tuple[object, object]]
"""Dotted name → (old, new)."""
OF_KNOBS = ("low", "high", "radius")
WIDTHS = ("narrowest", "widest")
FARTHEST = 1e30  # probes; a larger cap would have no effect, and its square would overflow
FIXED = ("name", "goal", "seed", "method", "step", "knobs", "context", "store")
"""Fields of a study.toml that define a study."""
FROM_FILE = ("command", "value", "on_round", "store_patience")
"""Fields that are read from the study.toml at every start."""
SOURCES = ("context.command", "context.file", "context.timeout")
"""Fields of [context] that are read likewise; its names are part of the study."""


PARTS: dict[str, tuple[Callable[[Position], object], Callable[[Position, object], Position]]] = {
    "baseline.every": (lambda at: at.baseline.every, lambda at, every: _planned(at, every=every)),
    "baseline.share": (
        lambda at: None if at.baseline.share is None else list(at.baseline.share),
        lambda at, share: _planned(at, share=share),
    ),
    "baseline.knobs": (lambda at: at.baseline.setting, lambda at, knobs: _planned(at, knobs=knobs)),
}
"""Fields that are stored elsewhere in a position: name → getter and setter."""


def fields_of(knobs: Knobs, method: BaseMethod, settings: Fields) -> Document:
    """Return every field that may change, by its dotted name."""
    found: Document = {"radius": method.radius, "max_move": method.max_move}
    if method.finds_width:
        found |= {name: getattr(method, name) for name in WIDTHS}
    for knob in knobs.all:
        names = OF_KNOBS if knob.type in ("float", "integer") else ("radius",)
        found |= {f"knobs.{knob.name}.{name}": getattr(knob, name) for name in names}
    return {**found, **settings}


def present(position: Position) -> Document:
    """Return the present value of every field that may change."""
    others = {name: read(position) for name, (read, _) in PARTS.items()}
    return fields_of(position.terms.knobs, position.setup.method, {**DEFAULTS, **position.terms.settings, **others})


def corrected(name: str, position: Position, changes: Fields) -> tuple[Position, Changes]:
    """Return the position after the changes, and those that differ from the present; ValueError if one is refused."""
    now = present(position)
    for field in changes:
        if field not in now:
            raise ValueError(_refusal(name, field, position, now))
    defaults = _defaults(position.setup.method, position.terms.knobs)
    given = {field: defaults.get(field) if value is None else value for field, value in in_seconds(changes).items()}
    plain = {field: v.item() if isinstance(v, np.generic) else v for field, v in given.items()}
    changed = {field: (now[field], new) for field, new in plain.items() if not _same(now[field], new)}
    if not changed:
        return position, {}
    new = {field: value for field, (_, value) in changed.items()}
    terms = position.terms.with_settings({field: value for field, value in new.items() if field in DEFAULTS})
    method = _method(position.setup.method, new)
    knobs = _knobs(name, terms, new, method.radius)
    began = {knob.name: terms.starts.get(knob.name, knob.start) for knob in terms.knobs.all}
    terms = replace(terms, starts={knob.name: began[knob.name] for knob in knobs.all if knob.start != began[knob.name]})
    method = capped(method, knobs, terms["guard.largest_move"] if _caps(new, terms["guard.largest_move"]) else ...)
    after = _with_reference(moved(position, knobs, method), terms.knobs, knobs)
    return with_parts(after._replace(terms=replace(terms, knobs=knobs)), new), changed


def with_parts(position: Position, new: Fields) -> Position:
    """Return the position with new values of the fields in `PARTS`."""
    for name, (read, change) in PARTS.items():
        if name in new and not _same(read(position), new[name]):
            position = change(position, new[name])
    return position


def moved(position: Position, knobs: Knobs, method: BaseMethod) -> Position:
    """Return the position converted to other knobs and another method, keeping what was learnt."""
    before, setup = position.terms.knobs, position.setup
    if knobs == before and method == setup.method:
        return position
    domain = setup.domain if knobs == before else knobs.domain
    try:
        setup = core_calls.configured(setup, method, domain)
    except ValueError:
        raise ValueError(f"the probes do not fit within these limits: {knobs.room()}") from None
    pairs = [pair for pair in zip(before.all, knobs.all, strict=True) for _ in range(pair[0].size)]
    factors = np.array([knobs.side(new) / before.side(old) for old, new in pairs])
    limits = np.array([(old.low, old.high) != (new.low, new.high) for old, new in pairs])
    state = position.state
    if knobs != before or method.changed(max_move=None) != position.setup.method.changed(max_move=None):
        state = core_calls.carried(setup, state, factors)
    running = position.diagnostics.rescaled(factors, limits)
    return position._replace(setup=setup, state=state, diagnostics=running, terms=replace(position.terms, knobs=knobs))


def capped(method: BaseMethod, knobs: Knobs, largest: Any) -> BaseMethod:
    """Return the method with a cap on moves, given as a share of the ranges; ... leaves the cap unchanged."""
    if largest is ...:
        return method
    if largest is None:
        return method.changed(max_move=None)
    shortest = min((knobs.side(knob) for knob in knobs.all if knob.size), default=1.0)
    return method.changed(max_move=largest * shortest / (method.radius * max(knobs.dim, 1) ** 0.5))


def sentence(changes: Changes) -> str:
    """Describe changes in words.

    >>> sentence({"radius": (0.05, 0.02), "guard.stop_above": (None, 9)})
    'radius 0.05 → 0.02, guard.stop_above none → 9'
    """
    return ", ".join(f"{name} {_word(old)} → {_word(new)}" for name, (old, new) in changes.items())


def differences(before: Fields, after: Fields) -> Changes:
    """Return the fields that differ, with both values."""
    return {n: (before[n], after[n]) for n in after if n in before and not _same(before[n], after[n])}


def _with_reference(position: Position, before: Knobs, knobs: Knobs) -> Position:
    """Move the reference into the present limits; if that changes it, restart the saving."""
    every, reference, share = position.baseline.plan
    if reference is None:
        same = [knob.start for knob in before.all] == [knob.start for knob in knobs.all]
        return position if same else position._replace(ledger=Ledger())
    numbers = [knob for knob in knobs.all if knob.type in ("float", "integer")]
    inside = {**reference, **{knob.name: _nearest(knob, reference[knob.name]) for knob in numbers}}
    return position if inside == reference else position.planned(every, inside, share)


def _planned(position: Position, **changed: object) -> Position:
    every, setting, share = position.baseline.plan
    table = {"every": every, "knobs": setting, "share": share, **changed}
    return position.planned(*read_baseline(table, position.terms.knobs))


def _word(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _same(a: object, b: object) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _defaults(method: BaseMethod, knobs: Knobs) -> Document:
    """Return the defaults of the fields whose default is not none."""
    usual = between_limits(knobs.movable)
    widths = {name: getattr(usual, name) for name in WIDTHS} if method.finds_width else {}
    return {**DEFAULTS, **widths, "radius": SHARE, "baseline.every": EVERY}


def _caps(new: Fields, largest: float | None) -> bool:
    """Whether the cap must be computed again: it was given, or a radius has changed."""
    measured = any(name == "radius" or name.endswith(".radius") for name in new)
    return "guard.largest_move" in new or (largest is not None and measured)


def _method(method: BaseMethod, new: Fields) -> BaseMethod:
    if "radius" in new:
        method = method.changed(radius=real("radius", new["radius"], 0, 0.5, above=True, why=" of each range"))
    widths = {name: new[name] for name in WIDTHS if name in new}
    if widths and method.finds_width:
        method = method.changed(**widths)
    if "max_move" not in new:
        return method
    most = new["max_move"]
    given = None if most is None else real("max_move", most, 0, FARTHEST, above=True, why=" probes, or none")
    return method.changed(max_move=given)


def _knobs(study: str, terms: RunSettings, new: Fields, radius: float) -> Knobs:
    knobs = terms.knobs
    all, ranges = [], dict(knobs.ranges)
    for knob in knobs.all:
        given = {name: new[key] for name in OF_KNOBS if (key := f"knobs.{knob.name}.{name}") in new}
        limits = {name: value for name, value in given.items() if name != "radius"}
        if limits:
            ranges.setdefault(knob.name, (knob.low, knob.high))
            limits["start"] = limits.get("low", knob.low)
            try:
                wanted = replace(knob, **limits)
            except TypeError:
                raise ValueError(f"knob {knob.name!r}: {limits} must be numbers: give two, low < high") from None
            if wanted.size != knob.size:
                what = "hold it fixed" if knob.size else "let it move"
                raise ValueError(
                    f"knob {knob.name!r}: low={wanted.low!r} and high={wanted.high!r} would {what}, but the number of"
                    f" moving knobs cannot change once the study has begun; {remedy(study)}"
                )
            given |= {**limits, "start": _nearest(wanted, terms.starts.get(knob.name, knob.start))}
            if ranges[knob.name] == (wanted.low, wanted.high):
                del ranges[knob.name]
        all.append(replace(knob, **given))
    found = Knobs(tuple(all), radius, ranges)
    core_calls.check_radii(found)
    return found


def _nearest(knob: Knob, start: object) -> Any:
    """Return the original start, or the nearest value that is still allowed."""
    inside = min(max(start, knob.low), knob.high)
    try:
        return replace(knob, start=inside).start
    except ValueError:  # off the grid
        return knob.at([knob.share(inside)])


def remedy(study: str) -> str:
    """Return the remedy for a change that is not possible."""
    return f"restore it, or write a new study that starts at the present centre: trimtab init --from {study}"


def _refusal(study: str, name: str, position: Position, now: Fields) -> str:
    """Return why a field cannot be changed."""
    head, _, rest = name.partition(".")
    knobs = [knob.name for knob in position.terms.knobs.all]
    if head == "knobs" and rest:
        of, _, what = rest.partition(".")
        if of not in knobs:
            rest = f" (only {', '.join(knobs)}), and none can be added once the study has begun; {remedy(study)}"
            return f"{name}: there is no knob {of!r}" + (f": {meant}" if (meant := near(of, knobs)) else rest)
        if what and what not in (field.name for field in fields(Knob)):
            return f"unknown field {name}: {choose(what, OF_KNOBS)}"
        can = " and ".join(key.rpartition(".")[2] for key in now if key.startswith(f"knobs.{of}."))
        return f"{name}: of a knob only {can} can change once the study has begun; {remedy(study)}"
    if head in FIXED and name not in SOURCES:
        return f"{name} cannot change once the study has begun; {remedy(study)}"
    if name in WIDTHS:
        return f'{name} applies only to method = "auto" or "belief", which adapt their widths: change the radius'
    if head in FROM_FILE or name in SOURCES:
        return f"{name} is read from study.toml at the start of a run: change it there, and restart the run"
    shown = [key for key in now if not key.startswith("knobs.") and key != "max_move"]
    what = f"choose from {', '.join(shown)}, knobs.{knobs[0]}.radius and the like"
    return f"unknown field {name}: {near(name, [*shown, *FIXED, *FROM_FILE]) or what}"


def unlike(knobs: Knobs, setup: Setup, wanted: Knobs | None, method: BaseMethod | None) -> str | None:
    """Describe a difference in knobs or method that cannot be changed in a running study; None without one."""
    if wanted is not None and (why := _other_knobs(knobs, wanted)):
        return why
    if method is None:
        return None
    now = setup.method
    if name_of(method) != name_of(now):
        return f"its method is {name_of(now)}, but its definition says {name_of(method)}"
    if now.constant != method.constant and None not in (now.constant, method.constant):
        return f"its step is {now.constant}, but its definition says {method.constant}"
    alike = method.changed(radius=now.radius, max_move=now.max_move)
    if method.finds_width and now.finds_width:
        alike = alike.changed(**{name: getattr(now, name) for name in WIDTHS})
    if isinstance(alike, Method) and isinstance(alike.estimator, Plane):  # a study learns as it began to
        alike = alike.changed(estimator=replace(alike.estimator, settings=now.learns_settings))
    return None if alike == now else f"the options of its method, {name_of(now)}, differ from its definition"


def _other_knobs(knobs: Knobs, wanted: Knobs) -> str | None:
    before, after = ({knob.name: knob for knob in given.all} for given in (knobs, wanted))
    for name in (*after, *before):
        if (name in before) != (name in after):
            return f"knob {name!r} is {'not one of its knobs' if name in after else 'missing from its definition'}"
    if list(before) != list(after):
        return f"its knobs must keep their order: {', '.join(before)}"
    for name, knob in before.items():
        for field in ("type", "scale", "step", "choices"):
            old, new = getattr(knob, field), getattr(after[name], field)
            if old != new:
                words = [_word(list(v) if isinstance(v, tuple) else v) for v in (old, new)]
                return f"knob {name!r} has {field} {words[0]}, but its definition says {words[1]}"
        if knob.size != after[name].size:
            return f"knob {name!r} {'moves, but would be fixed' if knob.size else 'is fixed, but would move'}"
    return None
