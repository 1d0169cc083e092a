"""The belief where the going is rough: units, walls, lanes, pauses, late values, outliers, jumps and hostile values."""

import math
import os

import numpy as np
import pytest

import trimtab as tt
from trimtab import core
from trimtab.live import Study
from trimtab.recipes.belief import decision
from trimtab.recipes.belief.model import Columns, features

ROUNDS = 10**6 if os.environ.get("TRIMTAB_LONG") else 2000
BOX = tt.Box(0.0, 1.0)


def bowl(x, optimum):
    return 10.0 * np.square(x - optimum).sum(-1)


def start(lanes, dim, at=0.3, *, seed=1, domain=BOX, radius=0.05, **more):
    x = np.full((dim,) if lanes is None else (lanes, dim), at)
    return tt.Tuner(x, tt.belief(radius=radius), domain=domain, seed=seed, **more)


def go_on(tuner, measure, rounds):
    """Centres and queries, `(rounds, …, d)`; measure(t, x) → values."""
    centres, queries = [], []
    for _ in range(rounds):
        trial = tuner.ask()
        tuner.tell(trial, measure(trial.id, trial.x))
        centres.append(tuner.centre)
        queries.append(trial.x)
    return np.array(centres), np.array(queries)


def walking(lanes, dim, rounds, *, noise=0.05, speed=0.003, seed=0):
    """measure(t, x) of a bowl whose optimum walks about .6, in noise; and the optimum, `(rounds, lanes, d)`."""
    rng = np.random.default_rng(seed)
    optimum = 0.6 + np.cumsum(speed * rng.standard_normal((rounds, lanes, dim)), axis=0)
    error = noise * rng.standard_normal((rounds, lanes))
    return lambda t, x: 3.0 + bowl(x, optimum[t]) + error[t], optimum


def predicted(tuner, x):
    """What the bank expects of a query now, `(lanes,)`."""
    filter, centre = tuner.state.memory.value, tuner.state.centre.reshape(-1, tuner.setup.dim)
    z = (tuner.setup.inward(x).reshape(centre.shape) - centre) / tuner.setup.method.radius
    mean, _ = decision.mixed(filter)
    at = features(Columns.of(tuner.setup.dim), z, np.zeros(len(z)))
    return (mean * at).sum(axis=1) * filter.unit + filter.origin


# Units, and what stays true for ever


@pytest.mark.parametrize(("a", "b"), [(1e-100, 0.0), (1e-3, 5.0), (2.0**300, 0.0), (1e100, 1e101)])
@pytest.mark.parametrize("dim", [1, 3])
def test_the_path_is_the_same_for_a_f_plus_b(a, b, dim):
    """Powers of two change no digit; others round differently."""
    measure, _ = walking(4, dim, 300)
    path, _ = go_on(start(4, dim), measure, 300)
    scaled, _ = go_on(start(4, dim), lambda t, x: a * measure(t, x) + b, 300)
    assert np.abs(path[-1] - path[0]).max() > 0.1
    np.testing.assert_allclose(scaled, path, rtol=0, atol=0.0 if a == 2.0**300 else 1e-9)


