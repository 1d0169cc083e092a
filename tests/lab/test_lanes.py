"""How methods share lanes, and how lanes are taken out of a state."""

import numpy as np
import pytest

import trimtab as tt
from trimtab.lab.sim import lanes
from trimtab.lab.sim.provenance import described
from trimtab.state import take


def test_methods_that_differ_in_a_step_size_alone_go_together():
    methods = {
        "a": tt.residual(radius=0.1, step=0.01),
        "b": tt.residual(radius=0.1, step=0.02),
        "wider": tt.residual(radius=0.2, step=0.01),
        "one": tt.one_point(radius=0.1, step=0.01),
        "power": tt.residual(radius=0.1, step=tt.Power(0.01)),
        "auto": tt.auto(radius=0.1),
        "c": tt.residual(radius=0.1, step=0.03),
    }
    assert [list(group) for group in lanes.groups(methods)] == [
        ["a", "b", "c"],
        ["wider"],
        ["one"],
        ["power"],
        ["auto"],
    ]


def test_lanes_are_taken_wherever_they_are_in_a_state():
    tuner = tt.Tuner(np.arange(6.0).reshape(3, 2), tt.hlf_szo(radius=0.1, step=0.01), seed=0)
    for values in ([7.0, 8.0, 9.0], [1.0, 2.0, 4.0]):
        tuner.tell(tuner.ask(), values)
    state = take(tuner.state, np.array([2, 0, 2]))
    assert state.round == 2
    for found, whole in ((state.centre, tuner.state.centre), (state.slope.filtered, tuner.state.slope.filtered)):
        np.testing.assert_array_equal(found, whole[[2, 0, 2]])
    np.testing.assert_array_equal(state.slope.base.mean, tuner.state.slope.base.mean[[2, 0, 2]])
    np.testing.assert_array_equal(state.values[0], [4.0, 1.0, 4.0])


def test_parts_are_described_by_type_and_fields():
    assert described(tt.HighPass(0.25)) == {"type": "HighPass", "beta": 0.25}
    assert described(tt.Paired(tt.Sphere()))["base"] == {"type": "Sphere"}
    assert described(tt.Box([0.0, -np.inf], 1.0))["low"] == [0.0, "-inf"]
    assert described(object()) == {"type": "object"}


@pytest.mark.parametrize(
    ("estimator", "directions", "law"),
    [
        (tt.Residual(), tt.Gaussian(), "gaussian"),
        (tt.Residual(), tt.Sphere(), "sphere"),
        (tt.Residual(), tt.Rademacher(), None),
        (tt.Residual(), tt.Paired(tt.Gaussian()), None),
        (tt.OnePoint(), tt.Gaussian(), None),
        (tt.TwoPoint(), tt.Gaussian(), None),
        (tt.HighPass(0.25), tt.Gaussian(), None),
        (tt.Covariance(), tt.Gaussian(), None),
    ],
)
def test_records_name_the_law_where_the_theory_speaks_of_it(estimator, directions, law):
    from trimtab import lab

    method = tt.Method(estimator=estimator, directions=directions, radius=0.1, step=0.01)
    assert lab.run("quadratic-v1", method, rounds=3, trials=2).about["law"] == law


def test_records_hold_structured_data():
    from trimtab import lab

    record = lab.run("quadratic-v1", tt.residual(radius=0.1, step=0.01), rounds=3, trials=2)
    assert record.about["parts"]["estimator"] == {"type": "Residual"}
    assert record.about["parts"]["directions"] == {"type": "Gaussian"}  # the method left them open
    assert record.about["parts"]["step"] == {"type": "Constant", "step": 0.01}
    assert record.about["parameters"]["dim"] == 10
    assert record.about["step"] == 0.01
