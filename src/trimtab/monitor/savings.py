"""Estimate what a study saves against its baseline, with a confidence interval, in O(1) per round.

The baseline is interpolated linearly between two baseline rounds with the values b and b′. A stretch of n tuned rounds
between them, with sum P and mean relative place f, is compared with n·(b + f·(b′ − b)); rounds before the first
baseline round are compared with its value. Drift thus affects both sides alike, and fluctuations between baseline
rounds are an error of mean 0 that shows as scatter of the differences.

Stretches are collected in batches. At 32 batches, neighbours are merged and the batch length doubles (dynamic batch
means), so that batches outgrow any correlation time. With N_j rounds in batch j, S_j saved in it, θ = ΣS_j/ΣN_j and
e_j = S_j − θN_j,

    var θ = k/(k − 3)·(Σe_j² + 2·max(0, Σe_j·e_{j+1}))/(ΣN_j)²,   interval θ ± t(0.975; (k − 1)/2)·√(var θ).

The second sum is there because neighbours share a baseline value; k/(k − 3) and the halved degrees of freedom account
for estimating it. The relative saving is R = ΣS_j/ΣB_j, with e_j = S_j − R·B_j. If tuning improves over time, the S_j
differ more and the interval is conservative. There is no estimate before 8 batches.

Rare outliers (one round in a hundred) occur among the many tuned rounds before they occur among the few baseline
rounds, and until then the batches scatter too little. With d the change from one tuned round to the next, the variance
of a round is mean(d²)/2, which would be (π/4)·mean(|d|)² under a normal distribution; their difference r, if positive,
is due to few rounds. Baseline rounds are assumed to have the same excess: var θ is at least
r·(1/baseline rounds + 1/ΣN_j). Outliers that occur only at the reference cannot be seen until a baseline round has one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.types import Document
from trimtab.util.reprs import Facts, line, line_html

MOST = 32  # batches before they are merged in pairs
FEWEST = 8  # batches needed for an interval; with fewer, its coverage is too low
LARGEST = 1e140  # larger values are clipped, as in the core
PROBED = 20  # rounds with a known cost of probing before their mean is shown
Z = 1.959963984540054  # normal quantile of a 95 % interval

Batch = tuple[float, float, float]
"""Number of rounds, their total cost, and the total cost of the baseline over the same rounds."""


class Saving(NamedTuple):
    """Saving per round due to tuning, in the units of the value; None while unknown.

    >>> from trimtab.live import Study
    >>> knobs = [dict(name="heat", low=150, high=220, start=180)]
    >>> study = Study.open(":memory:", "press", knobs, seed=0)
    >>> study.tell(study.ask(), 12.5)
    >>> saving: Saving = study.saving
    >>> saving.saved is None  # not known yet
    True
    >>> study.close()
    """

    rounds: int
    """Tuned rounds that are compared with the baseline."""
    baseline_rounds: int
    paid: float | None
    """Mean value of the tuned rounds."""
    baseline: float | None
    """Mean value of the reference over the same rounds, interpolated."""
    saved: float | None
    """The difference, positive if tuning helps; when maximising, the gain."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval of `saved`."""
    relative: float | None
    """`saved` as a share of `baseline`; None if values differ in sign, which makes a share meaningless."""
    relative_low: float | None
    relative_high: float | None
    probing: float | None
    """Estimated cost of the queries minus that of the centre; None if the method does not estimate it."""
    sentence: str

    def _facts(self) -> Facts:
        told = ("rounds", "baseline_rounds", "paid", "baseline", "saved")
        return [("", self.sentence), *((name, getattr(self, name)) for name in told)]

    def __repr__(self) -> str:
        return line("Saving", self._facts())

    def _repr_html_(self) -> str:
        return line_html("Saving", self._facts())


