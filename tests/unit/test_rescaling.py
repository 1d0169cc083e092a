"""A state in other units: the path of f(x) and that of f(x/2), told in coordinates twice as large, are one path."""

import numpy as np
import pytest

import trimtab as tt
from trimtab.core import ask, carried, init, tell
from trimtab.rescaling import POWERS, VECTORS, rescaled
from trimtab.setup import Setup
from trimtab.tracker.pace import looks_ahead

FACTOR = 4.0  # a power of two: nothing is rounded
START = np.array([0.25, -0.5, 0.75])


def equal(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    return a is b is None or np.array_equal(a, b, equal_nan=True)


def walk(setup, start, unit, rounds):
    rng, state = np.random.default_rng(0), init(setup, start, seed=1)
    for t in range(rounds):
        x = ask(setup, state).x / unit
        jump = 50.0 * (t == 30)
        state = tell(setup, state, float(((x - 0.1) ** 2) @ [1.0, 2.0, 3.0] + 0.01 * rng.normal() + jump))
    return state


def rescaled_parts(state, factors):
    return tuple(rescaled(part, factors) for part in state.memory)


@pytest.mark.parametrize(
    ("method", "larger"),
    [
        (tt.auto(radius=0.05), tt.auto(radius=0.05 * FACTOR)),
        (tt.residual(radius=0.05, step=0.001), tt.residual(radius=0.05 * FACTOR, step=0.001 * FACTOR**2)),
        (
            tt.methods["hlf-szo"](radius=0.05, step=0.001),
            tt.methods["hlf-szo"](radius=0.05 * FACTOR, step=0.001 * FACTOR**2),
        ),
        (
            tt.Method(estimator=tt.Covariance(4), radius=0.05, step=tt.Normalised()),
            tt.Method(estimator=tt.Covariance(4), radius=0.05 * FACTOR, step=tt.Normalised()),
        ),
    ],
)
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 20, 31, 32, 90])
def test_every_memory_scales_by_its_powers_of_length(method, larger, rounds):
    state = walk(Setup(method, (3,)), START, 1.0, rounds)
    other = walk(Setup(larger, (3,)), FACTOR * START, FACTOR, rounds)
    factors = np.full(3, FACTOR)
    assert equal(rescaled_parts(state, factors), other.memory)
    found = carried(Setup(larger, (3,)), state, factors)
    assert equal((found.centre, found.last), (other.centre, other.last))


def test_one_factor_for_each_coordinate():
    setup = Setup(tt.auto(radius=0.05), (3,))
    state = walk(setup, START, 1.0, 40)
    factors = np.array([1.0, 2.0, 0.5])
    found = carried(setup, state, factors)
    assert np.array_equal(found.centre, factors * state.centre)
    assert np.array_equal(found.slope.slope, state.slope.slope / factors)
    following = found.pace.following
    assert np.any(following.velocity != 0)
    assert following.speed == pytest.approx(np.linalg.norm(following.velocity))  # what is carried is held to it
    assert found.slope.bent == pytest.approx(state.slope.bent * np.mean(factors**-2))
    for fit in (state.slope, found.slope):
        assert fit.size == pytest.approx(np.sum((fit.fade * fit.slope) ** 2))
    assert equal(carried(setup, found, 1 / factors).centre, state.centre)


def test_fields_are_those_of_the_memories():
    assert all({*powers} <= {*kind._fields} for kind, powers in POWERS.items())
    assert {*VECTORS} <= {name for powers in POWERS.values() for name in powers}


def test_an_unknown_memory_is_refused():
    state = walk(Setup(tt.auto(radius=0.05), (3,)), START, 1.0, 3)
    with pytest.raises(ValueError, match=r"memory of Look has no scaling rule: add it to trimtab.rescaling"):
        rescaled(state.last, np.ones(3))


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 15])
def test_after_an_interruption_the_next_query_is_new(rounds):
    """Rounds 2 (the mirror image), 3, 7 and 15 (echoes) look at an earlier trial; interrupted, they do not."""
    setup = Setup(tt.auto(radius=0.05), (3,))
    state = walk(setup, START, 1.0, rounds)
    assert (ask(setup, state).look.trial == rounds) == (rounds == 1)
    look = ask(setup, carried(setup, state, np.ones(3))).look
    assert look.trial == rounds
    # The centre, a probe and its mirror image are measured again; one trial of eight looks along the course.
    assert (look.width == 0) == (rounds <= 2 or looks_ahead(rounds))
