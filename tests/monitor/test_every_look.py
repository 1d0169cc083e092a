"""A/A studies, in which tuning changes nothing: looked at after every round, at most one in twenty ever claims."""

from typing import NamedTuple

import numpy as np
import pytest

import trimtab as tt
from trimtab.monitor.anytime import AnytimeSums
from trimtab.monitor.baseline import Baseline

from .systems import SYSTEMS, drawn

ROUNDS = 2000
FEW, MANY = 30, 1000  # studies in each test, and in `make long`
ALLOWED = {FEW: 5, MANY: 50}  # studies that ever claim; with 2 %, as measured, 6 of 30 have a probability of 3e-5


class Ever(NamedTuple):
    """Whether a study ever claimed a saving or a loss, and whether its evidence of a loss ever sufficed."""

    claimed: bool
    lately: bool
    worse: bool
    width: float


def looked_at(system, seed, plan, rounds=ROUNDS, saving=0.0):
    """Look at a study after every comparison."""
    tuned, reference, missing = drawn(system, seed, rounds)
    baseline, sums, ever = plan(seed), AnytimeSums(), np.zeros(3, dtype=bool)
    for slot in range(rounds):
        changed, base, value = False, baseline.is_due, reference[slot] if baseline.is_due else tuned[slot] - saving
        if not missing[slot]:
            seen = sums.whole.differences
            sums = (sums.reference if base else sums.tuned)(slot, value, baseline.spacing)
            if sums.whole.differences > seen:
                changed = True
                found = [sums.whole.interval(), sums.lately[1]]
                claims = [one is not None and (one.low > 0 or one.high < 0) for one in found]
                ever |= [*claims, sums.loss_evidence >= 100]
        baseline = baseline.after("baseline" if base else "tell", missing[slot], seed)
        baseline = baseline.paced(sums) if changed else baseline
    low, high = sums.whole.interval()[1:]
    return Ever(*ever.tolist(), high - low)


def fixed(seed, every=20):
    return Baseline().planned(every, None, seed)


def adaptive(seed):
    return Baseline().planned(20, None, seed, (0.025, 0.125))


def counted(system, studies, plan=fixed):
    found = [looked_at(system, seed, plan) for seed in range(studies)]
    return [sum(column) for column in list(zip(*found, strict=True))[:3]]


@pytest.mark.parametrize("studies", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("plan", [fixed, adaptive])
@pytest.mark.parametrize("system", SYSTEMS)
def test_few_studies_ever_claim(system, plan, studies):
    claimed, lately, worse = counted(system, studies, plan)
    assert claimed <= ALLOWED[studies]
    assert lately <= ALLOWED[studies]
    assert worse <= max(2, studies // 100)


def tuned_for_real(seed, plan, rounds=800, swing=0.3, noise=0.05, start=0.3, method=None):
    """Tune a drifting bowl; return whether the true mean saving was ever outside, and how often it was inside.

    The truth includes the wide probes of the beginning.
    """
    rng = np.random.default_rng(seed)
    tuner = tt.Tuner(knobs=[{"name": n, "low": 0.0, "high": 1.0, "start": start} for n in "xy"], seed=seed)
    baseline, sums, truth, looks, outside = plan(seed), AnytimeSums(), [], 0, 0
    phase, period = 2 * np.pi * rng.random(), rng.uniform(100, 400)
    for slot in range(rounds):
        best = 0.5 + swing * 0.5 * np.sin(2 * np.pi * slot / period + phase)
        level = 1.0 + 0.2 * np.sin(2 * np.pi * slot / 90)
        there, kick = level + 2 * (start - best) ** 2, noise * rng.standard_normal()
        seen, base = sums.whole.differences, baseline.is_due
        if base:
            sums = sums.reference(slot, there + kick, baseline.spacing)
        else:
            trial = tuner.ask()
            cost = level + sum((x - best) ** 2 for x in trial.knobs.values())
            truth.append(there - cost)
            tuner.tell(trial, cost + kick)
            sums = sums.tuned(slot, cost + kick, baseline.spacing)
        baseline = baseline.after("baseline" if base else "tell", False, seed)
        if sums.whole.differences > seen:
            baseline = baseline.paced(sums)
            found = sums.whole.interval()
            if found is not None:
                looks += 1
                outside += not found.low <= np.mean(truth) <= found.high
    return outside > 0, looks


@pytest.mark.parametrize("start", [0.3, 0.5], ids=["from afar", "from the mean optimum"])
@pytest.mark.parametrize("plan", [fixed, adaptive])
def test_the_real_saving_is_inside_at_every_look(plan, start):
    """With `auto`, whose early probes are wide; about 1 in 50 studies is ever outside."""
    found = [tuned_for_real(seed, plan, rounds=500, start=start) for seed in range(12)]
    assert sum(outside for outside, _ in found) <= 2
    assert min(looks for _, looks in found) > 10


def until_worse(seed, plan, loss, rounds=1000):
    """Return the round at which a loss in noise of 1 is noticed, on a level that swings by 20; rounds if it is not."""
    rng = np.random.default_rng([seed, 3])
    baseline, sums = plan(seed), AnytimeSums()
    for slot in range(rounds):
        base, seen = baseline.is_due, sums.whole.differences
        value = 100 + 20 * np.sin(2 * np.pi * slot / 150) + rng.standard_normal() + (0.0 if base else loss)
        sums = (sums.reference if base else sums.tuned)(slot, value, baseline.spacing)
        baseline = baseline.after("baseline" if base else "tell", False, seed)
        if sums.whole.differences > seen:
            baseline = baseline.paced(sums)
            if sums.is_worse:
                return slot
    return rounds


@pytest.mark.parametrize(("plan", "loss", "most"), [(fixed, 3.0, 250), (adaptive, 1.0, 400), (adaptive, 3.0, 120)])
def test_a_loss_is_noticed(plan, loss, most):
    """The medians are 149, 209 and 72 rounds."""
    assert np.median([until_worse(seed, plan, loss) for seed in range(15)]) < most