def test_covariances_stay_symmetric_and_positive_definite():
    """Four lanes: without noise, with little, with much, and with an optimum beyond the wall; now and then a jump."""
    rng, tuner = np.random.default_rng(3), start(4, 2)
    noise = np.array([0.0, 0.02, 1.0, 0.02])
    optimum, worst, largest = np.array([[0.6, 0.5]] * 3 + [[1.4, 0.5]]), [], 0.0
    for t in range(ROUNDS):
        trial = tuner.ask()
        jump = 5.0 * (t // 700 % 2)
        tuner.tell(trial, bowl(trial.x, optimum + 0.1 * math.sin(t / 50)) + noise * rng.standard_normal(4) + jump)
        assert np.isfinite(tuner.centre).all()
        if t % (ROUNDS // 100) == 19:
            cov = tuner.state.memory.value.cov
            np.testing.assert_array_equal(cov, np.swapaxes(cov, -1, -2))
            deviation = np.sqrt(np.einsum("lkii->lki", cov))
            known = np.where(deviation > 0, deviation, 1.0)
            correlation = cov / (known[..., :, None] * known[..., None, :])
            joined = np.einsum("lkii->lki", correlation) > 0  # velocities only in members that have them
            correlation += np.where(joined, 0.0, 1.0)[..., None] * np.eye(cov.shape[-1])
            worst.append(np.linalg.eigvalsh(correlation).min())
            largest = max(largest, cov.max())
    assert min(worst) > 1e-6
    assert largest < 1e6
    assert tuner.centre[3, 0] == 1.0
    assert np.abs(tuner.centre[:2] - optimum[:2]).max() < 0.15


# Lanes


def hard(lanes, dim, rounds, seed=0):
    """Values with jumps, outliers and failures that differ from lane to lane; some pause for long."""
    rng = np.random.default_rng(seed)
    measure, _ = walking(lanes, dim, rounds, seed=seed)
    extra = np.where(rng.random((rounds, lanes)) < 0.02, 1e4, 0.0)
    for lane in range(lanes):
        extra[20 + 7 * lane :, lane] += 8.0  # a jump, each at its time
        extra[rng.random(rounds) < 0.1, lane] = math.nan
        extra[lane % 9, lane] += 1e5 * (lane % 3 == 0)  # an outlier among the first values, of some
        first = 30 + 3 * lane
        extra[first : first + 2 * lane, lane] = math.nan  # a pause, each of its length
    return lambda t, x: measure(t, x) + extra[t]


@pytest.mark.parametrize(
    ("domain", "dim", "lanes", "alone"),
    [(BOX, 10, 12, (0, 3, 10, 11)), (BOX, 2, 150, (0, 3, 70, 140)), (tt.Simplex(), 4, 60, (0, 59))],
    ids=str,
)
def test_lanes_go_as_they_would_alone(domain, dim, lanes, alone):
    """More lanes than are computed together; failures, pauses and jumps at different times."""
    rounds, measure = 110, hard(lanes, dim, 110)
    at = 0.3 if domain is BOX else 1 / dim
    path, queries = go_on(start(lanes, dim, at, domain=domain), measure, rounds)
    for lane in alone:
        one = lambda t, x, lane=lane: float(measure(t, np.tile(x, (lanes, 1)))[lane])  # noqa: E731
        own, asked = go_on(start(None, dim, at, domain=domain, lane=lane), one, rounds)
        np.testing.assert_array_equal(own, path[:, lane])
        np.testing.assert_array_equal(asked, queries[:, lane])


def test_the_values_of_one_lane_do_not_touch_another():
    measure = walking(6, 3, 200)[0]
    wild = [lambda t: 1e300 * (-1) ** t, lambda t: math.nan, lambda t: 1e-200 * t, lambda t: 7.0]

    def beside(t, x):
        values = measure(t, x)
        values[:4] = [value(t) for value in wild]
        return values

    path, _ = go_on(start(6, 3), beside, 200)
    calm, _ = go_on(start(6, 3), measure, 200)
    assert np.isfinite(path).all()
    np.testing.assert_array_equal(path[:, 4:], calm[:, 4:])


# Skips, pauses, late values


def test_a_skip_changes_neither_centre_nor_width_nor_count_and_widens_what_is_unsure():
    measure, _ = walking(1, 3, 200)
    tuner, twin = (start(1, 3) for _ in range(2))
    for each in (tuner, twin):
        go_on(each, measure, 60)
    before = twin.state
    for _ in range(10):
        twin.skip(twin.ask())
    after = twin.state
    assert after.round == 70
    np.testing.assert_array_equal(after.centre, before.centre)
    np.testing.assert_array_equal(after.memory.course.width, before.memory.course.width)
    np.testing.assert_array_equal(after.memory.value.learnt, before.memory.value.learnt)
    for each in (tuner, twin):
        each.tell(each.ask(), 3.0 + bowl(each.ask().x, 0.6))
    sure, unsure = (np.einsum("lkii->lki", each.state.memory.value.cov) for each in (tuner, twin))
    columns = Columns.of(3)
    assert (unsure[..., columns.slope].sum(-1) > 1.1 * sure[..., columns.slope].sum(-1)).all()
    assert (unsure[..., columns.common] > sure[..., columns.common]).all()


def test_a_pause_of_a_million_rounds_does_no_harm():
    """A skip changes the number of the round alone, as seen above."""
    measure, _ = walking(16, 3, 150, speed=0.0)
    late = start(16, 3)
    go_on(late, measure, 100)
    before = np.square(late.centre - 0.6).sum(-1)
    late.state = late.state._replace(round=late.round + 10**6)
    path, _ = go_on(late, lambda t, x: measure(t % 50, x), 100)
    assert np.isfinite(late.state.memory.value.cov).all()
    assert np.square(path - 0.6).sum(-1).mean(axis=1).max() < 10 * before.mean()
    assert np.square(path[50:] - 0.6).sum(-1).mean() < 3 * before.mean()


def played_late(waiting, pick, *, rounds=400, lanes=16, dim=3):
    """Mean excess played after the opening, if values arrive while `waiting` others are awaited; and its order."""
    measure, optimum = walking(lanes, dim, rounds, noise=0.02, speed=0.005)
    tuner, open_ones, excess = start(lanes, dim, max_pending=waiting + 1, domain=tt.Everywhere()), [], []
    for t in range(rounds):
        trial = tuner.ask()
        excess.append(bowl(trial.x, optimum[t]))
        open_ones.append((trial, measure(t, trial.x)))
        if len(open_ones) > waiting:
            tuner.tell(*open_ones.pop(pick()))
    assert np.isfinite(tuner.centre).all()
    return np.mean(excess[100:])


def test_values_that_are_late_by_three_cost_less_than_twice():
    in_time = played_late(0, lambda: 0)
    rng = np.random.default_rng(2)
    assert in_time < 0.04
    assert played_late(3, lambda: 0) < 2 * in_time
    assert played_late(3, lambda: int(rng.integers(4))) < 2 * in_time  # out of order


# Outliers, jumps, hostile values


def test_outliers_now_and_then_cost_less_than_a_twentieth():
    rounds = 500
    measure, optimum = walking(32, 3, rounds)

    def paid(outlier):
        centres, queries = go_on(start(32, 3), lambda t, x: measure(t, x) + outlier * (t % 50 == 49), rounds)
        return np.mean(bowl(centres[100:-1], optimum[101:])), np.mean(bowl(queries[100:], optimum[100:]))

    calm, spiky = paid(0.0), paid(1e5)
    np.testing.assert_allclose(spiky, calm, rtol=0.05)


@pytest.mark.parametrize("outlier", [1e5, -1e3])
@pytest.mark.parametrize("when", range(6))
def test_an_outlier_among_the_first_values_is_forgotten_by_the_fiftieth(when, outlier):
    """The first measurement of a service that has just started, for example."""
    measure, optimum = walking(16, 3, 100)
    path, _ = go_on(start(16, 3), lambda t, x: measure(t, x) + outlier * (t == when), 100)
    left = bowl(path[50:-1], optimum[51:]).mean(axis=0)
    assert np.median(left) < 0.1 * bowl(0.3, optimum[50:]).mean()
    assert left.max() < bowl(0.3, optimum[50:]).mean()


def test_a_thousand_times_the_value_is_followed_within_twenty_rounds():
    """Noise and all, from one round to the next, and with another optimum."""
    measure, _ = walking(16, 3, 300, speed=0.0)
    tuner = start(16, 3)
    go_on(tuner, measure, 150)
    path, _ = go_on(tuner, lambda t, x: 1000 * measure(t, x - 0.1), 100)
    apart = np.linalg.norm(path - 0.7, axis=-1)
    assert np.median(apart[0]) > 0.15
    assert np.median(apart[20:], axis=1).max() < 0.1


def test_equal_values_move_nothing_and_a_slope_after_them_is_found():
    tuner = start(16, 3)
    path, queries = go_on(tuner, lambda t, x: np.full(16, 4.2), 50)
    np.testing.assert_array_equal(path, np.broadcast_to(path[0], path.shape))
    assert np.isfinite(queries).all()
    path, _ = go_on(tuner, lambda t, x: bowl(x, 0.6), 60)
    assert np.abs(path[50:] - 0.6).max() < 0.02


@pytest.mark.parametrize("when", [0, 1, 3, 8, 30])
@pytest.mark.parametrize(("lanes", "size"), [(None, 1.0), (8, 1.0), (8, 1e-100)])
def test_hostile_values_are_survived(when, lanes, size):
    """Infinite ones are refused and change nothing; after huge ones it is back within 150 rounds.

    Among the first five values, by which all later ones are measured, they leave a belief that hardly moves.
    """
    rng, tuner = np.random.default_rng(4), start(lanes, 3)
    calm = lambda _, x: size * (bowl(x, 0.6) + 1e-3 * rng.standard_normal(x.shape[:-1]))  # noqa: E731
    go_on(tuner, calm, when)
    for value in (math.inf, 1e308, -math.inf, -1e308, 0.0):
        trial, before = tuner.ask(), tuner.to_json()
        told = value if lanes is None else np.full(lanes, value)
        if math.isinf(value):
            with pytest.raises(ValueError, match="is infinite"):
                tuner.tell(trial, told)
            assert tuner.to_json() == before
        else:
            tuner.tell(trial, told)
    path, queries = go_on(tuner, calm, 150)
    assert BOX.contains(queries).all()
    assert BOX.contains(path).all()
    assert np.isfinite(tuner.state.memory.value.cov).all()
    if when > 5:
        assert np.abs(path[-1] - 0.6).max() < 0.02


# Saving, forgetting, correcting


@pytest.mark.parametrize("way", ["t.json", "t.npz"])
@pytest.mark.parametrize(("lanes", "pending"), [(None, 1), (5, 1), (None, 3)])
def test_a_tuner_that_is_resumed_goes_on_alike(tmp_path, way, lanes, pending):
    measure = hard(lanes or 1, 2, 80)
    told = lambda t, x: measure(t, x) if lanes else float(measure(t, x[None])[0])  # noqa: E731

    def some(tuner, rounds):
        path, waiting = [], list(tuner.pending)
        for _ in range(rounds):
            waiting.append(tuner.ask())
            if len(waiting) == pending:
                trial = waiting.pop(tuner.round % pending)
                tuner.tell(trial, told(trial.id, trial.x))
            path.append(tuner.centre)
        return np.array(path)

    for stop in (0, 1, 2, 3, 7, 24, 50):
        tuner = start(lanes, 2, max_pending=pending)
        some(tuner, stop)
        tuner.save(tmp_path / way)
        twin = tt.Tuner.load(tmp_path / way)
        np.testing.assert_array_equal(some(twin, 25), some(tuner, 25))
        assert twin.to_json() == tuner.to_json()


def test_after_forget_another_level_makes_no_difference():
    """The next value only anchors; slope and curvature are kept."""
    measure, _ = walking(4, 3, 200)
    paths = []
    for level in (0.0, 1000.0):
        tuner = start(4, 3)
        go_on(tuner, measure, 60)
        centre = tuner.centre
        tuner.forget()
        path, _ = go_on(tuner, lambda t, x, level=level: measure(t, x) + level, 60)
        np.testing.assert_array_equal(path[0], centre)
        paths.append(path)
    np.testing.assert_allclose(*paths, rtol=0, atol=1e-9)


DOMAINS = {
    "box": (BOX, 3),
    "ball": (tt.Ball(0.5, [0.5, 0.5, 0.5]), 3),
    "simplex": (tt.Simplex(), 4),
    "polytope": (tt.Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]), 2),
    "product": (tt.Product((tt.Simplex(), 3), (BOX, 1), (tt.Ball(1.0), 2)), 6),
    "intersection": (tt.Intersection(BOX, tt.Halfspace([1, 1, 1], 0.5)), 3),
}