class SavingsSums(NamedTuple):
    """Running sums; `tuned` and `reference` return those after a round."""

    reference_value: float | None = None
    reference_slot: int = 0
    """The last baseline round."""
    told: int = 0
    paid: float = 0.0
    places: float = 0.0
    """Tuned rounds since then: their number, the sum of their values, and the sum of their slots since then."""
    batches: tuple[Batch, ...] = ()
    length: int = 1
    """Stretches per batch."""
    rest: Batch = (0.0, 0.0, 0.0)
    stretches: int = 0
    """The unfinished batch: its sums in `rest`, and its number of stretches."""
    baseline_rounds: int = 0
    probed: int = 0
    probing: float = 0.0
    """Rounds with a known cost of probing, and its mean."""
    last: float | None = None
    changes: int = 0
    change_sum: float = 0.0
    change_square: float = 0.0
    """The last tuned value; changes between consecutive ones: number, sum of absolute values, sum of squares."""

    def tuned(self, slot: int, value: float, probing: float | None) -> SavingsSums:
        """Return the sums after a tuned round, in `slot`."""
        place, found, value = slot - self.reference_slot, self, _bounded(value)
        if probing is not None:
            probed = self.probed + 1
            found = self._replace(probed=probed, probing=self.probing + (probing - self.probing) / probed)
        if self.last is not None:
            change = value - self.last
            found = found._replace(
                changes=self.changes + 1,
                change_sum=self.change_sum + abs(change),
                change_square=self.change_square + change * change,
            )
        return found._replace(told=self.told + 1, paid=self.paid + value, places=self.places + place, last=value)

    def reference(self, slot: int, value: float) -> SavingsSums:
        """Return the sums after a baseline round, which ends a stretch."""
        value, found = _bounded(value), self
        if self.told:
            there = value
            if self.reference_value is not None:
                share = self.places / self.told / (slot - self.reference_slot)
                there = self.reference_value + share * (value - self.reference_value)
            found = self._with((float(self.told), self.paid, self.told * there))
        fresh = found._replace(reference_value=value, reference_slot=slot, told=0, paid=0.0, places=0.0)
        return fresh._replace(baseline_rounds=self.baseline_rounds + 1)

    def _with(self, stretch: Batch) -> SavingsSums:
        rest, stretches = _joined(self.rest, stretch), self.stretches + 1
        if stretches < self.length:
            return self._replace(rest=rest, stretches=stretches)
        batches, length = (*self.batches, rest), self.length
        if len(batches) == MOST:
            batches = tuple(_joined(a, b) for a, b in zip(batches[::2], batches[1::2], strict=True))
            length *= 2
        return self._replace(batches=batches, length=length, rest=(0.0, 0.0, 0.0), stretches=0)

    def saving(self, *, maximise: bool, every: int, against: str) -> Saving:
        """Return the saving. every: rounds per baseline round; against: the name of the reference in the sentence."""
        batches = [*self.batches[:-1], _joined(self.batches[-1], self.rest)] if self.batches else []
        rounds, paid, there = (math.fsum(column) for column in zip(*batches, strict=True)) if batches else (0, 0, 0)
        probing = self.probing if self.probed >= PROBED else None
        if len(batches) < FEWEST:
            counts = int(rounds), self.baseline_rounds
            return Saving(*counts, None, None, None, None, None, None, None, None, probing, self._unknown(every))
        sign = -1.0 if maximise else 1.0
        gains = [sign * (b - p) for _, p, b in batches]
        saved = math.fsum(gains) / rounds
        rare = self._rare()
        least = math.sqrt(rare * (1 / self.baseline_rounds + 1 / rounds))
        scatter = _scatter([gain - saved * n for gain, (n, _, _) in zip(gains, batches, strict=True)]) / rounds
        t = quantile((len(batches) - 1) / 2)
        margin = t * max(scatter, least)
        means = (paid / rounds, there / rounds, saved, saved - margin, saved + margin)
        found = Saving(int(rounds), self.baseline_rounds, *means, None, None, None, probing, "")
        if all(p > 0 and b > 0 for _, p, b in batches) or all(p < 0 and b < 0 for _, p, b in batches):
            size = abs(there)
            relative = math.fsum(gains) / size
            errors = [gain - relative * abs(b) for gain, (_, _, b) in zip(gains, batches, strict=True)]
            least_share = math.sqrt(rare * ((paid / there) ** 2 / self.baseline_rounds + 1 / rounds)) * rounds / size
            error = t * max(_scatter(errors) / size, least_share)
            found = found._replace(relative=relative, relative_low=relative - error, relative_high=relative + error)
        few = "; a few rounds dominate" if least > scatter else ""
        return found._replace(sentence=_sentence(found, maximise, against) + few)

    def _rare(self) -> float:
        """Return the excess variance of a tuned round that is due to few rounds."""
        if not self.changes:
            return 0.0
        mean = self.change_sum / self.changes
        return max(self.change_square / self.changes / 2 - math.pi / 4 * mean * mean, 0.0)

    def _unknown(self, every: int) -> str:
        if every == 0:
            return "no saving can be stated: there are no baseline rounds (add [baseline] with every = 20)"
        return f"no saving can be stated yet: {self.baseline_rounds} of {FEWEST} baseline rounds"

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        return self._asdict()

    @classmethod
    def from_dict(cls, saved: Document) -> SavingsSums:
        """Read the output of `to_dict`."""
        batches, rest = (tuple(tuple(x) if isinstance(x, list) else x for x in saved[k]) for k in ("batches", "rest"))
        return cls(**{**saved, "batches": batches, "rest": rest})


