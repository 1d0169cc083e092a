"""Knobs: named values ↔ coordinates, and the tuner that speaks of them."""

import copy
import math
import pickle
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import trimtab as tt
from trimtab.knobs import Knob, Knobs

CODECS = ["gzip", "zstd", "lz4"]
SPACE = [
    {"name": "batch", "low": 1, "high": 512, "start": 32, "type": "integer", "scale": "log"},
    {"name": "codec", "choices": CODECS, "start": "zstd"},
    {"name": "rate", "low": 0.1, "high": 1.0, "start": 0.3, "step": 0.1},
    {"name": "cache", "type": "bool", "start": True},
    {"name": "region", "low": 7, "high": 7, "start": 7, "type": "int"},
    {"name": "gain", "low": -2.0, "high": 2.0, "start": 0.5, "radius": 0.01},
]


def one(**fields):
    return Knobs.of([{"name": "x", **fields}])


# Values and coordinates ---------------------------------------------------------------------------------------------


def test_whole_numbers_are_right_on_average():
    knobs = one(low=0, high=10, start=5, type="integer")
    found = [knobs.probe([0.327], 1, trial)["x"] for trial in range(20_000)]
    assert set(found) == {3, 4}
    # p = 0.27, standard error √(p(1−p)/n) = 0.0031; five of them, for a false alarm in 1.7 million
    assert abs(np.mean(found) - 3.27) < 5 * math.sqrt(0.27 * 0.73 / 20_000)
    assert all(isinstance(value, int) for value in found)


def test_the_slope_through_rounded_probes_is_that_of_the_interpolation():
    """E[y·u]/δ for f(n) = n², probes of ±0.3 about 4.5: the slope of the interpolation between 4 and 5 is 9."""
    knobs = one(low=0, high=10, start=5, type="integer")
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], 40_000)
    values = [knobs.probe([0.45 + 0.03 * u], 2, t)["x"] ** 2 - 20.5 for t, u in enumerate(signs)]
    slope = np.mean(values * signs) / 0.3
    assert abs(slope - 9) < 5 * 4.5 / 0.3 / math.sqrt(40_000)  # |y − 20.5| = 4.5 always


def test_choices_are_drawn_by_their_weights():
    knobs, weights = one(choices=CODECS, start="gzip"), [0.2, 0.5, 0.3]
    found = [knobs.probe(weights, 3, trial)["x"] for trial in range(20_000)]
    for codec, w in zip(CODECS, weights, strict=True):
        assert abs(found.count(codec) / 20_000 - w) < 5 * math.sqrt(w * (1 - w) / 20_000)


def test_a_choice_without_weight_is_never_drawn():
    knobs = one(choices=CODECS, start="gzip")
    assert {knobs.probe([0.0, 1.0, 0.0], 3, trial)["x"] for trial in range(500)} == {"zstd"}


def test_the_slope_over_drawn_choices_is_the_slope_of_the_mean():
    """f̃(w) = Σ w_i·f_i has the slope f, of which the simplex sees f − mean f: E[y·u]/δ along u − ū."""
    knobs, rng = one(choices=CODECS, start="gzip"), np.random.default_rng(1)
    costs, n, radius = {"gzip": 3.0, "zstd": 1.0, "lz4": 2.0}, 20_000, 0.1
    u = rng.choice([-1.0, 1.0], (n, 3))
    u -= u.mean(-1, keepdims=True)
    y = np.array([costs[knobs.probe(1 / 3 + radius * u[t], 4, t)["x"]] - 2.0 for t in range(n)])
    slope = (y[:, None] * u).mean(0) / radius
    expected = (np.eye(3) - 1 / 3) @ [3.0, 1.0, 2.0]  # E[ũũᵀ]·f = (1, −1, 0)
    assert np.all(np.abs(slope - expected) < 6 * (y[:, None] * u).std(0) / radius / math.sqrt(n))


def test_draws_depend_only_on_the_trial():
    knobs = one(low=0, high=10, start=5, type="integer")
    first = [knobs.probe([0.45], 3, trial) for trial in range(50)]
    again = [knobs.probe([0.45], 3, trial) for trial in reversed(range(50))]
    assert first == again[::-1]
    assert knobs.setting([0.45]) == {"x": 5}


