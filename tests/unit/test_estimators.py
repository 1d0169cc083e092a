"""Hand-computed values of every estimator, against the paper's equations, through the tuner that uses them."""

import math

import numpy as np
import pytest

import trimtab as tt

RADIUS, STEP = 0.5, 0.1


def move(method: tt.Method, values: list, seed: int = 3) -> tuple[np.ndarray, list[np.ndarray]]:
    """The centre after these values from the origin, and the directions that were used."""
    tuner = tt.Tuner(np.zeros(2), method, seed=seed)
    directions = []
    for value in values:
        trial = tuner.ask()
        first = trial.x if trial.x.ndim == 1 else trial.x[0]
        directions.append((first - tuner.centre) / RADIUS)
        tuner.tell(trial, value)
    return tuner.centre, directions


def test_one_point_is_the_value_times_u_over_delta():
    centre, (u,) = move(tt.one_point(radius=RADIUS, step=STEP), [3.0])
    np.testing.assert_allclose(centre, -STEP * u / RADIUS * 3.0)  # Eq. (2), Eq. (4)


def test_residual_is_the_difference_of_consecutive_values():
    centre, (_, u) = move(tt.residual(radius=RADIUS, step=STEP), [3.0, 5.0])
    np.testing.assert_allclose(centre, -STEP * u / RADIUS * (5.0 - 3.0))  # Eq. (3)


def test_residual_over_three_rounds():
    centre, (_, u1, u2) = move(tt.residual(radius=RADIUS, step=STEP), [3.0, 5.0, 1.0])
    np.testing.assert_allclose(centre, -STEP / RADIUS * (u1 * (5.0 - 3.0) + u2 * (1.0 - 5.0)))  # Eq. (3)


def test_the_first_residual_only_anchors():
    centre, _ = move(tt.residual(radius=RADIUS, step=STEP), [1e9])
    np.testing.assert_array_equal(centre, [0.0, 0.0])


def test_high_pass_is_its_recursion():
    beta = 0.5
    centre, (_, u1, u2) = move(tt.high_pass(radius=RADIUS, step=STEP, beta=beta), [3.0, 5.0, 1.0])
    z1 = beta * 0.0 + 5.0 - 3.0  # z_t = β z_{t−1} + y_t − y_{t−1}, z_0 = 0
    z2 = beta * z1 + 1.0 - 5.0
    np.testing.assert_allclose(centre, -STEP / RADIUS * (u1 * z1 + u2 * z2))


def test_high_pass_without_memory_is_residual_feedback():
    values = [3.0, 5.0, 1.0, 7.0]
    ours, _ = move(tt.high_pass(radius=RADIUS, step=STEP, beta=0.0), values)
    theirs, _ = move(tt.residual(radius=RADIUS, step=STEP), values)
    np.testing.assert_allclose(ours, theirs)


def test_two_point_symmetric():
    centre, (u,) = move(tt.two_point(radius=RADIUS, step=STEP), [[3.0, 7.0]])
    np.testing.assert_allclose(centre, -STEP * u / (2 * RADIUS) * (3.0 - 7.0))  # Bach & Perchet 2016


def test_two_point_forward():
    centre, (u,) = move(tt.two_point(radius=RADIUS, step=STEP, form="forward"), [[3.0, 7.0]])
    np.testing.assert_allclose(centre, -STEP * u / RADIUS * (3.0 - 7.0))  # Eq. (1)


def test_modified_two_point():
    centre, (u,) = move(tt.modified_two_point(radius=RADIUS, step=STEP), [[3.0, 7.0]])
    np.testing.assert_allclose(centre, -STEP * u / (2 * RADIUS) * (3.0 - 7.0))  # Remark 2.5


def test_residual_on_the_sphere_is_scaled_by_d_over_delta():
    centre, (_, u) = move(tt.residual(radius=RADIUS, step=STEP, directions=tt.Sphere()), [3.0, 5.0])
    assert np.linalg.norm(u) == pytest.approx(1.0)
    np.testing.assert_allclose(centre, -STEP * 2 / RADIUS * (5.0 - 3.0) * u)  # Appendix H, d = 2


