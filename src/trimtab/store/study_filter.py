"""What of a study needs a person, the most urgent first: as a database finds it among many, and as a row says it."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import NamedTuple

from trimtab.store.approvals import waiting
from trimtab.store.tables import StudyRow

ATTENTION = ("waiting", "failing", "paused", "stale", "advice")
STALE = 86_400.0  # seconds without a round
FAILING = 2  # failed rounds in a row


def attention(saved: StudyRow) -> list[str]:
    """Which of ATTENTION apply to a row."""
    status = saved.status
    found = (
        waiting(saved) is not None,
        status["failures"] >= FAILING,
        saved.paused is not None,
        time.time() - (status["time"] or saved.created) > STALE,
        bool(status.get("advice")),
    )
    return [word for word, applies in zip(ATTENTION, found, strict=True) if applies]


def conditions(now: float) -> dict[str, str]:
    """The same for a database: what of ATTENTION is true of which rows of trimtab_studies."""
    found = (
        "proposal IS NOT NULL AND decision IS NULL AND proposal LIKE '[' || seq || ',%'",
        f"failures >= {FAILING}",
        "paused IS NOT NULL",
        f"COALESCE(told, created) < {now - STALE!r}",
        "advised > 0",
    )
    return {word: f"({condition})" for word, condition in zip(ATTENTION, found, strict=True)}


class StudyFilter(NamedTuple):
    """Which studies somebody wants to see."""

    search: str = ""
    """Part of the name."""
    needs: Collection[str] = ()
    """Any of ATTENTION; all studies without."""
    only: str | None = None
    """The one they may see."""
    archived: bool = False

    def condition(self) -> tuple[str, list[str]]:
        """For WHERE, with its values."""
        found, values = ["archived IS NOT NULL" if self.archived else "archived IS NULL"], []
        if self.search:
            found.append("LOWER(name) LIKE ? ESCAPE '!'")
            values.append(f"%{_literally(self.search.lower())}%")
        if self.only is not None:
            found.append("name = ?")
            values.append(self.only)
        if self.needs:
            every = conditions(time.time())
            found.append(f"({' OR '.join(every[word] for word in self.needs)})")
        return " AND ".join(found), values


def _literally(text: str) -> str:
    """For LIKE, without its signs for anything."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