@pytest.mark.parametrize("kind", DOMAINS)
def test_values_are_learnt_where_they_were_measured(kind):
    """At the edge, where probes are projected; the optimum is beyond it."""
    domain, dim = DOMAINS[kind]
    inside = domain.project(np.full(dim, 0.1))
    tuner, projected = tt.Tuner(inside, tt.belief(radius=0.05), domain=domain, seed=2), 0
    learn, direction = tuner.setup.rule.learn, tuner.setup.frame.direction
    for _ in range(40):
        trial, state = tuner.ask(), tuner.state
        value = float(bowl(trial.x, inside + np.linspace(-0.8, 0.8, dim)))
        assert domain.contains(trial.x, tolerance=0)
        tuner.tell(trial, value)
        assert domain.contains(tuner.centre, tolerance=0)
        centre, memory = learn(state, trial.look, trial.x, (value,))
        np.testing.assert_array_equal(tuner.centre, centre)
        np.testing.assert_array_equal(tuner.state.memory.value.mean, memory.value.mean)
        unbounded = state.centre + 0.05 * trial.look.width * direction(state.key, trial.look.trial)
        if np.abs(unbounded - trial.x).max() > 1e-3 and state.round > 3:
            projected += 1
            assert (learn(state, trial.look, unbounded, (value,))[1].value.mean != memory.value.mean).any()
    assert projected > 10


