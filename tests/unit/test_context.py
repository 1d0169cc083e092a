"""Context: how it is declared, given and kept, and the functions by which the belief learns from it."""

import math

import numpy as np
import pytest

import trimtab as tt
from trimtab.recipes.belief import bank as banks
from trimtab.recipes.belief.bank import Bank
from trimtab.recipes.belief.context import Basis, ContextConstants, functions, notice, unseen
from trimtab.recipes.belief.model import Constants, features

C = ContextConstants()


def tuner(context=("load",), lanes=None, **more):
    start = [0.4, 0.5] if lanes is None else np.full((lanes, 2), 0.45)
    return tt.Tuner(start, bounds=[(0, 1), (0, 1)], context=context, seed=3, **more)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("load", r'write context=\["load", …\]'),
        (["a", "b", "c", "d"], "4 contexts are too many to learn: give the 3 that matter most"),
        (["load", "load"], "'load' is declared twice"),
        ([7], "name of a context must be a text, not 7"),
    ],
)
def test_a_wrong_declaration_says_what_to_write(declared, words):
    with pytest.raises((ValueError, TypeError), match=words):
        tuner(declared)


@pytest.mark.parametrize("period", [0, -24, math.inf, "day", True])
def test_a_period_is_a_positive_number(period):
    with pytest.raises(ValueError, match="must be positive"):
        tt.Context("hour", period=period)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"laod": 1.0}, "'laod' was not declared: did you mean 'load'"),
        ({"temperature": 1.0}, "was not declared: declared are load"),
        ({"load": "high"}, "'load' is 'high': give a number, or None"),
        ({"load": True}, "'load' is True: give a number, or None"),
        ({"load": math.inf}, "'load' is infinite: give a finite number, or None"),
        ({"load": [1.0, 2.0]}, "give a number, or None"),
        (0.7, r'must be numbers by name: write context=\{"load": 0\.7\}'),
    ],
)
def test_a_wrong_context_says_what_to_give_and_changes_nothing(given, words):
    t = tuner()
    before = t.to_json()
    with pytest.raises((ValueError, TypeError), match=words):
        t.ask(context=given)
    assert t.to_json() == before


def test_without_a_declaration_a_context_is_refused():
    plain = tt.Tuner([0.4], bounds=[(0, 1)], seed=0)
    with pytest.raises(ValueError, match=r"none was declared: give Tuner\(…, context=\['load'\]\)"):
        plain.ask(context={"load": 1.0})
    with pytest.raises(ValueError, match="no context"):
        plain.at({"load": 1.0})
    with pytest.raises(ValueError, match=r"takes no context: use tt.belief"):
        tuner(method=tt.residual(radius=0.05, step=0.1))


@pytest.mark.parametrize("given", [{"context": ["load"]}, {"limits": {"heat": {"max": 1.0}}}])
def test_auto_is_the_belief_where_a_context_or_a_limit_is_given(given):
    method = tt.auto(radius=0.03, widest=2.0)
    t = tt.Tuner([0.4], method, bounds=[(0, 1)], seed=0, **given)
    assert t.setup.method == tt.belief(radius=0.03, widest=2.0)
    assert tt.Tuner.from_json(t.to_json()).setup.method == t.setup.method
    assert tt.Tuner([0.4], method, bounds=[(0, 1)], seed=0).setup.method == tt.plane(radius=0.03, widest=2.0)
    with pytest.raises(ValueError, match=r"use tt.belief"):
        tt.Tuner([0.4], tt.plane(radius=0.03), bounds=[(0, 1)], seed=0, **given)


def test_a_trial_carries_its_context_and_is_the_same_when_asked_again():
    t = tuner(["load", tt.Context("hour", period=24)])
    trial = t.ask(context={"load": 0.7})
    assert trial.context["load"] == 0.7
    assert math.isnan(trial.context["hour"])
    for again in (t.ask(), t.ask(context={"load": 0.7, "hour": None})):
        assert again.id == trial.id
        np.testing.assert_array_equal(again.x, trial.x)
    other = t.ask(context={"load": 0.2, "hour": 3})
    assert (other.id, other.context) == (trial.id, {"load": 0.2, "hour": 3.0})
    t.tell(other, 1.0)
    with pytest.raises(ValueError, match="was told or skipped before"):
        t.tell(trial, 1.0)


def cost(x, load):
    return float(((x - 0.5 - 0.2 * load) ** 2).sum()) / 0.005 + 8 * load


