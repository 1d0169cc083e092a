"""The belief's model, bank and decision, against what follows from their equations."""

import numpy as np
import pytest

from trimtab.directions import Stream
from trimtab.domains import Ball, Box
from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief import decision
from trimtab.recipes.belief.bank import Bank
from trimtab.recipes.belief.frames import Rotated
from trimtab.recipes.belief.model import LEVEL, Columns, Constants, features, passed, seen_from

C = Constants()
RNG = np.random.default_rng(0)


def believed(dim, lanes=2, members=3):
    """Any mean and any covariance."""
    size = Columns.of(dim).size
    root = RNG.normal(size=(lanes, members, size, size))
    return RNG.normal(size=(lanes, members, size)), root @ np.swapaxes(root, -1, -2)


def variance_of(cov, x):
    return np.einsum("li,lkij,lj->lk", x, cov, x)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_move_of_the_centre_changes_no_prediction(dim):
    """(B8): b + gᵀz + ½zᵀHz is the same function, in mean and in variance, about any centre."""
    columns, (mean, cov) = Columns.of(dim), believed(dim)
    move, z, now = RNG.normal(size=(2, dim)), RNG.normal(size=(2, dim)), np.zeros(2)
    there, after = features(columns, z, now), features(columns, z - move, now)
    new_mean, new_cov = seen_from(columns, mean, cov.copy(), move)
    np.testing.assert_allclose((new_mean @ after[..., None])[..., 0], (mean @ there[..., None])[..., 0], rtol=1e-10)
    np.testing.assert_allclose(variance_of(new_cov, after), variance_of(cov, there), rtol=1e-10)
    np.testing.assert_array_equal(new_cov, np.swapaxes(new_cov, -1, -2))


def test_features_of_a_present_value_and_of_an_old_one():
    """(B2) by hand: u = (1, 2, −1), ½|z|² = 2.5, ½z² = (2, .5); an old value has −age·u for what has changed since."""
    x = features(Columns.of(2), np.array([[2.0, -1.0]]), np.array([0.0]))
    np.testing.assert_array_equal(x, [[1, 2, -1, 0, 0, 0, 2.5, 2, 0.5]])
    old = features(Columns.of(2), np.array([[2.0, -1.0]]), np.array([3.0]))
    np.testing.assert_array_equal(old, [[1, 2, -1, -3, -6, 3, 2.5, 2, 0.5]])


def test_time_adds_trend_and_velocity_and_doubt_up_to_a_cap():
    """(B1) by hand, in one dimension: b = 1 + 2·T, g = 3 + 2·r; variances 4·P·λ^-1, at most the cap."""
    columns = Columns.of(1)
    mean = np.array([[[1.0, 3.0, 0.5, 0.25, 7.0, 8.0]]])
    cov = np.zeros((1, 1, 6, 6)) + np.eye(6)
    growth, cap = np.full((1, 6), 2.0), np.full((1, 1, 6), 1e10)
    cap[..., columns.own] = 0.25
    after, wide = passed(columns, mean, cov, np.array([2.0]), growth, cap)
    own = 8.0 * np.sqrt(0.5 / 2.0)  # its standard deviation shrinks to .5 instead of growing to 2
    np.testing.assert_allclose(after[0, 0], [2.0, 3.5, 0.5, 0.25, 7.0, own])
    np.testing.assert_allclose(np.diagonal(wide[0, 0]), [4 * 5, 4 * 5, 4, 4, 4, 0.25])
    assert wide[0, 0, LEVEL, columns.trend] == 4 * 2


def quadratic(dim, rounds, *, noise=0.05, lanes=1, missing=()):
    """Teach a bank a quadratic that stands still, measured about one centre; the filter and θ."""
    bank = Bank.of(dim, C)
    filter = banks.start(bank, lanes)
    rng = np.random.default_rng(5)
    theta = np.zeros(bank.columns.size)
    theta[LEVEL], theta[bank.columns.common] = 3.0, 2.0
    theta[bank.columns.slope] = rng.normal(size=dim)
    none, ones = np.zeros(lanes), np.ones(lanes)
    for t in range(rounds):
        filter = banks.let_pass(bank, filter, ones, ones, ones)
        x = features(bank.columns, rng.choice([-1.0, 1.0], (lanes, dim)) * (0.5 + t % 2), none)
        filter, _ = banks.learn(
            bank, filter, x, x @ theta + noise * rng.normal(size=lanes), none, ones, np.ones((lanes, dim))
        )
    return bank, filter, theta


def test_a_bank_learns_slope_and_curvature():
    bank, filter, theta = quadratic(2, 400)
    mean, variance = decision.mixed(filter)
    told = filter.unit[0]
    columns = bank.columns
    np.testing.assert_allclose(mean[0, columns.slope] * told, theta[columns.slope], atol=0.1)
    np.testing.assert_allclose(mean[0, columns.common] * told, 2.0, atol=0.3)
    assert (variance[0, columns.slope] * told**2 < 0.05).all()


def test_the_noise_is_learnt_in_its_own_units():
    for noise in (0.01, 0.3):
        _, filter, _ = quadratic(2, 600, noise=noise)
        found = np.sqrt((filter.weights() * filter.noise()).sum()) * filter.unit[0]
        assert noise / 1.5 < found < noise * 1.5