def test_grid_values_are_exact_decimals():
    knobs = one(low=0.1, high=1.0, start=0.3, step=0.1)
    assert [knobs.setting([k / 9])["x"] for k in range(10)] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    found = [knobs.probe([0.25], 0, trial)["x"] for trial in range(2000)]  # 0.325
    assert set(found) == {0.3, 0.4}
    assert abs(np.mean(found) - 0.325) < 5 * 0.1 * math.sqrt(0.25 * 0.75 / 2000)


def test_whole_numbers_may_have_a_step():
    assert one(low=0, high=64, start=8, type="int", step=8).setting([0.26]) == {"x": 16}


def test_a_switch_is_drawn_by_its_share():
    knobs = one(type=bool, start=False)
    found = [knobs.probe([0.3], 5, trial)["x"] for trial in range(5000)]
    assert {type(value) for value in found} == {bool}
    assert abs(np.mean(found) - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 5000)


def test_a_fixed_knob_has_no_coordinate():
    knobs = Knobs.of([*SPACE, {"name": "only", "choices": ["this"], "start": "this"}])
    assert knobs.dim == 1 + 3 + 1 + 1 + 0 + 1 + 0
    setting = knobs.setting(knobs.start)
    assert (setting["region"], setting["only"]) == (7, "this")


def test_the_domain_is_a_box_beside_a_simplex_for_each_choice():
    assert one(low=0, high=1, start=0.5).domain == tt.Box(0.0, 1.0)
    assert one(choices=CODECS, start="lz4").domain == tt.Simplex()
    parts = Knobs.of(SPACE, radius=0.05).domain.parts
    assert [(type(domain), size) for domain, size in parts] == [(tt.Box, 1), (tt.Simplex, 3), (tt.Box, 3)]
    np.testing.assert_allclose(parts[2][0].high, [1.0, 1.0, 5.0])  # a probe of 0.05 is a share of 0.01


def test_start_is_where_the_system_is():
    knobs = Knobs.of(SPACE)
    assert knobs.setting(knobs.start) == {
        "batch": 32,
        "codec": "zstd",
        "rate": 0.3,
        "cache": True,
        "region": 7,
        "gain": 0.5,
    }


def test_knobs_are_read_back_from_plain_mappings():
    knobs = Knobs.of(SPACE)
    assert Knobs.of(knobs.to_list()) == knobs
    assert knobs.to_list()[1] == {"name": "codec", "type": "choice", "scale": "linear", "unit": "", **SPACE[1]}


@pytest.mark.parametrize(
    ("given", "stored"),
    [("real", "float"), ("int", "integer"), (int, "integer"), (float, "float"), ("integer", "integer")],
)
def test_synonyms_of_types(given, stored):
    assert Knob(name="x", low=1, high=9, start=5, type=given).type == stored
    assert Knob(name="x", start=1, type="bool") == Knob(name="x", start=True, type="boolean")


# Errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "two words"}, "a name is letters"),
        ({"low": 10}, "low=10 is not below high=9: swap them"),
        ({"start": 11}, "start=11 is outside 1 to 9: give the current value of the system"),
        ({"low": 0, "scale": "log"}, "low=0 is not above zero"),
        ({"low": 1.5, "type": "integer"}, "low=1.5 is not a whole number"),
        ({"high": math.inf}, "high=inf is not a finite number"),
        ({"high": math.nan}, "high=nan is not a finite number"),
        ({"high": "9"}, "high='9' is not a finite number"),
        ({"start": True}, "start=True is not a finite number"),
        ({"type": "whole"}, "type='whole' is unknown: choose 'float', 'integer' or 'bool', or give choices"),
        ({"scale": "ln"}, "choose 'linear' or 'log'"),
        ({"unit": 3}, "unit=3 is not a string"),
        ({"steps": 1}, "unknown field 'steps'"),
        ({"step": 0}, "step=0 is not a valid spacing of values"),
        ({"step": 1e-30}, "step=1e-30 is not a valid spacing .*: make it larger, or leave it out"),
        ({"step": 3}, "high=9 is not a whole number of steps of 3 above low=1: give 7 or 10"),
        ({"step": 4, "start": 4}, "start=4 is not a whole number of steps of 4 above low=1: give 1 or 5"),
        ({"step": 0.5, "type": "int"}, "step=0.5 is not a whole number"),
        ({"radius": 0.5}, r"knob 'x': radius=0.5 must be a finite number > 0 and < 0.5 of the range"),
        ({"type": "bool", "start": 3}, "high=9 is not a bool: give True or False"),
        ({"type": "choice"}, "choices=None is not valid for type='choice': give choices"),
        ({"choices": ["a", "b"]}, "low=1 is not used for choices: leave it out"),
        ({"choices": ["a", "b"], "type": "int"}, "choices=.* is not valid for type='int'"),
    ],
)
def test_errors_of_a_knob(fields, reason):
    with pytest.raises(ValueError, match=reason):
        Knobs.of([{"name": "x", "low": 1, "high": 9, "start": 5, **fields}])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"choices": "abc", "start": "a"}, "choices='abc' is not a list of choices"),
        ({"choices": [], "start": "a"}, r"choices=\[\] is not a list"),
        ({"choices": ["a", "b"], "start": "c"}, r"start='c' is not one of the choices \['a', 'b'\]"),
        ({"choices": ["a", "a"], "start": "a"}, "not a list of distinct choices: give 'a' once"),
        ({"choices": ["a", None], "start": "a"}, "is not valid: None must be a string"),
        ({"choices": [1.0, math.nan], "start": 1.0}, "is not valid: nan must be a string"),
        ({"choices": [0, True], "start": 1}, "start=1 is not one of the choices"),
        ({"choices": ["a", "b"], "start": "a", "step": 1}, "step=1 is not used for choices"),
        ({"choices": ["a", "b"], "start": "a", "scale": "log"}, "scale='log' is not used for choices"),
    ],
)
def test_errors_of_choices(fields, reason):
    with pytest.raises(ValueError, match=reason):
        one(**fields)


def test_errors_of_several_knobs():
    knob = {"name": "x", "low": 1, "high": 9, "start": 5}
    with pytest.raises(ValueError, match="two knobs are called X"):
        Knobs.of([knob, {**knob, "name": "X"}])
    with pytest.raises(ValueError, match=r"^a knob: unknown field 'nam': did you mean \"name\"\?"):
        tt.Tuner(knobs=[{"nam": "a", "low": 0, "high": 1, "start": 0}])
    with pytest.raises(ValueError, match="has no start"):
        Knobs.of([{"name": "x", "low": 1, "high": 9}])
    with pytest.raises(ValueError, match="there are no knobs"):
        Knobs.of([])
    with pytest.raises(ValueError, match="every knob is fixed"):
        tt.Tuner(knobs=[{**knob, "low": 5, "high": 5}])
    knobs = Knobs.of([knob])
    with pytest.raises(ValueError, match=r"a setting of \['y'\] does not fit the knobs \['x'\]"):
        knobs.coordinates({"y": 3})
    with pytest.raises(ValueError, match="'x': 11 is not in 1 to 9: set it within its limits"):
        knobs.coordinates({"x": 11})
    with pytest.raises(ValueError, match=r"shape \(2,\), but the knobs have 1"):
        knobs.setting([0.1, 0.2])


# The tuner ----------------------------------------------------------------------------------------------------------


def cost(setting):
    return (
        abs(math.log2(setting["batch"] / 128))
        + {"gzip": 2.0, "zstd": 1.0, "lz4": 0.0}[setting["codec"]]
        + 3 * abs(setting["rate"] - 0.8)
        + setting["cache"]
        + (setting["gain"] + 1) ** 2
    )


def residual(**more):
    return tt.residual(radius=0.05, step=tt.Normalised(0.5), **more)


def test_a_tuner_finds_the_best_setting():
    tuner = tt.Tuner(knobs=SPACE, method=residual(), seed=1)
    before = cost(tuner.setting)
    for _ in range(4000):
        trial = tuner.ask()
        tuner.tell(trial, cost(trial.knobs))
    assert tuner.setting["codec"] == "lz4"
    assert tuner.setting["cache"] is False
    assert cost(tuner.setting) < 0.4 * before


