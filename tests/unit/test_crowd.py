"""Systems of all ages, with seeds of their own, side by side: to the last bit what each is alone."""

from dataclasses import replace

import numpy as np
import pytest

import trimtab as tt
from trimtab import storage
from trimtab.crowd import Alone, Crowd, Draws, fits, namesakes
from trimtab.directions import Gaussian, Orthogonal, Paired, Rademacher, Sphere
from trimtab.estimators import probing
from trimtab.flat import Flat
from trimtab.setup import Setup

CUBE = tt.Box(0.0, 1.0)
SETUPS = {
    "auto, d = 1": Setup(tt.auto(radius=0.05), (1,), domain=CUBE),
    "auto, d = 10": Setup(tt.auto(radius=0.05), (10,), domain=CUBE),
    "auto, d = 70": Setup(tt.auto(radius=0.05), (70,), domain=CUBE),
    "auto, maximise": Setup(tt.auto(radius=0.2), (3,), domain=CUBE, maximise=True),
    "auto, a choice": Setup(tt.auto(radius=0.05), (5,), domain=tt.Product((CUBE, 2), (tt.Simplex(1.0), 3))),
    "auto, pairs": Setup(
        tt.Method(estimator=tt.Plane(), radius=0.05, step=tt.Adaptive(), directions=Paired(), margin="project"),
        (3,),
        domain=CUBE,
    ),
    "residual": Setup(tt.residual(radius=0.05, step=1e-3), (3,), domain=CUBE),
    "pairs": Setup(tt.Method(estimator=tt.Residual(), radius=0.05, step=1e-3, directions=Paired()), (3,), domain=CUBE),
    "schedule": Setup(tt.residual(radius=0.05, step=tt.Power(1e-3, 0.5)), (3,), domain=CUBE),
}


