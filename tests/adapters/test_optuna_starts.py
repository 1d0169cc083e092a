"""Start of the sampler, and unusual input: levels off by a rounding error, nothing in common, no numbers."""

import numpy as np
import optuna
import pytest

from trimtab.adapters.optuna import Sampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


def played(study):
    return [trial.params for trial in study.trials]


def tenths(trial):
    return trial.suggest_float("x", 0, 1, step=0.1)


LEVELS = [k / 10 for k in range(11)]


def test_a_level_that_is_off_by_a_rounding_error_is_that_level():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(tenths, n_trials=2)
    assert study.trials[-1].params == {"x": 0.7000000000000001}
    study.sampler = Sampler(seed=0)
    study.optimize(tenths, n_trials=20)
    assert {params["x"] for params in played(study)[2:]} <= set(LEVELS)


@pytest.mark.parametrize("at", [0.1 + 0.2, 0.1 * 3, 0.3])
def test_a_start_that_is_off_by_a_rounding_error_is_that_level(at):
    enqueued, started = (optuna.create_study(sampler=Sampler(start=start, seed=0)) for start in (None, {"x": at}))
    enqueued.enqueue_trial({"x": at})
    for study in (enqueued, started):
        study.optimize(tenths, n_trials=1)
        assert study.sampler.setting(study) == {"x": 0.3}
        study.optimize(tenths, n_trials=20)
        assert {params["x"] for params in played(study)[1:]} <= set(LEVELS)


@pytest.mark.filterwarnings("ignore:.*not divisible by `step`")
def test_levels_of_a_range_that_is_off_by_a_rounding_error():
    study = optuna.create_study(sampler=Sampler(radius=0.3, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.1 + 0.2, 1, step=0.1), n_trials=20)
    assert len({params["x"] for params in played(study)}) > 1


@pytest.mark.parametrize(
    "suggest",
    [
        None,
        lambda trial: trial.suggest_float("x", 0, 1 + trial.number),
        lambda trial: trial.suggest_float("x", 1, 1),
    ],
)
def test_nothing_that_all_trials_have_has_no_setting(suggest):
    study = optuna.create_study(sampler=Sampler(start={"x": 0.5}))
    if suggest is not None:
        study.optimize(suggest, n_trials=3)
    assert study.sampler.setting(study) == {}


def test_none_is_a_choice_too():
    def objective(trial):
        return float(trial.suggest_categorical("c", ["a", "b", None]) is None)

    study = optuna.create_study(sampler=Sampler(start={"c": None}))
    study.optimize(objective, n_trials=1)
    assert played(study) == [{"c": None}]
    assert study.sampler.setting(study) == {"c": None}


@pytest.mark.parametrize("start", ["0.5", None, [0.5], True, float("nan")])
def test_a_start_that_is_no_number_is_refused(start):
    study = optuna.create_study(sampler=Sampler(start={"x": start}))
    for suggest in (lambda trial: trial.suggest_float("x", 0, 1), lambda trial: trial.suggest_int("x", 0, 9)):
        with pytest.raises(ValueError, match=r"start\['x'\]=.* must be a finite number, as \w+Distribution\("):
            study.optimize(suggest, n_trials=1)


@pytest.mark.parametrize("start", [[1], "x", 5, [("x", 0.5)]])
def test_a_start_without_names_is_refused(start):
    with pytest.raises(TypeError, match="is not a mapping: give the current values by name"):
        Sampler(start=start)


def test_the_objective_is_given_plain_numbers():
    given = []
    study = optuna.create_study(sampler=Sampler(start={"x": np.float64(0.5), "n": 3.0}))
    study.optimize(
        lambda trial: given.extend([trial.suggest_float("x", 0, 1), trial.suggest_int("n", 0, 9)]) or 1.0, n_trials=1
    )
    assert given == [0.5, 3]
    assert [type(value) for value in given] == [float, int]


def test_errors_name_the_parameter():
    study = optuna.create_study(sampler=Sampler())
    with pytest.raises(ValueError, match=r"^parameter 'learning rate': low=-1e\+200 is not a finite number"):
        study.optimize(lambda trial: trial.suggest_float("learning rate", -1e200, 1e200), n_trials=1)
