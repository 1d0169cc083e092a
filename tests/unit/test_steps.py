import math

import numpy as np
import pytest

import trimtab as tt
from trimtab.steps import as_step


def run(step, values, max_move=None, directions=None, dim=4, radius=0.5):
    """The moves that these values cause, and the directions."""
    method = tt.Method(
        estimator=tt.OnePoint(), radius=radius, step=step, max_move=max_move, directions=directions or tt.Rademacher()
    )
    tuner = tt.Tuner(np.zeros(dim), method, seed=1)
    moves, directions = [], []
    for value in values:
        before, trial = tuner.centre, tuner.ask()
        directions.append((trial.x - before) / radius)
        tuner.tell(trial, value)
        moves.append(tuner.centre - before)
    return moves, directions


def test_a_function_of_the_round_is_a_schedule():
    moves, directions = run(lambda t: 1 / (1 + t), [1.0, 1.0, 1.0])
    for t, (move, u) in enumerate(zip(moves, directions, strict=True)):
        np.testing.assert_allclose(move, -(1 / (1 + t)) * u / 0.5)


def test_power_is_the_schedule_it_says():
    moves, directions = run(tt.Power(0.3, exponent=0.5), [1.0, 1.0, 1.0])
    for t, (move, u) in enumerate(zip(moves, directions, strict=True)):
        np.testing.assert_allclose(move, -0.3 / math.sqrt(1 + t) * u / 0.5)


@pytest.mark.parametrize("law", [tt.Rademacher(), tt.Sphere(), tt.Gaussian()], ids=str)
def test_a_move_is_shortened_to_c_probe_lengths(law):
    probe = 0.5 if law == tt.Sphere() else 0.5 * math.sqrt(4)
    (short, long), directions = run(0.01, [1e-3, 1e6], max_move=0.3, directions=law)
    assert np.linalg.norm(long) == pytest.approx(0.3 * probe)
    np.testing.assert_allclose(long / np.linalg.norm(long), -directions[1] / np.linalg.norm(directions[1]))
    np.testing.assert_allclose(short, -0.01 * law.scale(4) * directions[0] / 0.5 * 1e-3)


def test_normalised_moves_in_units_of_the_running_rms():
    moves, _ = run(tt.Normalised(2.0, window=2), [3.0, 4.0, 1.0])
    s1 = 3.0  # k = 1: weight 1
    s2 = math.sqrt((9 + 16) / 2)  # k = 2: weight 1/2
    s3 = math.sqrt(s2**2 / 2 + 1 / 2)  # from then on: weight 1/window
    probe = 0.5 * 2
    for move, value, rms in zip(moves, (3.0, 4.0, 1.0), (s1, s2, s3), strict=True):
        # ‖η·(a/δ)·u‖ with η = gain·ρ²/(d^{3/2}·s) and ‖u‖ = √d
        assert np.linalg.norm(move) == pytest.approx(2.0 * probe**2 / 8 / rms * value / 0.5 * 2)


def test_a_typical_normalised_move_does_not_depend_on_the_law():
    lengths = []
    for law, radius in ((tt.Rademacher(), 0.1), (tt.Sphere(), 0.1 * math.sqrt(50))):  # probes of the same length
        moves, _ = run(tt.Normalised(1.0), [1.0], directions=law, dim=50, radius=radius)
        lengths.append(np.linalg.norm(moves[0]))
    assert lengths[0] == pytest.approx(lengths[1])
    assert lengths[0] == pytest.approx(0.1)  # gain·ρ/√d


def test_an_outlier_moves_at_most_root_window_typical_moves():
    moves, _ = run(tt.Normalised(1.0, window=100), [1.0, -1.0] * 100 + [1e9])
    assert np.linalg.norm(moves[-1]) <= 10.01 * np.linalg.norm(moves[-2])


@pytest.mark.parametrize("step", [0, -1.0, math.nan, math.inf])
def test_a_step_must_be_positive(step):
    with pytest.raises(ValueError, match="finite number > 0"):
        tt.residual(radius=0.1, step=step)


def test_what_is_no_step_is_refused():
    with pytest.raises(TypeError, match="give a number, a function of the round"):
        as_step("fast")
    with pytest.raises(ValueError, match="window=0"):
        tt.Normalised(1.0, window=0)
    with pytest.raises(ValueError, match="gain=-1"):
        tt.Normalised(-1)
    with pytest.raises(ValueError, match="exponent=9"):
        tt.Power(0.1, exponent=9)


def test_a_schedule_that_gives_nonsense_leaves_the_state():
    tuner = tt.Tuner([0.0], tt.one_point(radius=0.1, step=lambda t: math.nan), seed=0)
    before = tuner.state
    with pytest.raises(ValueError, match="the schedule gave nan in round 0"):
        tuner.tell(0, 1.0)
    assert tuner.state is before
