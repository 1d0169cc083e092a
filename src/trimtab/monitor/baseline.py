"""Schedule of baseline rounds, which measure the reference setting: one in every block, at a random place.

The place depends on the seed and not on the values. It varies from block to block, so that a periodic disturbance
(every hour, every tenth batch) does not always coincide with the baseline. The cost is one round in `every`.

With a `share`, the distance of baseline rounds adapts between 1/high and 1/low: short while no saving is proved, then
longer by a quarter at a time. With the mean distance K, the next one comes after K + U{−⌊0.4K⌋ … ⌊0.4K⌋} rounds. K
depends on earlier differences alone, and the draw on the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trimtab.monitor.anytime import AnytimeSums
from trimtab.spec.knob_encoding import Knobs
from trimtab.store.tables import Setting
from trimtab.types import Document, Fields
from trimtab.util.checksums import checksum
from trimtab.validation import choose, near, real, whole

EVERY = 20  # default rounds per block: the baseline takes 5 % of all rounds
RAREST = 10**9  # rounds per block; slots stay exact in float64
NEAREST = 4  # rounds between two baseline rounds with a share, so that a comparison has neighbours of its own
JITTER = 0.4  # largest deviation from the mean distance, as a share of it
TABLE = ("every", "share", "knobs")
BaselineSpec = int | Fields
"""Rounds per block, or a table of `every`, the limits of an adaptive `share`, and the `knobs` of the reference."""
Share = tuple[float, float]
"""Smallest and largest share of baseline rounds."""


class BaselinePlan(NamedTuple):
    """Definition of the baseline rounds."""

    every: int
    setting: Setting | None = None
    share: Share | None = None


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
    """Rounds per baseline round; 0 for none. A `share` takes its place."""
    setting: Setting | None = None
    """The reference setting; None for the start of the study."""
    slot: int = 0
    """Rounds so far, including baseline rounds."""
    due: int = 0
    """The slot of the next baseline round."""
    share: Share | None = None
    """Limits of the share of baseline rounds, if it adapts."""
    distance: int | None = None
    """The present mean distance of baseline rounds, if it adapts."""

    @property
    def plan(self) -> BaselinePlan:
        """The definition of the baseline rounds."""
        return BaselinePlan(self.every, self.setting, self.share)

    @property
    def spacing(self) -> int:
        """The present mean distance of baseline rounds; 0 without any."""
        return self.every if self.distance is None else self.distance

    @property
    def is_due(self) -> bool:
        """Whether the next round measures the baseline."""
        return self.every > 0 and self.slot >= self.due

    def planned(self, every: int, setting: Setting | None, seed: int, share: Share | None = None) -> Baseline:
        """Return the baseline with a new schedule and setting."""
        found = self._replace(every=every, setting=setting, share=share, distance=None)
        if every and share is not None:
            distance = distances(share)[0]
            first = self.slot + NEAREST - 1 + checksum(["baseline", seed, self.slot]) % distance
            return found._replace(distance=distance, due=first)
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

    def paced(self, sums: AnytimeSums) -> Baseline:
        """Return the baseline after a difference, with its mean distance adapted."""
        if self.share is None or self.distance is None:
            return self
        return self._replace(distance=sums.distance(self.distance, *distances(self.share)))

    def _following(self, seed: int) -> int:
        if self.distance is not None:
            spread = int(JITTER * self.distance)
            draw = checksum(["baseline", seed, self.slot]) % (2 * spread + 1) - spread
            return self.slot + max(self.distance + draw, NEAREST)
        return 0 if self.every == 0 else self._place(self.slot // self.every + 1, seed)

    def _place(self, block: int, seed: int) -> int:
        return block * self.every + checksum(["baseline", seed, block]) % self.every

    def to_dict(self) -> Document:
        """Convert to JSON types, without what only an adaptive share has."""
        found = self._asdict()
        return {name: value for name, value in found.items() if name not in ("share", "distance") or value is not None}

    @classmethod
    def from_dict(cls, saved: Document) -> Baseline:
        """Read the output of `to_dict`."""
        share = saved.get("share")
        return cls(**{**saved, "share": None if share is None else tuple(share)})


def distances(share: Share) -> tuple[int, int]:
    """Return the smallest and the largest mean distance of baseline rounds.

    >>> distances((0.02, 0.125))
    (8, 50)
    """
    low, high = share
    return round(1 / high), round(1 / low)


def read_baseline(given: BaselineSpec, knobs: Knobs) -> BaselinePlan:
    """Validate a baseline; without knobs, its setting is None, the start."""
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
    share = _share(table.get("share"))
    named = table.get("knobs")
    if named is None:
        return BaselinePlan(every, None, share)
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
    setting = knobs.setting(knobs.coordinates({name: named.get(name, knob.start) for name, knob in known.items()}))
    return BaselinePlan(every, setting, share)


def baseline_fields(plan: BaselinePlan) -> Document:
    """Return the output of `read_baseline` by the dotted names of a study.toml."""
    found: Document = {"baseline.every": plan.every, "baseline.knobs": plan.setting}
    return found if plan.share is None else found | {"baseline.share": list(plan.share)}


def _share(given: object) -> Share | None:
    """Validate the limits of the share."""
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(f"baseline.share={given!r} must be the smallest and the largest share: write [0.02, 0.125]")
    low, high = (real("baseline.share", share, 1 / RAREST, 1 / NEAREST, why=" of all rounds") for share in given)
    if low > high:
        raise ValueError(f"baseline.share={given!r} has its limits reversed: write [{high:g}, {low:g}]")
    return low, high
