"""A study at a glance, from its row alone: what `trimtab list` shows, without the tuner."""

from __future__ import annotations

import time

from trimtab.live.approval import waiting
from trimtab.live.schema import Saved
from trimtab.types import Document


def summary(saved: Saved) -> Document:
    """What `trimtab list --json` says of a study."""
    status = saved.status
    proposal = waiting(saved)
    return {
        "name": saved.name,
        "saving": status.get("saving"),
        "rounds": status["round"],
        **{key: status[key] for key in ("centre", "value", "mean", "trend", "skipped", "failures", "goal")},
        **({"limits": status["limits"]} if "limits" in status else {}),
        "age": None if status["time"] is None else max(time.time() - status["time"], 0.0),
        "waits": None if proposal is None else {"round": proposal.round, "setting": proposal.setting},
        "holder": saved.holder,
        "created": saved.created,
    }
