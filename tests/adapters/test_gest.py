"""The gest-api generator: the standard's own rules, the promises, and what hosts do to results on their way."""

import copy
import json
import os
import pickle
import subprocess
import sys

import gest_api
import numpy as np
import pandas as pd
import pytest
from gest_api.vocs import VOCS, ContextualVariable, ContinuousVariable

import trimtab as tt
from trimtab.adapters.gest import Generator


def vocs(**more):
    return VOCS(**{"variables": {"a": [0.0, 1.0], "QUAD:b": [-5.0, 5.0]}, "objectives": {"f": "MINIMIZE"}} | more)


def drifting(point, t):
    """A quadratic whose optimum goes round once in 400 rounds; the square of the distance, in shares of the range."""
    a, b = 0.5 + 0.2 * np.cos(t / 64), 2.0 * np.sin(t / 64)
    return (point["a"] - a) ** 2 + ((point["QUAD:b"] - b) / 10) ** 2


def play(generator, rounds, first=0):
    """One value for each suggestion; the points in the order they were suggested."""
    points = []
    for t in range(first, first + rounds):
        (point,) = generator.suggest(1)
        points.append(point)
        generator.ingest([{**point, "f": drifting(point, t)}])
    return points


def test_is_a_generator_of_the_standard():
    generator = Generator(vocs(constants={"gas": "He"}), seed=0)
    assert isinstance(generator, gest_api.Generator)
    assert generator.returns_id
    (point,) = generator.suggest()
    assert point == {"a": point["a"], "QUAD:b": point["QUAD:b"], "gas": "He", "_id": 0}
    generator.finalize()


def test_one_query_per_round_every_one_feasible_and_far_better_than_standing_still():
    generator = Generator(vocs(), start={"a": 0.9, "QUAD:b": -4.0}, seed=1)
    points = play(generator, 800)
    assert [point["_id"] for point in points] == list(range(800)) == list(range(generator.tuner.round))
    assert all(0 <= point["a"] <= 1 and -5 <= point["QUAD:b"] <= 5 for point in points)
    played = np.mean([drifting(point, t) for t, point in enumerate(points)][400:])
    still = np.mean([drifting({"a": 0.9, "QUAD:b": -4.0}, t) for t in range(400, 800)])
    assert played < 0.1 * still


@pytest.mark.parametrize("way", ["dump", "json", "pickle", "deepcopy"])
def test_goes_on_bit_by_bit(way):
    whole = Generator(vocs(), seed=2)
    play(whole, 40)
    copied = {
        "dump": lambda: Generator(**whole.model_dump()),
        "json": lambda: Generator(**json.loads(json.dumps(whole.model_dump(mode="json")))),
        "pickle": lambda: pickle.loads(pickle.dumps(whole)),
        "deepcopy": lambda: copy.deepcopy(whole),
    }[way]()
    assert play(copied, 40, 40) == play(whole, 40, 40)
    assert copied.setting == whole.setting


def test_asked_again_before_there_is_a_value_it_says_the_same():
    generator = Generator(vocs(), seed=3)
    assert generator.suggest(1) == generator.suggest(1)
    saved = Generator(**generator.model_dump())
    assert saved.suggest(1) == generator.suggest(1)


def test_without_a_seed_every_run_is_its_own_but_what_is_saved_is_the_same():
    first, second = Generator(vocs()), Generator(vocs())
    assert first.seed != second.seed
    assert Generator(**first.model_dump()).suggest() == first.suggest()


def test_maximises():
    generator = Generator(vocs(objectives={"f": "MAXIMIZE"}), seed=4)
    for _ in range(600):
        (point,) = generator.suggest(1)
        generator.ingest([{**point, "f": -drifting(point, 0)}])
    assert drifting(generator.setting, 0) < 1e-3
    id, setting, told = generator.get_best_points()[0]
    assert id == 599
    assert setting == generator.setting
    assert -0.05 < told["f"] < 0


