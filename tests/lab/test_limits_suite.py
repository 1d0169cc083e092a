"""The suite `limits`: its cells, what they draw, the best allowed setting, and that a method which is told is safe."""

import json
import math

import numpy as np
import pytest

from trimtab import lab
from trimtab.lab.suites import judge, limits
from trimtab.lab.suites.limits import DUAL, LIMITS, RADIUS, TOLD, beyond, cost, longest_run, numbers, run, scene
from trimtab.lab.suites.scores import SavedOutcome


def cell(rounds=120, **more):
    return limits._cell("small", rounds, **more)


def test_the_cells_are_those_that_the_page_names():
    assert len({json.dumps(place.parameters) for place in LIMITS}) == len(LIMITS) == 67
    known = {*limits.KIND, *limits.ALSO}
    assert all(set(place.parameters) <= known for place in LIMITS)
    given = [{**limits.ALSO, **place.parameters} for place in LIMITS]
    for name, wanted in {
        "dim": {2, 5, 10},
        "where": {"beyond", "at", "inside"},
        "moves": {"still", "drift", "jump"},
        "law": {"normal", "t3", "growing"},
        "wall": {"plane", "curved", "bowl", "steep"},
        "walls": {1, 2},
        "every": {1, 3},
        "load": {"none", "told", "untold"},
        "cliff": {False, True},
        "risk": {0.001, 0.01, 0.05, 0.2},
    }.items():
        assert {each[name] for each in given} == wanted


def test_a_scene_is_the_same_for_all_methods_and_another_for_another_seed():
    first, again, other = (scene(cell(moves="drift", load="told"), 3, seed) for seed in (1, 1, 2))
    for one, two, three in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert np.shape(one) == np.shape(three)
    assert not np.array_equal(first.optimum, other.optimum)
    np.testing.assert_array_equal(first.room, scene(cell(moves="drift", load="told", risk=0.2), 3, 1).room)


@pytest.mark.parametrize("place", LIMITS[::3], ids=str)
def test_the_start_is_three_radii_within_and_the_optimum_where_the_cell_says(place):
    found = scene(place, 4, 0)
    given = {**limits.ALSO, **place.parameters}
    start, best = np.full((4, given["dim"]), 0.5), 0.5 + RADIUS * found.optimum[0]
    assert found.normals.shape == (4, given["walls"], given["dim"])
    np.testing.assert_allclose(np.sqrt((found.normals**2).sum(axis=-1)), 1.0)
    assert ((best >= 0) & (best <= 1)).all()
    for t in range(place.rounds):
        assert (beyond(found, t, start) < 0).all()
    if given["load"] == "none":
        flat = given["wall"] in ("plane", "steep")
        np.testing.assert_allclose(beyond(found, 0, start), -3.0 if flat else -3 + 4.5 / found.ball)
        if flat:
            along = {"beyond": 3.0, "at": 0.0, "inside": -3.0}[given["where"]]
            np.testing.assert_allclose(beyond(found, 0, best), along, atol=0.2)  # it walks from the first round on


@pytest.mark.parametrize("more", [{}, {"moves": "drift"}, {"walls": 2}, {"wall": "curved"}, {"wall": "bowl"}])
def test_no_allowed_setting_is_cheaper_than_the_best(more):
    """A grid over the box, made finer about its best point."""
    found = scene(cell(**more), 3, 5)
    for t, lane in ((0, 0), (60, 1), (119, 2)):
        middle, reach = np.full(2, 0.5), 10.0
        for _ in range(4):
            line = RADIUS * np.linspace(-reach, reach, 201)
            points = middle + np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
            least, middle = _cheapest(found, t, points, lane)
            reach /= 10
        assert found.best[t, lane] - 1e-9 <= least <= found.best[t, lane] + 0.02


def _cheapest(found, t, points, lane):
    """The least cost of the allowed ones among these points, and where it is."""
    z = (points - 0.5) / RADIUS
    paid = 0.5 * (found.bend * (z - found.optimum[t, lane]) ** 2).sum(axis=-1)
    normals, room = found.normals[lane], found.room[t, lane]
    if math.isfinite(found.ball):
        over = ((z - (room - found.ball) * normals[0]) ** 2).sum(axis=-1) > found.ball**2
    else:
        over = (z @ normals.T > room).any(axis=-1)
    paid[over] = np.inf
    return paid.min(), points[paid.argmin()]


def test_walls_swing_jump_and_follow_the_load():
    still, drift, jump, load = (
        scene(cell(150, **more), 4, 0) for more in ({}, {"moves": "drift"}, {"moves": "jump"}, {"load": "told"})
    )
    assert (still.room == 3).all()
    assert (np.ptp(still.optimum, axis=0) == 0).all()
    np.testing.assert_allclose(np.ptp(drift.room, axis=0), 3.0, rtol=1e-2)
    assert (np.ptp(drift.optimum, axis=0) > 0).all()
    assert (jump.room[:76] == 3).all()
    assert (jump.room[76:] == 1).all()
    np.testing.assert_allclose(load.room, 3 + 1.5 * load.loads)


