"""Estimate what a study saves against its baseline, with an interval for one look at a horizon fixed in advance.

Looked at after every round, the interval excludes the truth at some time far more often than once in twenty;
`trimtab.monitor.anytime` has the one that holds at every look. Memory and work per round are constant.

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

from trimtab.monitor.estimate import Estimate
from trimtab.types import Document

MOST = 32  # batches before they are merged in pairs
FEWEST = 8  # batches needed for an interval; with fewer, its coverage is too low
LARGEST = 1e140  # larger values are clipped, as in the core
Z = 1.959963984540054  # normal quantile of a 95 % interval

Batch = tuple[float, float, float]
"""Number of rounds, their total cost, and the total cost of the baseline over the same rounds."""


class FixedHorizonSums(NamedTuple):
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

    def tuned(self, slot: int, value: float, probing: float | None) -> FixedHorizonSums:
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

    def reference(self, slot: int, value: float) -> FixedHorizonSums:
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

    def _with(self, stretch: Batch) -> FixedHorizonSums:
        rest, stretches = _joined(self.rest, stretch), self.stretches + 1
        if stretches < self.length:
            return self._replace(rest=rest, stretches=stretches)
        batches, length = (*self.batches, rest), self.length
        if len(batches) == MOST:
            batches = tuple(_joined(a, b) for a, b in zip(batches[::2], batches[1::2], strict=True))
            length *= 2
        return self._replace(batches=batches, length=length, rest=(0.0, 0.0, 0.0), stretches=0)

    def estimate(self, *, maximise: bool) -> Estimate | None:
        """Return the saving for one look; None before there are enough batches."""
        batches = [*self.batches[:-1], _joined(self.batches[-1], self.rest)] if self.batches else []
        if len(batches) < FEWEST:
            return None
        rounds, paid, there = (math.fsum(column) for column in zip(*batches, strict=True))
        sign = -1.0 if maximise else 1.0
        gains = [sign * (b - p) for _, p, b in batches]
        saved = math.fsum(gains) / rounds
        rare = self._rare()
        least = math.sqrt(rare * (1 / self.baseline_rounds + 1 / rounds))
        scatter = _scatter([gain - saved * n for gain, (n, _, _) in zip(gains, batches, strict=True)]) / rounds
        t = quantile((len(batches) - 1) / 2)
        margin = t * max(scatter, least)
        found = Estimate(int(rounds), paid / rounds, there / rounds, saved, saved - margin, saved + margin)
        if all(p > 0 and b > 0 for _, p, b in batches) or all(p < 0 and b < 0 for _, p, b in batches):
            size = abs(there)
            relative = math.fsum(gains) / size
            errors = [gain - relative * abs(b) for gain, (_, _, b) in zip(gains, batches, strict=True)]
            least_share = math.sqrt(rare * ((paid / there) ** 2 / self.baseline_rounds + 1 / rounds)) * rounds / size
            error = t * max(_scatter(errors) / size, least_share)
            return found.with_shares(relative, relative - error, relative + error)
        return found

    def _rare(self) -> float:
        """Return the excess variance of a tuned round that is due to few rounds."""
        if not self.changes:
            return 0.0
        mean = self.change_sum / self.changes
        return max(self.change_square / self.changes / 2 - math.pi / 4 * mean * mean, 0.0)

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        return self._asdict()

    @classmethod
    def from_dict(cls, saved: Document) -> FixedHorizonSums:
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


def _joined(a: Batch, b: Batch) -> Batch:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _bounded(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)
