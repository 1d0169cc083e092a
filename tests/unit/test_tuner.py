import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import trimtab as tt

RESIDUAL = tt.residual(radius=0.1, step=0.01)


def bowl(x):
    return float(((x - 0.5) ** 2).sum())


def drive(tuner, rounds, objective=bowl):
    for _ in range(rounds):
        trial = tuner.ask()
        tuner.tell(trial, objective(trial.x))
    return tuner


def test_the_five_line_use_finds_a_drifting_optimum():
    tuner = tt.Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], seed=0)
    for t in range(3000):
        trial = tuner.ask()
        optimum = 0.5 + 0.2 * math.sin(t / 400), 50 + 20 * math.cos(t / 400)
        tuner.tell(trial, ((trial.x[0] - optimum[0]) / 1) ** 2 + ((trial.x[1] - optimum[1]) / 99) ** 2)
    assert tuner.centre == pytest.approx(optimum, abs=15)
    assert abs(tuner.centre[0] - optimum[0]) < 0.1


def test_ranges_of_different_size_need_nothing_else():
    tuner = tt.Tuner([0.9, 9000.0], bounds=[(0, 1), (1, 1e4)], seed=1)
    drive(tuner, 2000, lambda x: (x[0] - 0.4) ** 2 + (x[1] / 1e4 - 0.4) ** 2)
    assert tuner.centre == pytest.approx([0.4, 4000], rel=0.2)


def test_the_radius_is_a_share_of_the_range():
    tuner = tt.Tuner([0.5, 50.0], tt.residual(radius=0.1, step=0.01), bounds=[(0, 1), (0, 100)], seed=0)
    np.testing.assert_allclose(np.abs(tuner.ask().x - tuner.centre), [0.1, 10.0])


def test_maximise_is_minimising_the_negative():
    up = drive(tt.Tuner(np.zeros(3), RESIDUAL, seed=0, maximise=True), 50, lambda x: -bowl(x))
    down = drive(tt.Tuner(np.zeros(3), RESIDUAL, seed=0), 50)
    np.testing.assert_array_equal(up.centre, down.centre)


def test_the_class_delegates_to_the_pure_core():
    tuner = tt.Tuner(np.zeros(3), RESIDUAL, seed=4)
    setup = tt.Setup(RESIDUAL, (3,))
    state = tt.init(setup, np.zeros(3), seed=4)
    for _ in range(20):
        trial, query = tuner.ask(), tt.ask(setup, state)
        np.testing.assert_array_equal(trial.x, query.x)
        before = state
        state = tt.tell(setup, state, bowl(query.x))
        assert before.round == state.round - 1
        tuner.tell(trial, bowl(trial.x))
    np.testing.assert_array_equal(tuner.centre, state.centre)


def test_the_state_cannot_be_changed_from_outside():
    tuner = drive(tt.Tuner(np.zeros(3), RESIDUAL, seed=4), 3)
    with pytest.raises(ValueError, match="read-only"):
        tuner.centre[0] = 9.0
    with pytest.raises(AttributeError):
        tuner.state.round = 9
    query = tuner.ask().x
    query[:] = 99.0  # what was handed out is the user's
    assert not np.array_equal(tuner.ask().x, query)


def test_x0_is_where_the_centre_starts():
    np.testing.assert_array_equal(tt.Tuner([3.0, -4.0], RESIDUAL).centre, [3.0, -4.0])
    tuner = tt.Tuner([0.3, 42.0], tt.residual(radius=0.05, step=0.01), bounds=[(0, 1), (1, 100)])
    np.testing.assert_allclose(tuner.centre, [0.3, 42.0], rtol=1e-12)


def test_x0_at_the_edge_moves_in_by_a_probe_only():
    tuner = tt.Tuner([0.0, 100.0], tt.residual(radius=0.05, step=0.01), bounds=[(0, 1), (0, 100)])
    np.testing.assert_allclose(tuner.centre, [0.05, 95.0])