def test_several_workers():
    generator = Generator(vocs(), max_pending=3, seed=5)
    points = generator.suggest(3)
    assert [point["_id"] for point in points] == [0, 1, 2]
    assert generator.pending == points
    with pytest.raises(ValueError, match="max_pending"):
        generator.suggest(1)
    generator.ingest([{**points[2], "f": 1.0}, {**points[0], "f": 2.0}])
    assert generator.pending == [points[1]]
    generator.register_failures(generator.pending)
    assert generator.tuner.skipped == 1
    assert [point["_id"] for point in generator.suggest(3)] == [3, 4, 5]


def test_more_points_than_may_be_open_are_refused():
    with pytest.raises(ValueError, match="max_pending=2"):
        Generator(vocs()).suggest(2)


@pytest.mark.parametrize("value", [None, float("nan"), "left out"])
def test_a_failed_measurement_moves_nothing(value):
    generator = Generator(vocs(), seed=6)
    play(generator, 20)
    before = generator.tuner.centre
    (point,) = generator.suggest(1)
    generator.ingest([point if value == "left out" else {**point, "f": value}])
    assert generator.tuner.skipped == 1
    assert np.array_equal(generator.tuner.centre, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"_id": 7}, "_id=7 is not waiting"),
        ({"_id": -3}, "_id=-3 is not waiting"),
        ({"_id": "x"}, "not a whole number"),
        ({"_id": float("inf")}, "_id=inf is not a whole number"),
        ({"_id": np.float64("-inf")}, "not a whole number"),
        ({"f": "fast"}, "f='fast' is not a number"),
        ({"f": float("inf")}, "f=inf is not finite"),
    ],
)
def test_what_cannot_be_is_refused_and_all_of_it(change, message):
    generator = Generator(vocs(), max_pending=2, seed=7)
    good, other = generator.suggest(2)
    before = generator.model_dump()
    with pytest.raises(ValueError, match=message):
        generator.ingest([{**good, "f": 1.0}, {**other, "f": 1.0} | change])
    assert generator.model_dump() == before


def test_a_value_is_told_once():
    generator = Generator(vocs(), seed=8)
    (point,) = generator.suggest(1)
    with pytest.raises(ValueError, match="has one already"):
        generator.ingest([{**point, "f": 1.0}] * 2)
    generator.ingest([{**point, "f": 1.0}])
    with pytest.raises(ValueError, match="has one already"):
        generator.ingest([{**point, "f": 1.0}])


def test_nothing_was_suggested_yet():
    with pytest.raises(ValueError, match="_id=0 is not waiting"):
        Generator(vocs()).ingest([{"_id": 0, "a": 0.5, "QUAD:b": 0.0, "f": 1.0}])


def test_a_table_makes_floats_of_ids_and_may_lose_them():
    straight, tabled, lost = (Generator(vocs(), seed=9) for _ in range(3))
    for t in range(30):
        (point,) = straight.suggest(1)
        row = {**point, "f": drifting(point, t)}
        straight.ingest([row])
        tabled.suggest(1)
        foreign = {"a": 0.123, "QUAD:b": 3.0, "f": 9.0}  # measured by somebody else
        tabled.ingest(pd.DataFrame([row, foreign]).to_dict("records"))
        lost.suggest(1)
        lost.ingest([foreign, {name: value for name, value in row.items() if name != "_id"}])
    assert tabled.suggest(1) == straight.suggest(1) == lost.suggest(1)