@pytest.mark.parametrize("domain", [tt.Simplex(), tt.Product((tt.Simplex(), 3), (BOX, 1))], ids=str)
def test_probes_do_not_widen_for_what_is_unknown_across_a_flat_domain(domain):
    """Nothing is ever measured there; within the plane it goes on as it would in a box."""
    optimum, rng = domain.project(np.array([0.1, 0.3, 0.5, 0.6])), np.random.default_rng(0)
    start = np.tile(domain.project(np.full(4, 0.3)), (8, 1))
    tuner = tt.Tuner(start, tt.belief(radius=0.05), domain=domain, seed=1)
    _, queries = go_on(tuner, lambda _, x: bowl(x, optimum) + 0.02 * rng.standard_normal(8), 400)
    assert bowl(queries[200:], optimum).mean() < 0.02
    assert tuner.state.memory.course.width.max() < 1
    assert tuner.state.memory.value.cov.max() < 1e4


@pytest.mark.parametrize("lanes", [None, 3])
def test_another_radius_keeps_what_was_learnt(lanes):
    """In units of another radius, and of other ranges, the same query is expected to measure the same."""
    factors, rng = np.array([0.5, 2.0, 1.25]), np.random.default_rng(0)
    tuner = start(lanes, 3, domain=tt.Everywhere())
    go_on(tuner, lambda t, x: bowl(x, [0.6, 0.4, 0.5]) + 0.05 * rng.standard_normal(x.shape[:-1]), 60)
    other = start(lanes, 3, domain=tt.Everywhere(), radius=0.17)
    other.state = core.carried(other.setup, tuner.state, factors)
    np.testing.assert_allclose(other.centre, tuner.centre * factors)
    for _ in range(20):
        x = tuner.centre + 0.1 * rng.standard_normal(tuner.centre.shape)
        np.testing.assert_allclose(predicted(other, x * factors), predicted(tuner, x), rtol=1e-9)
    cov = other.state.memory.value.cov
    np.testing.assert_array_equal(cov, np.swapaxes(cov, -1, -2))
    assert (np.linalg.eigvalsh(cov)[..., 0] > -1e-9 * np.abs(cov).max()).all()


