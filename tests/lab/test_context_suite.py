"""The suite `context`: its cells, what they draw, and that a method which is told of the load is better off."""

import json

import numpy as np
import pytest

from trimtab import lab
from trimtab.lab.suites import context, judge
from trimtab.lab.suites.context import CONTEXT, FIXED, TOLD, excess, run, scene, shaped


def cell(rounds=120, **more):
    return context._cell("small", rounds, **more)


def test_the_cells_are_those_that_the_page_names():
    assert len({json.dumps(place.parameters) for place in CONTEXT}) == len(CONTEXT) == 47
    for name in ("dim", "noise", "shape", "load", "period"):
        assert len({place.parameters[name] for place in CONTEXT}) >= 3
    known = {*context.KIND, *context.ALSO}
    assert all(set(place.parameters) <= known for place in CONTEXT)


def test_a_scene_is_the_same_for_all_methods_and_another_for_another_seed():
    first, again, other = (scene(cell(), 3, seed) for seed in (1, 1, 2))
    for one, two, three in zip(first[:-1], again[:-1], other[:-1], strict=True):
        np.testing.assert_array_equal(one, two)
        assert one.shape == three.shape
    assert not np.array_equal(first.loads, other.loads)


def test_the_load_moves_the_optimum_and_the_level_as_its_shape_says():
    found = scene(cell(shape="U", noise=0.0), 4, 0)
    change = shaped("U", found.loads)
    np.testing.assert_allclose(found.level, 8 * change)
    away = (found.optimum - found.optimum[:1]) / context.RADIUS
    np.testing.assert_allclose(np.sqrt((away**2).sum(axis=-1)), 4 * abs(change - change[:1]), atol=1e-9)
    assert (scene(cell(moves="optimum"), 2, 0).level == 0).all()
    assert (np.ptp(scene(cell(moves="level"), 2, 0).optimum, axis=0) == 0).all()
    assert (np.ptp(scene(cell(shape="none"), 2, 0).optimum, axis=0) == 0).all()


def test_a_load_is_told_late_missing_or_beside_another():
    late = scene(cell(late=1), 2, 0)
    np.testing.assert_array_equal(late.told[1:, :, 0], late.loads[:-1])
    missing = scene(cell(2000, missing=0.3), 2, 0).told
    assert 0.27 < np.isnan(missing).mean() < 0.33
    two = scene(cell(400, more=1), 2, 0).told
    assert two.shape == (400, 2, 2)
    assert abs(np.corrcoef(two.reshape(-1, 2).T)[0, 1]) < 0.15


def test_after_a_jump_the_load_was_never_seen():
    found = scene(cell(300, jump=True), 3, 0)
    before, after = found.loads[: found.judged.start], found.loads[found.judged]
    assert before.max() <= 0.5 < 1.5 < after.min()
    assert len(after) == context.AFTER


def test_the_best_fixed_setting_is_the_best_one():
    place = cell(shape="saturating", drift=0.05)
    best, found = run(place, FIXED, 4, 3)["played"].values, scene(place, 4, 3)
    x = found.optimum[found.judged].mean(axis=0)
    for step in np.vstack([np.eye(2), -np.eye(2)]) * 0.01:
        costs = np.mean([excess(found, t, x + step) for t in range(60, 120)], axis=0)
        assert (costs > best).all()


def test_where_the_optimum_stays_no_ratio_to_the_best_fixed_setting_is_defined():
    assert (run(cell(moves="level"), FIXED, 3, 0)["played"].values == 0).all()


def test_a_method_that_is_told_of_the_load_pays_a_fraction():
    place = cell(300)
    told, blind = (run(place, method, 4, 0) for method in (TOLD, "belief"))
    for score in ("centre", "played"):
        assert told[score].median < 0.3 * blind[score].median


def test_the_suite_is_judged():
    found = lab.judge("context", [TOLD, "belief", FIXED], trials=2, every=40)
    assert [place.group for place in found.places] == ["linear", "jump"]
    assert found.references == ["belief", "fixed"]
    assert found.mean("belief", "belief").value == 1.0
    assert found.ratio(0, TOLD, "belief", "played") < 1.0
    assert set(found.summary()["methods"][TOLD]) == {"diverged", "to belief", "to fixed"}


def test_methods_with_a_step_and_unknown_ones_are_refused():
    with pytest.raises(ValueError, match="suite 'context' is for methods without a step, and residual has one"):
        judge.judge("context", ["residual"])
    with pytest.raises(ValueError, match="there is no method 'oracle'"):
        judge.judge("context", ["oracle"])
