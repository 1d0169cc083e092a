"""Reasons why a study needs a person's attention, most urgent first: for one row, and as conditions in SQL."""

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
    """Return the reasons in ATTENTION that apply to a row."""
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
    """Return the SQL condition on trimtab_studies for each reason in ATTENTION."""
    found = (
        "proposal IS NOT NULL AND decision IS NULL AND proposal LIKE '[' || seq || ',%'",
        f"failures >= {FAILING}",
        "paused IS NOT NULL",
        f"COALESCE(told, created) < {now - STALE!r}",
        "advised > 0",
    )
    return {word: f"({condition})" for word, condition in zip(ATTENTION, found, strict=True)}


class StudyFilter(NamedTuple):
    """Filter of a list of studies."""

    search: str = ""
    """Part of the name."""
    needs: Collection[str] = ()
    """Reasons in ATTENTION, any of which must apply; empty for all studies."""
    only: str | None = None
    """The only study that may be seen."""
    archived: bool = False

    def condition(self) -> tuple[str, list[str]]:
        """Return the condition for WHERE, and its parameters."""
        found, values = ["archived IS NOT NULL" if self.archived else "archived IS NULL"], []
        if self.search:
            found.append("LOWER(name) LIKE ? ESCAPE '!'")
            values.append(f"%{_escaped(self.search.lower())}%")
        if self.only is not None:
            found.append("name = ?")
            values.append(self.only)
        if self.needs:
            every = conditions(time.time())
            found.append(f"({' OR '.join(every[word] for word in self.needs)})")
        return " AND ".join(found), values


def _escaped(text: str) -> str:
    """Escape the wildcards of LIKE."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