def test_both_margins():
    eroded = tt.Tuner([0.0, 0.0], tt.residual(radius=0.2, step=0.1, directions=tt.Sphere()), domain=tt.Box(-1, 2))
    scaled = tt.Tuner(
        [0.0, 0.0], tt.residual(radius=0.3, step=0.1, directions=tt.Sphere(), margin="scale"), domain=tt.Box(-1, 2)
    )
    assert eroded.setup.home.low == pytest.approx(-0.8)
    assert eroded.setup.home.high == pytest.approx(1.8)
    np.testing.assert_allclose(scaled.setup.home.low, 0.5 - 1.5 * (1 - 0.3 / 1.5))  # (1−ξ)X, ξ = δ/r = 0.3/1.5


def test_default_directions():
    assert tt.Tuner([0.0], RESIDUAL).setup.directions == tt.Gaussian()
    assert tt.Tuner([0.0], RESIDUAL, domain=tt.Ball(1.0)).setup.directions == tt.Rademacher()
    assert tt.Tuner([0.5], RESIDUAL, bounds=[(0, 1)]).setup.directions == tt.Rademacher()


def test_gaussian_directions_on_a_bounded_domain_keep_the_centre_in_it():
    tuner = tt.Tuner(
        [0.0, 0.0], tt.residual(radius=0.3, step=5.0, directions=tt.Gaussian()), domain=tt.Ball(1.0), seed=0
    )
    outside = 0
    for t in range(200):
        trial = tuner.ask()
        outside += not tt.Ball(1.0).contains(trial.x)
        tuner.tell(trial, float((-1) ** t))
        assert tt.Ball(1.0).contains(tuner.centre)
    assert outside  # the paper's first variant: queries may leave the set


def test_on_the_simplex_every_query_adds_up():
    tuner = tt.Tuner(np.full(4, 0.25), tt.residual(radius=0.02, step=0.005), domain=tt.Simplex(), seed=0)
    for t in range(300):
        trial = tuner.ask()
        assert trial.x.sum() == pytest.approx(1.0, abs=1e-12)
        assert trial.x.min() >= 0
        tuner.tell(trial, float(trial.x @ [1.0, 2.0, 3.0, 4.0]) + 0.01 * t)
    assert tuner.centre.argmax() == 0
    assert tuner.centre[0] > 0.6


def test_a_seed_is_drawn_and_kept():
    one, two = tt.Tuner([0.0], RESIDUAL), tt.Tuner([0.0], RESIDUAL)
    assert one.state.key != two.state.key
    np.testing.assert_array_equal(one.ask().x, tt.Tuner.from_json(one.to_json()).ask().x)


def test_tell_takes_a_trial_or_its_id_and_any_real_number():
    a, b = (tt.Tuner(np.zeros(2), RESIDUAL, seed=0) for _ in range(2))
    for value in (1, np.float32(2.5), np.int64(-3), np.array(4.0)):
        a.tell(a.ask(), value)
        b.tell(np.int64(b.ask().id), float(value))
    np.testing.assert_array_equal(a.centre, b.centre)


# Late and out of order ------------------------------------------------------------------------------------------


def test_late_tells_use_their_own_direction_and_the_last_told_value():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=3)
    first, second, third = tuner.ask(), tuner.ask(), tuner.ask()
    assert [first.id, second.id, third.id] == [0, 1, 2]
    tuner.tell(third, 1.0)  # anchors
    tuner.tell(first, 4.0)
    np.testing.assert_allclose(tuner.centre, -0.01 / 0.1 * (4.0 - 1.0) * first.x / 0.1)
    before = tuner.centre
    tuner.tell(second.id, 2.0)
    np.testing.assert_allclose(tuner.centre, before - 0.01 / 0.1 * (2.0 - 4.0) * second.x / 0.1)
    assert tuner.pending == ()


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_late_tells_tracks_the_optimum(seed):
    rng = np.random.default_rng(seed)
    tuner = tt.Tuner(np.zeros(3), tt.residual(radius=0.1, step=0.02), seed=seed, max_pending=5)
    waiting = []
    for _ in range(1500):
        waiting.append(tuner.ask())
        while len(waiting) == 5 or (waiting and rng.random() < 0.5):
            trial = waiting.pop(rng.integers(len(waiting)))
            tuner.tell(trial, bowl(trial.x))
    assert tuner.centre == pytest.approx([0.5] * 3, abs=0.15)


def test_too_many_open_trials():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=2)
    tuner.ask(), tuner.ask()
    before = tuner.to_json()
    with pytest.raises(RuntimeError, match="max_pending=2: tell or skip one of 0, 1 first"):
        tuner.ask()
    assert tuner.to_json() == before
    assert [t.id for t in tuner.pending] == [0, 1]
    tuner.skip(0)
    assert tuner.ask().id == 2


