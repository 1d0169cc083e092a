"""The API of the tuner for integrations: forget, is_open, ask(n), last_value, and other spellings."""

import math

import numpy as np
import pytest

import trimtab as tt
from trimtab import core

RESIDUAL = tt.residual(radius=0.1, step=0.01)


def drive(tuner, rounds):
    for _ in range(rounds):
        trial = tuner.ask()
        tuner.tell(trial, ((trial.x - 0.5) ** 2).sum(-1))
    return tuner


# forget -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [None, 3])
@pytest.mark.parametrize(
    "estimator",
    [tt.Residual(), tt.HighPass(0.5), tt.Covariance(4), tt.LeastSquares(4), tt.Momentum(), tt.Plane()],
    ids=lambda e: type(e).__name__,
)
def test_after_forget_the_next_value_only_anchors(estimator, lanes):
    method = tt.Method(estimator=estimator, radius=0.1, step=0.01)
    tuner = drive(tt.Tuner(np.zeros((2,) if lanes is None else (lanes, 2)), method, seed=0), 9)
    before = tuner.state
    tuner.forget()
    assert tuner.round == before.round
    tuner.tell(tuner.ask(), 1e4 if lanes is None else np.full(lanes, 1e4))
    np.testing.assert_array_equal(tuner.centre, before.centre)
    for value in (1e4 + 1, 1e4 + 2):  # some estimators ask a surprise again before they learn from it
        tuner.tell(tuner.ask(), value if lanes is None else np.full(lanes, value))
    assert np.all(tuner.centre != before.centre)
    assert np.abs(tuner.centre - before.centre).max() < 1.0  # the jump of 10⁴ is not in it


def test_forgotten_residual_feedback_by_hand():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0)
    tuner.tell(0, 3.0)
    tuner.forget()
    tuner.tell(1, 70.0)
    u = tuner.ask().x / 0.1
    tuner.tell(2, 72.0)
    np.testing.assert_allclose(tuner.centre, -0.01 / 0.1 * (72.0 - 70.0) * u)


def test_momentum_keeps_its_course_and_the_window_is_emptied():
    tuner = drive(tt.Tuner(np.zeros(2), tt.hlf_szo(radius=0.1, step=0.01), seed=0), 5)
    course = tuner.state.slope.filtered
    tuner.forget()
    assert math.isnan(tuner.state.slope.base.mean)
    np.testing.assert_array_equal(tuner.state.slope.filtered, course)
    window = drive(tt.Tuner(np.zeros(2), tt.reszo(radius=0.1, step=0.01, m=3), seed=0), 5)
    window.forget()
    assert np.isnan(window.state.slope.values).all()


def test_a_forgotten_state_is_as_immutable_as_any_and_the_old_one_stays():
    setup = tt.Setup(RESIDUAL, (4, 2))
    state = tt.tell(setup, tt.init(setup, np.zeros((4, 2))), np.ones(4))
    forgotten = core.forget(setup, state)
    assert np.all(state.values[0] == 1.0)
    assert np.isnan(forgotten.values[0]).all()
    assert np.all(forgotten.told == -1)
    with pytest.raises(ValueError, match="read-only"):
        forgotten.values[0][0] = 1.0


def test_mirrored_probes_do_not_look_across_what_was_forgotten():
    tuner = tt.Tuner(np.zeros(2), tt.residual(radius=0.1, step=0.01, directions=tt.Paired()), seed=0)
    for value in (1.0, 2.0, 3.0):
        tuner.tell(tuner.ask(), value)
    tuner.forget()
    centre = tuner.centre
    tuner.tell(tuner.ask(), 50.0)
    np.testing.assert_array_equal(tuner.centre, centre)


# is_open, ask(n) ----------------------------------------------------------------------------------------------------


def test_which_trials_are_open():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0)
    assert tuner.is_open(0)
    assert tuner.is_open(tuner.ask())
    assert not tuner.is_open(1)
    tuner.skip(0)
    assert not tuner.is_open(0)
    several = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=3)
    assert not several.is_open(0)
    trials = several.ask(3)
    several.tell(trials[1], 1.0)
    assert [several.is_open(trial) for trial in trials] == [True, False, True]
    with pytest.raises(TypeError, match="neither a Trial nor its id"):
        several.is_open("0")


