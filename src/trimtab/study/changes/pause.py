"""Pausing a study, so that no new trial is handed out until it is resumed: the record of who paused it and why."""

from __future__ import annotations

import json
import time

from trimtab.util.text import clean


def paused(who: str, why: str) -> str:
    """Return the record for the study's row."""
    return json.dumps({"by": who, "why": why, "time": time.time()})


def pause_of(text: str) -> str:
    """Return who paused a study, and why, in words."""
    found = json.loads(text)
    return clean(f"{found['by']}: {found['why']}" if found["why"] else found["by"])
