"""The exact interval for a share, against its definition and the quantiles of SciPy."""

import math

import pytest

from trimtab.util.binomial import share_between


def at_most(count, of, share):
    """The probability of at most `count` of `of`."""
    return sum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count + 1))


@pytest.mark.parametrize(("count", "of"), [(1, 2), (1, 30), (7, 30), (29, 30), (3, 420), (210, 420)])
def test_each_end_leaves_a_fortieth(count, of):
    low, high = share_between(count, of)
    assert low < count / of < high
    assert at_most(count, of, high) == pytest.approx(0.025, rel=1e-9)
    assert 1 - at_most(count - 1, of, low) == pytest.approx(0.025, rel=1e-6)


def test_nothing_and_everything():
    assert share_between(0, 0) == (0.0, 1.0)
    low, high = share_between(0, 100)
    assert (low, high) == (0.0, pytest.approx(1 - 0.025**0.01))
    assert share_between(100, 100) == (pytest.approx(1 - high), 1.0)


@pytest.mark.parametrize(("count", "of"), [(10, 10**6), (5 * 10**5, 10**6), (999_990, 10**6)])
def test_long_studies(count, of):
    beta = pytest.importorskip("scipy.stats").beta
    want = beta.ppf(0.025, count, of - count + 1), beta.ppf(0.975, count + 1, of - count)
    assert share_between(count, of) == pytest.approx(want, rel=1e-6)
