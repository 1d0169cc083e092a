"""What `Covariance` is worth under drift: E ĝ is the mean gradient of the window, not the newest one."""

import numpy as np
import pytest

import trimtab as tt
from trimtab.directions import Stream

LANES, DIM, RADIUS = 20_000, 4, 0.3


def mean_slope(gradients, curvature, m, law):
    """Mean and standard error of ĝ over lanes, at a centre that stays, f_t(x) = ⟨b_t, x⟩ + ½xᵀAx."""
    method = tt.Method(estimator=tt.Covariance(m), radius=RADIUS, step=1.0, directions=law)
    setup, stream = tt.Setup(method, (LANES, DIM)), Stream(law, (LANES, DIM), seed=8)
    state, bound = tt.init(setup, np.zeros((LANES, DIM))), method.estimator.bind(setup.frame)
    for t, b in enumerate(gradients):
        query = RADIUS * stream(t)
        value = query @ b + 0.5 * np.einsum("ij,jk,ik->i", query, curvature, query)
        _, scale, vector, memory = bound.learn(state, tt.Look(t, state.centre, 1.0), query, (value,))
        state = state.remembering(memory)._replace(values=(value,))
    slope = scale * vector
    return slope.mean(0), slope.std(0) / np.sqrt(LANES)


CURVATURE = np.array([[1.0, 0.3, 0.0, 0.1], [0.3, 2.0, -0.4, 0.0], [0.0, -0.4, 0.5, 0.2], [0.1, 0.0, 0.2, 1.5]])


@pytest.mark.parametrize("law", [tt.Rademacher(), tt.Gaussian()], ids=str)
@pytest.mark.parametrize("m", [2, pytest.param(3, marks=pytest.mark.long), 5])
def test_of_a_quadratic_that_stands_still_it_is_unbiased(m, law):
    b = np.array([1.0, -2.0, 0.5, 0.0])
    for rounds in (2, m + 3):  # also before the window is full
        mean, error = mean_slope([b] * rounds, CURVATURE, m, law)
        assert np.all(np.abs(mean - b) < 6 * error)


@pytest.mark.parametrize("m", [2, 5])
def test_under_drift_it_lags_by_half_the_window(m):
    """E ĝ = (1/n)·Σ_i ∇f_i: for a gradient that turns steadily, that of (n − 1)/2 rounds ago."""
    start, turn = np.array([1.0, -2.0, 0.5, 0.0]), np.array([0.5, 0.0, -0.25, 1.0])
    gradients = [start + t * turn for t in range(8)]
    mean, error = mean_slope(gradients, CURVATURE, m, tt.Rademacher())
    lagging = gradients[-1] - 0.5 * (m - 1) * turn
    np.testing.assert_allclose(lagging, np.mean(gradients[-m:], axis=0))
    assert np.all(np.abs(mean - lagging) < 6 * error)
    assert np.any(np.abs(mean - gradients[-1]) > 6 * error)
