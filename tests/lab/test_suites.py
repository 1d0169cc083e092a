"""The suites: their cells, tuning in hindsight for each score, ratios and their intervals, late values."""

import json
import math

import numpy as np
import pytest

import trimtab as tt
from trimtab import lab
from trimtab.lab import plots
from trimtab.lab.sim.simulate import due
from trimtab.lab.suites import drift, held_out, judge, late
from trimtab.lab.suites import ratios as standing
from trimtab.lab.suites import scores as outcomes
from trimtab.lab.suites.ratios import SuiteResult
from trimtab.lab.suites.scores import Result, SavedOutcome
from trimtab.problems import make

SMALL = drift.Cell("small", "quadratic-v1", {"dim": 2, "noise": 0.01, "radius": 0.1}, 60)


def test_the_table_is_read_as_it_stands():
    assert len(drift.DRIFT) == 66
    jump = next(place for place in drift.DRIFT if place.group == "jumps")
    assert jump.problem == "quadratic-v1"
    assert jump.rounds == 1000
    assert jump.parameters == {
        "dim": 2,
        "condition": 1,
        "drift": "jumps",
        "speed": 0.01,
        "noise": 0.003,
        "every": 100,
        "radius": 0.1414,
        "offset": 0.002,
    }
    for place in drift.DRIFT:
        make(place.problem, **place.parameters)


def test_five_networks_for_choosing_and_five_others_held_out():
    shown, unknown = (
        [place.parameters.get("network", 12) for place in places if place.problem.startswith("allocation")]
        for places in (drift.DRIFT, held_out.held_out())
    )
    assert len(set(shown)) == len(set(unknown)) == 5
    assert not set(shown) & set(unknown)


def test_at_the_wall_the_optimum_is_within_half_a_probe():
    walls = [place for place in drift.DRIFT if place.group == "wall"]
    assert walls
    for place in walls:
        assert 0 < place.parameters["gap"] <= 0.5 * place.parameters["radius"]
        world = make(place.problem, **place.parameters).world(0, 4)
        bound = np.stack([world.optimiser(t)[:, : place.parameters["walls"]] for t in range(0, 1000, 50)])
        assert 0 <= bound.min() < bound.max() <= place.parameters["gap"]  # it moves


def test_held_out_cells_are_made_by_the_rule_alone():
    """Nothing is run on them: they are made, and cost something finite where they start."""
    places = held_out.held_out()
    assert len(places) >= 40
    assert places == held_out.held_out(held_out.SEED)
    assert not {(p.problem, json.dumps(p.parameters)) for p in places} & {
        (p.problem, json.dumps(p.parameters)) for p in drift.DRIFT
    }
    for place in places:
        problem = make(place.problem, **place.parameters)
        x0 = problem.start(0, 2)
        assert np.isfinite(problem.world(0, 2).cost(0, x0[:, None])).all()
        assert np.all(problem.domain.contains(x0))
        tt.Tuner(x0[0], tt.auto(radius=problem.radius), domain=problem.domain)  # the radius fits into the domain


def test_the_rule_deals_every_kind():
    """On another seed than that which is held out."""
    places = [place for place in held_out.held_out(1) if "drift" in place.parameters]
    landscapes = [place for place in places if "noise_law" in place.parameters]
    assert {place.parameters["drift"] for place in landscapes} == set(held_out.DRIFTS)
    assert {place.parameters["noise_law"] for place in landscapes} == set(held_out.NOISES)
    wrong = [
        place.parameters["radius"] / drift.sensible_radius(place.parameters["dim"])
        for place in landscapes
        if place.problem != "rosenbrock-v1"
    ]
    assert 0.24 < min(wrong) < 0.5
    assert 2 < max(wrong) < 4.1


def test_steps_are_the_best_of_the_grid_for_each_score():
    problem = make(SMALL.problem, **SMALL.parameters)
    found = judge.compute(judge.Task(SMALL, "residual", 5, 3)).outcome
    steps = [outcomes.SMALLEST * 10 ** (k / outcomes.FINEST) for k in range(24, outcomes.COUNT)]
    methods = {repr(step): tt.residual(radius=0.1, step=step) for step in steps}
    records = lab.simulate(problem, methods, rounds=60, trials=5, seed=3)
    for score in outcomes.SCORES:
        medians = {step: np.median(records[repr(step)].score(score)) for step in steps}
        best = min(medians, key=medians.get)
        assert found[score].step == pytest.approx(best)
        assert found[score].median == pytest.approx(medians[best], rel=1e-9)
    assert found["centre"].median <= np.median(records[repr(min(steps))].score())


def test_an_outcome_is_kept_exactly(tmp_path):
    kept = SavedOutcome(
        {
            "centre": Result(np.array([0.1, math.inf, math.nan]), 1, 1e-3, True),
            "played": Result(np.array([1 / 3, 2.0, 3.0]), 0),
        }
    )
    kept.save(tmp_path / "a" / "cell")
    again = SavedOutcome.load(tmp_path / "a" / "cell").outcome
    for score, result in kept.outcome.items():
        np.testing.assert_array_equal(again[score].values, result.values)
        assert (again[score].step, again[score].diverged, again[score].at_edge) == (
            *(result.step, result.diverged, result.at_edge),
        )


