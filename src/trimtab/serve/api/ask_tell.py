"""Ask and tell over HTTP: what may be set now, and what a value is taken for."""

from __future__ import annotations

import datetime
import math
from typing import Any, NamedTuple

from trimtab.serve.http.errors import ApiError
from trimtab.spec.guard import Guard
from trimtab.spec.knob_encoding import Knob, Level
from trimtab.store.tables import Event, Setting
from trimtab.study.changes.pause import pause_of, paused
from trimtab.study.study import Trial
from trimtab.study.unlocked import UnlockedStudy
from trimtab.util.text import clean

SERVICE = "the service"  # who pauses a study when a guard rail is hit


class Blocked(NamedTuple):
    """Why there is nothing to set now."""

    by: str
    """"pause", "quiet hours" or "approval"."""
    detail: str
    setting: Setting | None = None


class Result(NamedTuple):
    """What a client says of a trial."""

    value: float | None
    note: str | None = None
    applied: Setting | None = None
    values: dict[str, float | None] | None = None
    """The numbers beside the value that the study has limits on."""


class Told(NamedTuple):
    """What became of it."""

    event: Event
    again: bool
    """Whether it was there already."""
    refused: str | None = None
    """Why it was not taken."""


def guard_of(study: UnlockedStudy) -> Guard:
    """The rails of a study that is tuned over HTTP."""
    found: Guard = study.settings.table("guard")
    return found


def plan(study: UnlockedStudy, guard: Guard) -> Trial:
    """What to set: after too many failures in a row nothing new (kind "rest"), until a value comes."""
    failures, trial = study.diagnostics.failures, study.ask()
    if guard.failures is None or failures < guard.failures:
        return trial
    return trial._replace(kind="rest", knobs=study.start if guard.on_failures == "start" else study.centre)


def ask(study: UnlockedStudy, now: datetime.time, *, another: bool = False) -> Trial | Blocked | None:
    """The open trial; or what blocks it; or None, where something else had to be stored first.

    Where several may be open, the oldest of them, or another one beside them; only one that may be told late is handed
    out, which is an event. Rounds of other kinds than probes are measured alone.
    """
    saved, guard = study.saved, guard_of(study)
    if saved.archived is not None:
        raise ApiError(410, "archived", f"study {study.name!r} is archived and read-only: restore it first")
    if saved.holder is not None and not study.released():
        raise ApiError(
            409, "held", f"study {study.name!r} is in use by {saved.holder}, which asks", holder=saved.holder
        )
    if saved.paused is not None:
        return Blocked("pause", f"paused by {pause_of(saved.paused)}")
    if guard.quiet(now):
        return Blocked("quiet hours", f"quiet hours: {', '.join(guard.quiet_hours)}")
    pending, most = study.pending, study.setup.max_pending
    if pending and not another:
        return pending[0]
    trial = plan(study, guard)
    if pending and (len(pending) >= most or trial.kind != "probe"):
        why = f"max_pending={most}" if trial.kind == "probe" else f"the next is a {trial.kind} round, measured alone"
        raise ApiError(409, "pending", f"{len(pending)} open, and {why}: tell one", pending=study.open_ids)
    if trial.kind == "rest" and guard.on_failures == "start" and study.diagnostics.told:
        study.reset(failures=study.diagnostics.failures)
        return None
    word = study.proposed(trial) if guard.approval else None
    if guard.approval and word is None:
        return Blocked("approval", f"proposed: waiting for approval of round {trial.round}", trial.knobs)
    if word is None or word.approved:
        late = most > 1 and trial.kind == "probe"
        return study.hand_out(word and _said("approved", word)) if late else trial
    _record(study, trial, Result(None, _said("rejected", word)))
    return None


def tell(study: UnlockedStudy, id: int, result: Result) -> Told:
    """Take a value, once: the same again changes nothing, and another for the same trial is refused."""
    guard, late, notes = guard_of(study), study.setup.max_pending > 1, list[str]()
    handed_out = next((trial for trial in study.pending if trial.id == id), None) if late else None
    if handed_out is None and id != study.open_id:
        return _told_before(study, id, result)
    trial = handed_out or plan(study, guard)
    if handed_out is None and late and (trial.kind == "probe" or study.pending):
        raise _never(study, id)
    if guard.approval and handed_out is None:
        word = study.word_on(trial)
        if word is None or not word.approved:
            raise ApiError(409, "not-approved", f"trial {id} is not approved: ask, and wait for the approval")
        notes.append(_said("approved", word))
    applied = _levels(study, result)
    try:
        for knob in study.knobs.all:
            if knob.name in applied:
                knob.place(applied[knob.name])
    except ValueError as error:
        why = f"the applied setting is outside the limits: {error}"
        pause(study, SERVICE, why)
        return Told(study.event, False, why)
    if result.value is not None and (beyond := guard.beyond(result.value)):
        study.pause_row(paused(SERVICE, beyond))
        notes.append(f"held: {beyond}")
    _record(study, trial._replace(knobs={**trial.knobs, **applied}), result, asked=trial.knobs)
    if study.event.value is None and result.value is not None:
        notes.insert(0, _set_aside(result))
    for note in notes:
        study.append(note)
    return Told(study.event, False)


