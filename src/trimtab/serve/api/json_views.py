"""A study as JSON: at a glance from its row, or whole."""

from __future__ import annotations

import json
import math

from trimtab.store.approvals import waiting
from trimtab.store.study_filter import attention
from trimtab.store.tables import Event, StudyRow
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document

OF_COMMANDS = ("pause", "timeout", "guard.dry_run", "guard.leave_at")
"""Fields that say how `trimtab tune` runs a command: where there is none, they do nothing."""


def at_a_glance(saved: StudyRow) -> Document:
    """What the list says of a study."""
    status, proposal = saved.status, waiting(saved)
    about = {key: finite(status[key]) for key in ("value", "mean", "trend")}
    return {
        "name": saved.name,
        "seq": saved.seq,
        "rounds": status["round"],
        **about,
        **{key: status[key] for key in ("goal", "centre", "skipped", "failures", "time")},
        "created": saved.created,
        "waits": None if proposal is None else {"round": proposal.round, "setting": proposal.setting},
        "paused": None if saved.paused is None else json.loads(saved.paused),
        "holder": saved.holder,
        "archived": saved.archived,
        "saving": status.get("saving"),
        "attention": attention(saved),
    }


def whole(study: UnlockedStudy) -> Document:
    """All that is known of a study but its history."""
    findings = {key: {"value": finite(f.value), "advice": f.advice} for key, f in study.findings().items()}
    return {
        **at_a_glance(study.saved),
        "knobs": study.knobs.to_list(),
        "start": study.start,
        "open": study.open_id,
        "max_pending": study.setup.max_pending,
        "pending": [trial._asdict() for trial in study.pending],
        "fields": correctable(study),
        "limits": study.limits.describe(),
        "diagnostics": findings,
    }


def correctable(study: UnlockedStudy) -> Document:
    """What may be corrected, as it is now; of a study that was made over HTTP, without what only a command needs."""
    over_http = "asked" in study.saved.setup
    return {name: now for name, now in study.fields().items() if not (over_http and name in OF_COMMANDS)}


def described(study: UnlockedStudy, event: Event) -> Document:
    """An event, with its knobs by name."""
    return {"study": study.name, "limits": None, **study.describe(study._in_units(event))}


def finite(number: float | None) -> float | None:
    """JSON has no infinities."""
    return number if number is None or math.isfinite(number) else None
