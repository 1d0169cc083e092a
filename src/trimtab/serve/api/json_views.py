"""JSON representations of studies and events."""

from __future__ import annotations

import json
import math

from trimtab.store.approvals import waiting
from trimtab.store.study_filter import attention
from trimtab.store.tables import Event, StudyRow
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document

COMMAND_FIELDS = ("pause", "timeout", "guard.dry_run", "guard.leave_at")
"""Settings of `trimtab tune` that do not apply to studies tuned over HTTP."""


def summary_json(saved: StudyRow) -> Document:
    """Return the summary of a study, from its row alone."""
    status, proposal = saved.status, waiting(saved)
    values = {key: finite(status[key]) for key in ("value", "mean", "trend")}
    return {
        "name": saved.name,
        "seq": saved.seq,
        "rounds": status["round"],
        **values,
        **{key: status[key] for key in ("goal", "centre", "skipped", "failures", "time")},
        "created": saved.created,
        "waits": None if proposal is None else {"round": proposal.round, "setting": proposal.setting},
        "paused": None if saved.paused is None else json.loads(saved.paused),
        "holder": saved.holder,
        "archived": saved.archived,
        "saving": status.get("saving"),
        "attention": attention(saved),
    }


def details_json(study: UnlockedStudy) -> Document:
    """Return everything about a study except its history."""
    findings = {key: {"value": finite(f.value), "advice": f.advice} for key, f in study.findings().items()}
    contexts = [{"name": each.name, "period": each.period} for each in study.contexts]
    return {
        **summary_json(study.saved),
        "knobs": study.knobs.to_list(),
        "start": study.start,
        "open": study.open_id,
        "max_pending": study.setup.max_pending,
        "pending": [trial.to_json() for trial in study.pending],
        "fields": changeable_fields(study),
        "limits": study.describe_limits(),
        **({"context": contexts} if contexts else {}),
        "diagnostics": findings,
    }


def changeable_fields(study: UnlockedStudy) -> Document:
    """Return the settings that can be changed, without those that apply only to `trimtab tune`."""
    over_http = "asked" in study.saved.setup
    return {name: value for name, value in study.fields().items() if not (over_http and name in COMMAND_FIELDS)}


def event_json(study: UnlockedStudy, event: Event) -> Document:
    """Return an event, with its knobs by name."""
    return {"study": study.name, "limits": None, **study.describe(study._in_units(event))}


def finite(number: float | None) -> float | None:
    """Convert infinities and NaN, which JSON lacks, to None."""
    return number if number is None or math.isfinite(number) else None