def test_ids_that_are_not_open():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=2)
    tuner.tell(tuner.ask(), 1.0)
    before = tuner.to_json()
    with pytest.raises(ValueError, match="trial 0 is not open: it was told or skipped before"):
        tuner.tell(0, 2.0)
    with pytest.raises(ValueError, match="trial 7 is not open: it was never handed out; the next one is 1"):
        tuner.tell(7, 2.0)
    with pytest.raises(TypeError, match="neither a Trial nor its id"):
        tuner.tell("first", 2.0)
    assert tuner.to_json() == before


def test_open_trials_survive_a_restart():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=3)
    trials = [tuner.ask() for _ in range(3)]
    tuner.tell(trials[1], 5.0)
    twin = tt.Tuner.from_json(tuner.to_json())
    assert [t.id for t in twin.pending] == [0, 2]
    for t in (tuner, twin):
        t.tell(2, 1.0)
        t.tell(0, 4.0)
    np.testing.assert_array_equal(tuner.centre, twin.centre)


# Failures ---------------------------------------------------------------------------------------------------------


def test_a_skipped_round_changes_nothing_but_the_round():
    tuner = drive(tt.Tuner(np.zeros(2), RESIDUAL, seed=0), 5)
    before = tuner.state
    tuner.skip(tuner.ask())
    assert tuner.state == before._replace(round=6, skipped=1)
    assert tuner.skipped == 1


def test_after_a_skip_the_anchor_is_the_last_real_value():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0)
    tuner.tell(0, 3.0)
    tuner.tell(1, math.nan)
    u = tuner.ask().x / 0.1
    tuner.tell(2, 5.0)
    np.testing.assert_allclose(tuner.centre, -0.01 / 0.1 * (5.0 - 3.0) * u)


