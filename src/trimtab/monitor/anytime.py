"""Estimate what a study saves against its baseline, with an interval that holds at every look, in O(1) per round.

Each baseline round is compared with the three tuned rounds before it and the three after it, so that drift cancels. The
same comparison made for a tuned round, a placebo, shows how large an accidental difference is. With a₁ the value of the
nearest tuned round on each side, interpolated to the slot, and a₂ that of the two beyond,

    c = y − a₁,   f = a₂ − a₁,   D = c − βf,   β = ⅔ + Σf(c − ⅔f)/(Σf²·(1 + 10/m))  over the m placebos so far.  (1)

A difference D that was measured while one round in K was a baseline round stands for K rounds:

    θ = ΣKD/ΣK,   n = (ΣK)²/ΣK²,   v = max(P, Q·(1 + 8/n)),                                                       (2)
    P = ΣK(c − βf)²/ΣK over placebos,   Q = ΣK²(D_i − D_{i−1})²/(2ΣK²),
    interval  θ ± √(v/n)·√((1 + ρ/n)·(ln(1 + n/ρ) + 2 ln(1/α))),   from six differences on.                       (3)

(3) is the boundary of the normal mixture (Robbins 1970; Howard et al. 2021): the whole path of the mean stays inside
with a probability of 1 − α, however often one looks. It is asymptotic, because v is estimated. K may depend on earlier
values. The mean "lately" has accounts of its own, begun at rounds 64, 128, 256, …; account j has
α_j = .05/(j(j + 1)), and the last but one is shown.

The evidence that tuning makes matters worse, for losses of λ noise scales that begin at any time, is

    E_λ ← (E_λ + π)·exp(λz − λ²(z² + 2)/6),   z = −D/√v.                                                          (4)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trimtab.types import Document

SIDE = 3  # tuned rounds on each side of a comparison
RECENT = 2 * SIDE + 1  # tuned rounds that are kept
WAITING = 4  # baseline rounds whose later neighbours are not all measured yet
FEWEST = 6  # differences needed for an interval
ALPHA = 0.05
RHO = 30 / (2 * math.log(20) + math.log(2 * math.log(20) + 1))  # the boundary is tightest near 30 differences
EQUAL, TRUST = (SIDE - 1) / SIDE, 10  # β if all neighbours weigh the same, and the placebos this is worth
PENALTY = 8  # inflation of Q, in differences
FIRST = 64  # tuned rounds before the first account of "lately" begins; each later one begins after twice as many
LOSSES = (0.1, 0.2, 0.4, 0.8)
BEGINNING = 0.0005  # prior weight of a loss that begins with the next difference; more by a half with the first one
QUIET = 0.05  # mean evidence of a loss below which baseline rounds may become rarer
WORSE = 100.0  # mean evidence of a loss at which tuning is called worse than the baseline: wrong at most once in 100
POWER = 0.84  # normal quantile of the probability, 80 %, that a plan is for
LARGEST = 1e140  # larger values are clipped, so that squares stay finite

Point = tuple[int, float]
"""Slot and cost of a tuned round."""


class Interval(NamedTuple):
    """Mean saving per round with the limits of its interval."""

    mean: float
    low: float
    high: float


class Account(NamedTuple):
    """Running sums of a period, for (2)."""

    rounds: int = 0
    paid: float = 0.0
    """Tuned rounds: their number, and the sum of their costs."""
    differences: int = 0
    """Differences so far."""
    total: float = 0.0
    weight: float = 0.0
    square_weight: float = 0.0
    """ΣKD, ΣK, ΣK²."""
    change: float = 0.0
    change_weight: float = 0.0
    """Changes from one difference to the next: ΣK²(D_i − D_{i−1})²/2, ΣK²."""
    placebo: float = 0.0
    placebo_weight: float = 0.0
    """Placebos: ΣK(c − βf)², ΣK."""

    def with_tuned(self, cost: float, error: float, every: int) -> Account:
        """Return the sums after a tuned round and its placebo; error: K(c − βf)², every: K, or both 0 without one."""
        placebos = self.placebo + error, self.placebo_weight + every
        return Account._make((self.rounds + 1, self.paid + cost, *self[2:8], *placebos))

    def with_difference(self, difference: float, every: int, last: float) -> Account:
        """Return the sums after a difference; last: the one before."""
        square = every**2 if self.differences else 0
        return self._replace(
            differences=self.differences + 1,
            total=self.total + every * difference,
            weight=self.weight + every,
            square_weight=self.square_weight + every**2,
            change=self.change + square * (difference - last) ** 2 / 2,
            change_weight=self.change_weight + square,
        )

    @property
    def size(self) -> float:
        """Return n, the number of equally weighted differences that would say as much."""
        return self.weight**2 / self.square_weight if self.differences else 0.0

    @property
    def variance(self) -> float | None:
        """Return the variance v of one difference (2); None while nothing is known of it."""
        found = [self.placebo / self.placebo_weight] if self.placebo_weight else []
        if self.change_weight:
            found.append(self.change / self.change_weight * (1 + PENALTY / self.size))
        return max(found, default=None)

    @property
    def noise(self) -> float | None:
        """Return the variance to plan with: v (2) for many differences."""
        found = [self.placebo / self.placebo_weight] if self.placebo_weight else []
        if self.differences >= FEWEST and self.change_weight:
            found.append(self.change / self.change_weight)
        return max(found, default=None)

    def interval(self, alpha: float = ALPHA) -> Interval | None:
        """Return the mean with its limits (3); None before there are enough differences."""
        variance = self.variance
        if self.differences < FEWEST or variance is None:
            return None
        mean, half = self.total / self.weight, multiplier(self.size, alpha) * math.sqrt(variance / self.size)
        return Interval(mean, mean - half, mean + half)


class AnytimeSums(NamedTuple):
    """Running sums of a study; `tuned` and `reference` return those after a round. A cost is lower if better."""

    recent: tuple[Point, ...] = ()
    """The last tuned rounds, oldest first."""
    waiting: tuple[tuple[int, float, int], ...] = ()
    """Slot, cost and K of baseline rounds that wait for their later neighbours."""
    last: float = 0.0
    """The last difference."""
    placebos: int = 0
    squares: float = 0.0
    products: float = 0.0
    """Number of placebos, Σf² and Σf(c − ⅔f), for β (1)."""
    evidence: tuple[float, ...] = (0.0,) * len(LOSSES)
    """E_λ (4)."""
    marks: int = 0
    """Accounts of "lately" begun so far."""
    whole: Account = Account()
    older: Account = Account()
    newer: Account = Account()
    """Sums of the whole run, and of the last two accounts begun."""
    lowest: float | None = None
    highest: float | None = None
    """Extremes of the costs of baseline rounds."""

    @property
    def beta(self) -> float:
        """Return the weight of the outer neighbours (1)."""
        return EQUAL + (self.products / (self.squares * (1 + TRUST / self.placebos)) if self.squares else 0.0)

    def tuned(self, slot: int, cost: float, every: int) -> AnytimeSums:
        """Return the sums after a tuned round; every: K."""
        cost, found, error, weight = _bounded(cost), self, 0.0, 0
        recent = (*self.recent, (slot, cost))[-RECENT:]
        while found.waiting and len(recent) >= SIDE and found.waiting[0][0] < recent[-SIDE][0]:
            first, *rest = found.waiting
            found = found._replace(waiting=tuple(rest))
            if len(recent) >= 2 * SIDE:
                c, f = contrast(first[:2], recent[-2 * SIDE : -SIDE], recent[-SIDE:])
                found = found._with_difference(c - self.beta * f, first[2])
        sums = found.placebos, found.squares, found.products
        if len(recent) > 2 * SIDE:
            c, f = contrast(recent[SIDE], recent[:SIDE], recent[-SIDE:])
            error, weight = every * (c - self.beta * f) ** 2, every
            sums = sums[0] + 1, sums[1] + f * f, sums[2] + f * (c - EQUAL * f)
        whole = found.whole.with_tuned(cost, error, weight)
        marks, older, newer = self.marks, found.older, found.newer
        if marks:
            newer = newer.with_tuned(cost, error, weight)
        if marks > 1:
            older = older.with_tuned(cost, error, weight)
        if whole.rounds == FIRST << marks:
            marks, older, newer = marks + 1, newer, Account()
        ends = found.lowest, found.highest
        return AnytimeSums(recent, found.waiting, found.last, *sums, found.evidence, marks, whole, older, newer, *ends)

    def reference(self, slot: int, cost: float, every: int) -> AnytimeSums:
        """Return the sums after a baseline round; every: K."""
        cost = _bounded(cost)
        return self._replace(
            waiting=(*self.waiting, (slot, cost, every))[-WAITING:],
            lowest=cost if self.lowest is None else min(self.lowest, cost),
            highest=cost if self.highest is None else max(self.highest, cost),
        )

    def _with_difference(self, difference: float, every: int) -> AnytimeSums:
        whole, newer, older = (
            account.with_difference(difference, every, self.last) if begun else account
            for account, begun in ((self.whole, True), (self.newer, self.marks > 0), (self.older, self.marks > 1))
        )
        variance, prior = whole.variance, BEGINNING + (0.5 if whole.differences == 1 else 0.0)
        z = -difference / math.sqrt(variance) if variance else 0.0
        evidence = tuple(
            (e + prior) * math.exp(loss * z - loss * loss * (z * z + 2) / 6)
            for e, loss in zip(self.evidence, LOSSES, strict=True)
        )
        return self._replace(last=difference, evidence=evidence, whole=whole, newer=newer, older=older)

    @property
    def loss_evidence(self) -> float:
        """Return the mean evidence of a loss (4); it exceeds 100 in at most one study in a hundred without a loss."""
        return sum(self.evidence) / len(self.evidence)

    @property
    def is_worse(self) -> bool:
        """Whether the evidence suffices to call tuning worse than the baseline."""
        return self.loss_evidence >= WORSE

    @property
    def lately(self) -> tuple[Account, Interval | None]:
        """Return the account of the last half to three quarters of the rounds, with its interval."""
        begun = self.marks - 1
        return self.older, self.older.interval(ALPHA / (begun * (begun + 1))) if begun > 0 else None

    @property
    def one_sign(self) -> bool:
        """Whether all costs at the baseline have one sign, or none was measured yet."""
        return self.lowest is None or self.highest is None or self.lowest > 0 or self.highest < 0

    def distance(self, present: int, least: int, most: int) -> int:
        """Return the next mean distance of baseline rounds: short while nothing is proved, then longer by a quarter.

        It is at most 1.5·ΣK²/ΣK, so that no difference weighs much more than the others.
        """
        found = self.whole.interval()
        if found is None or found.low <= 0 or self.loss_evidence >= QUIET:
            return least
        cap = int(1.5 * self.whole.square_weight / self.whole.weight)
        return min(max(min(int(1.25 * present + 0.5), cap), least), most)

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        accounts = {name: getattr(self, name)._asdict() for name in ("whole", "older", "newer")}
        return self._asdict() | accounts

    @classmethod
    def from_dict(cls, saved: Document) -> AnytimeSums:
        """Read the output of `to_dict`."""
        rows = {name: tuple(tuple(row) for row in saved[name]) for name in ("recent", "waiting")}
        accounts = {name: Account(**saved[name]) for name in ("whole", "older", "newer")}
        return cls(**{**saved, **rows, **accounts, "evidence": tuple(saved["evidence"])})

    def to_numbers(self) -> list[float]:
        """Convert to a fixed number of floats, without loss; absent ones are NaN."""
        nan = math.nan
        recent = [x for point in self.recent for x in point]
        waiting = [x for row in self.waiting for x in row]
        return [
            *(*recent, *(nan,) * (2 * RECENT - len(recent))),
            *(*waiting, *(nan,) * (3 * WAITING - len(waiting))),
            *(self.last, self.placebos, self.squares, self.products, *self.evidence, self.marks),
            *(*self.whole, *self.older, *self.newer),
            *(nan if x is None else x for x in (self.lowest, self.highest)),
        ]

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> AnytimeSums:
        """Read the output of `to_numbers`."""
        ends = [2 * RECENT, 3 * WAITING, 4, len(LOSSES), 1, *[len(Account())] * 3, 2]
        parts = [numbers[end - size : end] for size, end in zip(ends, itertools.accumulate(ends), strict=True)]
        recent, waiting, sums, evidence, marks, *accounts, extremes = parts
        whole, older, newer = (Account(int(a[0]), a[1], int(a[2]), *a[3:]) for a in accounts)
        return cls(
            tuple((int(recent[n]), recent[n + 1]) for n in _present(recent, 2)),
            tuple((int(waiting[n]), waiting[n + 1], int(waiting[n + 2])) for n in _present(waiting, 3)),
            *(sums[0], int(sums[1]), sums[2], sums[3], tuple(evidence), int(marks[0]), whole, older, newer),
            *(None if math.isnan(x) else x for x in extremes),
        )


def contrast(middle: Point, before: tuple[Point, ...], after: tuple[Point, ...]) -> tuple[float, float]:
    """Return c and f (1) of a round and its neighbours.

    >>> contrast((3, 20.0), ((0, 7.0), (1, 8.0), (2, 9.0)), ((4, 11.0), (5, 12.0), (6, 13.0)))
    (10.0, 0.0)
    """
    (slot, cost), (far, x), (left, y), (near, z) = middle, *before
    (nearer, u), (right, v), (farther, w) = after
    inner = _between(slot, near, z, nearer, u)
    outer = _between(slot, (far + left) / 2, (x + y) / 2, (right + farther) / 2, (v + w) / 2)
    return cost - inner, outer - inner


def multiplier(n: float, alpha: float = ALPHA) -> float:
    """Return the half-width of (3) in standard errors.

    >>> round(multiplier(30), 2)
    3.04
    """
    return math.sqrt((1 + RHO / n) * (math.log1p(n / RHO) + 2 * math.log(1 / alpha)))


def planned(variance: float, saving: float) -> float:
    """Return the number of differences after which a saving shows with a probability of 80 %.

    n = v/s²·(m(n)·√(1 + 4/n) + z)², with the multiplier m of (3), iterated.
    """
    n = float(FEWEST)
    for _ in range(50):
        n = max(FEWEST, variance / saving**2 * (multiplier(n) * math.sqrt(1 + 4 / n) + POWER) ** 2)
    return n


def _between(slot: float, left: float, a: float, right: float, b: float) -> float:
    """Interpolate linearly between two points."""
    return ((right - slot) * a + (slot - left) * b) / (right - left)


def _present(numbers: Sequence[float], size: int) -> Iterator[int]:
    """Iterate over the places at which rows of this size begin, without absent rows."""
    return (n for n in range(0, len(numbers), size) if not math.isnan(numbers[n]))


def _bounded(cost: float) -> float:
    return min(max(cost, -LARGEST), LARGEST)
