"""The interval that holds at every look: its formulae by hand, and what it must not depend on."""

import itertools
import json
import math

import numpy as np
import pytest

from trimtab.monitor.anytime import FEWEST, LOSSES, Account, AnytimeSums, contrast, multiplier, planned

SLOTS = 20


def fed(values, every=SLOTS, place=8, sums=None, first=0):
    """Return the sums after these costs, the one at `place` of every block measured at the baseline; None failed."""
    sums = AnytimeSums() if sums is None else sums
    for slot, value in enumerate(values, first):
        if value is not None:
            sums = (sums.reference if slot % every == place else sums.tuned)(slot, value, every)
    return sums


def noise(rounds, seed=0, saving=0.0, place=8):
    values = 10 + np.random.default_rng(seed).standard_normal(rounds)
    return np.where(np.arange(rounds) % SLOTS == place, values, values - saving).tolist()


def test_a_difference_computed_by_hand():
    values = [1.0, 2.0, 4.0, 20.0, 6.0, 5.0, 1.0]
    sums = fed(values, every=100, place=3)
    assert sums.whole.differences == 1
    # c = 20 − 5, f = (1.5 + 3)/2 − 5, and β = 2/3 before the first placebo
    assert contrast((3, 20.0), *(((0, 1.0), (1, 2.0), (2, 4.0)), ((4, 6.0), (5, 5.0), (6, 1.0)))) == (15.0, -2.75)
    assert sums.last == pytest.approx(15 + 2 / 3 * 2.75)


def test_a_failed_neighbour_leaves_a_gap_that_is_interpolated():
    level = [3.0 * slot for slot in range(30)]
    level[8] += 7.0
    for failed in range(30):
        if failed != 8:
            sums = fed([None if slot == failed else value for slot, value in enumerate(level)], every=100)
            assert sums.last == pytest.approx(7.0)


def test_a_failed_baseline_round_leaves_a_waiting_one_alone():
    values = [1.0] * 8 + [5.0] + [1.0] * 11
    sums = fed(values[:10], every=100)
    assert sums.waiting == ((8, 5.0, 100),)
    assert fed(values[11:], every=100, sums=sums, first=11).last == pytest.approx(4.0)


def test_neighbouring_baseline_rounds_are_both_compared():
    sums = AnytimeSums()
    for slot in range(12):
        sums = (sums.reference if slot in (5, 6) else sums.tuned)(slot, 9.0 if slot in (5, 6) else 1.0 + slot, 20)
    assert sums.whole.differences == 2
    assert sums.whole.total == pytest.approx(20 * (9 - 6 + 9 - 7))


def test_a_linear_drift_cancels():
    values = [100 + 0.7 * slot - (0.0 if slot % SLOTS == 8 else 3.0) for slot in range(400)]
    found = fed(values).whole.interval()
    assert found == pytest.approx((3.0, 3.0, 3.0))


def test_there_is_no_interval_before_six_differences():
    whole = [fed(noise(20 * n)).whole for n in range(9)]
    assert [account.interval() is None for account in whole] == [account.differences < FEWEST for account in whole]
    assert [account.differences for account in whole] == list(range(9))


def test_the_interval_by_hand():
    account = Account(differences=8, total=40.0, weight=8.0, square_weight=8.0, placebo=90.0, placebo_weight=10.0)
    rho = 30 / 7.94
    half = 3 / math.sqrt(8) * math.sqrt((1 + rho / 8) * (math.log(1 + 8 / rho) + 2 * math.log(20)))
    assert account.interval() == pytest.approx((5.0, 5 - half, 5 + half), rel=1e-3)
    loud = account._replace(change=100.0, change_weight=7.0)
    assert loud.variance == pytest.approx(100 / 7 * 2)  # inflated by 1 + 8/n
    assert multiplier(8, 0.001) > multiplier(8, 0.05)


def test_the_weights_of_differences():
    account = Account().with_difference(2.0, 8, 0.0).with_difference(5.0, 16, 2.0)
    assert account.total / account.weight == pytest.approx((8 * 2 + 16 * 5) / 24)
    assert account.size == pytest.approx(24**2 / (64 + 256))
    assert account.change / account.change_weight == pytest.approx(4.5)  # the first has no change


def test_the_outer_weight_uses_the_past_alone():
    values = noise(200, 1)
    before = fed(values[:190])
    for value in (-50.0, 0.0, 50.0):
        sums = before.tuned(190, value, SLOTS)
        assert sums.placebos == before.placebos + 1
        c, f = contrast(before.recent[-3], before.recent[-6:-3], (*before.recent[-2:], (190, value)))
        error = SLOTS * (c - before.beta * f) ** 2
        assert sums.whole.placebo - before.whole.placebo == pytest.approx(error)
        assert sums.beta != before.beta