def test_a_radius_and_ranges_that_change_together_are_remembered():
    """Twice the unit of length and twice the radius leave the model as it is; the way back, too."""
    tuner = start(None, 2, domain=tt.Everywhere())
    go_on(tuner, lambda t, x: float(bowl(x, 0.6)), 40)
    larger = start(None, 2, domain=tt.Everywhere(), radius=0.1)
    larger.state = core.carried(larger.setup, tuner.state, np.full(2, 2.0))
    x = tuner.centre + 0.1
    np.testing.assert_allclose(predicted(larger, 2 * x), predicted(tuner, x), rtol=1e-12)
    smaller = start(None, 2, domain=tt.Everywhere(), radius=0.025)
    smaller.state = core.carried(smaller.setup, larger.state, np.full(2, 1.0))
    np.testing.assert_allclose(predicted(smaller, 2 * x), predicted(tuner, x), rtol=1e-12)


def test_a_study_that_is_corrected_keeps_what_was_learnt():
    """With another radius, of two knobs and of all, and a wider range."""
    knobs = [{"name": name, "low": 0.0, "high": 10.0, "start": 3.0} for name in "abc"]
    with Study.open(":memory:", "a", knobs, tt.belief(radius=0.05), seed=1, baseline=0) as study:
        for _ in range(60):
            trial = study.ask()
            study.tell(trial, sum((trial.knobs[name] - 6.0) ** 2 for name in "abc"))
        sides = np.array([study.knobs.side(knob) for knob in study.knobs.all])
        queries = study.state.centre + 0.05 * np.array([[0, 0, 0], [1, -2, 3], [-1, 0.5, 2]])
        before = [predicted(study, x) for x in queries]
        study.set({"radius": 0.02, "knobs.a.radius": 0.1, "knobs.b.radius": 0.01, "knobs.c.high": 14.0})
        factors = np.array([study.knobs.side(knob) for knob in study.knobs.all]) / sides
        assert len(set(factors)) == 3
        np.testing.assert_allclose([predicted(study, x * factors) for x in queries], before, rtol=1e-9)
