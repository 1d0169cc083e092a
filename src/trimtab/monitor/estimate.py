"""Estimate of a saving with its interval, in units of the value and as a share of the baseline."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.monitor.anytime import Interval


class Estimate(NamedTuple):
    """Saving per round over some rounds, in the units of the value, positive if tuning helps.

    >>> from trimtab.monitor.anytime import Interval
    >>> found = from_costs(100, 80.0, Interval(20.0, 10.0, 30.0), maximise=False, share=True)
    >>> found.baseline, found.relative
    (100.0, 0.2)
    """

    rounds: int
    """Tuned rounds."""
    paid: float
    """Mean value of the tuned rounds."""
    baseline: float
    """Mean value that the reference would have had in these rounds."""
    saved: float
    low: float
    high: float
    """The difference, with the ends of its 95 % interval."""
    relative: float | None = None
    relative_low: float | None = None
    relative_high: float | None = None
    """The same as a share of `baseline`; None if a share would mislead: values differ in sign, or it exceeds 100 %."""

    def with_shares(self, relative: float, low: float, high: float) -> Estimate:
        """Return the estimate with its shares of the baseline, if none exceeds 100 %."""
        if max(abs(low), abs(high)) > 1:
            return self
        return self._replace(relative=relative, relative_low=low, relative_high=high)


def from_costs(rounds: int, paid: float, found: Interval, *, maximise: bool, share: bool) -> Estimate:
    """Return the estimate in units of the value; paid: mean cost of the tuned rounds.

    A saving s is the share s/|paid + s| of the baseline, which increases with s while the baseline has one sign, so
    limits become limits. share: whether all costs at the baseline have one sign.
    """
    sign = -1.0 if maximise else 1.0
    estimate = Estimate(rounds, sign * paid, sign * (paid + found.mean), *found)
    there = [paid + saving for saving in found]
    if share and (min(paid, *there) > 0 or max(paid, *there) < 0):
        mean, low, high = (saving / abs(paid + saving) for saving in found)
        return estimate.with_shares(mean, low, high)
    return estimate
