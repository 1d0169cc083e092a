"""Ask and tell over HTTP: hand out trials, and take their values."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from trimtab.serve.http.errors import ApiError
from trimtab.spec.guard import Guard
from trimtab.spec.knob_encoding import Knob, Level
from trimtab.store.tables import Event, Setting
from trimtab.study.changes.pause import pause_of, paused
from trimtab.study.study import Trial
from trimtab.study.unlocked import UnlockedStudy
from trimtab.util.text import clean

SERVICE = "the service"  # who pauses a study when a guard stops it


Known = Mapping[str, float | None]
"""A context by name; None where a number is not known."""


class Blocked(NamedTuple):
    """Reason why no trial can be handed out."""

    by: str
    """"pause", "quiet hours" or "approval"."""
    detail: str
    setting: Setting | None = None


class Result(NamedTuple):
    """Result of a trial, as sent by a client."""

    value: float | None
    note: str | None = None
    applied: Setting | None = None
    values: dict[str, float | None] | None = None
    """Constrained quantities measured with the value."""


class Outcome(NamedTuple):
    """Outcome of a tell."""

    event: Event
    again: bool
    """Whether the same result was already stored."""
    refused: str | None = None
    """Reason why it was rejected."""


def guard_of(study: UnlockedStudy) -> Guard:
    """Return the guard of a study tuned over HTTP."""
    found: Guard = study.settings.table("guard")
    return found


def planned_trial(study: UnlockedStudy, guard: Guard, context: Known | None = None) -> Trial:
    """Return the next trial, or after too many failures in a row a "rest" at the centre or start."""
    failures, trial = study.diagnostics.failures, study.ask(context)
    if guard.failures is None or failures < guard.failures:
        return trial
    return trial._replace(kind="rest", knobs=study.start if guard.on_failures == "start" else study.centre)


def ask(
    study: UnlockedStudy, now: datetime.time, *, another: bool = False, context: Known | None = None
) -> Trial | Blocked | None:
    """Return the open trial, the reason why there is none, or None if another event must be stored first.

    If several may be open, return the oldest, or with `another` a further one. Only probes can be told late, so only
    they are handed out beside others, and each is recorded as an event; other rounds are measured alone. A trial for a
    context is recorded in the same way; if only one may be open, another context replaces it.
    """
    wanted = study.read_context(context)
    saved, guard = study.saved, guard_of(study)
    if saved.archived is not None:
        raise ApiError(410, "archived", f"study {study.name!r} is archived and read-only: restore it first")
    if saved.holder is not None and not study.released():
        why = f"study {study.name!r} is in use by {saved.holder}: stop that process first"
        raise ApiError(409, "held", why, holder=saved.holder)
    if saved.paused is not None:
        return Blocked("pause", f"paused by {pause_of(saved.paused)}")
    if guard.quiet(now):
        return Blocked("quiet hours", f"quiet hours: {', '.join(guard.quiet_hours)}")
    if worse := study.worse:
        study.step_back(worse)
        if guard.on_revert == "stop":
            study.pause_row(paused(SERVICE, f"back to the baseline: {worse}"))
        return None
    pending, max_pending = study.pending, study.setup.max_pending
    replaces = bool(pending) and max_pending == 1 and wanted not in (None, pending[0].context)
    if pending and not another and not replaces:
        return pending[0]
    trial = planned_trial(study, guard, context)
    if pending and not replaces and (len(pending) >= max_pending or trial.kind != "probe"):
        why = f"max_pending={max_pending}"
        if trial.kind != "probe":
            why = f"the next is a {trial.kind} round, which is measured alone"
        detail = f"no further trial: {len(pending)} open, and {why}: tell one first"
        raise ApiError(409, "pending", detail, pending=study.open_ids)
    if trial.kind == "rest" and guard.on_failures == "start" and study.diagnostics.told:
        study.reset(failures=study.diagnostics.failures)
        return None
    decision = study.proposed(trial) if guard.approval else None
    if guard.approval and decision is None:
        return Blocked("approval", f"proposed: waiting for approval of round {trial.round}", trial.knobs)
    if decision is None or decision.approved:
        late = study.hands_out and trial.kind == "probe"
        return study.hand_out(decision and _decision_note("approved", decision), context) if late else trial
    _record(study, trial, Result(None, _decision_note("rejected", decision)))
    return None


def tell(study: UnlockedStudy, id: int, result: Result) -> Outcome:
    """Store the value of a trial once: repeating it changes nothing, and another value for the trial is refused."""
    guard, late, notes = guard_of(study), study.hands_out, list[str]()
    handed_out = next((trial for trial in study.pending if trial.id == id), None) if late else None
    if handed_out is None and id != study.open_id:
        return _told_already(study, id, result)
    trial = handed_out or planned_trial(study, guard)
    if handed_out is None and late and (trial.kind == "probe" or study.pending):
        raise _never_handed_out(study, id)
    if guard.approval and handed_out is None:
        decision = study.word_on(trial)
        if decision is None or not decision.approved:
            raise ApiError(409, "not-approved", f"trial {id} is not approved: ask, and wait for the approval")
        notes.append(_decision_note("approved", decision))
    applied = _applied_setting(study, result)
    try:
        for knob in study.knobs.all:
            if knob.name in applied:
                knob.place(applied[knob.name])
    except ValueError as error:
        why = f"the applied setting is outside the limits: {error}"
        pause(study, SERVICE, why)
        return Outcome(study.event, False, why)
    if result.value is not None and (beyond := guard.beyond(result.value)):
        study.pause_row(paused(SERVICE, beyond))
        notes.append(f"held: {beyond}")
    _record(study, trial._replace(knobs={**trial.knobs, **applied}), result, asked=trial.knobs)
    if study.event.value is None and result.value is not None:
        notes.insert(0, _set_aside(result))
    for note in notes:
        study.append(note)
    return Outcome(study.event, False)


def next_trial(study: UnlockedStudy, now: datetime.time) -> Trial | None:
    """Return the trial after a value, or None if it must wait or needs another event first."""
    saved, guard = study.saved, guard_of(study)
    if saved.paused is not None or saved.archived is not None or guard.approval or guard.quiet(now) or study.worse:
        return None
    if study.hands_out:
        return None  # handing it out is an event
    trial = planned_trial(study, guard)
    return None if trial.kind == "rest" and guard.on_failures == "start" else trial


def pause(study: UnlockedStudy, who: str, why: str) -> None:
    """Pause a study, so that no new trial is handed out."""
    study.pause_row(paused(who, why))
    study.note("pause", attributed(who, why))


def attributed(who: str, why: str) -> str:
    """Format author and reason for the history."""
    return f"{who}: {why}" if why else who


def _record(study: UnlockedStudy, trial: Trial, result: Result, asked: Setting | None = None) -> None:
    if trial.kind == "rest":
        study.record_hold(trial.knobs, result.value, result.note)
    elif asked is None or asked == trial.knobs:
        study.tell(trial, result.value, result.note, result.values)
    else:
        study.tell_at(trial, result.value, result.note, result.values)


def _applied_setting(study: UnlockedStudy, result: Result) -> Setting:
    """Convert the applied setting to stored levels; refuse what no range would allow, such as text for a number."""
    given, knobs = result.applied or {}, {knob.name: knob for knob in study.knobs.all}
    if unknown := set(given) - set(knobs):
        raise ApiError(422, "invalid", f"applied names {sorted(unknown)}, but the knobs are {list(knobs)}")
    return {name: _checked_level(knobs[name], value) for name, value in given.items()}


def _checked_level(knob: Knob, value: Level) -> Level:
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
    """Explain why a value does not count: missing limits, or a baseline measured elsewhere."""
    missing = [name for name, number in (result.values or {}).items() if number is None]
    why = f"without {', '.join(missing)}" if missing else f"at {result.applied}, which is not the reference"
    return f"{result.value!r} {why}"


def _told_already(study: UnlockedStudy, id: int, result: Result) -> Outcome:
    event = study.closing_event(id) if 1 <= id <= study.open_id else None
    if id < 1 or id > study.open_id or (event is None and id == study.open_id):
        raise _never_handed_out(study, id)
    if event is None:
        raise _refused(study, 410, "gone", f"trial {id} is too old: its record is no longer kept")
    if event.kind == "ask":
        why = f"trial {id} was asked for again with another context, as trial {event.seq}: tell that one"
        raise _refused(study, 410, "replaced", why)
    if event.query is None:
        raise _refused(study, 410, "undone", f"trial {id} predates the event {event.kind!r}")
    if not _same(study, event, result):
        raise _refused(study, 409, "told", f"trial {id} was already told {event.value!r}: the first value is final")
    return Outcome(event, True)


def _never_handed_out(study: UnlockedStudy, id: int) -> ApiError:
    return _refused(study, 404, "no-trial", f"trial {id} was never handed out")


def _refused(study: UnlockedStudy, status: int, kind: str, why: str) -> ApiError:
    """Return an error that lists the open trials."""
    now = ", ".join(map(str, study.open_ids)) or "none"
    return ApiError(status, kind, f"{why}; open: {now}", open=study.open_id)


def _same(study: UnlockedStudy, event: Event, result: Result) -> bool:
    """Return whether a result is the stored one."""
    set_aside = event.value is None and result.value is not None
    if event.value != result.value and not set_aside:
        return False
    prefix = "; ".join(clean(words) for words in (result.note, _set_aside(result) if set_aside else None) if words)
    if prefix and not f"{event.note}; ".startswith(f"{prefix}; "):
        return False
    told = dict(zip(study.limits.names, event.limits or [], strict=False))
    if result.values is not None and event.limits is not None and told != {**dict.fromkeys(told), **result.values}:
        return False
    set_to = study.setting_of(event)
    return all(set_to.get(name) == value for name, value in _applied_setting(study, result).items())


def _decision_note(word: str, decision: Any) -> str:
    return f"{word} by {decision.by}" + (f": {decision.why}" if decision.why else "")


def normalise(value: float | None) -> float | None:
    """Convert NaN to None, and −0 to 0."""
    return None if value is None or math.isnan(value) else float(value) + 0.0
