"""A tuner that is stopped at any round and resumed goes on bit by bit as if nothing had happened."""

import math
import os
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import trimtab as tt

LAWS = [tt.Gaussian(), tt.Sphere(), tt.Rademacher(), tt.Paired()]
LONG = bool(os.environ.get("TRIMTAB_LONG"))
STEPS = [0.003, tt.Power(0.01), tt.Normalised(1.0)]


@st.composite
def tuners(draw):
    estimator = draw(st.sampled_from([tt.OnePoint(), tt.Residual(), tt.HighPass(0.7), tt.TwoPoint("forward")]))
    method = tt.Method(
        estimator=estimator,
        radius=draw(st.floats(0.001, 0.05)),
        step=draw(st.sampled_from(STEPS)),
        directions=draw(st.sampled_from(LAWS)),
        max_move=draw(st.sampled_from([None, 0.5])),
    )
    dim = draw(st.integers(1, 6))
    shape = (dim,) if draw(st.booleans()) else (draw(st.integers(1, 4)), dim)
    options = draw(
        st.sampled_from([{}, {"domain": tt.Box(-1, 1)}, {"domain": tt.Ball(1.0)}, {"bounds": [(-1, 2)] * dim}])
    )
    pending = draw(st.sampled_from([1, 1, 3]))
    return tt.Tuner(np.zeros(shape), method, seed=draw(st.integers(0, 2**64 - 1)), max_pending=pending, **options)


def go_on(tuner, values, rounds):
    """Tells `rounds` values, some late, some missing; returns the path."""
    path = []
    waiting = list(tuner.pending)
    for _ in range(rounds):
        if len(waiting) < tuner.setup.max_pending:
            waiting.append(tuner.ask())
        trial = waiting.pop(int(values.integers(len(waiting))))
        value = values.standard_normal(trial.x.shape[:-1])
        tuner.tell(trial, math.nan * value if values.random() < 0.1 else value)
        path.append(tuner.centre.copy())
    return np.array(path)


@settings(max_examples=150 if LONG else 60, deadline=None, derandomize=True)
@given(
    tuner=tuners(),
    rounds=st.integers(0, 40),
    way=st.sampled_from(["json text", "t.json", "t.npz"]),
    noise=st.integers(),
)
def test_resume_is_bit_identical(tuner, rounds, way, noise):
    go_on(tuner, np.random.default_rng(abs(noise)), rounds)
    if way == "json text":
        twin = tt.Tuner.from_json(tuner.to_json())
    else:
        with tempfile.TemporaryDirectory() as folder:
            tuner.save(Path(folder) / way)
            twin = tt.Tuner.load(Path(folder) / way)
    assert twin.state.round == tuner.state.round
    rest = [go_on(t, np.random.default_rng(1), 25) for t in (tuner, twin)]
    np.testing.assert_array_equal(*rest)
    assert tuner.to_json() == twin.to_json()


@settings(max_examples=60 if LONG else 25, deadline=None, derandomize=True)
@given(tuner=tuners(), rounds=st.integers(0, 10))
def test_asking_changes_nothing(tuner, rounds):
    go_on(tuner, np.random.default_rng(0), rounds)
    if tuner.setup.max_pending > 1:
        return
    before = tuner.to_json()
    queries = [tuner.ask().x for _ in range(3)]
    assert tuner.to_json() == before
    for query in queries:
        np.testing.assert_array_equal(query, queries[0])


@settings(max_examples=60 if LONG else 25, deadline=None, derandomize=True)
@given(
    order=st.permutations(range(6)),
    values=st.lists(st.floats(-10, 10), min_size=6, max_size=6),
)
def test_permuted_late_tells_are_the_sum_of_their_contrasts(order, values):
    tuner = tt.Tuner(np.zeros(2), tt.residual(radius=0.1, step=0.01), seed=0, max_pending=6)
    trials = [tuner.ask() for _ in range(6)]
    expected, anchor = np.zeros(2), None
    for k in order:
        tuner.tell(trials[k], values[k])
        if anchor is not None:
            expected = expected - 0.01 / 0.1 * (values[k] - anchor) * trials[k].x / 0.1
        anchor = values[k]
    np.testing.assert_allclose(tuner.centre, expected, atol=1e-12)
