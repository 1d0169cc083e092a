"""The saving of a study as a whole: its units, its sentence, and that it is kept."""

import itertools
import json
import math
import re

import numpy as np
import pytest

from trimtab.monitor.anytime import Account, AnytimeSums, Interval
from trimtab.monitor.anytime import planned as planned_differences
from trimtab.monitor.estimate import Estimate, from_costs
from trimtab.monitor.planning import LEARNT, plans
from trimtab.monitor.savings import Ledger, amount

from .test_fixed_horizon import places


def fed(values, is_baseline, probing=None, maximise=False, ledger=None, first=0):
    ledger = Ledger() if ledger is None else ledger
    for slot, (value, base) in enumerate(zip(values, is_baseline, strict=True), first):
        if base:
            ledger = ledger.reference(slot, value, every=20, maximise=maximise)
        else:
            ledger = ledger.tuned(slot, value, probing, every=20, maximise=maximise)
    return ledger


def saving(ledger, maximise=False):
    return ledger.saving(maximise=maximise, every=20, against="the start")


def measured(tuned, base, rounds=600, noise=0.03, seed=1):
    """Values at the baseline and as tuned, with noise relative to the baseline."""
    where = places(rounds)
    return np.where(where, base, tuned) + np.random.default_rng(seed).normal(0, noise * abs(base), rounds), where


CASES = [
    (81.0, 100.0, False, "saves 19 % ("),
    (119.0, 100.0, True, "gains 19 % ("),
    (119.0, 100.0, False, "costs 19 % ("),
    (81.0, 100.0, True, "loses 19 % ("),
    (-119.0, -100.0, False, "saves 19 % ("),
    (-0.5, 0.5, False, "saves 1 ("),
    (0.5, -0.5, True, "gains 0.999 ("),
    (250.0, 100.0, True, "gains 15"),  # beyond 100 %: in the value's units
    (450.0, 100.0, False, "costs 35"),
]


@pytest.mark.parametrize(("tuned", "base", "maximise", "words"), CASES)
def test_the_sentence(tuned, base, maximise, words):
    found = saving(fed(*measured(tuned, base), probing=0.04 * 19, maximise=maximise), maximise)
    assert found.sentence.startswith(words)
    assert (" per round " in found.sentence.partition("; ")[0]) == (found.relative is None) == ("%" not in words)
    assert ("more than the start" in found.sentence) == words.startswith("costs")
    if 15 < found.saved < 20:
        assert found.sentence.endswith(" against the start; probing costs 4 % of that")
    assert np.sign(found.saved) == (1 if words[0] in "sg" else -1)
    assert found.baseline == pytest.approx(base, rel=0.03)
    assert found.paid == pytest.approx(tuned, rel=0.03)


@pytest.mark.parametrize(("tuned", "base", "maximise", "words"), CASES)
def test_the_sentence_never_contradicts_the_interval(tuned, base, maximise, words):
    """Whatever the values, the words, the limits and the signs of the percentages agree."""
    for noise, seed in itertools.product((0.03, 0.3, 1.0, 3.0), range(5)):
        values, where = measured(tuned, base, 400, noise, seed)
        found = saving(fed(values, where, maximise=maximise), maximise)
        proved = re.match(r"(saves|gains|costs|loses) ", found.sentence)
        assert bool(proved) == (found.low > 0 or found.high < 0)
        assert bool(re.match("saves|gains", found.sentence)) == (found.low > 0)
        assert ("−" in found.sentence) == (found.low < 0 < found.high)
        if found.relative is not None:
            assert -1 <= found.relative_low < found.relative < found.relative_high <= 1
            assert np.sign([found.low, found.saved, found.high]).tolist() == (
                np.sign([found.relative_low, found.relative, found.relative_high]).tolist()
            )


