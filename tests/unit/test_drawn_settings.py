"""A method that learns from settings learns where a discrete knob was in fact, in a tuner and in a study."""

import numpy as np
import pytest

import trimtab as tt
from trimtab import live
from trimtab.checks.late import _watched
from trimtab.knobs import Knobs
from trimtab.study import core_calls

KNOBS = [
    tt.Knob("workers", 1, 9, 3, type="integer"),
    tt.Knob("cache", 0, 10, 2),
    tt.Knob("codec", choices=["a", "b", "c"], start="a"),
    tt.Knob("turbo", type="bool", start=False),
]


def cost(setting):
    codec = {"a": 1.0, "b": 0.0, "c": 0.4}[setting["codec"]]
    return (setting["workers"] - 6) ** 2 / 4 + (setting["cache"] - 7) ** 2 / 9 + codec + 0.3 * (not setting["turbo"])


@pytest.mark.parametrize("method", [tt.auto, tt.belief])
def test_a_method_that_uses_the_query_learns_at_the_setting_that_was_drawn(method):
    tuner = tt.Tuner(knobs=KNOBS, method=method(radius=0.05), seed=1)
    learnt = _watched(tuner)
    between = 0
    for _ in range(40):
        trial = tuner.ask()
        tuner.tell(trial, cost(trial.knobs))
        np.testing.assert_array_equal(learnt[-1], tuner.knobs.coordinates(trial.knobs))
        between += not np.array_equal(learnt[-1], trial.x)
    assert between > 10


def test_a_method_of_the_paper_learns_at_the_query():
    tuner = tt.Tuner(knobs=KNOBS, method=tt.residual(radius=0.05, step=0.003), seed=1)
    learnt = _watched(tuner)
    for _ in range(10):
        trial = tuner.ask()
        tuner.tell(trial, cost(trial.knobs))
        np.testing.assert_array_equal(learnt[-1], trial.x)


def test_a_study_goes_the_way_of_the_tuner_and_replays_it(tmp_path):
    tuner = tt.Tuner(knobs=KNOBS, method=tt.belief(radius=0.05), seed=7)
    store = tmp_path / "trimtab.db"
    study = live.Study.open(store, "mine", KNOBS, tt.belief(radius=0.05), seed=7)
    for round in range(60):
        if round == 33:
            study.close()
            study = live.Study.open(store, "mine")
        asked = study.ask()
        if asked.kind != "baseline":
            trial = tuner.ask()
            assert asked.knobs == trial.knobs
            tuner.tell(trial, cost(trial.knobs))
        study.tell(asked, cost(asked.knobs))
    study.close()


def test_a_study_begun_without_goes_on_without(tmp_path):
    """Where its definition is read again, as at every start of a run."""
    store, usual = tmp_path / "trimtab.db", tt.auto(radius=0.05)
    before = usual.changed(estimator=tt.Plane())
    with live.Study.open(store, "mine", KNOBS, before, seed=7) as study:
        study.tell(study.ask(), 1.0)
    with live.Study.open(store, "mine", KNOBS, usual, seed=7) as study:
        assert study.setup.method == before
    with live.Study.open(store, "other", KNOBS, usual, seed=7) as study:
        assert study.setup.method == usual != before


def test_a_setting_that_a_person_chose_is_learnt_as_such():
    knobs = Knobs.of(KNOBS).with_default_radii()
    tuner = tt.Tuner(knobs=knobs.all, method=tt.belief(radius=0.05), seed=7)
    learnt = _watched(tuner)
    chosen = {"workers": 5, "cache": 3.25, "codec": "b", "turbo": True}
    core_calls.tell_at(knobs, tuner.setup, tuner.state, cost(chosen), chosen)
    np.testing.assert_array_equal(learnt[-1], knobs.coordinates(chosen))


@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_are_found(seed):
    tuner = tt.Tuner(knobs=KNOBS, method=tt.belief(radius=0.05), seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        trial = tuner.ask()
        tuner.tell(trial, cost(trial.knobs) + 0.05 * rng.normal())
    assert cost(tuner.setting) < 0.45
