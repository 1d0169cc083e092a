"""A study that nothing new shall be set in, until somebody resumes it: what its row says of who asked, and why."""

from __future__ import annotations

import json
import time

from trimtab.util.text import clean


def paused(who: str, why: str) -> str:
    """For the row."""
    return json.dumps({"by": who, "why": why, "time": time.time()})


def pause_of(text: str) -> str:
    """Who paused a study, and why, for people."""
    found = json.loads(text)
    return clean(f"{found['by']}: {found['why']}" if found["why"] else found["by"])
