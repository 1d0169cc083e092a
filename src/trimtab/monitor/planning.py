"""Rounds until a saving of a given size would show, from the noise seen so far.

The noise of a comparison is known from tuned rounds alone: each is compared with its neighbours as a baseline round
would be (`trimtab.monitor.anytime`). A plan is for a probability of 80 %, and about right: it assumes that the noise
and the distance of baseline rounds stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trimtab.monitor.anytime import FEWEST, AnytimeSums, planned
from trimtab.monitor.estimate import Estimate

SHARES = (0.05, 0.1, 0.2)  # savings that are planned for, as shares of the baseline
SMALLER = (0.1, 0.05, 0.02, 0.01)  # savings that a sentence may name, the first that is neither shown nor excluded
SCALES = 10.0  # without a meaningful share: noise scales in place of the whole baseline
LEARNT = 20  # comparisons of tuned rounds from which on the noise is known


class Planned(NamedTuple):
    """Plan for one size of the saving.

    >>> from trimtab.live import Study
    >>> study = Study.open(":memory:", "press", [dict(name="heat", low=150, high=220, start=180)], seed=0)
    >>> for n in range(60):
    ...     study.tell(study.ask(), 100.0 + n % 3)
    >>> [plan.share for plan in study.plan_baseline()]
    [0.05, 0.1, 0.2]
    >>> plan: Planned = study.plan_baseline()[1]
    >>> round(plan.saving), plan.more < plan.rounds
    (10, True)
    >>> study.close()
    """

    share: float | None
    """The saving as a share of the baseline; None if values differ in sign."""
    saving: float
    """The saving per round, in the units of the value."""
    rounds: int
    """Rounds in all after which it shows with a probability of 80 %."""
    more: int
    """Rounds of these that are still to come; 0 if it would have shown by now."""


def plans(sums: AnytimeSums, every: int, shares: Sequence[float] = SHARES) -> Iterator[Planned]:
    """Plan for these shares of the baseline, one baseline round in `every`; nothing while the noise is unknown."""
    whole = sums.whole
    if sums.placebos < LEARNT or every == 0 or not whole.rounds:
        return
    variance = whole.noise or 0.0
    mean = whole.total / whole.weight if whole.differences >= FEWEST else 0.0
    there = abs(whole.paid / whole.rounds + mean)
    has_share = sums.one_sign and there > 0
    for share in shares:
        saving = share * (there if has_share else SCALES * math.sqrt(variance))
        if saving > 0:
            n = planned(variance, saving)
            more = max(math.ceil((n - whole.size) * every), 0)
            yield Planned(share if has_share else None, saving, math.ceil(n * every), more)


def about(count: float) -> str:
    """Round to two digits, in words for a plan.

    >>> about(1234), about(7)
    ('1,200', '7')
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def size_in_words(plan: Planned) -> str:
    """Write the saving of a plan.

    >>> size_in_words(Planned(0.05, 3.0, 120, 60)), size_in_words(Planned(None, 0.25, 120, 60))
    ('5 %', '0.25 per round')
    """
    return f"{plan.saving:.2g} per round" if plan.share is None else f"{100 * plan.share:g} %"


def in_words(found: Sequence[Planned]) -> str:
    """State all plans in one line.

    >>> in_words([Planned(0.05, 3.0, 1234, 900), Planned(0.1, 6.0, 310, 40), Planned(0.2, 12.0, 130, 0)])
    'a saving shows with 80 % after: 5 %: about 900 more rounds; 10 %: about 40 more rounds; 20 %: by now'
    """
    if not found:
        return f"rounds until a saving shows: not known before {LEARNT} comparisons of tuned rounds"
    parts = [
        f"{size_in_words(one)}: {f'about {about(one.more)} more rounds' if one.more else 'by now'}" for one in found
    ]
    return f"a saving shows with 80 % after: {'; '.join(parts)}"


def next_in_words(sums: AnytimeSums, every: int, found: Estimate | None) -> str | None:
    """Name the next saving that more rounds would show, among those that the estimate does not exclude."""
    for one in plans(sums, every, SMALLER):
        high = None if found is None else found.high if one.share is None else found.relative_high
        if one.more and (high is None or (one.share or one.saving) < high):
            return f"about {about(one.more)} more rounds would show {size_in_words(one)}"
    return None
