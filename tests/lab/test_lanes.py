"""How methods share lanes, and how lanes are picked out of a state."""

from typing import NamedTuple

import numpy as np

import trimtab as tt
from trimtab.lab import lanes
from trimtab.lab.about import described


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


class Parts(NamedTuple):
    round: int
    centre: np.ndarray
    memory: tuple


def test_lanes_are_picked_wherever_they_are_in_a_state():
    state = Parts(3, np.arange(6.0).reshape(3, 2), (np.array([7.0, 8.0, 9.0]), ()))
    found = lanes.pick(state, np.array([2, 0, 2]))
    assert isinstance(found, Parts)
    assert found.round == 3
    np.testing.assert_array_equal(found.centre, [[4, 5], [0, 1], [4, 5]])
    np.testing.assert_array_equal(found.memory[0], [9, 7, 9])


def test_parts_are_described_by_type_and_fields():
    assert described(tt.Plane(window=3.0)) == {"type": "Plane", "window": 3.0, "level": 0.5, "share": 0.65, "clip": 6.0}
    assert described(tt.Echoed(tt.Sphere()))["base"] == {"type": "Sphere"}
    assert described(tt.Box([0.0, -np.inf], 1.0))["low"] == [0.0, "-inf"]
    assert described(object()) == {"type": "object"}


def test_records_hold_structured_data():
    from trimtab import lab

    record = lab.run("quadratic-v1", tt.residual(radius=0.1, step=0.01), rounds=3, trials=2)
    assert record.about["parts"]["estimator"] == {"type": "Residual"}
    assert record.about["parts"]["directions"] == {"type": "Gaussian"}  # the method left them open
    assert record.about["parts"]["step"] == {"type": "Constant", "step": 0.01}
    assert record.about["parameters"]["dim"] == 10
    assert record.about["step"] == 0.01