def aged(setup, rng, systems):
    """Systems of one setup, some new, some old, some with failures behind them, on objectives that jump at times."""
    setups = [storage.reseeded(setup, int(seed)) for seed in rng.integers(0, 2**63, systems)]
    best, noise = rng.random((systems, *setup.shape)), rng.choice([0.0, 0.01, 1.0], systems)

    def value(k, x):
        return float(((x - best[k]) ** 2).sum() + noise[k] * rng.normal() + 100.0 * (rng.random() < 0.02))

    states = [tt.init(one, setup.home.project(np.full(setup.shape, 0.3))) for one in setups]
    for k, one in enumerate(setups):
        for _ in range(k // 2 if k < 12 else int(rng.integers(12, 150))):
            failed = rng.random() < 0.05
            told = None if failed else value(k, tt.ask(one, states[k]).x)
            states[k] = tt.tell(one, states[k], told)
    return setups, states, value


@pytest.mark.parametrize("name", SETUPS)
def test_each_is_as_it_would_be_alone(name):
    setup, rng = SETUPS[name], np.random.default_rng(0)
    setups, states, value = aged(setup, rng, 30)
    flat, alone, together = Flat(states[0]), Alone(setup), 0
    assert fits(setup)
    for _ in range(12):
        groups = {}
        for k, like in enumerate(namesakes(setup, [state.round for state in states])):
            groups.setdefault(like, []).append(k)
        for some in groups.values():
            rounds = np.array([states[k].round for k in some])
            together = max(together, len(set(rounds.tolist())))
            draws = Draws(setup, [setups[k].seed for k in some])
            if len(some) % 2:
                draws(rounds)  # what some ask for again was drawn before then
            crowd = Crowd(setup, draws, rounds)
            entered = crowd.enter(flat.lanes(np.stack([flat.write(states[k]) for k in some])))
            queries = crowd.ask(entered).x
            values = np.array([value(k, x) for k, x in zip(some, queries, strict=True)])
            after = flat.write(crowd.leave(crowd.tell(entered, values)))
            for n, k in enumerate(some):
                assert np.array_equal(tt.ask(setups[k], states[k]).x, queries[n])
                one = alone.now(draws.some([n]))
                assert np.array_equal(tt.ask(one, states[k]).x, queries[n])
                by_one = tt.tell(one, states[k], values[n].item())
                states[k] = tt.tell(setups[k], states[k], values[n].item())
                assert flat.write(states[k]).tobytes() == after[n].tobytes() == flat.write(by_one).tobytes()
    assert together > (5 if name.startswith("auto, d") else 0)  # of so many ages


@pytest.mark.parametrize("law", [Orthogonal(), Gaussian(), Rademacher(), Sphere(), Paired(Orthogonal())])
@pytest.mark.parametrize("dim", [1, 2, 10, 70, 400])
def test_rows_of_many_seeds_are_those_of_each(law, dim):
    seeds, draws = [5, 5, 7, 2**63 + 1, 0, 5], [0, 1, 11, 2700, 12345, 40000]
    expected = [law.source((dim,), seed, 0)(draw) for seed, draw in zip(seeds, draws, strict=True)]
    assert np.array_equal(law.apart(dim, seeds, draws), expected)


def test_who_cannot_be_told_side_by_side():
    assert not fits(Setup(tt.two_point(radius=0.1, step=0.01), (2,)))
    assert not fits(Setup(tt.auto(radius=0.1), (2,), domain=CUBE, max_pending=3))
    assert not fits(Setup(tt.auto(radius=0.1), (4, 2), domain=CUBE))
    assert not fits(Setup(tt.auto(radius=0.1), (2,), bounds=[(0, 1), (0, 2)]))


def test_a_state_is_a_row_and_back():
    setups, states, _ = aged(SETUPS["auto, d = 10"], np.random.default_rng(1), 20)
    flat = Flat(states[0])
    for setup, state in zip(setups, states, strict=True):
        row = flat.write(state)
        assert len(row) == flat.size
        assert np.array_equal(row[flat.place("state.centre")], state.centre)
        again = flat.read(row)
        assert storage.state_to_json(again) == storage.state_to_json(state)
        assert [type(x) for x in again] == [type(x) for x in state]
        assert not again.centre.flags.writeable
        assert np.array_equal(tt.ask(setup, again).x, tt.ask(setup, state).x)


def test_the_price_of_probing_in_lanes_is_that_of_each():
    setup = SETUPS["auto, d = 10"]
    _, states, _ = aged(setup, np.random.default_rng(2), 40)
    flat, rng = Flat(states[0]), np.random.default_rng(3)
    cut, square = rng.normal(size=(40, 10)), rng.random(40)
    lanes = flat.lanes(np.stack([flat.write(state) for state in states]))
    costs = probing.probing_costs(lanes.slope, cut, square)
    alone = [probing.probing_cost(s.slope, c, q) for s, c, q in zip(states, cut, square.tolist(), strict=True)]
    assert [None if np.isnan(cost) else cost for cost in costs.tolist()] == alone
    assert 0 < sum(cost is None for cost in alone) < 40
    downhill, bent = probing.downhill(lanes.slope)
    for n, state in enumerate(states):
        assert np.array_equal(downhill[n], probing.downhill(state.slope)[0])
        assert bent[n] == state.slope.bent
    assert probing.probing_costs((), cut, square) is None
    assert probing.probing_cost((), cut[0], 1.0) is None
    assert probing.downhill(()) is None


def test_what_is_said_of_a_setup_does_not_tell_its_seed():
    one, other = (Setup(tt.auto(radius=0.1), (2,), domain=CUBE, seed=seed) for seed in (1, 2))
    assert storage.described(one) == storage.described(other)
    assert storage.described(one) != storage.described(Setup(tt.auto(radius=0.2), (2,), domain=CUBE))
    assert "seed" not in storage.described(one)


def test_directions_of_trials_long_ago_are_those_of_each_alone():
    """An echo may look back farther than the trials that are drawn together: after failures, or when it asks again."""
    setup, seeds = SETUPS["auto, d = 10"], [3, 5, 7]
    draws = Draws(setup, seeds)
    draws(np.array([90, 50, 70]))  # those about them are kept
    for trials in ([90, 50, 12], [4, 5, 6], [4, 50, 6]):
        found = draws(np.array(trials))
        for seed, trial, u in zip(seeds, trials, found, strict=True):
            np.testing.assert_array_equal(u, storage.reseeded(setup, seed).frame.direction(trial))


@pytest.mark.parametrize("every", [2, 3, 5, 7, 10, 64])
def test_a_round_without_a_namesake_is_its_own(every):
    """Where echoes and looks ahead fall on few rounds of a kind, no round is taken for one of another."""
    setup = tt.Setup(replace(tt.auto(radius=0.1), estimator=tt.Plane(every=every, first=2)), (3,))
    plane, rounds = setup.method.estimator, range(300)
    for round, like in zip(rounds, namesakes(setup, rounds), strict=True):
        assert plane.echoes(like) == plane.echoes(round)
        assert like in (round, *range(4 * every + 1))