def standings(**values):
    rng = np.random.default_rng(0)
    base = rng.uniform(1, 2, (3, 20))
    places = tuple(drift.Cell(f"g{n // 2}", "quadratic-v1", {}, 10) for n in range(3))
    rows = [
        {
            name: {"centre": Result(factor * base[n], 0), "played": Result(factor**2 * base[n], 2)}
            for name, factor in values.items()
        }
        for n in range(3)
    ]
    return SuiteResult("drift", False, places, tuple(rows))


def test_ratios_are_of_medians_and_geometric_means():
    found = standings(residual=1.0, auto=0.5)
    assert found.ratio(0, "auto", "residual") == pytest.approx(0.5)
    assert found.mean("auto", "residual", "played").value == pytest.approx(0.25)
    assert found.worst("auto", "residual").value == pytest.approx(0.5)
    assert found.diverged("auto", "played") == 6
    # the same trials are resampled for both: a constant factor has no spread
    assert found.mean("auto", "residual").low == pytest.approx(0.5)
    assert found.mean("auto", "residual").high == pytest.approx(0.5)
    summary = found.summary()["methods"]["auto"]["to residual"]
    named = {"cells", "cells_played", "mean", "played", "worst", "worst_played", "groups", "groups_played"}
    assert set(summary) == named
    assert summary["groups_played"]["g1"]["value"] == pytest.approx(0.25)
    json.dumps(found.summary(), allow_nan=False)


def test_the_interval_covers_the_ratio_of_the_population():
    """Lognormal scores whose medians have the ratio 0.7; 95 % intervals of 40 draws miss it more than 9 times with
    probability below 1e-4 (binomial), and the seed is fixed."""
    misses = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mine, other = 0.7 * np.exp(rng.standard_normal(60)), np.exp(rng.standard_normal(60))
        row = {
            "auto": {"centre": Result(mine, 0), "played": Result(mine, 0)},
            "residual": {"centre": Result(other, 0), "played": Result(other, 0)},
        }
        ratio = SuiteResult("drift", False, (SMALL,), (row,)).mean("auto", "residual")
        misses += not ratio.low <= 0.7 <= ratio.high
        assert ratio.low < ratio.value < ratio.high
    assert misses <= 9


def test_a_method_that_diverged_is_infinitely_worse():
    row = {
        "auto": {score: Result(np.array([math.inf, math.inf, 1.0]), 2) for score in outcomes.SCORES},
        "residual": {score: Result(np.array([1.0, 1.0, 1.0]), 0) for score in outcomes.SCORES},
    }
    found = SuiteResult("drift", False, (SMALL,), (row,))
    assert found.mean("auto", "residual").value == math.inf
    assert found.summary()["methods"]["auto"]["to residual"]["worst"]["value"] == "inf"


def cell(**values):
    scores = {name: np.array(some, dtype=float) for name, some in values.items()}
    return {
        name: {score: Result(some, int(np.isinf(some).sum())) for score in outcomes.SCORES}
        for name, some in scores.items()
    }


def of(*rows):
    return SuiteResult("drift", False, (SMALL,) * len(rows), rows)


SAFE, SHAKY, LOST = [10.0] * 20, [10.0] * 11 + [math.inf] * 9, [10.0] * 9 + [math.inf] * 11


def test_a_reference_that_diverges_makes_ratios_smaller():
    found = of(cell(residual=SHAKY, auto=[1.0] * 20))
    ratio = found.mean("auto", "residual")
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((0.1, standing.LEAST, 0.1))
    assert found.mean("residual", "residual") == (1.0, 1.0, 1.0)


def test_no_cell_is_lost_with_its_reference():
    found = of(cell(residual=LOST, auto=[1.0] * 20), cell(residual=SAFE, auto=[5.0] * 20))
    assert found.ratio(0, "auto", "residual") == pytest.approx(standing.LEAST)
    assert found.mean("auto", "residual").value == pytest.approx(math.sqrt(0.5 * standing.LEAST))
    assert found.worst("auto", "residual").value == pytest.approx(0.5)
    assert found.entered("auto", "residual") == 2


def test_where_both_diverge_neither_is_better():
    found = of(cell(residual=LOST, auto=LOST), cell(residual=SAFE, auto=LOST))
    assert found.ratio(0, "auto", "residual") == 1.0
    assert found.mean("auto", "residual").value == math.inf  # in the other cell only the method has
    assert found.diverged("auto") == 22


