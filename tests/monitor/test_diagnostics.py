"""Diagnostics of synthetic histories with known results."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import trimtab as tt
from trimtab.live import Study
from trimtab.monitor.diagnostics import LAG, Diagnostics, LimitDistance


def fed(values, moves=None, cap=math.inf, sides=0.0, dim=2):
    found = Diagnostics()
    moves = np.zeros((len(values), dim)) if moves is None else moves
    for value, move in zip(values, moves, strict=True):
        found = found.after(float(value), move, cap, LimitDistance(np.full(dim, sides), np.full(dim, 2.0 * sides)), 1.0)
    return found


def figures(diagnostics, probe=1.0):
    return diagnostics.figures(probe)


NOWHERE = LimitDistance(np.zeros(1), np.zeros(1))


def test_contrast_of_noise_and_no_drift():
    values = np.random.default_rng(0).normal(0, 3, 5000)
    found = figures(fed(values))
    assert found["contrast"] == pytest.approx(3 * math.sqrt(2), rel=0.3)  # over about 100 rounds
    assert found["drift"] < 0.5


def test_drift_of_a_random_walk():
    """(y_t − y_{t−k})² grows by V² per round: steps of 2 with noise of 1."""
    rng = np.random.default_rng(1)
    values = np.cumsum(rng.normal(0, 2, 20_000)) + rng.normal(0, 1, 20_000)
    drifts, running = [], Diagnostics()
    for value in values:
        running = running.after(float(value), np.zeros(1), math.inf, NOWHERE)
        drifts.append(running.figures(1.0)["drift"] ** 2)
    assert math.sqrt(np.mean(drifts[500:])) == pytest.approx(2, rel=0.1)


def test_signal_to_noise_of_moves():
    """Moves of (1, 0) plus noise of total power 4: a signal-to-noise ratio of 1/4."""
    rng = np.random.default_rng(2)
    moves = rng.normal([1.0, 0.0], math.sqrt(2), (4000, 2))
    found, running = [], Diagnostics()
    for move in moves:
        running = running.after(1.0, move, math.inf, LimitDistance(np.zeros(2), np.zeros(2)))
        found.append(running.signal)
    assert np.mean(found[200:]) == pytest.approx(0.25, rel=0.25)
    still = fed(np.ones(4000), rng.normal(0, 1, (4000, 2)))
    assert still.signal < 0.03


def test_contraction_caps_and_edges():
    found = fed(np.arange(200.0), np.full((200, 2), 0.5), cap=math.sqrt(0.5), sides=-1.0)
    what = figures(found)
    assert what["contraction"] == pytest.approx(2 * 0.5)
    assert what["capped"] == pytest.approx(1.0)
    assert what["edge"] == pytest.approx(1.0)
    assert found.at_edge == 200
    assert found.long == pytest.approx(1.0)
    assert found.edges == pytest.approx((-1.0, -1.0))
    assert found.beyond == pytest.approx((-2.0, -2.0))
    assert found.beyond_square == pytest.approx((4.0, 4.0))


def test_rescaled_coordinates_and_changed_limits():
    """Moves scale with the coordinates; statistics at limits restart for a knob with new limits."""
    found = fed(np.arange(200.0), np.full((200, 2), 0.5), sides=1.0).rescaled(np.full(2, 2.0), np.array([True, False]))
    assert found.heading == pytest.approx((1.0, 1.0))
    assert found.moved == pytest.approx(2.0)
    assert found.edges == pytest.approx((0.0, 1.0))
    assert figures(found, probe=2.0)["contraction"] == pytest.approx(2 * 0.5)
    assert Diagnostics().rescaled(np.ones(2), np.array([True, True])) == Diagnostics()


def test_obsolete_fields_are_ignored():
    assert Diagnostics.from_dict({"told": 3, "early": 2.0}) == Diagnostics(told=3)


def test_memory_is_constant_and_exact():
    found = fed(np.random.default_rng(0).normal(size=500), np.random.default_rng(1).normal(size=(500, 2)))
    assert len(found.values) == LAG
    text = json.dumps(found.to_dict())
    assert Diagnostics.from_dict(json.loads(text)) == found
    assert len(text) < 1100
    assert replace(found, failures=2).missed().failures == 3


def test_huge_values_stay_finite(tmp_path):
    with Study.open(tmp_path / "t.db", "a", [{"name": "x", "low": 0.0, "high": 1.0, "start": 0.5}], seed=0) as study:
        for value in (1.0, 1e308, -1e308, 1e200, 2.0):
            study.tell(study.ask(), value)
        assert all(math.isfinite(finding.value) for finding in study.findings().values())
    with Study.open(tmp_path / "t.db", "a") as study:
        assert [event.value for event in study.events()][1:] == [1.0, 1e308, -1e308, 1e200, 2.0]


def test_an_enormous_cap_caps_nothing():
    """A cap whose square would overflow."""
    knobs = [{"name": "x", "low": 0, "high": 1, "start": 0.5}]
    with Study.open(":memory:", "a", knobs, replace(tt.auto(radius=0.05), max_move=1e300), seed=1) as study:
        for value in (1.0, 2.0, 3.0):
            study.tell(study.ask(), value)
        assert study.diagnostics.capped == 0.0
