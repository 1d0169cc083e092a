"""Summary of a study from its row alone, without loading the tuner, as in `trimtab list`."""

from __future__ import annotations

import time

from trimtab.store.approvals import waiting
from trimtab.store.tables import StudyRow
from trimtab.types import Document
from trimtab.util.text import plural


def counted(rounds: int, baseline: int) -> str:
    """Return the number of rounds in words; baseline rounds are counted separately.

    >>> counted(285, 15), counted(3, 0)
    ('285 rounds and 15 baseline rounds', '3 rounds')
    """
    return plural(rounds, "round") + (f" and {plural(baseline, 'baseline round')}" if baseline else "")


def summary(saved: StudyRow) -> Document:
    """Return the summary of a study for `trimtab list --json`."""
    status, names = saved.status, [knob["name"] for knob in saved.setup["knobs"]]
    proposal = waiting(saved)
    return {
        "name": saved.name,
        "saving": status.get("saving"),
        "rounds": status["round"],
        "centre": {name: status["centre"][name] for name in names},
        **{key: status[key] for key in ("value", "mean", "trend", "skipped", "failures", "goal")},
        **({"limits": status["limits"]} if "limits" in status else {}),
        "advice": status.get("advice", []),
        "age": None if status["time"] is None else max(time.time() - status["time"], 0.0),
        "waits": None if proposal is None else {"round": proposal.round, "setting": proposal.setting},
        "holder": saved.holder,
        "created": saved.created,
    }
