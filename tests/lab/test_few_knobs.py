"""The arenas, contenders and tables of benchmarks/few_knobs.py."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trimtab as tt

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import few_knobs_shown
from few_knobs import SEEDS, Trial
from few_knobs_arenas import ARENAS, SERVICES, WALLS, World
from few_knobs_contenders import NelderMead, contenders

ROUNDS = 60


@pytest.fixture(params=ARENAS)
def arena(request):
    return ARENAS[request.param]


def settings(arena, count, rounds):
    return arena.values(np.random.default_rng(1).random((count, rounds, len(arena.knobs))))


def test_a_world_is_a_function_of_seed_and_round(arena):
    (tried,) = settings(arena, 1, ROUNDS)
    world, again, shorter, other = (World(arena, s, r) for s, r in ((7, ROUNDS), (7, ROUNDS), (7, 20), (8, ROUNDS)))
    seen = [(world.cost(t, tried[t]), world.measure(t, tried[t])) for t in range(ROUNDS)]
    back = [(again.cost(t, tried[t]), again.measure(t, tried[t])) for t in reversed(range(ROUNDS))][::-1]
    np.testing.assert_array_equal(back, seen)
    np.testing.assert_array_equal([shorter.measure(t, tried[t]) for t in range(20)], [y for _, y in seen[:20]])
    assert not np.isclose([other.cost(t, tried[t]) for t in range(ROUNDS)], [cost for cost, _ in seen]).all()
    np.testing.assert_allclose(world.costs(tried), [cost for cost, _ in seen])


def test_measurements_are_the_cost_in_the_mean(arena):
    still = replace(arena, course=lambda rng, rounds: np.repeat(arena.course(rng, 1), rounds, axis=0))
    world, (setting,) = World(still, 3, 2000), settings(arena, 1, 1)[0]
    measured = np.array([world.measure(t, setting) for t in range(world.rounds)])
    assert np.isnan(measured).mean() == pytest.approx(arena.missing, abs=0.02)
    standard_error = np.nanstd(measured) / np.sqrt(world.rounds)
    assert abs(np.nanmean(measured) - world.cost(0, setting)) < 5 * standard_error


def test_the_optimum_is_the_least_cost(arena):
    world = World(arena, 5, ROUNDS)
    costs = arena.cost(settings(arena, 5000, ROUNDS), world.states)
    assert (costs >= world.optima - 1e-9).all()
    start = world.costs(np.tile(arena.start, (ROUNDS, 1)))
    assert (costs.min(axis=0) - world.optima < 0.5 * (start - world.optima)).all()


@pytest.mark.parametrize(("name", "setting"), [("magnets", lambda state: state), ("gains", np.exp)])
def test_a_least_cost_that_is_known_is_reached_within_the_limits(name, setting):
    world = World(ARENAS[name], 5)
    best = setting(world.states)
    low, high = ([getattr(knob, side) for knob in world.arena.knobs] for side in ("low", "high"))
    assert ((low < best) & (best < high)).all()
    np.testing.assert_allclose(world.costs(best), world.optima, atol=1e-12)


@pytest.mark.parametrize("name", ["price", "pump", "network"])
def test_a_search_finds_what_a_finer_one_finds(name):
    world = World(ARENAS[name], 5, 10)
    share = np.full((world.rounds, len(world.arena.knobs)), 0.5)
    rng, width, best = np.random.default_rng(0), 0.5, np.full(world.rounds, np.inf)
    for _ in range(200):
        tried = np.clip(share + width * rng.standard_normal((2000, *share.shape)), 0, 1)
        costs = world.arena.cost(world.arena.values(tried), world.states)
        found = costs.min(axis=0) < best
        share = np.where(found[:, None], tried[costs.argmin(axis=0), range(world.rounds)], share)
        best, width = np.minimum(best, costs.min(axis=0)), 0.95 * width
    np.testing.assert_allclose(world.optima, best, atol=1e-3)


def test_standing_still_pays_the_excess_of_the_start(arena):
    found = Trial(arena.name, 100, ("still", "auto"), directions=2, rounds=ROUNDS).play()
    world = World(arena, 100, ROUNDS)
    excess = np.mean(world.costs(np.tile(arena.start, (ROUNDS, 1))) - world.optima)
    assert found["still"] == [pytest.approx((excess, excess), rel=1e-5)] * 2
    assert len(set(found["auto"])) == 2
    assert np.min(found["auto"]) > 0


@pytest.mark.parametrize("name", contenders())
def test_contenders_stay_within_the_limits_and_take_lost_values(name):
    arena = ARENAS["feeder"]
    world, contender = World(arena, 100, ROUNDS), contenders()[name](arena, 1)
    low, high = (np.array([getattr(knob, side) for knob in arena.knobs]) for side in ("low", "high"))
    for t in range(ROUNDS):
        for setting in (contender.centre, contender.ask()):
            assert ((low <= setting) & (setting <= high)).all()
            assert setting[3] == round(setting[3])
        contender.tell(np.nan if t % 5 == 3 else world.measure(t, setting))


def test_nelder_mead_finds_a_minimum_and_repeats_what_failed():
    arena = replace(ARENAS["magnets"], knobs=(tt.Knob("a", 0, 1, 0.9), tt.Knob("b", 0, 1, 0.1)))
    contender = NelderMead(arena, 0)
    for t in range(80):
        setting = contender.ask()
        if t % 3 == 0:
            contender.tell(np.nan)
            np.testing.assert_array_equal(contender.ask(), setting)
        contender.tell((setting[0] - 0.3) ** 2 + 10 * (setting[1] - 0.6) ** 2)
    np.testing.assert_allclose(contender.centre, [0.3, 0.6], atol=0.05)


def test_seeds_for_choosing_are_kept_apart():
    every = [seed for seeds in SEEDS.values() for seed in seeds]
    assert len(set(every)) == len(every)


def runs(*played):
    """One trial for each number, with two directions; the centre pays half."""
    return [[(value, value / 2), (value, value / 2)] for value in played]


def test_scores_are_relative_to_auto():
    results = {
        "pump": {"still": runs(4, 4, 4), "auto": runs(1, 2, 3), "other": runs(1, 8, 12)},
        "feeder": {"still": runs(9, 9, 9), "auto": runs(3, 3, 3), "other": runs(3, 3, 3)},
    }
    assert few_knobs_shown.relative(results, "other", ("pump",))[0].tolist() == [4, 4]
    assert few_knobs_shown.relative(results, "other", ("pump", "feeder"))[0].tolist() == [2, 2]
    assert few_knobs_shown.worse(results, "other") == (4, 12)
    assert few_knobs_shown.details(results, 1).splitlines()[-1].startswith("| other | 4 (0.5 to 6) | **1.5** ")
    assert few_knobs_shown.overview(results).splitlines()[-1].endswith("| 4 of 12 |")


def test_every_arena_is_a_service_or_a_wall():
    assert list(ARENAS) == [*SERVICES, *WALLS]


def test_the_page_has_the_tables_of_the_stored_results():
    docs = Path(__file__).parents[2] / "docs"
    stored = json.loads((docs / "results" / "few-knobs.json").read_text(encoding="utf-8"))
    assert stored["seeds"] == "reporting"
    assert few_knobs_shown.shown(stored["excess"]) in (docs / "few-knobs.md").read_text(encoding="utf-8")


def test_tables_go_between_the_marks(tmp_path):
    page, (first, last) = tmp_path / "page.md", few_knobs_shown.MARKS
    page.write_text(f"before\n{first}\nold\n{last}\nafter\n", encoding="utf-8")
    results = {"pump": {"still": runs(4), "auto": runs(1)}}
    for _ in range(2):
        few_knobs_shown.refresh(page, results)
    told = page.read_text(encoding="utf-8")
    assert (told[:7], told[-7:], "old\n" in told) == ("before\n", "\nafter\n", False)
    assert told.count(few_knobs_shown.shown(results)) == 1
    page.write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit, match="no place"):
        few_knobs_shown.refresh(page, results)
