"""The oracle: its filter by hand, and what it is worth."""

import numpy as np
import pytest

from trimtab import lab
from trimtab.lab.suites import oracle
from trimtab.problems import Quadratic, make


def test_one_value_by_hand():
    """d = 1, λ = 1, prior c ~ N(3, 4), b = 0, σ = 0.5, probed at 5: the second-order update, on paper.

    ŷ = ½·2² + ½·4 = 4, H = (−2, 1), S = 4·4 + ¼ + ½·4² = 24.25, K = (−8, 0)/24.25; y = 10 moves c by −48/24.25.
    """
    belief = oracle._Belief(Quadratic(dim=1, condition=1.0, noise=0.5, distance=2.0), np.array([[3.0]]))
    belief.learn(np.array([[5.0]]), np.array([10.0]))
    assert belief.optimum[0, 0] == pytest.approx(3.0 - 48 / 24.25)
    assert belief.distance[0] ** 2 == pytest.approx(4.0 - 64 / 24.25)
    assert belief.mean[0, -1] == 0.0


def test_the_drift_is_foreseen():
    walk = oracle._Belief(Quadratic(dim=4, drift="walk", speed=0.2, offset=0.1, distance=1.0), np.zeros((1, 4)))
    walk.predict(1)
    assert walk.distance[0] ** 2 == pytest.approx(1.0 + 0.04)
    assert walk.covariance[0, -1, -1] == pytest.approx(0.01)
    line = oracle._Belief(Quadratic(dim=4, drift="line", speed=0.2, distance=1.0), np.zeros((1, 4)))
    for t in (1, 2, 3):
        line.predict(t)
    assert line.distance[0] ** 2 == pytest.approx(1.0 + 9 * 0.04)  # the same velocity all the time
    jumps = oracle._Belief(Quadratic(dim=4, drift="jumps", speed=0.2, every=2, distance=1.0), np.zeros((1, 4)))
    jumps.predict(1)
    assert jumps.distance[0] ** 2 == pytest.approx(1.0)
    jumps.predict(2)
    assert jumps.distance[0] ** 2 == pytest.approx(1.0 + 0.16)
    ramps = oracle._Belief(Quadratic(dim=4, drift="ramps", speed=0.2, every=2, distance=1.0), np.zeros((1, 4)))
    for t in range(1, 5):
        ramps.predict(t)
    assert ramps.distance[0] ** 2 == pytest.approx(1.0 + 4 * 0.04)  # two rounds on the way, two at rest


@pytest.mark.parametrize("drift", oracle.DRIFTS)
def test_it_does_better_than_residual_feedback_with_any_step(drift):
    problem = make("quadratic-v1", dim=3, drift=drift, rotate=True, noise=0.01, offset=0.002, radius=0.1)
    found = oracle.consult(problem, rounds=200, trials=8)
    assert found["centre"].diverged == 0
    best = lab.tune(problem, "residual", rounds=200, trials=8, hindsight=True).method
    record = lab.run(problem, best, rounds=200, trials=8)
    for score, result in found.items():
        assert result.median < 0.8 * np.median(record.score(score))


def test_bases_are_orthonormal_and_each_trial_has_its_own():
    bases = oracle._bases(0, 2, 3)
    block = np.stack([next(bases) for _ in range(3)], axis=1)  # (trials, 3, 3)
    np.testing.assert_allclose(block @ block.swapaxes(1, 2), np.tile(np.eye(3), (2, 1, 1)), atol=1e-12)
    assert not np.allclose(block[0], block[1])


@pytest.mark.parametrize(
    ("id", "parameters"),
    [
        ("absolute-v1", {}),
        ("corner-v1", {}),
        ("quadratic-v1", {"dim": 200}),
        ("quadratic-v1", {"drift": "telegraph"}),
        ("quadratic-v1", {"noise": 0.1, "noise_law": "student"}),
    ],
)
def test_where_it_knows_nothing_it_says_so(id, parameters):
    problem = make(id, **parameters)
    assert not oracle.knows(problem)
    with pytest.raises(ValueError, match=f"there is no oracle for {id}: only for quadratic-v1"):
        oracle.consult(problem, rounds=3, trials=2)


def test_it_stands_beside_the_methods_of_a_suite_where_it_exists():
    found = lab.judge("drift", ["still", "oracle"], trials=2, every=14)
    known = {place.group for place, row in zip(found.places, found.outcomes, strict=True) if "oracle" in row}
    assert known == {"d = 2", "d = 10"}
    assert found.mean("still", "oracle").value > 1