def quantile(freedom: float) -> float:
    """Return t(0.975) by Fisher's expansion; within 0.1 % from 3.5 degrees of freedom on.

    >>> round(quantile(10), 3), round(quantile(1e9), 3)
    (2.228, 1.96)
    """
    z2 = Z * Z
    terms = (
        (z2 + 1) / 4,
        ((5 * z2 + 16) * z2 + 3) / 96,
        (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
        ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
    )
    return Z * (1 + sum(term / freedom**n for n, term in enumerate(terms, 1)))


def _scatter(errors: Sequence[float]) -> float:
    """Return the standard deviation of a sum, from the errors of its batches."""
    k = len(errors)
    squares = math.fsum(e * e for e in errors)
    common = math.fsum(a * b for a, b in itertools.pairwise(errors))
    return math.sqrt(k / (k - 3) * (squares + 2 * max(common, 0.0)))


def _sentence(found: Saving, maximise: bool, against: str) -> str:
    """Describe the saving and the cost of probing in words."""
    assert found.saved is not None
    assert found.high is not None
    word = "gains" if maximise else "saves"
    lost = found.high < 0
    if lost:
        word = "loses" if maximise else "costs"
    if found.relative is not None and found.relative_high is not None:
        size, margin = 100 * abs(found.relative), 100 * (found.relative_high - found.relative)
        digits = 1 if margin < 1 else 0
        much = f"{_sign(found.relative, lost)}{size:.{digits}f} % ± {margin:.{digits}f} %"
    else:
        margin = found.high - found.saved
        much = f"{_sign(found.saved, lost)}{abs(found.saved):.3g} ± {margin:.2g} per round"
    text = f"{word} {much} {'more than' if lost and not maximise else 'against'} {against}"
    if found.probing is None:
        return text
    if found.low is not None and found.low > 0:
        share = 100 * max(found.probing, 0.0) / found.saved
        return f"{text}; probing costs {'less than 1' if share < 1 else f'{share:.0f}'} % of that"
    return f"{text}; probing costs {max(found.probing, 0.0):.2g} per round"


def _sign(number: float, lost: bool) -> str:
    return "−" if number < 0 and not lost else ""


def _joined(a: Batch, b: Batch) -> Batch:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _bounded(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)