def run(t, rounds, load=lambda k: math.sin(k / 6), noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    for k in range(rounds):
        trial = t.ask(context={"load": load(k)})
        t.tell(trial, cost(trial.x, load(k)) + noise * rng.normal())
    return t


def test_saving_in_the_middle_changes_nothing():
    t = run(tuner(), 40)
    t.ask(context={"load": 0.3})  # open, and saved as such
    again = tt.Tuner.from_json(t.to_json())
    np.testing.assert_array_equal(run(t, 20).centre, run(again, 20).centre)


def test_a_late_value_is_learnt_with_the_context_of_its_own_trial():
    """Four open at once, told in reverse: the schedule is learnt as it is when they are told at once."""
    errors = []
    for late in (False, True):
        t = tuner(max_pending=4)
        for k in range(0, 400, 4):
            loads = [math.sin((k + j) / 6) for j in range(4)]
            if late:
                trials = [t.ask(context={"load": load}) for load in loads]
                for trial, load in list(zip(trials, loads, strict=True))[::-1]:
                    t.tell(trial, cost(trial.x, load))
            else:
                for load in loads:
                    trial = t.ask(context={"load": load})
                    t.tell(trial, cost(trial.x, load))
        errors.append(max(np.abs(t.at({"load": load}) - 0.5 - 0.2 * load).max() for load in (-0.9, 0.0, 0.9)))
    assert errors[0] < 0.04
    assert errors[1] < 0.08


def test_the_schedule_is_held_beyond_the_loads_seen_and_changes_nothing():
    t = run(tuner(), 200)
    before = t.to_json()
    np.testing.assert_array_equal(t.at({"load": 50.0}), t.at({"load": 5.0}))
    np.testing.assert_array_equal(t.at(), t.at({"load": None}))
    np.testing.assert_array_equal(t.at(), t.centre)
    for load in (-1e9, -1.0, 0.5, 1e9):
        assert ((t.at({"load": load}) >= 0) & (t.at({"load": load}) <= 1)).all()
    assert t.to_json() == before


def test_knobs_are_scheduled_by_name():
    t = tt.Tuner(knobs=[tt.Knob("speed", 0, 100, 40)], context=["load"], seed=0)
    for k in range(150):
        load = math.sin(k / 6)
        trial = t.ask(context={"load": load})
        t.tell(trial, (trial.knobs["speed"] - 50 - 20 * load) ** 2)
    assert 60 < t.at({"load": 0.9})["speed"] < 76
    assert 24 < t.at({"load": -0.9})["speed"] < 40


def test_units_of_a_context_do_not_matter():
    plain = run(tuner(), 120)
    scaled = tuner()
    for k in range(120):
        load = math.sin(k / 6)
        trial = scaled.ask(context={"load": 1024 * load})
        scaled.tell(trial, cost(trial.x, load))
    np.testing.assert_allclose(scaled.centre, plain.centre, atol=1e-9)


def test_a_lane_is_the_same_alone_and_with_others():
    many, alone = tuner(lanes=3), [tt.Tuner([0.45, 0.45], bounds=[(0, 1)] * 2, context=["load"], seed=3, lane=1)]
    for k in range(60):
        loads = np.array([math.sin(k / 6), math.cos(k / 5), math.nan if k % 7 == 3 else 0.5])
        trial, single = many.ask(context={"load": loads}), alone[0].ask(context={"load": float(loads[1])})
        np.testing.assert_array_equal(trial.x[1], single.x)
        many.tell(trial, [cost(x, 0.0 if math.isnan(load) else load) for x, load in zip(trial.x, loads, strict=True)])
        alone[0].tell(single, cost(single.x, loads[1]))
    np.testing.assert_array_equal(many.centre[1], alone[0].centre)


def test_functions_are_uncorrelated_polynomials_and_harmonics():
    """He_p/√p! of a normal context, √2·cos and √2·sin of an angle: mean 0, variance 1, within six standard errors."""
    basis, rng = Basis.of([0, 24]), np.random.default_rng(0)
    seen = unseen(4000, 2)._replace(
        spread=np.ones((4000, 2)),
        number=np.ones((4000, 2)),
        low=np.full((4000, 2), -9.0),
        high=np.full((4000, 2), 99.0),
    )
    context = np.stack([rng.normal(size=4000), rng.uniform(0, 24, size=4000)], axis=1)
    phi, unknown = functions(basis, seen, context, 9.0)
    assert not unknown.any()
    assert np.abs(phi.mean(axis=0)).max() < 6 * 1.0 / math.sqrt(4000) * 1.5
    assert np.abs((phi[:, 4:].T @ phi[:, 4:]) / 4000 - np.eye(8)).max() < 6 * 1.5 / math.sqrt(4000)
    one, _ = functions(basis, seen, np.full((4000, 2), 2.0), 9.0)
    np.testing.assert_allclose(one[0, :2], [2.0, 3 / math.sqrt(2)])  # He_1 = u, He_2 = u² − 1


def test_a_new_standardisation_changes_no_prediction():
    bank = Bank.of(2, Constants(), [0.0])
    rng, lanes = np.random.default_rng(1), 2
    filter, size = banks.start(bank, lanes), bank.columns.size
    mean = rng.normal(size=filter.mean.shape)
    root = rng.normal(size=filter.cov.shape)
    filter = filter._replace(
        mean=mean, cov=root @ np.swapaxes(root, -1, -2), squares=filter.squares + 1, dof=filter.dof + 1
    )
    seen = unseen(lanes, 1)
    for load in rng.normal(size=9):
        seen, renewal = notice(bank.basis, seen, np.full((lanes, 1), load), C)
    seen = seen._replace(low=seen.low - 3, high=seen.high + 3)
    before, z, load = seen, rng.normal(size=(lanes, 2)), np.full((lanes, 1), 0.4)
    renewal = None
    for _ in range(40):  # a load that has grown
        seen, renewal = notice(bank.basis, before, np.full((lanes, 1), 1.5), C)
        if renewal.again.any():
            break
        before = seen
    assert renewal.again.all()
    none = np.zeros(lanes)
    x = [features(bank.columns, z, none, functions(bank.basis, s, load, 99.0)[0]) for s in (before, seen)]
    after = banks.renewed(bank, filter, renewal, none + 1)
    assert x[0].shape[1] == size
    for old, new, f in zip(x[0], x[1], range(lanes), strict=True):
        np.testing.assert_allclose(after.mean[f] @ new, filter.mean[f] @ old, rtol=1e-9)
        np.testing.assert_allclose(
            np.einsum("i,kij,j->k", new, after.cov[f], new), np.einsum("i,kij,j->k", old, filter.cov[f], old), rtol=1e-9
        )


def test_members_without_a_context_never_gain_one():
    t = run(tuner(["load", tt.Context("hour", period=24)]), 100)
    memory = t.state.memory.value
    bank = Bank.of(2, Constants(), [0.0, 24.0])
    forbidden = ~bank.allowed
    assert forbidden.any()
    assert bank.masks == 7
    np.testing.assert_array_equal(memory.mean[0, :, bank.columns.further][forbidden], 0.0)
    variance = np.einsum("kii->ki", memory.cov[0])[:, bank.columns.further]
    np.testing.assert_array_equal(variance[forbidden], 0.0)
    assert (variance[~forbidden] >= 0).all()


def excess(lanes, rounds, load_of, told, noise=0.25, drift=0.0):
    """The mean excess of what is played, per lane, over the second half; radius .05, curvature 1 per radius²."""
    rng = np.random.default_rng(8)
    t = tt.Tuner(
        np.full((lanes, 2), 0.3),
        tt.belief(radius=0.05),
        bounds=[(0, 1)] * 2,
        seed=5,
        context=["load"] if told else None,
    )
    total = np.zeros(lanes)
    for k in range(rounds):
        load = load_of(k, rng, lanes)
        optimum = 0.5 + 0.2 * load * drift
        trial = t.ask(context={"load": load}) if told else t.ask()
        paid = ((trial.x - optimum[:, None]) ** 2).sum(axis=1) / 0.005
        if k >= rounds // 2:
            total += paid
        t.tell(trial, paid + 8 * drift * load + noise * rng.normal(size=lanes))
    return total


def test_a_load_that_moves_the_optimum_pays_a_tenth_with_context():
    load = lambda k, rng, lanes: np.sin(2 * math.pi * k / 40) + 0.1 * rng.normal(size=lanes)  # noqa: E731
    with_load, without = (excess(8, 300, load, told, drift=1.0) for told in (True, False))
    assert np.median(with_load) <= 0.1 * np.median(without)


def test_an_irrelevant_context_costs_nothing():
    load = lambda k, rng, lanes: rng.normal(size=lanes)  # noqa: E731
    with_load, without = (excess(32, 300, load, told) for told in (True, False))
    assert np.median(with_load) <= 1.1 * np.median(without)
