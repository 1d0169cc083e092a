"""Schedule of baseline rounds, which measure the reference setting: one in every block, at a random place.

The place depends on the seed and not on the values. It varies from block to block, so that a periodic disturbance
(every hour, every tenth batch) does not always coincide with the baseline. The cost is one round in `every`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trimtab.spec.knob_encoding import Knobs
from trimtab.store.tables import Setting
from trimtab.types import Document, Fields
from trimtab.util.checksums import checksum
from trimtab.validation import choose, near, whole

EVERY = 20  # default rounds per block: the baseline takes 5 % of all rounds
RAREST = 10**9  # rounds per block; slots stay exact in float64
TABLE = ("every", "knobs")
BaselineSpec = int | Fields
"""Rounds per block, or a table of `every` and the `knobs` of the reference setting."""


class Baseline(NamedTuple):
    """Schedule and setting of baseline rounds; part of a study's state.

    >>> from trimtab.live import Study
    >>> knobs = [dict(name="heat", low=150, high=220, start=180)]
    >>> study = Study.open(":memory:", "press", knobs, seed=0, baseline=10)
    >>> study.tell(study.ask(), 12.5)
    >>> study.baseline.every, isinstance(study.baseline, Baseline)
    (10, True)
    >>> study.close()
    """

    every: int = 0
    """Rounds per baseline round; 0 for none."""
    setting: Setting | None = None
    """The reference setting; None for the start of the study."""
    slot: int = 0
    """Rounds so far, including baseline rounds."""
    due: int = 0
    """The slot of the next baseline round."""

    @property
    def is_due(self) -> bool:
        """Whether the next round measures the baseline."""
        return self.every > 0 and self.slot >= self.due

    def planned(self, every: int, setting: Setting | None, seed: int) -> Baseline:
        """Return the baseline with a new schedule and setting."""
        found = self._replace(every=every, setting=setting)
        here = 0 if every == 0 else found._place(self.slot // every, seed)
        return found._replace(due=here if here >= self.slot else found._following(seed))

    def after(self, kind: str, failed: bool, seed: int) -> Baseline:
        """Return the baseline after a round. After a failure it is postponed until a round succeeds.

        The schedule thus depends on the history only, and never interrupts a hold of the guard.
        """
        slot, due = self.slot + 1, self.due
        if kind == "baseline":
            due = self._following(seed)
        return self._replace(slot=slot, due=max(due, slot + 1) if failed else due)

    def _following(self, seed: int) -> int:
        return 0 if self.every == 0 else self._place(self.slot // self.every + 1, seed)

    def _place(self, block: int, seed: int) -> int:
        return block * self.every + checksum(["baseline", seed, block]) % self.every

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        return self._asdict()


def read_baseline(given: BaselineSpec, knobs: Knobs) -> tuple[int, Setting | None]:
    """Validate a baseline; return the rounds per block and the reference, None for the start."""
    table = given if isinstance(given, Mapping) else {"every": given}
    for name in table:
        if name not in TABLE:
            remedy = f"write every = {EVERY}, or knobs to name a reference"
            raise ValueError(f"unknown field baseline.{name}: {near(name, TABLE) or remedy}")
    every = whole("baseline.every", table.get("every", EVERY), 0, RAREST, why=" of rounds, or 0 for no baseline")
    if every == 1:
        raise ValueError(
            "baseline.every=1 leaves no round to tune: give at least 2, for example 20, or 0 for no baseline"
        )
    named = table.get("knobs")
    if named is None:
        return every, None
    if not isinstance(named, Mapping):
        raise ValueError(f"baseline.knobs={named!r} must be a table: write [baseline.knobs] with a value per knob")
    known = {knob.name: knob for knob in knobs.all}
    for name, value in named.items():
        if name not in known:
            raise ValueError(f"baseline.knobs.{name} is not a knob of the study: {choose(name, known)}")
        try:
            known[name].place(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"baseline.knobs: {error}") from None
    return every, knobs.setting(knobs.coordinates({name: named.get(name, knob.start) for name, knob in known.items()}))


def baseline_fields(plan: tuple[int, Setting | None]) -> Document:
    """Return the output of `read_baseline` by the dotted names of a study.toml."""
    return {"baseline.every": plan[0], "baseline.knobs": plan[1]}
