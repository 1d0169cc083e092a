"""Bootstrap intervals of medians and of paired ratios; and the search for radius and step."""

import math

import numpy as np
import pytest

from trimtab.paper.intervals import covered, paired, spread
from trimtab.paper.radius_search import search
from trimtab.problems import make


def test_the_interval_of_a_median_covers_it_in_about_95_of_100_cases():
    """Binomial(400, .95): fewer than 350 or more than 399 happens in 1e-8 of all cases, were coverage exact; that of a
    percentile bootstrap of a median is a little off."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        found = spread(rng.standard_normal(41))
        hits += found["low"] <= 0.0 <= found["high"]
    assert 350 <= hits <= 399


def test_a_few_trials_are_covered_from_the_smallest_to_the_largest():
    """The median lies between four normal draws in 1 − 2·2⁻⁴ of all cases: Binomial(2000, .875) is within 5.5
    standard deviations of it but in 4e-8 of all cases."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(2000):
        values = rng.standard_normal(4)
        found = spread(values)
        assert (found["low"], found["high"]) == (values.min(), values.max())
        hits += found["low"] <= 0.0 <= found["high"]
    assert abs(hits / 2000 - covered(4)) < 5.5 * math.sqrt(0.875 * 0.125 / 2000)


def test_infinities_rank_last_and_never_spoil_a_number():
    values = np.array([1.0, 2.0, 3.0, 4.0, np.inf])
    found = spread(values)
    assert (found["median"], found["q75"]) == (3.0, 4.0)
    assert found["high"] == "inf"
    assert paired([(np.full(9, np.inf), np.full(9, np.inf))])["ratio"] == 1.0  # neither is better
    assert paired([(np.ones(9), np.full(9, np.inf))])["ratio"] == 0.0


def test_pairs_are_kept_together():
    """b = 2a trial by trial: the ratio is certain, however far the trials scatter."""
    a = np.exp(np.random.default_rng(1).standard_normal(30))
    found = paired([(a, 2 * a)])
    assert found == {"ratio": 0.5, "low": 0.5, "high": 0.5}
    assert paired([(a, 2 * a), (a, a), (a, a / 2)])["ratio"] == 1.0  # the median over groups


def test_several_groups_are_less_certain_than_one():
    rng = np.random.default_rng(2)
    groups = [(np.exp(k + 0.01 * rng.standard_normal(20)), np.ones(20)) for k in (-1.0, 0.0, 1.0)]
    found = paired(groups)
    assert found["low"] == pytest.approx(math.exp(-1), rel=0.05)
    assert found["high"] == pytest.approx(math.exp(1), rel=0.05)


def test_the_search_finds_a_good_radius_and_step():
    """On ‖x − c‖² two exact values do with any small radius; a step of 0.1 to 1 goes there, one of 10 flies away."""
    problem = make("quadratic-v1", dim=2, condition=1.0, drift="none", noise=0.0)
    some = {"rungs": ((40, 2), (40, 3), (40, 4)), "kept": 3, "seed": 0, "noise": "independent"}
    found = search(problem, "two-point", radii=(0.01, 1.0), steps=(1e-3, 0.1, 10.0), shared=0.1, **some)
    step = found.own[1]
    assert step is not None
    assert 0.02 < step < 1.5
    assert found.shared[0] == 0.1
    assert {row["radius"] for row in found.table} == {0.01, 0.1, 1.0}
    assert max(row["diverged"] for row in found.table) > 0


def test_what_has_no_step_is_not_tuned():
    found = search(
        make("quadratic-v1"), "auto", radii=(1.0,), steps=(1.0,), shared=0.1, rungs=(), kept=1, seed=0, noise="common"
    )
    assert found.own == found.shared == (0.1, None)