def test_lanes_fail_one_by_one():
    tuner = tt.Tuner(np.zeros((3, 2)), RESIDUAL, seed=0)
    tuner.tell(0, [1.0, 2.0, 3.0])
    tuner.tell(1, [2.0, math.nan, 4.0])
    assert np.all(tuner.centre[[0, 2]] != 0)
    np.testing.assert_array_equal(tuner.centre[1], [0.0, 0.0])
    np.testing.assert_array_equal(tuner.skipped, [0, 1, 0])
    u = (tuner.ask().x[1] - tuner.centre[1]) / 0.1
    tuner.tell(2, [0.0, 7.0, 0.0])
    np.testing.assert_allclose(tuner.centre[1], -0.01 / 0.1 * (7.0 - 2.0) * u)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (math.inf, ValueError, "value=inf is infinite: skip the trial"),
        (-math.inf, ValueError, "infinite"),
        ("seven", TypeError, "value='seven' is not a number"),
        (1j, TypeError, "not a number"),
        ([1.0, 2.0], ValueError, r"value has shape \(2,\), but \(\) is needed"),
        (object(), TypeError, "not a number"),
        (np.array("3", dtype=object), TypeError, "not a number"),
    ],
)
def test_bad_values_leave_the_state(value, error, words):
    tuner = drive(tt.Tuner(np.zeros(2), RESIDUAL, seed=0), 3)
    before = tuner.state
    with pytest.raises(error, match=words):
        tuner.tell(tuner.ask(), value)
    assert tuner.state is before


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"x0": [0.0, math.nan]}, ValueError, r"x0\[1\]=nan is not a number: every coordinate must be finite"),
        ({"x0": 0.5}, ValueError, r"x0 has shape \(\): give \(d,\)"),
        ({"x0": []}, ValueError, r"x0 has shape \(0,\)"),
        ({"x0": "start"}, TypeError, "x0='start' is not a list of real numbers"),
        ({"x0": [3.0], "domain": tt.Ball(1.0)}, ValueError, "outside Ball.*: start inside, or widen the limits"),
        ({"x0": [3.0], "bounds": [(0, 1)]}, ValueError, r"x0=3.0 is outside bounds\[0\]=\(0.0, 1.0\)"),
        ({"x0": [0.5], "bounds": [(0, 1, 2)]}, ValueError, "one .low, high. for each of 1 coordinates"),
        ({"x0": [0.5], "bounds": [(1, 0)]}, ValueError, "every low must be a finite number below its high"),
        ({"x0": [0.5], "bounds": [(0, math.inf)]}, ValueError, "use domain=Box"),
        ({"x0": [0.5], "bounds": [(0, 1)], "domain": tt.Ball(1.0)}, ValueError, "either bounds or a domain"),
        ({"x0": [0.0, 0.0], "domain": tt.Box([0, 0, 0], 1)}, ValueError, "dimension 3, but x0 has 2"),
        (
            {"x0": [0.0], "domain": tt.Ball(0.05)},
            ValueError,
            "radius=0.1 is too large: .*multiply the radius by less than 0.5",
        ),
        ({"x0": [0.0], "seed": -1}, ValueError, "seed=-1 must be a whole number"),
        ({"x0": [0.0], "seed": 1.5}, ValueError, "seed=1.5"),
        ({"x0": [0.0], "max_pending": 0}, ValueError, "max_pending=0"),
        ({"x0": [0.0], "method": "residual"}, TypeError, "is not a Method: use for example tt.auto"),
        ({"x0": [10**400]}, TypeError, "is not a list of real numbers"),
        ({"x0": np.array(["3", "4"], dtype=object)}, TypeError, "is not a list of real numbers"),
        ({"x0": [0.0, math.nan], "method": None}, ValueError, r"x0\[1\]=nan is not a number"),
        ({"x0": [0.0], "domain": tt.Ball, "method": None}, TypeError, "is not a domain: give for example tt.Ball"),
        ({"x0": [0.0], "domain": [(0, 1)], "method": None}, TypeError, "is not a domain"),
        ({"x0": [0.0, 0.0], "domain": tt.Box([0, 0, 0], 1), "method": None}, ValueError, "dimension 3, but x0 has 2"),
        (
            {"x0": [50.0], "bounds": [(0, 100)], "method": tt.auto(radius=5)},
            ValueError,
            r"radius=5 is a share of each range where there are bounds or knobs, 0 to 0.5: .*tt.auto\(radius=0.05\)",
        ),
    ],
)
def test_bad_setups_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        tt.Tuner(**{"method": RESIDUAL, **arguments})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radius": -0.1}, "radius=-0.1 must be a finite number >= 1e-30 and <= 1e\\+70: rescale the coordinates"),
        ({"radius": 1e200}, "radius=1e\\+200 must be a finite number .*: rescale the coordinates"),
        ({"radius": math.nan}, "radius=nan"),
        ({"max_move": 0.0}, "max_move=0.0 must be a finite number > 0, or None for no limit"),
        ({"margin": "wide"}, "margin='wide' is unknown"),
        ({"margin": "project"}, r"margin='project' moves queries, but Residual\(\) assumes them at x \+ δu"),
    ],
)
def test_bad_methods_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        tt.Method(**{"estimator": tt.Residual(), "radius": 0.1, "step": 0.1, **options})


def test_the_papers_margin_needs_bounded_directions_and_a_bounded_domain():
    scaled = tt.residual(radius=0.1, step=0.1, margin="scale", directions=tt.Gaussian())
    with pytest.raises(ValueError, match="needs bounded directions"):
        tt.Tuner([0.0], scaled, domain=tt.Ball(1.0))
    scaled = tt.residual(radius=0.1, step=0.1, margin="scale")
    with pytest.raises(ValueError, match="needs a bounded domain"):
        tt.Tuner([0.0], scaled, domain=tt.Halfspace([1.0], 1.0))


def test_without_bounds_the_radius_is_a_guess_with_a_warning():
    with pytest.warns(UserWarning, match="radius=0.2, 5% of the largest coordinate of x0"):
        tuner = tt.Tuner([1.0, -4.0], seed=0)
    assert tuner.setup.method.radius == pytest.approx(0.2)
    assert tt.Tuner([0.0, 0.0], domain=tt.Ball(2.0)).setup.method.radius == pytest.approx(0.1)


