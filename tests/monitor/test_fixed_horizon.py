"""The saving for one look: computed by hand, and the coverage of its interval on synthetic values."""

import functools
import itertools
import json
import math

import numpy as np
import pytest

from trimtab.monitor.baseline import Baseline
from trimtab.monitor.fixed_horizon import FEWEST, MOST, FixedHorizonSums, quantile


def fed(values, is_baseline, probing=None):
    ledger = FixedHorizonSums()
    for slot, (value, base) in enumerate(zip(values, is_baseline, strict=True)):
        ledger = ledger.reference(slot, value) if base else ledger.tuned(slot, value, probing)
    return ledger


def saving(ledger, maximise=False):
    return ledger.estimate(maximise=maximise)


def places(rounds, every=20, seed=0):
    """Return the slots of a study's baseline rounds."""
    baseline, found = Baseline().planned(every, None, seed), np.zeros(rounds, dtype=bool)
    for slot in range(rounds):
        found[slot] = baseline.is_due
        baseline = baseline.after("baseline" if found[slot] else "tell", False, seed)
    return found


@functools.cache
def all_places(runs, rounds):
    return np.stack([places(rounds, seed=run) for run in range(runs)])


def test_a_saving_computed_by_hand():
    kinds = [False, True, False, False, False, True]
    ledger = fed([7.0, 10.0, 9.0, 8.0, 9.0, 16.0], kinds)
    # before the first baseline round its value is used; in slots 2, 3, 4 the baseline is 11.5, 13, 14.5
    assert ledger.batches == ((1.0, 7.0, 10.0), (3.0, 26.0, 39.0))
    for _ in range(2):
        last = ledger.reference_slot
        ledger = ledger.tuned(last + 1, 9.0, 0.5).reference(last + 2, 16.0)
    assert saving(ledger) is None


def test_common_drift_is_not_a_saving():
    base, level = places(400), 100.0 + 0.7 * np.arange(400)
    found = saving(fed(np.where(base, level, level - 3.0), base))
    assert found.saved == pytest.approx(3.0, abs=0.05)  # except for the stretch before the first baseline round
    assert found.low < 3.0 < found.high
    assert found.baseline - found.paid == pytest.approx(found.saved)
    assert found.rounds + base.sum() == np.flatnonzero(base)[-1] + 1


def test_memory_is_constant_and_exact():
    ledger, baseline = FixedHorizonSums(), Baseline().planned(4, None, 3)
    rng, sizes = np.random.default_rng(2), []
    for slot, value in enumerate(rng.normal(10, 1, 5000).tolist()):
        kind = "baseline" if baseline.is_due else "tell"
        ledger = ledger.reference(slot, value) if kind == "baseline" else ledger.tuned(slot, value, None)
        baseline = baseline.after(kind, False, 3)
        sizes.append(len(ledger.batches))
    assert max(sizes) < MOST
    assert min(sizes[200:]) >= MOST // 2
    assert sum(n for n, _, _ in ledger.batches) + ledger.rest[0] + ledger.told == 5000 - ledger.baseline_rounds
    text = json.dumps(ledger.to_dict())
    assert len(text) < 2500
    assert FixedHorizonSums.from_dict(json.loads(text)) == ledger
    assert Baseline(**json.loads(json.dumps(baseline.to_dict()))) == baseline


def test_huge_values_stay_finite():
    where = places(2000)
    found = saving(fed(np.where(np.arange(2000) % 2, 1e308, -1e308), where))
    assert all(math.isfinite(number) for number in (found.saved, found.low, found.high))


def test_the_quantile():
    for freedom, exact in [(3.5, 2.94009), (5, 2.57058), (10, 2.22814), (15.5, 2.12548)]:
        assert quantile(freedom) == pytest.approx(exact, rel=1e-3)


LAWS = [
    "independent",
    "walk",
    "sine",
    "in step",
    "AR(1)",
    "long AR(1)",
    "heavy tails",
    "loud at times",
    "learning",
    "all",
    "spikes",
    "Lomax",
    "lognormal",
]