def test_paired_halves_the_residual_where_the_anchor_was_measured_at_minus_u():
    centre, (u0, u1) = move(tt.residual(radius=RADIUS, step=STEP, directions=tt.Paired()), [3.0, 5.0])
    np.testing.assert_array_equal(u1, -u0)
    np.testing.assert_allclose(centre, -STEP * u1 / (2 * RADIUS) * (5.0 - 3.0))  # Remark 2.5, on consecutive rounds


@pytest.mark.parametrize(
    ("method", "offsets"),
    [
        (tt.two_point(radius=RADIUS, step=STEP), (1, -1)),
        (tt.two_point(radius=RADIUS, step=STEP, form="forward"), (1, 0)),
        (tt.modified_two_point(radius=RADIUS, step=STEP), (1, -1)),
    ],
)
def test_where_two_queries_are(method, offsets):
    tuner = tt.Tuner([1.0, 2.0], method, seed=0)
    x = tuner.ask().x
    assert method.queries == 2
    assert x.shape == (2, 2)
    u = (x[0] - tuner.centre) / RADIUS
    np.testing.assert_allclose(x, [tuner.centre + offset * RADIUS * u for offset in offsets])


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="form='sideways' is unknown: choose 'symmetric' or 'forward'"):
        tt.two_point(radius=0.1, step=0.1, form="sideways")
    with pytest.raises(ValueError, match=r"beta=1\.5 .* choose 0 <= beta < 1"):
        tt.HighPass(1.5)


def learned(estimator, values, queries, probe=1.0):
    """What an estimator makes of these values, measured at these queries: contrast, ĝ, memory."""
    setup = tt.Setup(tt.Method(estimator=estimator, radius=probe / math.sqrt(2), step=1.0), (2,))
    state, bound = tt.init(setup, np.zeros(2)), estimator.bind(setup.frame)
    for k, (value, query) in enumerate(zip(values, queries, strict=True)):
        look = tt.Look(k, np.zeros(2), 1.0)
        contrast, scale, vector, memory = bound.learn(state, look, np.array(query), (float(value),))
        state = state.remembering(memory)._replace(values=(value,), told=k, last=look)
    return contrast, scale * vector, memory


def test_covariance_by_hand():
    """y = 5, 7, 3 at (1,0), (0,1), (−1,0), δ² = ½ (probe 1, d = 2): Σ (y − 5)(p − p̄)/2 · 2."""
    contrast, slope, _ = learned(tt.Covariance(5), [5.0, 7.0, 3.0], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    assert contrast == -4.0
    np.testing.assert_allclose(slope, [2 * 0 - 2 * -1.0, 2 * 1.0])


def test_covariance_forgets_what_is_older_than_m():
    queries = np.random.default_rng(0).standard_normal((9, 2)).tolist()
    _, long, memory = learned(tt.Covariance(3), range(9), queries)
    _, short, _ = learned(tt.Covariance(3), range(6, 9), queries[6:])
    np.testing.assert_allclose(long, short)
    assert memory.queries.shape == (3, 2)  # O(m·d)


def test_covariance_of_two_is_the_symmetric_residual():
    _, slope, _ = learned(tt.Covariance(2), [1.0, 4.0], [[0.3, 0.1], [-0.2, 0.5]], probe=0.5)
    np.testing.assert_allclose(slope, 0.5 * 3.0 * np.array([-0.5, 0.4]) * 2 / 0.25)


def test_estimators_that_remember_refuse_nonsense():
    with pytest.raises(ValueError, match="m=1 must be a whole number, at least 2: fewer queries have no covariance"):
        tt.Covariance(1)
    with pytest.raises(ValueError, match="window=0"):
        tt.Plane(window=0)
    with pytest.raises(ValueError, match="learning=2"):
        tt.Plane(learning=2)
