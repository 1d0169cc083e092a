"""Saving of a study against its baseline: what is stored for it, and how it is worded."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.monitor.anytime import AnytimeSums, Interval
from trimtab.monitor.estimate import Estimate, from_costs
from trimtab.monitor.fixed_horizon import FEWEST, FixedHorizonSums
from trimtab.monitor.planning import next_in_words
from trimtab.types import Document
from trimtab.util.reprs import Facts, line, line_html

PROBED = 20  # rounds with a known cost of probing before their mean is shown
MINUS = "\u2212"


class Saving(NamedTuple):
    """Saving per round due to tuning, in the units of the value; None while unknown.

    The interval holds at every look: in 95 of 100 studies it contains the truth after each round of the study.

    >>> from trimtab.live import Study
    >>> knobs = [dict(name="heat", low=150, high=220, start=180)]
    >>> study = Study.open(":memory:", "press", knobs, seed=0)
    >>> study.tell(study.ask(), 12.5)
    >>> saving: Saving = study.saving
    >>> saving.saved is None  # not known yet
    True
    >>> saving.sentence
    'no saving shown yet: 0 of 8 baseline rounds'
    >>> study.close()
    """

    rounds: int
    """Tuned rounds so far."""
    baseline_rounds: int
    paid: float | None
    """Mean value of the tuned rounds."""
    baseline: float | None
    """Mean value that the reference would have had in these rounds."""
    saved: float | None
    """The difference, positive if tuning helps; when maximising, the gain."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval of `saved`, which holds at every look."""
    relative: float | None
    """`saved` as a share of `baseline`; None if a share would mislead: values differ in sign, or it exceeds 100 %."""
    relative_low: float | None
    relative_high: float | None
    probing: float | None
    """Estimated cost of the queries minus that of the centre; None if the method does not estimate it."""
    sentence: str
    lately: Estimate | None = None
    """The same over the last half to three quarters of the rounds, wider; it holds at every look, too."""
    fixed: Estimate | None = None
    """The same with the classical interval, for one look at a horizon that was fixed in advance."""

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        spans = {name: None if (found := getattr(self, name)) is None else found._asdict() for name in SPANS}
        return self._asdict() | spans

    def _facts(self) -> Facts:
        told = ("rounds", "baseline_rounds", "paid", "baseline", "saved")
        return [("", self.sentence), *((name, getattr(self, name)) for name in told)]

    def __repr__(self) -> str:
        return line("Saving", self._facts())

    def _repr_html_(self) -> str:
        return line_html("Saving", self._facts())


SPANS = ("lately", "fixed")


class Ledger(NamedTuple):
    """Running sums of a study for its saving; `tuned` and `reference` return those after a round."""

    anytime: AnytimeSums = AnytimeSums()
    fixed: FixedHorizonSums = FixedHorizonSums()

    def tuned(self, slot: int, value: float, probing: float | None, *, every: int, maximise: bool) -> Ledger:
        """Return the sums after a tuned round; every: mean distance of baseline rounds, 0 without."""
        cost = -value if maximise else value
        return Ledger(self.anytime.tuned(slot, cost, max(every, 1)), self.fixed.tuned(slot, value, probing))

    def reference(self, slot: int, value: float, *, every: int, maximise: bool) -> Ledger:
        """Return the sums after a baseline round."""
        cost = -value if maximise else value
        return Ledger(self.anytime.reference(slot, cost, max(every, 1)), self.fixed.reference(slot, value))

    def saving(self, *, maximise: bool, every: int, against: str) -> Saving:
        """Return the saving. every: present distance of baseline rounds; against: the reference, as it is worded."""
        sums, fixed = self.anytime, self.fixed
        (lately, span), classical = sums.lately, fixed.estimate(maximise=maximise)
        whole, recent = (
            None
            if found is None
            else from_costs(
                account.rounds, account.paid / account.rounds, found, maximise=maximise, share=sums.one_sign
            )
            for account, found in ((sums.whole, _widened(sums.whole.interval(), classical)), (lately, span))
        )
        probing = fixed.probing if fixed.probed >= PROBED else None
        if whole is None:
            text = _unknown(every, fixed.baseline_rounds, maximise)
        else:
            text = _sentence(whole, maximise, against)
        if whole is None or whole.low <= 0 <= whole.high:
            more = next_in_words(sums, every, whole)
            text += f"; {more}" if more else ""
        text += _cost_of_probing(whole, probing)
        numbers = (None,) * (len(Estimate._fields) - 1) if whole is None else whole[1:]
        beside = (probing, text, recent, classical)
        return Saving._make((sums.whole.rounds, fixed.baseline_rounds, *numbers, *beside))

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        return self.fixed.to_dict() | {"anytime": self.anytime.to_dict()}

    @classmethod
    def from_dict(cls, saved: Document) -> Ledger:
        """Read the output of `to_dict`; versions before 11 stored no sums for the interval that holds at every look."""
        fixed = dict(saved)
        anytime = fixed.pop("anytime", None)
        sums = AnytimeSums() if anytime is None else AnytimeSums.from_dict(anytime)
        return cls(sums, FixedHorizonSums.from_dict(fixed))