def made_up(law, runs, rounds, rng, where):
    """Return values `(runs, rounds)` at the baseline, and what tuning saves in each round."""
    t, noise = np.arange(rounds), rng.normal(size=(runs, rounds))
    if law in ("heavy tails", "all"):
        noise = rng.standard_t(2.2, (runs, rounds))
    if law in ("loud at times", "all"):
        noise = noise * np.where(np.sin(t / 60) > 0.5, 4.0, 1.0) * np.where(where, 2.0, 1.0)
    if law in ("AR(1)", "long AR(1)", "all"):
        rho = 0.9 if law == "AR(1)" else 0.98
        kicks = 2.0 * math.sqrt(1 - rho**2) * rng.normal(size=(rounds, runs))
        for k in range(1, rounds):
            kicks[k] += rho * kicks[k - 1]
        noise = noise + kicks.T
    if law in ("walk", "all"):
        noise = noise + np.cumsum(rng.normal(0, 0.3, (runs, rounds)), axis=1)
    if law in ("sine", "in step"):
        period = 137 if law == "sine" else 20  # the length of a block
        noise = noise + 4 * np.sin(2 * np.pi * (t / period + rng.random((runs, 1))))
    if law == "spikes":
        noise = 0.3 * noise + 100.0 * (rng.random((runs, rounds)) < 0.01)
    if law == "Lomax":
        noise = rng.pareto(1.5, (runs, rounds))
    if law == "lognormal":
        noise = 3 * np.exp(1.5 * noise)
    saved = 3 * (1 - np.exp(-t / 60)) if law in ("learning", "all") else np.ones(rounds)
    return 50 + noise, saved


@pytest.mark.parametrize(
    ("law", "rounds"),
    [*itertools.product(LAWS, (180, 600)), ("spikes", 2000), ("Lomax", 2000), ("lognormal", 2000)],
)
def test_the_interval_covers_at_least_nine_times_in_ten(law, rounds):
    """The nominal coverage is 95 %; the seeds are fixed."""
    runs, held = 200, 0
    rng = np.random.default_rng(LAWS.index(law) * 1000 + rounds)
    where = all_places(runs, rounds)
    values, saved = made_up(law, runs, rounds, rng, where)
    for run in range(runs):
        base = where[run]
        found = saving(fed((values[run] - np.where(base, 0.0, saved)).tolist(), base.tolist()))
        last = np.flatnonzero(base)[-1]
        if found is None:
            assert base.sum() <= FEWEST
            held += 1  # no statement, no error
            continue
        held += bool(found.low <= saved[:last][~base[:last]].mean() <= found.high)
    assert held / runs >= 0.9


def test_the_interval_cannot_cover_spikes_before_one_was_measured():
    """Spikes in 2 % of rounds, at the reference only: the interval can cover them once one was measured."""
    runs, rounds = 200, 600
    rng, where = np.random.default_rng(5), all_places(200, 600)
    held: dict[bool, list[bool]] = {True: [], False: []}
    for run in range(runs):
        base = where[run]
        spikes = np.where(base, 100.0 * (rng.random(rounds) < 0.02), 0.0)
        found = saving(
            fed((10 + rng.normal(0, 0.3, rounds) + spikes - np.where(base, 0.0, 3.0)).tolist(), base.tolist())
        )
        held[bool(spikes.any())].append(found.low <= 5.0 <= found.high)
    assert np.mean(held[True]) >= 0.9
    assert np.mean(held[False]) < 0.1


def test_the_interval_is_wide_enough_for_rare_rounds():
    """Rare large values among the tuned rounds widen the interval before a baseline round has one."""
    where, rng = places(600), np.random.default_rng(3)
    values = np.where(where, 100.0, 90.0) + rng.normal(0, 1, 600)
    before = saving(fed(values, where))
    values[np.flatnonzero(~where)[::100]] += 500.0
    after = saving(fed(values, where))
    rare = np.var(np.diff(values[~where])) / 2
    assert before.high - before.low < 2
    assert (after.high - after.low) / 2 > 1.9 * math.sqrt(0.9 * rare / where.sum())
