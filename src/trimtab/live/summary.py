"""A study at a glance, from its row alone: what `trimtab list` shows, without the tuner."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from trimtab.live.schema import Saved, Setting


class Proposal(NamedTuple):
    """A setting that waits for a person's word."""

    seq: int
    round: int
    setting: Setting


class Decision(NamedTuple):
    """A person's word on the proposal of the same `seq`."""

    seq: int
    approved: bool
    by: str
    time: float


def waiting(saved: Saved) -> Proposal | None:
    """What waits for a decision now, if anything does."""
    if saved.proposal is None or saved.decision is not None:
        return None
    proposal = Proposal(*json.loads(saved.proposal))
    return proposal if proposal.seq == saved.seq else None


def summary(saved: Saved) -> dict[str, Any]:
    """What `trimtab list --json` says of a study."""
    status = saved.status
    proposal = waiting(saved)
    return {
        "name": saved.name,
        "rounds": status["round"],
        **{key: status[key] for key in ("centre", "value", "mean", "trend", "skipped", "failures", "goal")},
        "age": None if status["time"] is None else max(time.time() - status["time"], 0.0),
        "waits": None if proposal is None else {"round": proposal.round, "setting": proposal.setting},
        "holder": saved.holder,
        "created": saved.created,
    }