def test_a_tuner_returns_the_setting_and_its_coordinates():
    tuner = tt.Tuner(knobs=SPACE, method=residual(), seed=0)
    trial = tuner.ask()
    assert trial.knobs.keys() == {k["name"] for k in SPACE}
    assert trial.x.shape == (7,)
    assert tuner.ask().knobs == trial.knobs
    assert tuner.setting == tuner.knobs.setting(tuner.centre)
    assert tt.Tuner([0.5], residual(), bounds=[(0, 1)]).ask().knobs is None
    with pytest.raises(AttributeError, match="has no knobs to set"):
        _ = tt.Tuner([0.5], residual(), bounds=[(0, 1)]).setting


def test_the_radius_of_a_knob_is_a_share_of_its_own_range():
    tuner = tt.Tuner(knobs=[SPACE[5], {**SPACE[5], "name": "other", "radius": None}], method=residual(), seed=0)
    trial = tuner.ask()
    assert abs(trial.knobs["gain"] - 0.5) == pytest.approx(0.01 * 4)
    assert abs(trial.knobs["other"] - 0.5) == pytest.approx(0.05 * 4)


@pytest.mark.parametrize("method", [None, residual()], ids=["auto", "residual"])
@pytest.mark.parametrize("pending", [1, 3])
def test_saved_pickled_and_copied_tuners_ask_for_the_same_settings(method, pending, tmp_path):
    tuner = tt.Tuner(knobs=SPACE, method=method, seed=5, max_pending=pending)
    for _ in range(20):
        trial = tuner.ask()
        tuner.tell(trial, cost(trial.knobs))
    if pending > 1:
        tuner.ask()
    tuner.save(tmp_path / "t.json")
    tuner.save(tmp_path / "t.npz")
    twins = [
        tt.Tuner.from_json(tuner.to_json()),
        tt.Tuner.load(tmp_path / "t.json"),
        tt.Tuner.load(tmp_path / "t.npz"),
        pickle.loads(pickle.dumps(tuner)),
        copy.deepcopy(tuner),
    ]
    expected = tuner.ask().knobs
    for twin in twins:
        assert twin.knobs == tuner.knobs
        assert twin.setting == tuner.setting
        assert [t.knobs for t in twin.pending] == [t.knobs for t in tuner.pending][: len(twin.pending)]
        assert twin.ask().knobs == expected


def test_knobs_that_were_changed_in_the_file_are_refused():
    text = tt.Tuner(knobs=SPACE, method=residual(), seed=5).to_json().replace('"lz4"', '"lz5"')
    with pytest.raises(ValueError, match="checksum does not match"):
        tt.Tuner.from_json(text)


def test_knobs_exclude_x0_bounds_and_domain():
    with pytest.raises(ValueError, match=r"leave out x0, bounds and domain .*lanes, have no knobs"):
        tt.Tuner(np.zeros((4, 6)), knobs=SPACE)
    with pytest.raises(TypeError, match="give x0, where the system is now, or knobs"):
        tt.Tuner()
    with pytest.raises(ValueError, match=r"too large: .*4 choices need one below 1/6 of a weight"):
        tt.Tuner(knobs=[{"name": "x", "choices": list("abcd"), "start": "a", "radius": 0.3}], method=residual())
    with pytest.raises(ValueError, match="knobs are set once a round"):
        tt.Tuner(knobs=SPACE, method=tt.two_point(radius=0.01, step=0.1))


