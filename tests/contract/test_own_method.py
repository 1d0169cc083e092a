"""A method of its own, neither estimator nor step, does what the others do: checks, files, laboratory and studies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import trimtab as tt
from trimtab import checks, lab
from trimtab.live import Study
from trimtab.protocols import Frame, Rule
from trimtab.recipes.method import name_of
from trimtab.registry import parts
from trimtab.rescaling import POWERS
from trimtab.state import Look, State
from trimtab.types import Array, Value

COMMON = {"directions": None, "max_move": None, "margin": "erode"}


class Level(NamedTuple):
    """Memory of `Climb`: a running mean of the values."""

    mean: Value


@dataclass(frozen=True, kw_only=True)
class Climb(tt.BaseMethod):
    """Goes part of the way to each query that was better than the mean of those before."""

    share: float = 0.3
    located: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True

    def bind(self, frame: Frame) -> Rule:
        """Three functions are all it needs, and a fourth for studies whose coordinates change."""
        xp, share = frame.xp, self.share

        def start(centre: Array) -> Level:
            return Level(frame.zero + np.nan)

        def query(state: State, id: int) -> Look:
            return Look(id, state.centre, frame.zero + 1.0)

        def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, Level]:
            (mean,), value = state.memory, values[0]
            towards = frame.project((1 - share) * state.centre + share * point)
            mean_now = xp.where(mean != mean, value, mean + 0.2 * (value - mean))
            return xp.merge(value < mean, towards, state.centre), Level(mean_now)

        return Rule(start, query, learn, carried=lambda memory, factors: memory)


@pytest.fixture(autouse=True)
def registered():
    tt.part(Climb)
    yield
    del parts["Climb"]


@pytest.mark.parametrize("domain", [None, tt.Box(-1.0, 1.0), tt.Ball(2.0)])
def test_it_passes_every_check(domain):
    checks.check_method(Climb(radius=0.1), domain=domain)


def test_it_tunes_and_its_file_is_read_back(tmp_path):
    tuner = tt.Tuner([0.2, 0.8], Climb(radius=0.05), bounds=[(0, 1)] * 2, seed=1)
    for _ in range(300):
        trial = tuner.ask()
        tuner.tell(trial, float(((trial.x - 0.5) ** 2).sum()))
    assert ((tuner.centre - 0.5) ** 2).sum() < 0.01  # of 0.18
    tuner.save(tmp_path / "tuner.json")
    again = tt.Tuner.load(tmp_path / "tuner.json")
    assert again.setup.method == tuner.setup.method
    assert np.array_equal(again.ask().x, tuner.ask().x)
    assert "method='Climb'" in repr(tuner)
    assert name_of(Climb(radius=0.1)) is None


def test_the_laboratory_runs_it():
    record = lab.run("quadratic-v1", Climb(radius=0.1), rounds=40, trials=3, evidence=True)
    assert record.about["parts"]["method"] == {**COMMON, "type": "Climb", "radius": 0.1, "share": 0.3}
    assert record.about["law"] is None


def test_a_study_changes_its_settings_and_goes_on(tmp_path):
    knobs = [
        {"name": "heat", "low": 0.0, "high": 10.0, "start": 2.0},
        {"name": "size", "low": 1, "high": 9, "start": 3},
    ]
    file = tmp_path / "trimtab.db"
    with Study.open(file, "press", knobs, Climb(radius=0.05), seed=1) as study:
        for _ in range(80):
            trial = study.ask()
            study.tell(trial, (trial.knobs["heat"] - 6) ** 2 + (trial.knobs["size"] - 5) ** 2)
        study.set({"radius": 0.1, "knobs.heat.high": 12.0, "knobs.size.radius": 0.02})
        assert study.setup.method == replace(Climb(radius=0.05), radius=0.1)
        with pytest.raises(ValueError, match="widest applies only to"):
            study.set({"widest": 2.0})
        centre, asked = study.centre, study.ask().knobs
        study.findings()
    with Study.open(file, "press") as study:
        assert (study.centre, study.ask().knobs) == (centre, asked)
        study.undo(70)


def test_a_rule_without_a_way_to_carry_its_memory_says_so(tmp_path, monkeypatch):
    bind = Climb.bind
    monkeypatch.setattr(Climb, "bind", lambda self, frame: Rule(*bind(self, frame)[:3]))
    assert Level not in POWERS
    knobs = [{"name": "heat", "low": 0.0, "high": 10.0, "start": 2.0}]
    with Study.open(tmp_path / "trimtab.db", "press", knobs, Climb(radius=0.05), seed=1) as study:
        with pytest.raises(ValueError, match="the memory Level cannot be rescaled: give its rule a `carried`"):
            study.set({"radius": 0.1})
        assert study.setup.method.radius == 0.05
