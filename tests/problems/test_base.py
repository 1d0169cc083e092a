"""Paths, random numbers per trial, the registry."""

import re

import numpy as np
import pytest

import trimtab.problems as problems
from trimtab.problems import Path, Quadratic, make, registry
from trimtab.problems.base import ONCE, directions
from trimtab.util.extras import pip_install


def test_a_path_steps_once_per_round_and_the_last_rounds_are_cheap_in_either_order():
    steps: list[int] = []

    def step(t: int, s: float) -> float:
        steps.append(t)
        return s + t

    path = Path(0.0, step)
    assert [path(t) for t in (3, 2, 3, 4, 3, 4)] == [6.0, 3.0, 6.0, 10.0, 6.0, 10.0]
    assert steps == [1, 2, 3, 4]


def test_a_path_that_goes_back_starts_again():
    steps: list[int] = []

    def step(t: int, s: float) -> float:
        steps.append(t)
        return s + t

    path = Path(0.0, step)
    assert path(20) == 210.0
    steps.clear()
    assert path(2) == 3.0
    assert steps == [1, 2]
    assert path(0) == 0.0
    assert path(20) == 210.0


def test_a_path_keeps_few_states_and_makes_them_read_only():
    path = Path((np.zeros(2), np.ones(2)), lambda t, s: (s[0] + 1.0, s[1]))
    for t in range(100):
        path(t)
    assert len(path._recent) <= 4
    with pytest.raises(ValueError, match="read-only"):
        path(99)[0][0] = 5.0


def test_rounds_count_from_zero():
    with pytest.raises(ValueError, match="round=-1 is before the first"):
        Path(0.0, lambda t, s: s)(-1)


def test_draws_of_a_trial_do_not_depend_on_other_trials():
    problem = Quadratic(dim=4)
    all_of_them = directions(problem.world(3, 5), ONCE, 4)
    np.testing.assert_array_equal(directions(problem.world(3, 2, 2), ONCE, 4), all_of_them[2:4])
    np.testing.assert_allclose(np.linalg.norm(all_of_them, axis=1), 1.0, rtol=1e-14)
    assert len(np.unique(all_of_them)) == 20


def test_noise_differs_by_seed_trial_round_and_draw():
    numbers = {
        float(n)
        for seed in (0, 1)
        for round in (0, 1, 5)
        for draw in (0, 1)
        for n in Quadratic().world(seed, 3).noise(round, draw)
    }
    assert len(numbers) == 36


def test_drift_does_not_depend_on_the_noise_or_the_start():
    quiet, noisy = Quadratic(distance=0.0), Quadratic(noise=1.0)
    np.testing.assert_array_equal(quiet.world(1, 3).optimiser(10), noisy.world(1, 3).optimiser(10))


def test_an_unknown_problem_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown problem 'cubic-v1': choose one of absolute-v1, adversary-v1"):
        make("cubic-v1")


def test_an_unknown_parameter_lists_the_known_ones():
    with pytest.raises(TypeError, match=r"quadratic-v1: .*'sped'; its parameters are dim, drift, speed"):
        make("quadratic-v1", sped=1.0)


@pytest.mark.parametrize(
    ("id", "parameters", "message"),
    [
        ("quadratic-v1", {"dim": 0}, "dim=0 must be a whole number, at least 1"),
        ("quadratic-v1", {"dim": 2.5}, "dim=2.5 must be a whole number"),
        ("quadratic-v1", {"dim": True}, "dim=True must be a whole number"),
        ("quadratic-v1", {"drift": "fast"}, "drift='fast' is unknown: choose one of none, walk, line, jumps"),
        ("quadratic-v1", {"speed": -1.0}, "speed=-1.0 must be a finite number >= 0"),
        ("quadratic-v1", {"noise": np.nan}, "noise=nan must be a finite number"),
        ("quadratic-v1", {"noise": "much"}, "noise='much' must be a finite number"),
        ("quadratic-v1", {"condition": 0.5}, "condition=0.5 must be a finite number >= 1"),
        ("quadratic-v1", {"radius": 0.0}, "radius=0.0 must be a finite number > 0"),
        ("walk-v1", {"std": -1.0}, "std=-1.0 must be"),
        ("absolute-v1", {"scale": 0.0}, "scale=0.0 must be a finite number > 0"),
        ("logcosh-v1", {"width": 0.0}, "width=0.0 must be"),
        ("rosenbrock-v1", {"dim": 1}, "dim=1 must be a whole number, at least 2"),
        ("rosenbrock-v1", {"steepness": 0}, "steepness=0 must be"),
        ("peaks-v1", {"peaks": 0}, "peaks=0 must be"),
        ("peaks-v1", {"correlation": 1.5}, "correlation=1.5 must be between 0 .* and 1"),
        ("pricing-v1", {"customers": 0}, "customers=0 must be"),
        ("pricing-v1", {"period": 0}, "period=0 must be"),
        ("adversary-v1", {"order": "during"}, "order='during' is unknown: choose 'before' or 'after'"),
        ("adversary-v1", {"power": -1}, "power=-1 must be"),
    ],
)
def test_bad_parameters_raise_errors(id, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(id, **parameters)


@pytest.mark.parametrize(("seed", "trials", "first"), [(-1, 1, 0), (0, 0, 0), (0, 1, -1)])
def test_a_world_needs_a_seed_and_a_trial(seed, trials, first):
    with pytest.raises(ValueError, match="must be a whole number"):
        Quadratic().world(seed, trials, first)


def test_numbers_may_be_numpys():
    assert Quadratic(dim=np.int64(3), speed=np.float32(0.5)).world(np.uint64(2**64 - 1), np.int64(2)).trials == 2


@pytest.mark.parametrize("id", sorted(problems._LAZY))
def test_a_missing_extra_names_the_pip_command(id, monkeypatch):
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")

    module, cls = problems._LAZY[id]
    monkeypatch.setattr(problems, "import_module", missing)
    remedy = re.escape(f"{id} needs numba: {pip_install('lab')}")
    with pytest.raises(ImportError, match=remedy):
        problems._lazy(id, module)()
    with pytest.raises(ImportError, match=remedy):
        getattr(problems, cls)


@pytest.mark.parametrize("id", sorted(registry))
def test_a_problem_knows_its_id(id):
    try:
        assert make(id).id == id
    except ImportError as error:
        pytest.skip(str(error))


def test_the_module_has_no_other_attributes():
    with pytest.raises(AttributeError, match="no attribute 'Cubic'"):
        _ = problems.Cubic
