"""When a study measures its reference setting instead of a probe: once in every block of rounds, at a place drawn from
the seed.

The place is independent of the values, and spread so that a disturbance that comes in step with the rounds (every
hour, every tenth batch) cannot meet the same kind of round each time. What is paid for it is one round in `every`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trimtab.spec.knob_encoding import Knobs
from trimtab.store.tables import Setting
from trimtab.types import Document, Fields
from trimtab.util.checksums import checksum
from trimtab.validation import choose, near, whole

EVERY = 20  # rounds, one of which is for the baseline, in studies that do not say otherwise: a price of 5 % of them
RAREST = 10**9  # rounds; places are counted in float64, exactly
TABLE = ("every", "knobs")
BaselineSpec = int | Fields
"""How often, or `every` and the `knobs` of the reference setting."""


class Baseline(NamedTuple):
    """How often, of what, and where in its block the next one is; part of a study's state.

    >>> from trimtab.live import Study
    >>> knobs = [dict(name="heat", low=150, high=220, start=180)]
    >>> study = Study.open(":memory:", "press", knobs, seed=0, baseline=10)
    >>> study.tell(study.ask(), 12.5)
    >>> study.baseline.every, isinstance(study.baseline, Baseline)
    (10, True)
    >>> study.close()
    """

    every: int = 0
    """Rounds, one of which measures the reference; 0 if none does."""
    setting: Setting | None = None
    """The reference; None is where the study started."""
    slot: int = 0
    """Rounds so far, of both kinds."""
    due: int = 0
    """The slot of the next baseline round."""

    @property
    def is_due(self) -> bool:
        """Whether the next round is for the baseline."""
        return self.every > 0 and self.slot >= self.due

    def planned(self, every: int, setting: Setting | None, seed: int) -> Baseline:
        """As often as this from now on."""
        found = self._replace(every=every, setting=setting)
        here = 0 if every == 0 else found._place(self.slot // every, seed)
        return found._replace(due=here if here >= self.slot else found._following(seed))

    def after(self, kind: str, failed: bool, seed: int) -> Baseline:
        """After a round: one that failed is not followed by the baseline, which then waits for the next that does not.

        So it depends on the history of rounds alone, and never runs while a guard holds the system still.
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
        """For JSON."""
        return self._asdict()


def read_baseline(given: BaselineSpec, knobs: Knobs) -> tuple[int, Setting | None]:
    """What a person wrote: how often, and the reference, where it is not the start."""
    table = given if isinstance(given, Mapping) else {"every": given}
    for name in table:
        if name not in TABLE:
            usual = f"write every = {EVERY}, or knobs to name a reference"
            raise ValueError(f"unknown field baseline.{name}: {near(name, TABLE) or usual}")
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
    """What `read_baseline` gave, by the dotted names of a study.toml."""
    return {"baseline.every": plan[0], "baseline.knobs": plan[1]}