def test_starts_where_the_machine_is():
    assert Generator(vocs()).setting == {"a": 0.5, "QUAD:b": 0.0}
    default = {"a": ContinuousVariable(domain=[0, 1], default_value=0.3), "QUAD:b": [1.0, 100.0]}
    generator = Generator(vocs(variables=default), log=["QUAD:b"])
    assert generator.setting == pytest.approx({"a": 0.3, "QUAD:b": 10.0})
    generator.ingest([{"a": 0.1, "QUAD:b": 20.0, "f": 5.0}])
    assert generator.setting == pytest.approx({"a": 0.1, "QUAD:b": 20.0})
    generator.add_data(pd.DataFrame([{"a": 0.9, "QUAD:b": 3.0}, {"a": 0.2, "QUAD:b": 30.0}]))
    assert generator.setting == pytest.approx({"a": 0.2, "QUAD:b": 30.0})
    saved = Generator(**generator.model_dump())
    saved.add_data(pd.DataFrame([{"a": 0.2, "QUAD:b": 30.0}]))
    assert saved.suggest() == generator.suggest()
    assert np.linalg.norm(generator.tuner.ask().x - generator.tuner.centre) < 0.1
    generator.ingest([{"a": 0.9, "QUAD:b": 90.0, "f": 5.0}])  # too late: it has begun
    assert generator.setting == pytest.approx({"a": 0.2, "QUAD:b": 30.0})


def test_discrete_variables():
    variables = {
        "n": {1, 2, 4, 8},
        "gas": {"He", "Ar", "N2"},
        "k": ContinuousVariable(domain=[0.5, 9.5], dtype="int64"),
    }
    generator = Generator(VOCS(variables=variables, objectives={"f": "MINIMIZE"}), start={"n": 1, "gas": "N2"}, seed=0)
    assert generator.setting == {"n": 1, "gas": "N2", "k": 5}
    values = []
    for _ in range(1000):
        (point,) = generator.suggest(1)
        assert point["n"] in {1, 2, 4, 8}
        assert point["gas"] in {"He", "Ar", "N2"}
        assert type(point["k"]) is int
        assert 1 <= point["k"] <= 9
        values.append(abs(point["n"] - 8) + 3 * (point["gas"] != "Ar") + abs(point["k"] - 3))
        generator.ingest([{**point, "f": values[-1]}])
    assert np.mean(values[-200:]) < 0.5 * np.mean(values[:20])  # 0.06 to 0.25 over twelve runs of 1500
    assert generator.setting["n"] == 8
    again = Generator(**json.loads(json.dumps(generator.model_dump(mode="json"))))
    assert again.suggest() == generator.suggest()


def test_discrete_values_have_one_order_in_every_process():
    code = """if True:
    from gest_api.vocs import VOCS
    from trimtab.adapters.gest import Generator
    variables = {"gas": {"He", "Ar", "N2", "Xe", "Kr"}, "x": [0.0, 1.0]}
    generator = Generator(VOCS(variables=variables, objectives={"f": "MINIMIZE"}), radius=0.2, seed=1)
    for _ in range(60):
        (point,) = generator.suggest()
        generator.ingest([{**point, "f": point["x"]}])
        print(point)
    """
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len({line.split("'")[3] for line in runs[0].splitlines()}) > 1


def test_limits_that_are_measured():
    limited = vocs(
        variables={"p": [0.0, 10.0]}, objectives={"gain": "MAXIMIZE"}, constraints={"heat": ["LESS_THAN", 0.5]}
    )
    options = {"step": 0.02, "dual_step": 0.02}
    generator = Generator(limited, method="primal-dual", options=options, start={"p": 2.0}, seed=0)
    for _ in range(3000):
        (point,) = generator.suggest(1)
        share = point["p"] / 10
        generator.ingest([{**point, "gain": 1 - (1 - share) ** 2, "heat": share}])
    assert generator.setting["p"] == pytest.approx(5.0, abs=0.3)