def test_cells_that_have_no_ratio_are_not_counted():
    found = of(cell(residual=[0.0] * 20, auto=[5.0] * 20), cell(residual=SAFE, auto=[5.0] * 20))
    assert found.mean("auto", "residual").value == pytest.approx(0.5)
    assert found.summary()["methods"]["auto"]["to residual"]["cells"] == 1
    wide = of(cell(residual=[-1.0] * 9 + [10.0] * 11, auto=[5.0] * 20)).mean("auto", "residual")
    assert (wide.low, wide.value, wide.high) == (0.0, pytest.approx(0.5), math.inf)  # some resamples have none


def test_points_are_drawn_in_the_row_of_their_group(tmp_path, monkeypatch):
    names = [f"m{k}" for k in range(9)]
    found = standings(residual=1.0, **{name: 1e-3 * 10**k for k, name in enumerate(names)})
    drawn = []
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append(figure) or [])
    plots.draw_standings(found, tmp_path)
    for axis in drawn[0].axes:
        points = [np.asarray(one.get_offsets()) for one in axis.collections]
        assert len(points) == len(names)
        for some in points:
            np.testing.assert_array_equal(np.round(some[:, 1]), [0, 0, 1])  # the groups of the three cells
            assert ((plots.EDGES[0] <= some[:, 0]) & (some[:, 0] <= plots.EDGES[1])).all()
        assert "below 0.05 or above 50: at the edge" in axis.get_xlabel()


def test_every_value_is_told_once_and_the_mean_delay_is_the_same():
    for lag in late.LAGS:
        told = due(20 * lag, lag, permuted=True)
        known = [trial for trial in told if trial is not None]
        assert len(set(known)) == len(known)
        delays = np.array([t - trial for t, trial in enumerate(told) if trial is not None])
        assert delays.min() >= 0
        assert delays.max() <= 2 * lag - 2
        assert delays[: 18 * lag].mean() == pytest.approx(lag - 1, abs=0.5 * lag / 4)
    assert due(5, 1, permuted=False) == [0, 1, 2, 3, 4]


def test_a_late_value_moves_the_centre_later():
    problem = make(SMALL.problem, **SMALL.parameters)
    methods = {"a": tt.residual(radius=0.1, step=0.03), "b": tt.residual(radius=0.1, step=0.01)}
    usual = lab.simulate(problem, methods, rounds=30, trials=3, seed=1)
    delayed = lab.simulate(problem, methods, rounds=30, trials=3, seed=1, lag=4)
    still = lab.simulate(problem, {"still": tt.methods["still"]()}, rounds=30, trials=3, seed=1)["still"]
    for name in methods:
        moved = (delayed[name].cost != still.cost).any(axis=0), (usual[name].cost != still.cost).any(axis=0)
        assert [int(np.argmax(each)) for each in moved] == [5, 2]  # of the first value, nothing is known to compare
    with pytest.raises(ValueError, match="lag=2 goes without evidence"):
        lab.simulate(problem, methods, rounds=30, lag=2, evidence=True)


def test_late_values_cost():
    problem = make(SMALL.problem, **SMALL.parameters)
    methods = {"a": tt.residual(radius=0.1, step=0.03)}
    first, last = (np.median(lab.simulate(problem, methods, lag=k, rounds=200, trials=8)["a"].score()) for k in (1, 16))
    assert last > first


def test_a_suite_is_judged():
    found = lab.judge("late", ["residual", "still"], trials=2, every=13)
    assert [place.group for place in found.places] == ["d = 2, lag 1", "d = 10, lag 16", "d = 100, lag 16, permuted"]
    assert found.complete
    assert found.mean("residual", "residual").value == 1.0
    assert found.mean("still", "residual").value > 1.0


def test_bad_requests_are_told():
    with pytest.raises(ValueError, match="there is no suite 'wind': choose from drift, late, context, limits"):
        lab.judge("wind")
    with pytest.raises(ValueError, match="suite 'late' has no cells that are held out"):
        lab.judge("late", held_out=True)
    with pytest.raises(ValueError, match="there is no method 'magic'"):
        lab.judge("drift", ["magic"])
    with pytest.raises(ValueError, match=r"methods=\[\] is not a list of names"):
        lab.judge("drift", [])
    with pytest.raises(ValueError, match="measures twice per round"):
        lab.judge("late", ["two-point"], trials=2, every=13)


def test_related_methods_are_in_the_list_where_they_are_not_too_dear(monkeypatch):
    asked = []

    def sweep(compute, tasks, **options):
        asked.extend((task.method, make(task.place.problem, **task.place.parameters).dim) for task in tasks)
        return [None] * len(tasks)

    monkeypatch.setattr(judge, "sweep", sweep)
    lab.judge("drift")
    for name in ("reszo", "hlf-szo", "pbgd"):
        dims = [dim for method, dim in asked if method == name]
        assert len(dims) > 40
        assert max(dims) == judge.LARGEST[name]
    assert len([method for method, _ in asked if method == "residual"]) == 66
    asked.clear()
    lab.judge("drift", ["reszo"])  # named, it is run everywhere
    assert max(dim for _, dim in asked) == 1000