def test_noise_is_heavy_tailed_or_grows():
    plain, heavy, growing = (scene(cell(3000, law=law), 4, 0) for law in ("normal", "t3", "growing"))
    assert plain.noise.std() == pytest.approx(0.24, rel=0.05)
    assert plain.numbers_noise.std() == pytest.approx(0.12, rel=0.05)
    assert abs(heavy.noise).max() > 8 * 0.24 > 1.5 * abs(plain.noise).max()
    assert growing.noise[-300:].std() == pytest.approx(3 * growing.noise[:300].std(), rel=0.2)


def test_a_steep_wall_hides_and_a_cliff_costs():
    steep, found = cell(wall="steep"), scene(cell(), 2, 0)
    np.testing.assert_allclose(numbers(steep, np.array([-3.0, 0.0, 1.0, 99.0])), np.expm1([-3.0, 0.0, 1.0, 5.0]))
    outside = 0.5 + RADIUS * 4 * found.normals[:, 0]
    within = 0.5 + RADIUS * 2 * found.normals[:, 0]
    cliff = cell(cliff=True)
    np.testing.assert_allclose(cost(cliff, found, 0, outside), cost(cell(), found, 0, outside) + 10)
    np.testing.assert_array_equal(cost(cliff, found, 0, within), cost(cell(), found, 0, within))


def test_the_longest_run_is_counted():
    out = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 0], [0, 1, 0]], bool)
    np.testing.assert_array_equal(longest_run(out), [2, 4, 0])


def test_who_is_told_stays_within_and_pays_a_fraction_of_the_start():
    place = cell(200)
    told, blind, still = (run(place, method, 4, 0) for method in (TOLD, "belief", "still"))
    assert told["whole"].values.mean() <= 0.01
    assert told["played"].median < 0.3 * still["played"].median
    assert blind["after"].values.min() > 0.9
    assert blind["longest"].values.min() > 100
    assert (still["whole"].values == 0).all()
    for outcome in (told, blind):
        whole = (30 * outcome["first"].values + 170 * outcome["after"].values) / 200
        np.testing.assert_allclose(whole, outcome["whole"].values)


def test_two_limits_a_load_and_numbers_that_are_not_measured():
    for more in ({"walls": 2}, {"load": "told"}, {"every": 3}):
        assert run(cell(100, **more), TOLD, 3, 0)["whole"].values.mean() <= 0.03


def test_prices_are_chosen_in_hindsight(monkeypatch):
    """Within the risk, the cheapest; where none is, the one that is beyond least often."""
    place = cell(100)
    monkeypatch.setattr(limits, "WIDTHS", (0.3,))
    monkeypatch.setattr(limits, "DUALS", (1.0,))
    tried = []
    play = limits._play
    monkeypatch.setattr(limits, "_play", lambda *given: tried.append(play(*given)) or tried[-1])
    best = run(place, DUAL, 3, 0)
    assert len(tried) == len(limits.STEPS) * len(limits.MARGINS)
    shares = [outcome["whole"].values.mean() for outcome in tried]
    allowed = [outcome["played"].median for outcome, share in zip(tried, shares, strict=True) if share <= 0.01]
    if allowed:
        assert best["played"].median == min(allowed)
    else:
        assert best["whole"].values.mean() == min(shares)
    assert limits._rank(best, 1.0) == (0.0, best["played"].median)


def test_the_suite_is_judged():
    found = lab.judge("limits", [TOLD, "belief", "still"], trials=2, every=18)
    assert [place.group for place in found.places] == ["still", "never binds", "bowl", "one of three"]
    assert found.references == ["still", "belief"]
    assert found.mean("still", "still").value == 1.0
    assert found.mean(TOLD, "still", "played").value < 0.5
    assert found.cells(TOLD, "belief") == [1]  # where it never binds
    assert 0.5 < found.mean(TOLD, "belief", "played").value < 1.5
    assert found.beyond("belief", "still").after > 0.9
    assert found.beyond(TOLD).after <= 0.02
    assert math.isnan(found.beyond("auto").first)
    summary = found.summary()
    assert summary["methods"]["belief"]["beyond"]["still"] == found.beyond("belief", "still").plainly()
    assert set(summary["cells"][0]["methods"][TOLD]["beyond"]) == {"first", "after", "longest"}


def test_the_shares_are_kept_with_the_outcome(tmp_path):
    outcome = run(cell(60), TOLD, 2, 0)
    SavedOutcome(outcome).save(tmp_path / "kept")
    again = SavedOutcome.load(tmp_path / "kept").outcome
    assert set(again) == set(outcome)
    for name, result in outcome.items():
        np.testing.assert_array_equal(again[name].values, result.values)


def test_methods_with_a_step_and_unknown_ones_are_refused():
    with pytest.raises(ValueError, match="suite 'limits' is for methods without a step, and residual has one"):
        judge.judge("limits", ["residual"])
    with pytest.raises(ValueError, match="there is no method 'oracle'"):
        judge.judge("limits", ["oracle"])


@pytest.mark.parametrize("dim", [2, 5])
def test_no_trial_stays_beyond_a_steep_wall(dim):
    """Some believe the way back wrongly, and are led back by the last safe setting after three values in a row."""
    wanted = {"wall": "steep", "moves": "still", "dim": dim}
    (place,) = (each for each in LIMITS if wanted.items() <= {**limits.ALSO, **each.parameters}.items())
    found = run(place, "limits", trials=16, seed=1)
    assert 3 <= found["longest"].values.max() <= 5