def test_several_are_asked_at_once_or_none():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=4)
    one_by_one = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, max_pending=4)
    for trial in tuner.ask(3):
        np.testing.assert_array_equal(trial.x, one_by_one.ask().x)
    before = tuner.state
    with pytest.raises(RuntimeError, match=r"ask\(2\) does not fit beside the 3 open trials: .* \(it is 4\)"):
        tuner.ask(2)
    assert tuner.state is before
    assert [trial.id for trial in tuner.ask(1)] == [3]


def test_one_at_a_time_is_asked_in_a_list_of_one():
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0)
    (trial,) = tuner.ask(1)
    np.testing.assert_array_equal(trial.x, tuner.ask().x)
    with pytest.raises(RuntimeError, match=r"ask\(2\) .*max_pending=2 or more"):
        tuner.ask(2)
    with pytest.raises(ValueError, match="n=0 must be a whole number, at least 1"):
        tuner.ask(0)


# Properties ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maximise", [False, True])
def test_the_last_value_is_as_it_was_told(maximise):
    tuner = tt.Tuner(np.zeros(2), RESIDUAL, seed=0, maximise=maximise)
    assert tuner.last_value is None
    tuner.tell(tuner.ask(), 3.25)
    tuner.skip(tuner.ask())
    assert tuner.last_value == 3.25
    tuner.forget()
    assert tuner.last_value is None


def test_the_last_values_of_lanes_and_of_two_queries():
    tuner = tt.Tuner(np.zeros((3, 2)), RESIDUAL, seed=0)
    tuner.tell(tuner.ask(), [1.0, math.nan, 3.0])
    np.testing.assert_array_equal(tuner.last_value, [1.0, math.nan, 3.0])
    two = tt.Tuner(np.zeros(2), tt.two_point(radius=0.1, step=0.01), seed=0)
    two.tell(two.ask(), [1.0, 2.0])
    np.testing.assert_array_equal(two.last_value, [1.0, 2.0])


def test_other_spellings():
    tuner = drive(tt.Tuner(np.zeros(2), RESIDUAL, seed=0, maximize=True), 5)
    british = drive(tt.Tuner(np.zeros(2), RESIDUAL, seed=0, maximise=True), 5)
    for centre in (tuner.center, tuner.recommendation, tuner.centre):
        np.testing.assert_array_equal(centre, british.centre)
    with pytest.raises(TypeError, match="maximise='yes' is neither True nor False"):
        tt.Tuner([0.0], RESIDUAL, maximize="yes")


def test_texts_are_no_numbers_wherever_they_stand():
    tuner = tt.Tuner(np.zeros((2, 1)), tt.auto(radius=0.1), seed=0)
    with pytest.raises(TypeError, match="is not a number"):
        tuner.tell(tuner.ask(), [None, "2.0"])
    limited = tt.Tuner([0.0], tt.primal_dual(radius=0.1, step=0.1, limits=1), seed=0)
    with pytest.raises(ValueError, match="do not match"):
        limited.tell(limited.ask(), "3", limits=["4"])
    assert (tuner.round, limited.round) == (0, 0)


@pytest.mark.parametrize("lanes", [(), (2,)])
def test_a_function_that_returns_nothing_is_noticed(lanes):
    tuner = tt.Tuner(np.zeros((*lanes, 2)), tt.auto(radius=0.1), seed=0)
    for _ in range(9):
        tuner.tell(tuner.ask(), None)
    with pytest.warns(UserWarning, match="10 values in a row were None.*: does your function return one"):
        tuner.tell(tuner.ask(), None)
    tuner.tell(tuner.ask(), None)  # once
    skipping = tt.Tuner(np.zeros((*lanes, 2)), tt.auto(radius=0.1), seed=0)
    for _ in range(12):
        skipping.skip(skipping.ask())  # says what it means


def test_a_point_is_no_trial():
    tuner = tt.Tuner([0.0, 0.0], tt.auto(radius=0.1), seed=0)
    with pytest.raises(TypeError, match="neither a Trial nor its id: tell"):
        tuner.tell(tuner.ask().x, 1.0)


@pytest.mark.parametrize(
    "options",
    [{"directions": "sphere"}, {"estimator": "residual"}, {"estimator": tt.Residual}],
)
def test_parts_of_a_method_are_parts(options):
    with pytest.raises(TypeError, match=r"give for example tt\.|write Residual\(\.\.\.\)"):
        tt.Method(**{"estimator": tt.Residual(), "radius": 0.1, "step": 0.1, **options})