@pytest.mark.parametrize(
    ("constraint", "value", "limits"),
    [
        (["LESS_THAN", 2.0], 3.0, [1.0]),
        (["GREATER_THAN", 2.0], 3.0, [-1.0]),
        (["BOUNDS", 1.0, 2.0], 3.0, [-2.0, 1.0]),
    ],
)
def test_a_limit_is_to_be_below_zero(constraint, value, limits):
    generator = Generator(vocs(constraints={"c": constraint}), method="primal-dual", options={"step": 0.1}, seed=0)
    (point,) = generator.suggest(1)
    generator.ingest([{**point, "f": 1.0, "c": value}])
    assert generator.tuner.state.values == (1.0, *limits)
    generator.ingest([{**generator.suggest(1)[0], "f": 1.0}])  # its limit was not measured
    assert generator.tuner.skipped == 1


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({"objectives": {"f": "MINIMIZE", "g": "MINIMIZE"}}, {}, "combine several into one"),
        ({"objectives": {"f": "EXPLORE"}}, {}, "ExploreObjective"),
        ({"objectives": {}}, {}, "one number"),
        ({"constraints": {"c": ["LESS_THAN", 0.0]}}, {}, 'use method="primal-dual"'),
        ({"variables": {"a": ContextualVariable()}}, {}, "'a' cannot be set"),
        ({"variables": {"a": ContinuousVariable(domain=[0, float("inf")])}}, {}, "variable 'a'.*finite"),
        ({"variables": {"a": ContinuousVariable(domain=[0, 1], dtype=(float, (3,)))}}, {}, "is not scalar"),
        ({"variables": {"a": [0.0, 1.0]}}, {"start": {"a": 3.0}}, "variable 'a'.*start=3.0"),
        ({"variables": {"a": {"x", "y"}}}, {"start": {"a": "z"}}, "'a' starts at 'z'"),
        ({"variables": {"a": [-1.0, 1.0]}}, {"log": ["a"]}, "variable 'a'.*low=-1"),
        ({}, {"start": {"c": 1.0}}, "'c' is not a variable"),
        ({}, {"method": "best"}, "method='best' is unknown"),
        ({}, {"radios": 0.1}, "radios"),
        ({}, {"method": "residual"}, r"options=\{\} do not fit method='residual' \(.*'step'\): give what it needs"),
        ({}, {"options": {"foo": 1}}, r"options=\{'foo': 1\} do not fit method='auto' \(.*'foo'\)"),
        ({}, {"method": "residual", "options": {"step": 0.1, "foo": 1}}, "do not fit method='residual'"),
        ({}, {"options": {"radius": 0.1}}, "do not fit method='auto'"),
    ],
)
def test_what_it_cannot_do_is_said_at_once(given, options, message):
    with pytest.raises(ValueError, match=message):
        Generator(vocs(**given), **options)


@pytest.mark.parametrize(
    "other",
    [
        {"variables": {"a": [0.0, 1.0]}},
        {"variables": {"a": [0.0, 1.0], "QUAD:b": [-5.0, 5.0], "c": [0.0, 1.0]}},
        {"variables": {"a": [0.0, 1.0], "QUAD:b": [-5.0, 6.0]}},
        {"variables": {"a": [0.0, 1.0], "QUAD:b": {-5.0, 5.0}}},
        {"objectives": {"f": "MAXIMIZE"}},
    ],
)
def test_the_state_of_another_vocs_is_refused(other):
    generator = Generator(vocs(), seed=0)
    play(generator, 3)
    dump = generator.model_dump()
    with pytest.raises(ValueError, match=r"the state is of another VOCS, with .* instead of .*: give the vocs"):
        Generator(**dump | {"vocs": vocs(**other)})
    assert Generator(**dump).suggest() == generator.suggest()


def test_another_method():
    generator = Generator(vocs(), method="residual", options={"step": 0.01}, radius=0.02, seed=0)
    assert generator.tuner.setup.method == tt.residual(radius=0.02, step=0.01)


def test_the_pip_command():
    code = "import sys; sys.modules['gest_api'] = None; import trimtab.adapters.gest"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: trimtab.adapters.gest needs gest-api: pip install" in done.stderr
    assert "[gest]" in done.stderr