# Lanes and copies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(tt.methods))
def test_lanes_equal_single_runs(name):
    needs_step = "step" in inspect.signature(tt.methods[name]).parameters
    method = tt.methods[name](radius=0.1, **({"step": 0.01} if needs_step else {}))
    starts = np.linspace(-0.3, 0.3, 8).reshape(4, 2)
    many = tt.Tuner(starts, method, domain=tt.Box(-1, 1), seed=3)
    alone = [tt.Tuner(x, method, domain=tt.Box(-1, 1), seed=3, lane=k) for k, x in enumerate(starts)]
    for _ in range(60):
        trial = many.ask()
        values = np.sum((trial.x - 0.7) ** 2, axis=-1)
        if method.told > 1:
            values = np.stack([values, trial.x[:, 0] - 0.2], axis=-1)
        many.tell(trial, values)
        for k, tuner in enumerate(alone):
            np.testing.assert_array_equal(tuner.ask().x, trial.x[k])
            tuner.tell(tuner.ask(), values[k])
    np.testing.assert_array_equal(many.centre, [t.centre for t in alone])


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_copies_go_the_same_way_and_their_own(twin_of, shape):
    def total(x):
        values = (x**2).sum(-1)
        return float(values) if values.ndim == 0 else values

    tuner = drive(tt.Tuner(np.ones(shape), tt.auto(radius=0.1), domain=tt.Ball(5.0), seed=1), 10, total)
    twin = twin_of(tuner)
    drive(twin, 10, total)
    assert twin.round == 20
    assert tuner.round == 10
    np.testing.assert_array_equal(drive(tuner, 10, total).centre, twin.centre)


def test_huge_values_stay_finite():
    tuner = tt.Tuner(np.zeros(3), tt.residual(radius=1e-3, step=1e3), seed=0)
    for t in range(100):
        tuner.tell(tuner.ask(), 1.7e308 * (-1) ** t)
    assert np.isfinite(tuner.centre).all()


def test_repr_is_short_and_tells_the_round():
    assert repr(drive(tt.Tuner(np.zeros(1000), RESIDUAL, seed=0), 2)).startswith("<Tuner round=2 centre=[")
    assert len(repr(tt.Tuner(np.zeros(1000), RESIDUAL, seed=0))) < 400


def test_masked_values_were_not_measured():
    tuner = tt.Tuner(np.zeros((3, 2)), RESIDUAL, seed=0)
    tuner.tell(0, np.ma.array([1.0, -99999.0, 2.0], mask=[False, True, False]))
    np.testing.assert_array_equal(tuner.skipped, [0, 1, 0])


def test_a_masked_scalar_is_refused_in_favour_of_skip():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0)
    before = tuner.to_json()
    with pytest.raises(TypeError, match=r"skip"):
        tuner.tell(0, np.ma.masked)
    assert tuner.to_json() == before


def test_gaussian_queries_beyond_the_bounds_are_not_bent_back():
    method = tt.residual(radius=0.3, step=0.01, directions=tt.Gaussian())
    tuner = tt.Tuner([0.5, 50.0], method, bounds=[(0, 1), (0, 100)], seed=0)
    queries = []
    for _ in range(200):
        trial = tuner.ask()
        queries.append(trial.x / [1, 100])
        tuner.skip(trial)
    assert np.min(queries) < -0.2
    assert np.max(queries) > 1.2


def test_a_larger_radius_after_loading_keeps_queries_inside():
    tuner = drive(tt.Tuner([0.99, 99.0], tt.residual(radius=0.01, step=0.01), bounds=[(0, 1), (0, 100)], seed=0), 5)
    wide = tt.Tuner.from_json(tuner.to_json(), method=tt.residual(radius=0.2, step=0.01))
    for _ in range(20):
        trial = wide.ask()
        assert np.all((trial.x >= 0) & (trial.x <= [1, 100]))
        wide.tell(trial, 1.0)


def test_a_state_is_immutable_in_lanes_and_after_copies():
    tuner = tt.Tuner(np.zeros((2, 2)), tt.auto(radius=0.1), domain=tt.Ball(1.0), seed=0)
    for values in ([1.0, 2.0], [2.0, math.nan], [3.0, 1.0]):
        tuner.tell(tuner.ask(), values)
    for twin in (tuner, copy.deepcopy(tuner), pickle.loads(pickle.dumps(tuner)), tt.Tuner.from_json(tuner.to_json())):
        state = twin.state
        arrays = [x for x in (*state, *state.last, *state.slope, *state.pace) if isinstance(x, np.ndarray)]
        assert len(arrays) > 8
        for array in (twin.centre, twin.skipped, *arrays):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
        with pytest.raises(ValueError, match="read-only"):
            twin.setup.frame.direction(state.key, 3)[0] = 9