def test_the_outer_weight_by_hand():
    values = noise(9, 6)
    sums, pairs = AnytimeSums(), []
    for slot, value in enumerate(values):
        sums = sums.tuned(slot, value, SLOTS)
    for middle in range(3, 6):
        points = list(enumerate(values))[middle - 3 : middle + 4]
        pairs.append(contrast(points[3], tuple(points[:3]), tuple(points[4:])))
    squares, products = sum(f * f for _, f in pairs), sum(f * (c - 2 / 3 * f) for c, f in pairs)
    assert sums.beta == pytest.approx(2 / 3 + products / squares / (1 + 10 / 3))


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (3.0, -40.0), (1e5, 7.0)])
def test_units_do_not_matter(scale, shift):
    values = noise(600, saving=1.0)
    plain, other = fed(values), fed([scale * value + shift for value in values])
    assert other.whole.interval() == pytest.approx([scale * x for x in plain.whole.interval()], rel=1e-6)
    assert other.lately[1] == pytest.approx([scale * x for x in plain.lately[1]], rel=1e-6)
    assert other.evidence == pytest.approx(plain.evidence, rel=1e-5)


@pytest.mark.parametrize(("rounds", "begins"), [(130, 64), (300, 128), (600, 256), (2400, 1024)])
def test_lately_covers_the_last_half_to_three_quarters(rounds, begins):
    sums = fed([float(slot) for slot in range(rounds)], place=-1)
    account, found = sums.lately
    assert account.rounds == rounds - begins
    assert account.paid == sum(range(begins, rounds))
    assert found is None  # without a baseline round


def test_lately_follows_a_saving_that_came_late():
    values = noise(3000, 2)
    values = [value - 4.0 * (slot > 1200 and slot % SLOTS != 8) for slot, value in enumerate(values)]
    sums = fed(values)
    assert sums.lately[1].low > sums.whole.interval().mean
    assert sums.lately[1].low < 4.0 < sums.lately[1].high


def test_memory_is_constant_and_saving_is_exact():
    sums, sizes = AnytimeSums(), set()
    for start in range(0, 20_000, 500):
        sums = fed(noise(500, start, 0.5), sums=sums, first=start)
        text = json.dumps(sums.to_dict())
        sizes.add(len(text))
        again = AnytimeSums.from_dict(json.loads(text))
        assert again == sums
        assert json.dumps(again.to_dict()) == text
    assert max(sizes) < 2500
    for _ in range(1000):
        sums = sums.reference(10**6, 1.0, 20)
    assert len(sums.waiting) == 4


def test_resuming_gives_the_same_bits():
    values = noise(500, 3)
    half = AnytimeSums.from_dict(json.loads(json.dumps(fed(values[:237]).to_dict())))
    assert fed(values[237:], sums=half, first=237) == fed(values)


def test_huge_values_stay_finite():
    sums = fed([1e308 * (-1) ** (slot // 3) for slot in range(2000)], every=20)
    assert all(math.isfinite(number) for number in (*sums.whole.interval(), *sums.evidence))
    assert fed([1.0] * 300).whole.interval() == (0.0, 0.0, 0.0)


def test_the_distance_grows_once_a_saving_is_sure():
    unsure, sure, lost = (fed(noise(1000, 4, saving)) for saving in (0.0, 3.0, -3.0))
    assert [sums.distance(20, 8, 50) for sums in (unsure, sure, lost)] == [8, 25, 8]
    assert sure.distance(8, 8, 50) == 10
    assert sure.distance(48, 8, 50) == 30  # at most 1.5 of the mean distance so far
    assert sure._replace(evidence=(1.0, 0.0, 0.0, 0.0)).distance(20, 8, 50) == 8


def test_the_evidence_of_a_loss():
    sums = fed(noise(2000, 5, -1.0))
    assert sums.loss_evidence > 100
    assert fed(noise(2000, 5)).loss_evidence < 100
    assert AnytimeSums(evidence=(1.0, 2.0, 3.0, 6.0)).loss_evidence == 3.0
    first = AnytimeSums()._with_difference(-1.0, 20)
    assert first.evidence == pytest.approx([0.5005 * math.exp(-loss * loss / 3) for loss in LOSSES])  # z = 0


def test_a_planned_saving_shows_in_four_of_five_studies():
    differences = planned(variance=1.5, saving=0.8)
    shown, studies = 0, 300
    for seed in range(studies):
        draws = 0.8 + math.sqrt(1.5) * np.random.default_rng(seed).standard_normal(round(differences))
        account = Account(placebo=1.5, placebo_weight=1.0)
        for last, draw in itertools.pairwise([0.0, *draws]):
            account = account.with_difference(draw, 20, last)
        shown += account.interval().low > 0
    assert 0.7 < shown / studies < 0.95
    assert planned(1.5, 0.4) > 3 * differences
    assert planned(1e-9, 1.0) == FEWEST