def test_a_lone_outlier_is_held_back_and_the_next_of_its_sign_is_a_jump():
    bank, filter, theta = quadratic(2, 100)
    x, none, ones = features(bank.columns, np.ones((1, 2)), np.zeros(1)), np.zeros(1), np.ones(1)
    expected = x @ theta
    once, news = banks.learn(bank, filter, x, expected + 1e4, none, ones, np.ones((1, 2)))
    assert news.odd[0]
    assert news.rise[0]
    np.testing.assert_array_equal(once.mean, filter.mean)
    back, news = banks.learn(bank, once, x, expected, none, ones, np.ones((1, 2)))
    assert not news.odd[0]
    assert back.held[0] == 0
    again, news = banks.learn(bank, once, x, expected + 1e4, none, ones, np.ones((1, 2)))
    assert not news.odd[0]
    predicted = (again.weights() * (again.mean @ x[0])).sum() * again.unit + again.origin
    assert abs(predicted[0] - expected[0] - 1e4) < 2e3


def test_after_forget_the_next_value_is_what_was_predicted():
    bank, filter, _ = quadratic(2, 100)
    forgotten = filter._replace(origin=filter.origin * np.nan)
    x, none, ones = features(bank.columns, np.ones((1, 2)), np.zeros(1)), np.zeros(1), np.ones(1)
    after, news = banks.learn(bank, forgotten, x, np.array([1e6]), none, ones, np.ones((1, 2)))
    assert not news.compared[0]
    np.testing.assert_array_equal(after.mean, filter.mean)
    predicted = (after.weights() * (after.mean @ x[0])).sum() * after.unit + after.origin
    np.testing.assert_allclose(predicted, 1e6)


def decided(centre, place, slope):
    """Where a belief with this slope goes, and the width it chooses."""
    bank, filter, _ = quadratic(len(centre), 100)
    mean = filter.mean.copy()
    mean[..., bank.columns.slope] = slope
    news = banks.News(*(np.array([flag]) for flag in (True, False, False, False)))
    course = decision.start(1, len(centre))._replace(width=np.array([1.0]))
    given = bank, filter._replace(mean=mean), course, np.array([centre]), place, news
    plan = decision.plan(*given)
    return *decision.carry_out(*given, plan), plan.centre


def test_the_centre_goes_down_the_slope_and_stays_in_the_domain():
    free = decision.Place(0.1, np.asarray, True, 1e9)
    _, _, after = decided([0.0, 0.0], free, [1.0, 0.0])
    assert after[0, 0] < -0.01
    for domain in (Box(0.0, 1.0), Ball(0.5, [0.5, 0.5])):
        place = decision.Place(0.1, domain.project, False, 1e9)
        filter, _, after = decided(domain.project(np.array([0.0, 0.5])).tolist(), place, [5.0, 0.0])
        assert domain.contains(after[0])
        assert np.isfinite(filter.mean).all()


def test_no_move_is_longer_than_was_allowed():
    far = decision.Place(0.1, np.asarray, True, 1e9)
    near = far._replace(longest=0.25)
    _, course, after = decided([0.0, 0.0], near, [1.0, 0.5])
    np.testing.assert_allclose(np.linalg.norm(after), 0.025)
    np.testing.assert_allclose(np.linalg.norm(course.move), 0.25)
    assert np.linalg.norm(decided([0.0, 0.0], far, [1.0, 0.5])[2]) > 0.025


def test_at_a_wall_the_slope_into_it_does_not_widen_probes():
    """(B9) counts what is left to move to: the same slope asks for wide probes where there is room, not at the wall."""
    place = decision.Place(0.1, Box(0.0, 1.0).project, False, 1e9)
    _, at_wall, _ = decided([0.0, 0.5], place, [50.0, 0.0])
    _, inside, _ = decided([0.5, 0.5], place, [50.0, 0.0])
    assert at_wall.width[0] < inside.width[0]


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_frames_are_orthogonal_and_open_with_a_mirror_image(dim):
    stream = Stream(Rotated(), (dim,), seed=3)
    np.testing.assert_array_equal(stream(0), stream(1))
    np.testing.assert_array_equal(stream(2), -stream(1))
    for first in (0, dim, 5 * dim):
        block = np.array([stream(first + k + 2 if first + k else 1) for k in range(dim)])
        np.testing.assert_allclose(block @ block.T, dim * np.eye(dim), atol=1e-12)


def test_frames_depend_on_seed_lane_and_trial_alone():
    together, alone = Stream(Rotated(), (6, 3), seed=5), Stream(Rotated(), (3,), seed=5, lane=4)
    for trial in (0, 3, 5000, 1, 10**12, 2):
        np.testing.assert_array_equal(together(trial)[4], alone(trial))
    other = Stream(Rotated(), (3,), seed=6, lane=4)
    assert not np.array_equal(other(7), alone(7))


def test_frames_are_uniform_among_rotations():
    """E[uuᵀ] = I and E[u] = 0, within six standard errors over 4,000 independent frames."""
    stream = Stream(Rotated(), (4000, 3), seed=1)
    u = stream(3)
    assert np.abs(u.mean(axis=0)).max() < 6 / np.sqrt(4000)
    assert np.abs(u.T @ u / 4000 - np.eye(3)).max() < 6 * 1.5 / np.sqrt(4000)


def test_constants_are_sixteen():
    assert len(vars(C)) == 16