def test_a_baseline_that_crosses_zero_has_no_percentage():
    where = places(600)
    values = np.where(where, 1.0, 0.9)
    values[np.flatnonzero(where)[3]] = -0.001
    assert saving(fed(values, where)).relative is None
    assert saving(fed(np.abs(values), where)).relative is not None


def test_shares_by_hand():
    found = from_costs(50, 80.0, Interval(20.0, -16.0, 80.0), maximise=False, share=True)
    assert found == Estimate(50, 80.0, 100.0, 20.0, -16.0, 80.0, 0.2, -0.25, 0.5)
    gain = from_costs(50, -120.0, Interval(20.0, 0.0, 40.0), maximise=True, share=True)
    assert gain == Estimate(50, 120.0, 100.0, 20.0, 0.0, 40.0, 0.2, 0.0, 0.5)
    beyond = (Interval(20.0, -41.0, 80.0), Interval(20.0, -80.0, 80.0), Interval(20.0, -90.0, 80.0))
    assert [from_costs(50, 80.0, one, maximise=False, share=True).relative for one in beyond] == [None] * 3
    assert from_costs(50, 80.0, Interval(20.0, 0.0, 40.0), maximise=False, share=False).relative is None


def test_amounts_in_words():
    assert amount(Estimate(1, 1, 1, 7.0, -17.0, 31.0, 0.07, -0.17, 0.31)) == "7 % (−17 % to 31 %)"
    assert amount(Estimate(1, 1, 1, 17.0, 5.0, 29.0, 0.17, 0.05, 0.29)) == "17 % (5 % to 29 %)"
    assert amount(Estimate(1, 1, 1, 1.0, 1.0, 1.0, 0.1, 0.004, 0.2)) == "10 % (0.4 % to 20 %)"  # not 0 %
    assert amount(Estimate(1, 1, 1, 1.0, 1.0, 1.0, 0.105, 0.101, 0.109)) == "10.5 % (10.1 % to 10.9 %)"
    assert amount(Estimate(1, 1, 1, -2.0, -3.0, -1.0)) == "2 (1 to 3) per round"


def test_an_unproved_difference_is_not_called_a_saving():
    where = places(600)
    found = saving(fed(100 + np.random.default_rng(0).normal(0, 5, 600), where, 0.25))
    assert found.low < 0 < found.high
    assert found.sentence.startswith("no saving shown yet: ")
    assert found.sentence.endswith("; probing costs 0.25 per round")


def test_the_plan_in_the_sentence():
    where = places(300)
    found = saving(fed(100 + np.random.default_rng(0).normal(0, 5, 300), where))
    more = re.search(r"; about ([0-9,]+) more rounds would show (\d+) %$", found.sentence)
    assert more
    assert int(more[2]) / 100 < found.relative_high
    assert "more rounds" not in saving(fed(*measured(80.0, 100.0))).sentence
    few = saving(fed(100 + np.random.default_rng(0).normal(0, 5, 60), places(60)))
    assert re.match(
        r"no saving shown yet: \d of 8 baseline rounds; about \d+ more rounds would show 10 %", few.sentence
    )


@pytest.mark.parametrize(("share", "noise"), [(0.1, 5.0), (0.2, 5.0), (0.2, 10.0)])
def test_a_planned_saving_shows_in_most_studies(share, noise):
    """The plan is for 80 %, and right within a third; made at round 60, in tuned rounds alone."""
    level, late, planned = 100.0, 0, []
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        where = places(3000, seed=seed)
        values = np.where(where, level, level * (1 - share)) + rng.normal(0, noise, 3000)
        begun = fed(values[:60], where[:60])
        (plan,) = plans(begun.anytime, 20, [share])
        planned.append(plan.rounds)
        end = min(max(round(plan.rounds * 4 / 3), 200), 3000)  # 8 baseline rounds are needed
        late += saving(fed(values[60:end], where[60:end], ledger=begun, first=60)).low <= 0
    assert late <= 14  # of 40; 8 are expected at the planned round
    assert max(planned) < 2000