# Fixed coordinates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [residual(), tt.auto(radius=0.05)], ids=["residual", "auto"])
@pytest.mark.parametrize("lanes", [None, 3])
def test_a_fixed_coordinate_never_moves_and_is_never_probed(method, lanes):
    x0 = np.array([0.2, 7.0, 30.0]) if lanes is None else np.tile([0.2, 7.0, 30.0], (lanes, 1))
    tuner = tt.Tuner(x0, method, bounds=[(0, 1), (7, 7), (1, 100)], seed=0)
    free = tt.Tuner(x0[..., [0, 2]], method, bounds=[(0, 1), (1, 100)], seed=0)
    for _ in range(50):
        trial, other = tuner.ask(), free.ask()
        assert np.all(trial.x[..., 1] == 7.0)
        np.testing.assert_array_equal(trial.x[..., [0, 2]], other.x)  # as if it were not there
        value = ((other.x / [1, 100] - 0.6) ** 2).sum(-1)
        tuner.tell(trial, value)
        free.tell(other, value)
    assert np.all(tuner.centre[..., 1] == 7.0)
    twin = tt.Tuner.from_json(tuner.to_json())
    np.testing.assert_array_equal(twin.ask().x, tuner.ask().x)


def test_two_queries_beside_a_fixed_coordinate():
    tuner = tt.Tuner([0.2, 7.0], tt.two_point(radius=0.05, step=0.1), bounds=[(0, 1), (7, 7)], seed=0)
    assert tuner.ask().x.shape == (2, 2)
    assert np.all(tuner.ask().x[:, 1] == 7.0)


def test_a_fixed_coordinate_must_start_at_its_value():
    with pytest.raises(ValueError, match=r"x0=6.5 is outside bounds\[1\]=\(7.0, 7.0\)"):
        tt.Tuner([0.2, 6.5], residual(), bounds=[(0, 1), (7, 7)])
    with pytest.raises(ValueError, match="fix every coordinate: give at least one low < high"):
        tt.Tuner([7.0], residual(), bounds=[(7, 7)])


# The page -----------------------------------------------------------------------------------------------------------


PAGE = (Path(__file__).parents[2] / "docs" / "knobs.md").read_text(encoding="utf-8")


def test_the_examples_run():
    examples = re.findall("```python\n(.*?)```", PAGE, flags=re.S)
    assert len(examples) == 2
    names = {}
    for example in examples:
        exec(compile(example, "docs/knobs.md", "exec"), names)


def test_the_page_lists_every_field():
    told = set(re.findall("`([a-z]+)`", "".join(line.split("|")[1] for line in PAGE.splitlines() if line[:3] == "| `")))
    assert told == {field.name for field in fields(Knob)}


@pytest.mark.parametrize("given", [{"gain": (0, 1)}, {"name": "a", "low": 0, "high": 1, "start": 0.5}, "gain", 3])
def test_knobs_are_a_list(given):
    with pytest.raises(TypeError, match="must be a list of knobs: give"):
        tt.Tuner(knobs=given)


def test_knobs_must_be_a_list():
    with pytest.raises(TypeError, match="must be a list of knobs"):
        tt.Tuner(knobs=tt.Knob(name="a", low=0, high=1, start=0.5))
    with pytest.raises(TypeError, match=r"\('a', 0, 1, 0.5\) is not a knob: give a Knob, or dict"):
        tt.Tuner(knobs=[("a", 0, 1, 0.5)])


def test_a_radius_in_the_units_of_a_knob_is_refused():
    with pytest.raises(ValueError, match="radius=5 is a share of each range"):
        tt.Tuner(knobs=[{"name": "a", "low": 0, "high": 100, "start": 50}], method=tt.auto(radius=5))


@pytest.mark.parametrize("low", [1e-170, 5e-324])
def test_a_logarithmic_range_beyond_floating_point_is_refused(low):
    with pytest.raises(ValueError, match="too far from high=1e\\+140 for floating point: narrow the range"):
        tt.Knob(name="k", low=low, high=1e140, start=1.0, scale="log")


# How it is written --------------------------------------------------------------------------------------------------


def test_name_and_range_are_positional():
    assert Knob("q1", -2, 2, 0) == Knob(name="q1", low=-2, high=2, start=0)
    assert Knob("codec", choices=CODECS, start="gzip") == Knob(name="codec", choices=CODECS, start="gzip")
    assert Knob("cache", type="bool", start=True).start is True
    assert tt.Tuner(knobs=[Knob("q1", -2, 2, 0)], seed=0).setting == {"q1": 0}


def test_other_fields_of_a_knob_are_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        Knob("q1", -2, 2, 0, "integer")