def test_threads_share_a_tuner():
    from concurrent.futures import ThreadPoolExecutor

    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=8)
    seen = []

    def work(_):
        for _ in range(300):
            trial = tuner.ask()
            seen.append(trial.id)
            tuner.tell(trial, bowl(trial.x))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sorted(seen) == list(range(2400))
    assert tuner.round == 2400


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: tt.residual(radius=0.1, step=0.1, directions=tt.Sphere), r"Sphere is a class: write Sphere\("),
        (lambda: tt.Method(estimator=tt.Residual, radius=0.1, step=0.1), "Residual is a class"),
        (lambda: tt.Tuner([0.0], RESIDUAL, domain=[(0, 1)]), "is not a domain"),
        (lambda: tt.Tuner([0.5], RESIDUAL, bounds=[(0, 1)], domain=tt.Box(0, 0.3)), "either bounds or a domain"),
        (lambda: tt.Tuner([0.0], RESIDUAL, bounds=[(-1e308, 1e308)]), "too large for floating point"),
        (lambda: tt.Tuner([0.0], RESIDUAL, bounds="wide"), "not a list of pairs"),
        (lambda: tt.Tuner([0.0, 0.0], tt.residual(radius=0.1, step=[0.1, 0.2])), "2 steps do not fit 1 lanes"),
        (lambda: tt.Tuner([0.0], RESIDUAL).tell(0, 10**400), "not a number"),
        (lambda: tt.Tuner([0.0], RESIDUAL).tell(True, 1.0), "neither a Trial nor its id"),
        (lambda: tt.Tuner([0.5], tt.residual(radius=0.6, step=0.1), bounds=[(0, 1)]), "a share of each range"),
        (lambda: tt.Tuner([1 + 2j], RESIDUAL), "not a list of real numbers"),
    ],
)
def test_likely_slips_are_named(wrong, words):
    with pytest.raises((ValueError, TypeError), match=words):
        wrong()


def test_a_numpy_number_is_a_radius():
    assert tt.residual(radius=np.float32(0.5), step=np.float64(0.1)) == tt.residual(radius=0.5, step=0.1)
    assert tt.residual(radius=0.1, step=[0.1, 0.2]) == tt.residual(radius=0.1, step=np.array([0.1, 0.2]))


def test_an_id_that_was_not_asked_is_unknown_with_several_pending():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=3)
    tuner.ask()
    with pytest.raises(ValueError, match="trial 1 is not open"):
        tuner.tell(1, 5.0)


TRUTHS = [True, False, np.True_, np.array(True), np.ma.array(True)]
TRUTHS_IN_LANES = [
    [True, False],
    [1.0, True],
    (1.0, np.False_),
    np.array([True, False]),
    np.array([1.0, True], dtype=object),
    np.ma.array([True, False], mask=[False, True]),
]


@pytest.mark.parametrize("value", [*TRUTHS, *TRUTHS_IN_LANES], ids=repr)
@pytest.mark.parametrize("max_pending", [1, 3])
def test_true_and_false_are_no_values(value, max_pending):
    start = [0.2] if np.ndim(value) == 0 else [[0.2], [0.3]]
    tuner = tt.Tuner(start, bounds=[(0, 1)], seed=0, max_pending=max_pending)
    trial = tuner.ask()
    before = tuner.to_json()
    with pytest.raises(TypeError, match="is not a number: tell a real number, or skip the trial"):
        tuner.tell(trial, value)
    assert tuner.to_json() == before
    tuner.tell(trial, np.ones(np.shape(value)))


def test_true_and_false_are_no_values_beside_limits():
    tuner = tt.Tuner([0.5], tt.primal_dual(radius=0.05, step=0.01, limits=2), bounds=[(0, 1)], seed=0)
    before = tuner.to_json()
    for value, limits in ((True, [0.0, 1.0]), (1.0, [0.0, True]), (1.0, [True, False])):
        with pytest.raises((TypeError, ValueError), match=r"do not match|is not a number"):
            tuner.tell(0, value, limits=limits)
    assert tuner.to_json() == before
