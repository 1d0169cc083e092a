"""The default method and radius where nobody gave one."""

import pytest

import trimtab as tt
from trimtab.live import Study

BOUNDS = [(0, 1)]


def widest(tuner):
    return tuner.setup.method.step.widest


def knobs(count):
    return [tt.Knob(f"k{n}", 0, 1, 0.5) for n in range(count)]


@pytest.mark.parametrize(("count", "expected"), [(1, 1.0), (10, 1.0), (11, 4.0)])
def test_few_knobs_between_limits_are_probed_no_wider_than_the_radius(count, expected):
    assert widest(tt.Tuner([0.5] * count, bounds=BOUNDS * count)) == expected
    assert widest(tt.Tuner(knobs=knobs(count))) == expected
    with Study.open(":memory:", "a", knobs(count)) as study:
        assert study.setup.method.step.widest == expected


def test_fixed_knobs_do_not_count():
    fixed = [tt.Knob(f"fixed{n}", 1, 1, 1) for n in range(5)]
    assert widest(tt.Tuner(knobs=[*knobs(8), *fixed])) == 1.0
    assert widest(tt.Tuner([0.5] * 8 + [1] * 5, bounds=BOUNDS * 8 + [(1, 1)] * 5)) == 1.0


def test_a_radius_that_was_given_keeps_its_method():
    assert widest(tt.Tuner([0.5], tt.auto(radius=0.05), bounds=BOUNDS)) == 4.0
    tuner = tt.Tuner(knobs=[tt.Knob("n", 0, 3, 1, type="integer")], method=tt.auto(radius=0.05))
    assert tuner.knobs.all[0].radius is None


def test_without_limits_nothing_changes():
    assert widest(tt.Tuner([0.5], domain=tt.Ball(2.0))) == 4.0


def test_coarse_knobs_are_probed_by_a_step():
    space = tt.Tuner(
        knobs=[
            tt.Knob("float", 0, 1, 0.5),
            tt.Knob("many", 1, 100, 5, type="integer"),
            tt.Knob("few", 1, 9, 5, type="integer"),
            tt.Knob("four", 0, 3, 0, step=1),
            tt.Knob("switch", type="bool", start=False),
            tt.Knob("choice", type="choice", choices=["a", "b"], start="a"),
            tt.Knob("own", 1, 4, 1, type="integer", radius=0.02),
            tt.Knob("fixed", 3, 3, 3, type="integer"),
        ]
    ).knobs
    found = {knob.name: knob.radius for knob in space.all}
    third = pytest.approx(1 / 3)
    expected = {"float": None, "many": None, "few": 1 / 8, "four": third, "switch": third, "choice": third}
    assert found == {**expected, "own": 0.02, "fixed": None}


def test_a_study_by_default_goes_on_by_default(tmp_path):
    coarse = [tt.Knob("n", 0, 3, 1, type="integer"), tt.Knob("x", 0, 1, 0.5)]
    for _ in range(2):
        with Study.open(tmp_path / "a.db", "a", coarse) as study:
            assert study.knobs.all[0].radius == pytest.approx(1 / 3)
            study.tell(study.ask(), 1.0)
            assert not [event for event in study.events() if event.kind == "correction"]
