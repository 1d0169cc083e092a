"""View model of a study's page."""

from __future__ import annotations

import datetime
import itertools
import statistics
import time
from typing import Any

from trimtab.serve.api.ask_tell import guard_of, planned_trial
from trimtab.serve.api.json_views import details_json
from trimtab.spec.knob_encoding import Knob
from trimtab.store.approvals import waiting
from trimtab.store.event_queries import latest
from trimtab.store.shared_store import SharedStore
from trimtab.store.study_filter import attention
from trimtab.store.tables import Event
from trimtab.study.study import Trial
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document

MAX_EVENTS, MAX_ROUNDS = 50, 15  # on a page
MAX_MEASURED, MAX_KNOBS, STEPS = 150, 4, 20  # rounds and knobs in a chart against a context; steps of its line
LATE_FACTOR, LATE_SECONDS = 20.0, 60.0  # overdue after 20 usual intervals, but not within a minute
MEANINGS = {
    "contrast": "RMS change of the value from round to round",
    "drift": "drift of the value per round, apart from probes and noise",
    "contraction": "length of moves relative to probes; healthy below 1",
    "signal": "signal-to-noise ratio of one estimate",
    "capped": "share of moves as long as the cap allows",
    "long": "share of moves as long as a probe",
    "edge": "share of rounds with a knob at its limit",
    "limits": "share of the last rounds beyond a measured limit",
}


def study_page(store: SharedStore, study: UnlockedStudy) -> Document:
    """Return what the page of a study shows, except its chart."""
    rounds = [study._in_units(event) for event in latest(store, study.saved, MAX_ROUNDS, rounds=True)]
    events = latest(store, study.saved, MAX_EVENTS, rounds=False)
    probes, max_move = study.probes, study.setup.method.max_move
    measured = (event for event in (*rounds, *map(study._in_units, events)) if event.query and event.value is not None)
    last = max(measured, key=_seq, default=None)
    now = {} if last is None else _setting(study, last)
    details, places, opened = details_json(study), study.knobs.values(study.state.centre.tolist()), _open(study)
    open_levels = {knob.name: [trial.knobs[knob.name] for trial in opened] for knob in study.knobs.all}
    return {
        **details,
        "contexts_known": study.context_beliefs,
        "schedules": _schedules(store, study),
        "bars": [
            _bar(knob, study, place, now.get(knob.name), open_levels[knob.name], probes[knob.name])
            for knob, place in zip(study.knobs.all, places, strict=True)
        ],
        "rounds_told": [(event, _setting(study, event), study.describe(event).get("context", {})) for event in rounds],
        "happened": events,
        "late": _late(study, rounds),
        "held": study.saved.holder is not None,
        "cap": max_move,
        "figures": [
            {"name": key, "says": MEANINGS.get(key, ""), **found} for key, found in details["diagnostics"].items()
        ],
    }


def _schedules(store: SharedStore, study: UnlockedStudy) -> list[Document]:
    """Return a chart for each context that was seen to vary and each number: operating points, and rounds measured.

    Places are in percent of the range of the context and of the knob. Other contexts are at their means.
    """
    if not study.contexts:
        return []
    events = (event for event in latest(store, study.saved, MAX_MEASURED, rounds=True) if event.kind != "baseline")
    rounds = [study._in_units(event) for event in events]
    found: list[Document] = []
    for n, (name, (low, high, _)) in enumerate(study.context_beliefs.items()):
        if low is None or high is None or low == high:
            continue
        loads = [low + (high - low) * k / STEPS for k in range(STEPS + 1)]
        settings = [study.at({name: load}) for load in loads]
        for k, knob in enumerate(study.knobs.all[:MAX_KNOBS]):
            if knob.choices is not None or not knob.size:
                continue
            line = [(100 * j / STEPS, 100 - (_place(knob, at[knob.name]) or 0.0)) for j, at in enumerate(settings)]
            points = [
                (round(100 * (load - low) / (high - low), 2), 100 - (_place(knob, e.query[k]) or 0.0))
                for e in rounds
                if e.query and e.context and (load := e.context[n]) is not None and low <= load <= high
            ]
            found.append(
                {"context": name, "knob": knob.name, "low": low, "high": high, "bottom": knob.low, "top": knob.high}
                | {"line": " ".join(f"{x:.4g},{y:.4g}" for x, y in line), "points": points}
            )
    return found


def _setting(study: UnlockedStudy, event: Event) -> Document:
    """Return the setting of an event by knob; empty without one."""
    names = [knob.name for knob in study.knobs.all]
    return {} if event.query is None else dict(zip(names, event.query, strict=True))


def _seq(event: Event) -> int:
    return event.seq


def _open(study: UnlockedStudy) -> list[Trial]:
    """Return the trials that can be told now, without one that is not approved yet."""
    if study.saved.archived is not None:
        return []
    if study.hands_out and study.pending:
        return study.pending
    guard = guard_of(study)
    trial = planned_trial(study, guard)
    if study.hands_out and trial.kind == "probe":
        return []  # open only once it was handed out
    decision = study.word_on(trial) if guard.approval else None
    return [] if guard.approval and (decision is None or not decision.approved) else [trial]


def _late(study: UnlockedStudy, rounds: list[Event]) -> bool:
    """Return whether the next round is overdue, and nothing such as a pause explains that."""
    saved = study.saved
    if saved.archived is not None or saved.paused is not None or waiting(saved) is not None:
        return False
    if guard_of(study).quiet(datetime.datetime.now().time()):
        return False
    if "stale" in attention(saved):
        return True
    then = saved.status["time"]
    if then is None or len(rounds) < 3:
        return False
    times = sorted(event.time for event in rounds)
    usual = statistics.median(b - a for a, b in itertools.pairwise(times))
    return bool(time.time() - then > max(LATE_FACTOR * usual, LATE_SECONDS))


def _bar(knob: Knob, study: UnlockedStudy, at: Any, now: Any, open_levels: list[Any], probe: float) -> Document:
    """Return positions in percent of a knob's range. now: last measured level; open_levels: those of open trials."""
    centre, start = study.centre[knob.name], study.start[knob.name]
    ranged = knob.type in ("float", "integer") and bool(knob.size)
    about = {
        "name": knob.name,
        "unit": knob.unit,
        "centre": centre,
        "start": start,
        "now": now,
        "open": open_levels,
        "choices": None,
        "ranged": ranged,
    }
    if knob.choices is not None or not knob.size:
        return {**about, "choices": list(knob.choices or [knob.low])}
    place: Document = {key: _place(knob, value) for key, value in (("centre", at), ("start", start), ("now", now))}
    place["open"] = [_place(knob, value) for value in open_levels]
    low, high = (_place(knob, min(max(at + sign * probe, knob.low), knob.high)) for sign in (-1, 1))
    return {**about, "low": knob.low, "high": knob.high, "probe": probe, "place": place, "from": low, "to": high}


def _place(knob: Knob, value: Any) -> float | None:
    return None if value is None else round(100 * min(max(knob.share(value), 0.0), 1.0), 2)
