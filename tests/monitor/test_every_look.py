"""A/A studies, in which tuning changes nothing: looked at after every round, at most one in twenty ever claims."""

from typing import NamedTuple

import numpy as np
import pytest

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
        base, value = baseline.is_due, reference[slot] if baseline.is_due else tuned[slot] - saving
        if not missing[slot]:
            seen = sums.whole.differences
            sums = (sums.reference if base else sums.tuned)(slot, value, baseline.every)
            if sums.whole.differences > seen:
                found = [sums.whole.interval(), sums.lately[1]]
                claims = [one is not None and (one.low > 0 or one.high < 0) for one in found]
                ever |= [*claims, sums.loss_evidence >= 100]
        baseline = baseline.after("baseline" if base else "tell", missing[slot], seed)
    low, high = sums.whole.interval()[1:]
    return Ever(*ever.tolist(), high - low)


def fixed(seed, every=20):
    return Baseline().planned(every, None, seed)


def counted(system, studies, plan=fixed):
    found = [looked_at(system, seed, plan) for seed in range(studies)]
    return [sum(column) for column in list(zip(*found, strict=True))[:3]]


@pytest.mark.parametrize("studies", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("system", SYSTEMS)
def test_few_studies_ever_claim(system, studies):
    claimed, lately, _ = counted(system, studies)
    assert claimed <= ALLOWED[studies]
    assert lately <= ALLOWED[studies]