def _widened(found: Interval | None, classical: Estimate | None) -> Interval | None:
    """Return the interval, extended to the classical one; None before both are known.

    The classical one sees more of a saving that changes within a few rounds, since it compares all tuned rounds.
    """
    if found is None or classical is None:
        return None
    return Interval(found.mean, min(found.low, classical.low), max(found.high, classical.high))


def _unknown(every: int, baseline_rounds: int, maximise: bool) -> str:
    noun = "gain" if maximise else "saving"
    if every == 0:
        return f"no {noun} can be stated: there are no baseline rounds (add [baseline] with every = 20)"
    return f"no {noun} shown yet: {min(baseline_rounds, FEWEST)} of {FEWEST} baseline rounds"


def _sentence(found: Estimate, maximise: bool, against: str) -> str:
    """State what is proved, or that nothing is yet."""
    much = amount(found)
    if found.low > 0:
        return f"{'gains' if maximise else 'saves'} {much} against {against}"
    if found.high < 0:
        return f"loses {much} against {against}" if maximise else f"costs {much} more than {against}"
    return f"no {'gain' if maximise else 'saving'} shown yet: {much} against {against}"


def _cost_of_probing(found: Estimate | None, probing: float | None) -> str:
    """Return the second half of the sentence, if the cost of probing is known."""
    if probing is None or found is None:
        return ""
    if found.low > 0:
        share = 100 * max(probing, 0.0) / found.saved
        return f"; probing costs {'less than 1' if share < 1 else f'{share:.0f}'} % of that"
    return f"; probing costs {max(probing, 0.0):.2g} per round"


def amount(found: Estimate) -> str:
    """Write a saving with its interval, as a percentage where that has a meaning; a proved loss without signs.

    >>> amount(Estimate(90, 80.0, 100.0, 20.0, -5.0, 45.0, 0.2, -0.05, 0.45))
    '20 % (−5 % to 45 %)'
    >>> amount(Estimate(90, 0.25, -0.5, -0.75, -1.0, -0.5))
    '0.75 (0.5 to 1) per round'
    """
    if found.relative is None or found.relative_low is None or found.relative_high is None:
        numbers, unit, after = [found.saved, found.low, found.high], "", " per round"
    else:
        numbers = [100 * share for share in (found.relative, found.relative_low, found.relative_high)]
        unit, after = " %", ""
    if found.high < 0:
        numbers = [-numbers[0], -numbers[2], -numbers[1]]
    width = numbers[2] - numbers[1]
    mean, low, high = (_number(number, width, bool(unit)) + unit for number in numbers)
    return f"{mean} ({low} to {high}){after}"


def _number(number: float, width: float, percent: bool) -> str:
    """Write a number with the digits that an interval of this width deserves; never 0 for a limit other than 0."""
    text = f"{abs(number):.{1 if width < 2 else 0}f}" if percent else f"{abs(number):.3g}"
    if float(text) == 0 and number:
        text = f"{abs(number):.1g}"
    return (MINUS if number < 0 else "") + text
