"""Plain functions as problems."""

import numpy as np
import pytest

from trimtab.domains import Box
from trimtab.problems import check_problem, from_function


def sphere(t: int, x: np.ndarray) -> float:
    return float(np.sum((x - 0.01 * t) ** 2))


def spheres(t: int, x: np.ndarray) -> np.ndarray:
    return np.sum((x - 0.01 * t) ** 2, axis=-1)


def test_the_function_gets_one_point_or_all():
    x = np.random.default_rng(0).standard_normal((3, 4, 2))
    one = from_function(sphere, x0=[1.0, 2.0]).world(0, 3)
    many = from_function(spheres, x0=[1.0, 2.0], vectorised=True).world(0, 3)
    assert one.cost(5, x).shape == (3, 4)
    np.testing.assert_allclose(one.cost(5, x), many.cost(5, x), rtol=1e-14)
    assert one.cost(5, x)[1, 2] == sphere(5, x[1, 2])


def test_optimum_and_optimiser_are_numbers_or_functions():
    fixed = from_function(sphere, x0=[0.0], optimum=0).world(0, 2)
    np.testing.assert_array_equal(fixed.optimum(3), [0.0, 0.0])
    assert fixed.optimiser(3) is None
    moving = from_function(sphere, x0=[0.0, 1.0], optimum=lambda t: 2.0 * t, optimiser=lambda t: [t, 0]).world(0, 2)
    np.testing.assert_array_equal(moving.optimum(3), [6.0, 6.0])
    np.testing.assert_array_equal(moving.optimiser(3), [[3.0, 0.0], [3.0, 0.0]])
    assert np.isnan(from_function(sphere, x0=[0.0]).world(0, 2).optimum(3)).all()


def test_it_satisfies_the_contract():
    check_problem(from_function(sphere, x0=[1.0, 2.0], optimum=0.0, optimiser=lambda t: [0.01 * t] * 2, noise=0.5))
    check_problem(from_function(spheres, x0=[0.5], domain=Box(0.0, 1.0), vectorised=True))


def test_the_function_may_modify_its_point():
    def careless(t: int, x: np.ndarray) -> float:
        x -= 1.0
        return float(x @ x)

    check_problem(from_function(careless, x0=[1.0, 2.0]))


def test_noise_differs_by_trial():
    world = from_function(sphere, x0=[1.0], noise=1.0).world(0, 3)
    x = np.ones((3, 1, 1))
    assert len(np.unique(world.measure(0, x))) == 3
    assert len(np.unique(world.cost(0, x))) == 1


def test_a_function_that_fails_gives_nan():
    world = from_function(lambda t, x: float("nan"), x0=[1.0]).world(0, 1)
    assert np.isnan(world.cost(0, np.ones((1, 1, 1)))).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"x0": []}, "x0=.* is not a point"),
        ({"x0": [[1.0]]}, "x0=.* is not a point"),
        ({"x0": [np.inf]}, "x0=.* is not a point"),
        ({"x0": [2.0], "domain": Box(0.0, 1.0)}, "is not in Box.*: start inside, or widen the domain"),
        ({"x0": [2.0], "domain": Box([0, 0], [9, 9])}, "is not in Box"),
        ({"x0": [2.0], "rounds": 0}, "rounds=0 must be"),
        ({"x0": [2.0], "radius": 0.0}, "radius=0.0 must be"),
        ({"x0": [2.0], "noise": -1.0}, "noise=-1.0 must be"),
    ],
)
def test_bad_parameters_raise_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        from_function(sphere, **parameters)


def test_a_non_function_is_refused():
    with pytest.raises(TypeError, match="f=3 is not a function"):
        from_function(3, x0=[1.0])


def test_a_non_number_is_refused():
    with pytest.raises(TypeError, match="f returned None, not a number"):
        from_function(lambda t, x: None, x0=[1.0]).world(0, 1).cost(0, np.ones((1, 1, 1)))


def test_a_wrong_shape_is_refused():
    world = from_function(lambda t, x: np.zeros(3), x0=[1.0], vectorised=True).world(0, 1)
    with pytest.raises(ValueError, match=r"f returned the shape \(3,\) for points of shape \(1, 2, 1\)"):
        world.cost(0, np.ones((1, 2, 1)))