def test_plans_by_hand():
    sums = AnytimeSums(placebos=LEARNT, whole=Account(rounds=30, paid=2400.0, placebo=100.0, placebo_weight=1.0))
    five, ten, twenty = plans(sums, 20)
    assert (five.share, five.saving) == (0.05, pytest.approx(4.0))
    assert five.rounds == five.more == math.ceil(20 * planned_differences(100.0, 4.0))
    assert five.rounds > ten.rounds > twenty.rounds
    half = next(plans(sums, 10))
    assert half.rounds == pytest.approx(five.rounds / 2, abs=1)
    assert not list(plans(sums, 0))
    assert not list(plans(sums._replace(placebos=LEARNT - 1), 20))
    mixed = list(plans(sums._replace(lowest=-1.0, highest=1.0), 20))
    assert [(plan.share, plan.saving) for plan in mixed] == [(None, 5.0), (None, 10.0), (None, 20.0)]
    told = whole_of(sums, 1000)
    assert [plan.more for plan in plans(told, 20)] == [0, 0, 0]


def whole_of(sums, n):
    return sums._replace(whole=sums.whole._replace(differences=n, weight=n, square_weight=n, change_weight=1.0))


def test_without_baseline_rounds_the_sentence_names_the_remedy():
    found = Ledger().saving(maximise=False, every=0, against="the start")
    assert "no saving can be stated: there are no baseline rounds (add [baseline]" in found.sentence
    assert "no gain can be stated" in Ledger().saving(maximise=True, every=0, against="the start").sentence


def test_the_interval_contains_the_classical_one():
    """A saving that came within the first rounds, which no comparison saw, is not stated too exactly."""
    values, where = measured(80.0, 100.0, 400, noise=0.001)
    values[:15] += np.where(where[:15], 0.0, 20.0)
    found = saving(fed(values, where))
    assert found.low == min(found.low, found.fixed.low)
    assert found.high == max(found.high, found.fixed.high)
    narrow = fed(values, where).anytime.whole.interval()
    assert found.low < narrow.low


def test_lately_and_one_look_stand_beside_the_whole():
    values, where = measured(80.0, 100.0, 1500)
    values[:700] += np.where(where[:700], 0.0, 20.0)  # the saving began in round 700
    found = saving(fed(values, where))
    assert found.saved == pytest.approx(20 * 800 / 1500, abs=1.5)
    assert found.lately.saved > found.saved + 3
    assert found.lately.rounds < found.rounds
    assert found.lately.low < 20 * 800 / (1500 - 512) < found.lately.high
    assert found.fixed.saved == pytest.approx(found.saved, abs=2)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["lately"]["low"] == found.lately.low
    assert document["fixed"]["high"] == found.fixed.high
    assert document["low"] == found.low


@pytest.mark.parametrize("cut", [0, 1, 9, 237, 400])
def test_a_kept_ledger_continues_exactly(cut):
    values, where = measured(80.0, 100.0, 401)
    values, where = values.tolist(), where.tolist()
    half = Ledger.from_dict(json.loads(json.dumps(fed(values[:cut], where[:cut], 0.5).to_dict())))
    again = fed(values[cut:], where[cut:], 0.5, ledger=half, first=cut)
    assert again == fed(values, where, 0.5)
    sums = again.anytime
    assert type(sums).from_numbers(sums.to_numbers()) == sums
    assert repr(type(sums).from_numbers(np.array(sums.to_numbers()).tolist())) == repr(sums)


def test_a_ledger_without_the_newer_sums_is_completed():
    values, where = measured(80.0, 100.0)
    kept = fed(values, where)
    old = Ledger.from_dict(json.loads(json.dumps(kept.fixed.to_dict())))
    assert old.fixed == kept.fixed
    assert old.anytime == Ledger().anytime
    found = saving(old)
    assert found.saved is None
    assert found.fixed == saving(kept).fixed
    assert found.baseline_rounds == saving(kept).baseline_rounds
