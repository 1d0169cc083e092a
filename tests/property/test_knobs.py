"""Whatever the space: every setting is one that the system can take, and settings and coordinates belong together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimtab as tt
from trimtab.knobs import Knob, Knobs

NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def fields(draw):
    kind = draw(st.sampled_from(["float", "log", "integer", "log integer", "grid", "bool", "choice", "fixed"]))
    radius = draw(st.none() | st.floats(0.001, 0.09))
    if kind == "bool":
        return {"type": "bool", "start": draw(st.booleans()), "radius": radius}
    if kind == "choice":
        names = draw(st.lists(st.text(min_size=1) | st.integers(), min_size=1, max_size=6, unique=True))
        return {"choices": names, "start": draw(st.sampled_from(names)), "radius": radius}
    if kind == "grid":
        low, step = draw(st.integers(-50, 50)), draw(st.sampled_from([0.1, 0.25, 0.3, 2.0]))
        levels = draw(st.integers(1, 40))
        place = [float(f"{low + k * step:.10g}") for k in range(levels + 1)]
        return {"low": low, "high": place[-1], "start": draw(st.sampled_from(place)), "step": step, "radius": radius}
    if kind == "fixed":
        value = draw(NUMBERS)
        return {"low": value, "high": value, "start": value}
    if "integer" in kind:
        low = draw(st.integers(1 if "log" in kind else -1000, 1000))
        high = low + draw(st.integers(1, 10**6))
        start = draw(st.integers(low, high))
    else:
        low = draw(st.floats(1e-9, 1e6) if "log" in kind else NUMBERS)
        high = low + draw(st.floats(1e-3, 1e3)) * max(abs(low), 1e-6)
        start = draw(st.floats(low, high))
    scale = "log" if "log" in kind else "linear"
    return {
        "low": low,
        "high": high,
        "start": start,
        "type": "integer" if "integer" in kind else "float",
        "scale": scale,
    }


spaces = st.lists(fields(), min_size=1, max_size=5).map(
    lambda found: Knobs.of({"name": f"k{i}", **f} for i, f in enumerate(found))
)


def allowed(knob, value):
    if knob.choices is not None:
        return value in knob.choices
    if knob.type == "bool":
        return isinstance(value, bool)
    if knob.type == "integer":
        return isinstance(value, int) and knob.low <= value <= knob.high
    on_grid = knob.step is None or abs((value - knob.low) / knob.step - round((value - knob.low) / knob.step)) < 1e-6
    return isinstance(value, float) and knob.low <= value <= knob.high and on_grid


@given(spaces, st.integers(0, 2**32), st.data())
def test_every_setting_is_valid_and_converts_back(knobs, trial, data):
    z = np.array(data.draw(st.lists(st.floats(-0.1, 1.1), min_size=knobs.dim, max_size=knobs.dim)))
    if knobs.dim:
        z = knobs.domain.project(z)
    for setting in (knobs.probe(z, 7, trial), knobs.setting(z)):
        for knob in knobs.all:
            assert allowed(knob, setting[knob.name])
        again = knobs.setting(knobs.coordinates(setting))
        for knob in knobs.all:
            if knob.type == "float" and knob.step is None:
                assert again[knob.name] == pytest.approx(
                    setting[knob.name], rel=1e-9, abs=1e-9 * (knob.high - knob.low)
                )
            else:
                assert again[knob.name] == setting[knob.name]


@given(st.floats(1e-9, 1e9), st.floats(1.001, 1e6), st.floats(0, 1), st.sampled_from(["linear", "log"]))
def test_shares_and_values_convert_back_and_stay_inside(low, ratio, share, scale):
    knob = Knob(name="x", low=low, high=low * ratio, start=low, scale=scale)
    value = knob.value(share)
    assert knob.low <= value <= knob.high
    assert knob.share(value) == pytest.approx(share, abs=1e-6)


@settings(max_examples=30)
@given(spaces.filter(lambda knobs: knobs.dim), st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=25))
def test_a_tuner_only_asks_for_valid_settings(knobs, values):
    tuner = tt.Tuner(knobs=knobs.all, method=tt.residual(radius=0.02, step=tt.Normalised(3.0)), seed=0)
    for value in values:
        trial = tuner.ask()
        assert all(allowed(knob, trial.knobs[knob.name]) for knob in knobs.all)
        tuner.tell(trial, value)
    assert Knobs.of(knobs.to_list()).all == knobs.all
    assert tt.Tuner.from_json(tuner.to_json()).ask().knobs == tuner.ask().knobs
