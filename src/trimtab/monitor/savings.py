"""What a study saves against its baseline, with an interval, in O(1): the mean over all rounds between baseline rounds.

Between two baseline rounds with the values b and b′ the baseline is taken to go straight from one to the other. A
stretch of n tuned rounds with the sum P, whose mean place in between is f, is compared with n·(b + f·(b′ − b)); those
before the first baseline round with its value. Where the system drifts, both drift; where it wanders between two
baseline rounds, the error has the mean 0, and shows as scatter of the differences.

Stretches are gathered in batches, and when there are 32, neighbours are joined and every batch is twice as long from
then on (dynamic batch means): however slowly things vary, batches get longer than that. With N_j rounds in batch j, S_j
saved in it, θ = ΣS_j/ΣN_j and e_j = S_j − θN_j,

    var θ = k/(k − 3)·(Σe_j² + 2·max(0, Σe_j·e_{j+1}))/(ΣN_j)²,   interval θ ± t(0.975; (k − 1)/2)·√(var θ):

neighbours share a baseline value, hence the second sum; both k/(k − 3) and the halved degrees of freedom pay for having
estimated it. What is saved relative to the baseline is R = ΣS_j/ΣB_j, with e_j = S_j − R·B_j. Tuning that gets better
makes the S_j differ, too, and the interval wider than it need be. Nothing is said before there are 8 batches.

Rare values far off (one round in a hundred) are met by the many tuned rounds before the few baseline rounds meet one,
and until then the batches scatter too little. With d the change from one tuned round to the next, the variance of a
round is mean(d²)/2, and (π/4)·mean(|d|)² if it were normal; the difference r, where positive, is carried by few rounds.
Baseline rounds are taken to have as much of it: var θ is at least r·(1/baseline rounds + 1/ΣN_j).
What comes at the reference alone, and came in none of the baseline rounds, nobody can know of.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.types import Document
from trimtab.util.reprs import Facts, line, line_html

MOST = 32  # batches; then there are half as many
FEWEST = 8  # batches, or there is no interval: with fewer, it would hold too seldom
LARGEST = 1e140  # a value beyond counts as this, as in the core
PROBED = 20  # rounds of which the estimator could say what probing cost, before a mean of it is shown
Z = 1.959963984540054  # of 95 %

Batch = tuple[float, float, float]
"""Rounds, what they paid, what the baseline would have paid."""


class Saving(NamedTuple):
    """What tuning saves; per round, in the units of the value; None where it is not known yet.

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
    """Tuned rounds that have a baseline to be compared with."""
    baseline_rounds: int
    paid: float | None
    """By the tuned rounds, in the mean."""
    baseline: float | None
    """What the reference would have paid in the same rounds."""
    saved: float | None
    """The difference; where values are to be large, what was gained. Below 0 it was lost."""
    low: float | None
    high: float | None
    """The interval of 95 % of `saved`."""
    relative: float | None
    """`saved` as a share of `baseline`; None where values are not all of one sign, and a share makes no sense."""
    relative_low: float | None
    relative_high: float | None
    probing: float | None
    """What probing costs: played less the centre, as the estimator's plane has it; None for those without one."""
    sentence: str

    def _facts(self) -> Facts:
        told = ("rounds", "baseline_rounds", "paid", "baseline", "saved")
        return [("", self.sentence), *((name, getattr(self, name)) for name in told)]

    def __repr__(self) -> str:
        return line("Saving", self._facts())

    def _repr_html_(self) -> str:
        return line_html("Saving", self._facts())


class SavingsSums(NamedTuple):
    """The running sums; `tuned` and `reference` give those after a round."""

    reference_value: float | None = None
    reference_slot: int = 0
    """The last baseline round."""
    told: int = 0
    paid: float = 0.0
    places: float = 0.0
    """The tuned rounds since then: how many, the sum of their values and of their slots, from that one on."""
    batches: tuple[Batch, ...] = ()
    length: int = 1
    """Stretches in a batch."""
    rest: Batch = (0.0, 0.0, 0.0)
    stretches: int = 0
    """The batch that is being filled."""
    baseline_rounds: int = 0
    probed: int = 0
    probing: float = 0.0
    """Rounds of which it is known what probing cost, and the mean of it."""
    last: float | None = None
    changes: int = 0
    change_sum: float = 0.0
    change_square: float = 0.0
    """The last tuned value; changes from one to the next: how many, the sum of their sizes and of their squares."""

    def tuned(self, slot: int, value: float, probing: float | None) -> SavingsSums:
        """After a value of a probe, in round `slot`."""
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
        """After a value of the baseline: the stretch before it is finished."""
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
        """What it comes to. every: how often the baseline is measured; against: its name, for the sentence."""
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
            least_of_it = math.sqrt(rare * ((paid / there) ** 2 / self.baseline_rounds + 1 / rounds)) * rounds / size
            error = t * max(_scatter(errors) / size, least_of_it)
            found = found._replace(relative=relative, relative_low=relative - error, relative_high=relative + error)
        few = "; a few rounds dominate" if least > scatter else ""
        return found._replace(sentence=_sentence(found, maximise, against) + few)

    def _rare(self) -> float:
        """The variance of a tuned round that few of them carry."""
        if not self.changes:
            return 0.0
        usual = self.change_sum / self.changes
        return max(self.change_square / self.changes / 2 - math.pi / 4 * usual * usual, 0.0)

    def _unknown(self, every: int) -> str:
        if every == 0:
            return "no saving can be stated: there are no baseline rounds (add [baseline] with every = 20)"
        return f"no saving can be stated yet: {self.baseline_rounds} of {FEWEST} baseline rounds"

    def to_dict(self) -> Document:
        """For JSON."""
        return self._asdict()

    @classmethod
    def from_dict(cls, saved: Document) -> SavingsSums:
        """What `to_dict` gave."""
        batches, rest = (tuple(tuple(x) if isinstance(x, list) else x for x in saved[k]) for k in ("batches", "rest"))
        return cls(**{**saved, "batches": batches, "rest": rest})


def quantile(freedom: float) -> float:
    """t(0.975) for so many degrees of freedom, by Fisher's expansion: within 0.1 % from 3.5 on.

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
    """The standard deviation of a sum that scatters by these errors over batches."""
    k = len(errors)
    squares = math.fsum(e * e for e in errors)
    common = math.fsum(a * b for a, b in itertools.pairwise(errors))
    return math.sqrt(k / (k - 3) * (squares + 2 * max(common, 0.0)))


def _sentence(found: Saving, maximise: bool, against: str) -> str:
    """For people: what it saves, and what probing costs."""
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