def following(study: UnlockedStudy, now: datetime.time) -> Trial | None:
    """The trial after a value, where nothing has to be waited for or stored first."""
    saved, guard = study.saved, guard_of(study)
    if saved.paused is not None or saved.archived is not None or guard.approval or guard.quiet(now):
        return None
    if study.setup.max_pending > 1:
        return None  # it would have to be handed out
    trial = plan(study, guard)
    return None if trial.kind == "rest" and guard.on_failures == "start" else trial


def pause(study: UnlockedStudy, who: str, why: str) -> None:
    """Nothing new is set from now on."""
    study.pause_row(paused(who, why))
    study.note("pause", words(who, why))


def words(who: str, why: str) -> str:
    """Who did something, and why, for the history."""
    return f"{who}: {why}" if why else who


def _record(study: UnlockedStudy, trial: Trial, result: Result, asked: Setting | None = None) -> None:
    if trial.kind == "rest":
        study.held(trial.knobs, result.value, result.note)
    elif asked is None or asked == trial.knobs:
        study.tell(trial, result.value, result.note, result.values)
    else:
        study.tell_at(trial, result.value, result.note, result.values)


def _levels(study: UnlockedStudy, result: Result) -> Setting:
    """What was really set, as it is stored; refused where it is nothing that a knob can be set to, within or not."""
    given, knobs = result.applied or {}, {knob.name: knob for knob in study.knobs.all}
    if unknown := set(given) - set(knobs):
        raise ApiError(422, "invalid", f"applied names {sorted(unknown)}, but the knobs are {list(knobs)}")
    return {name: _level(knobs[name], value) for name, value in given.items()}


def _level(knob: Knob, value: Level) -> Level:
    kind, switch = knob.type, isinstance(value, bool)
    if kind == "choice":
        wrong = not any(isinstance(value, str) == isinstance(choice, str) for choice in knob.choices or ())
    elif kind == "bool":
        wrong = value not in (0, 1)
    else:
        wrong = switch or not isinstance(value, int | float) or (kind == "integer" and value != int(value))
    if wrong:
        what = {"choice": "one of its choices", "bool": "true or false", "integer": "a whole number"}
        told = f"applied: knob {knob.name!r} cannot be set to {value!r}: send {what.get(kind, 'a number')}"
        raise ApiError(422, "invalid", told)
    return value if kind == "choice" else {"bool": bool, "integer": int}.get(kind, float)(float(value))


def _set_aside(result: Result) -> str:
    """A value that does not count, because numbers beside it are missing, or it is none of the reference."""
    missing = [name for name, number in (result.values or {}).items() if number is None]
    why = f"without {', '.join(missing)}" if missing else f"at {result.applied}, which is not the reference"
    return f"{result.value!r} {why}"


def _told_before(study: UnlockedStudy, id: int, result: Result) -> Told:
    event = study.closing_event(id) if 1 <= id <= study.open_id else None
    if id < 1 or id > study.open_id or (event is None and id == study.open_id):
        raise _never(study, id)
    if event is None:
        raise _refused(study, 410, "gone", f"trial {id} is too old: its record is no longer kept")
    if event.query is None:
        raise _refused(study, 410, "undone", f"trial {id} is from before the {event.kind}")
    if not _same(study, event, result):
        raise _refused(study, 409, "told", f"trial {id} was already told {event.value!r}: the first value is final")
    return Told(event, True)


def _never(study: UnlockedStudy, id: int) -> ApiError:
    return _refused(study, 404, "no-trial", f"trial {id} was never handed out")


def _refused(study: UnlockedStudy, status: int, kind: str, why: str) -> ApiError:
    """With what could be told instead."""
    now = ", ".join(map(str, study.open_ids)) or "none"
    return ApiError(status, kind, f"{why}; open: {now}", open=study.open_id)


def _same(study: UnlockedStudy, event: Event, result: Result) -> bool:
    """Whether a result is the one that was stored."""
    set_aside = event.value is None and result.value is not None
    if event.value != result.value and not set_aside:
        return False
    begins = "; ".join(clean(words) for words in (result.note, _set_aside(result) if set_aside else None) if words)
    if begins and not f"{event.note}; ".startswith(f"{begins}; "):
        return False
    told = dict(zip(study.limits.names, event.limits or [], strict=False))
    if result.values is not None and event.limits is not None and told != result.values:
        return False
    set_to = study.setting_of(event)
    return all(set_to.get(name) == value for name, value in _levels(study, result).items())


def _said(word: str, decision: Any) -> str:
    return f"{word} by {decision.by}" + (f": {decision.why}" if decision.why else "")


def number(value: float | None) -> float | None:
    """NaN is no value, and −0 is 0."""
    return None if value is None or math.isnan(value) else float(value) + 0.0
