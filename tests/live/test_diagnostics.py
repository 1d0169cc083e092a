"""The figures against what is known of made-up histories."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from trimtab.live import Study
from trimtab.live.diagnostics import LAG, Diagnostics


def fed(values, moves=None, cap=math.inf, sides=0.0, dim=2):
    found = Diagnostics()
    moves = np.zeros((len(values), dim)) if moves is None else moves
    for value, move in zip(values, moves, strict=True):
        found = found.after(float(value), move, cap, np.full(dim, sides))
    return found


def findings(diagnostics, probe=1.0):
    return diagnostics.findings(probe, ["a", "b"])


def test_contrast_of_noise_and_no_drift():
    values = np.random.default_rng(0).normal(0, 3, 5000)
    found = findings(fed(values))
    assert found["contrast"].value == pytest.approx(3 * math.sqrt(2), rel=0.3)  # of about 100 rounds
    assert found["drift"].value < 0.5


def test_drift_of_a_random_walk():
    """(y_t − y_{t−k})² grows by V² a round: steps of 2 about noise of 1."""
    rng = np.random.default_rng(1)
    values = np.cumsum(rng.normal(0, 2, 20_000)) + rng.normal(0, 1, 20_000)
    drifts, running = [], Diagnostics()
    for value in values:
        running = running.after(float(value), np.zeros(1), math.inf, np.zeros(1))
        drifts.append(running.findings(1.0, ["a"])["drift"].value ** 2)
    assert math.sqrt(np.mean(drifts[500:])) == pytest.approx(2, rel=0.1)


def test_signal_to_noise_of_moves():
    """Moves of (1, 0) plus noise of total power 4: signal over noise is 1/4."""
    rng = np.random.default_rng(2)
    moves = rng.normal([1.0, 0.0], math.sqrt(2), (4000, 2))
    found, running = [], Diagnostics()
    for move in moves:
        running = running.after(1.0, move, math.inf, np.zeros(2))
        found.append(running.signal)
    assert np.mean(found[200:]) == pytest.approx(0.25, rel=0.25)
    still = fed(np.ones(4000), rng.normal(0, 1, (4000, 2)))
    assert still.signal < 0.03


def test_contraction_caps_and_edges():
    found = fed(np.arange(200.0), np.full((200, 2), 0.5), cap=math.sqrt(0.5), sides=-1.0)
    what = findings(found)
    assert what["contraction"].value == pytest.approx(2 * 0.5)
    assert what["capped"].value == pytest.approx(1.0)
    assert what["edge"].value == pytest.approx(1.0)
    assert found.at_edge == 200
    assert "a stays at its low limit: widen its range" in what["edge"].advice
    assert "Most moves are as long as allowed" in what["capped"].advice
    assert "Moves are long against probes" in what["contraction"].advice


def test_every_figure_has_advice_when_it_is_out_of_range_and_none_before_there_is_enough():
    assert "does the command use the knobs" in findings(fed(np.ones(100)))["contrast"].advice
    steep = findings(fed(np.arange(100.0) ** 2))
    assert "changes faster than probing can follow" in steep["drift"].advice
    assert "no common direction" in findings(fed(np.ones(100)))["signal"].advice
    assert not any(finding.advice for finding in findings(fed(np.ones(20))).values())


def test_memory_is_constant_and_exact():
    found = fed(np.random.default_rng(0).normal(size=500), np.random.default_rng(1).normal(size=(500, 2)))
    assert len(found.values) == LAG
    text = json.dumps(found.to_dict())
    assert Diagnostics.from_dict(json.loads(text)) == found
    assert len(text) < 950
    assert replace(found, failures=2).missed().failures == 3


def test_a_healthy_study_has_no_complaint(tmp_path):
    with Study.open(
        tmp_path / "t.db", "a", [{"name": n, "low": 0.0, "high": 1.0, "start": 0.5} for n in "ab"], seed=0
    ) as study:
        for t in range(120):
            trial = study.ask()
            x = np.array(list(trial.knobs.values()))
            goal = 0.5 + 0.3 * np.array([math.cos(t / 60), math.sin(t / 60)])
            study.tell(trial, float(((x - goal) ** 2).sum()))
        found = study.findings()
    assert not any(finding.advice for finding in found.values()), found


def test_huge_values_do_no_harm(tmp_path):
    with Study.open(tmp_path / "t.db", "a", [{"name": "x", "low": 0.0, "high": 1.0, "start": 0.5}], seed=0) as study:
        for value in (1.0, 1e308, -1e308, 1e200, 2.0):
            study.tell(study.ask(), value)
        assert all(math.isfinite(finding.value) for finding in study.findings().values())
    with Study.open(tmp_path / "t.db", "a") as study:
        assert [event.value for event in study.events()][1:] == [1.0, 1e308, -1e308, 1e200, 2.0]
