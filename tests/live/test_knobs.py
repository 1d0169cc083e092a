import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.live import Knob, Knobs
from trimtab.live.knobs import rounding


@given(st.floats(1e-9, 1e9), st.floats(1.001, 1e6), st.floats(0, 1), st.sampled_from(["linear", "log"]))
def test_shares_and_values_belong_together_and_stay_inside(low, ratio, share, scale):
    knob = Knob(name="x", low=low, high=low * ratio, start=low, scale=scale)
    value = knob.value(share)
    assert knob.low <= value <= knob.high
    assert knob.share(value) == pytest.approx(share, abs=1e-6)


def test_whole_numbers_are_right_on_average():
    knobs = Knobs((Knob(name="n", low=0, high=10, start=5, type="integer"),))
    draws = rounding(seed=1)
    found = [knobs.probe([0.327], draws, round)["n"] for round in range(20_000)]
    assert set(found) == {3, 4}
    # p = 0.27, standard error √(p(1−p)/n) = 0.0031; five of them, for a false alarm in 1.7 million
    assert abs(np.mean(found) - 3.27) < 5 * math.sqrt(0.27 * 0.73 / 20_000)
    assert all(isinstance(value, int) for value in found)


def test_the_slope_through_rounded_probes_is_that_of_the_interpolation():
    """E[y·u]/δ for f(n) = n², probes of ±0.3 about 4.5: the slope of the interpolation between 4 and 5 is 9."""
    knobs = Knobs((Knob(name="n", low=0, high=10, start=5, type="integer"),))
    draws, rng = rounding(seed=2), np.random.default_rng(0)
    signs = rng.choice([-1, 1], 40_000)
    values = [knobs.probe([0.45 + 0.03 * u], draws, t)["n"] ** 2 - 20.5 for t, u in enumerate(signs)]
    slope = np.mean(values * signs) / 0.3
    assert abs(slope - 9) < 5 * 4.5 / 0.3 / math.sqrt(40_000)  # |y − 20.5| = 4.5 always


def test_rounding_belongs_to_the_round():
    knobs = Knobs((Knob(name="n", low=0, high=10, start=5, type="integer"),))
    first = [knobs.probe([0.45], rounding(3), round) for round in range(50)]
    again = [knobs.probe([0.45], rounding(3), round) for round in reversed(range(50))]
    assert first == again[::-1]
    assert knobs.setting([0.45]) == {"n": 5}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "two words"}, "a name is letters"),
        ({"low": 9}, "low=9 is not below high=9: swap them"),
        ({"start": 11}, "start=11 is outside 1 to 9: start is where the system is now"),
        ({"low": 0, "scale": "log"}, "low=0 is not above zero"),
        ({"low": 1.5, "type": "integer"}, "low=1.5 is not a whole number"),
        ({"high": math.inf}, "high=inf is not a finite number"),
        ({"start": True}, "start=True is not a finite number"),
        ({"type": "int"}, "choose 'float' or 'integer'"),
        ({"scale": "ln"}, "choose 'linear' or 'log'"),
        ({"unit": 3}, "unit=3 is not a text"),
        ({"step": 1}, "'step' is no field of a knob"),
    ],
)
def test_what_is_wrong_with_a_knob_is_said(fields, reason):
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        Knobs.of([{"name": "x", "low": 1, "high": 9, "start": 5, **fields}])


def test_what_is_wrong_with_several_knobs_is_said():
    knob = {"name": "x", "low": 1, "high": 9, "start": 5}
    with pytest.raises(ValueError, match="two knobs are called X"):
        Knobs.of([knob, {**knob, "name": "X"}])
    with pytest.raises(ValueError, match="has no start"):
        Knobs.of([{"name": "x", "low": 1, "high": 9}])
    with pytest.raises(ValueError, match="there is no knob"):
        Knobs.of([])
