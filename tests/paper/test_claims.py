"""The paper's claims as inequalities, with wide bands, on seeds that nothing was tuned on; and how verdicts follow."""

import copy

import numpy as np
import pytest

from trimtab.lab.record import quantiles
from trimtab.paper import MODES, experiments
from trimtab.paper.cells import cells, compute
from trimtab.paper.claims import claims

SEED = 2024
MODE = MODES["quick"]
WORK = cells(MODE, experiments(MODE), SEED)


def regret(name):
    return float(quantiles(compute(WORK[name]).regret()[:, -1], (0.5,))[0])


def variance(record):
    return np.median(quantiles(record.variance, (0.5,))[0])


def test_lqr_literal_drift():
    """R1, T = 50. Medians of many trials: residual 17 to 20, one-point above 100, symmetric 8 to 9, forward 17 to 24"""
    names = ("residual", "one-point", "two-point", "two-point-forward", "still")
    records = {name: compute(WORK[f"lqr-r1/{name}"]) for name in names}
    found = {name: float(quantiles(record.regret()[:, -1], (0.5,))[0]) for name, record in records.items()}
    assert 8 < found["residual"] < 40
    assert found["one-point"] > 3 * found["residual"]
    assert 1.2 < found["residual"] / found["two-point"] < 4
    assert 0.5 < found["residual"] / found["two-point-forward"] < 2
    assert found["still"] > 10 * found["residual"]
    assert variance(records["one-point"]) > 50 * variance(records["residual"])
    assert 2 < variance(records["residual"]) / variance(records["two-point"]) < 100


def test_lqr_without_mean_drift():
    residual, one_point = regret("lqr-r2/residual"), regret("lqr-r2/one-point")
    assert residual < 0.6 * one_point
    assert one_point == pytest.approx(regret("lqr-r2/still"), rel=0.2)  # one point does no better than nothing
    assert 1.2 < residual / regret("lqr-r2/two-point") < 4


def test_lqr_with_noise():
    assert regret("lqr-r3-sigma-0.1/residual") < 0.7 * regret("lqr-r3-sigma-0.1/one-point")
    # … but not where x₀ is drawn anew in every rollout: there nobody with independent noise gains anything
    assert regret("lqr-r3-redrawn/residual") > 0.75 * regret("lqr-r3-redrawn/still")
    assert regret("lqr-r3-redrawn/two-point-common") < 0.9 * regret("lqr-r3-redrawn/residual")


def test_allocation():
    names = ("residual", "one-point", "two-point", "still")
    records = {name: compute(WORK[f"allocation/{name}"]) for name in names}
    ends = {name: record.cost[:, -50:].mean() for name, record in records.items()}
    assert ends["residual"] < 0.85 * ends["still"]
    assert ends["one-point"] > 0.9 * ends["still"]  # in so few rounds
    assert ends["two-point"] < ends["residual"]
    assert 5 < variance(records["one-point"]) / variance(records["residual"]) < 1000


def test_the_checks_of_lemmas_theorems_and_opponents():
    found = {name: compute(WORK[name]).data for name in ("lemmas", "theorems", "opponents", "toy", "contraction")}
    assert found["lemmas"]["residual"]["largest_z"] < 5
    biased = found["lemmas"]["modified two-point"]
    assert biased["bias"] == pytest.approx(biased["predicted_bias"], abs=5 * biased["error"])
    assert biased["predicted_bias"] > 5 * biased["error"]
    assert all(row["mean"] < row["bound"] for row in found["theorems"]["rows"])
    assert found["opponents"]["after"]["exponent"] > 1 > found["opponents"]["before"]["exponent"]
    assert found["toy"]["one-point"][-1] > 100 * found["toy"]["one-point"][0]
    assert found["toy"]["residual"][-1] == pytest.approx(100, rel=0.5)  # V_f²/δ², in one dimension
    assert found["contraction"]["findings"]["contraction"][0] == "fails"


@pytest.fixture
def results():
    """What a world would have to look like in which every claim holds."""
    method = {"regret": {"median": 10.0, "q25": 9.0, "q75": 11.0}, "diverged": 0}
    method |= {"variance": {"round": [1, 2], "median": [1.0, 2.0]}}
    method |= {"cost_over_zeta": {"start": 18.0, "quarter": 9.0, "half": 8.0, "end": 7.0}}
    names = ("residual", "one-point", "two-point", "two-point-forward", "still", "auto")
    names = (*names, "two-point-common", "two-point-forward-common")
    found = {}
    for id, e in experiments(MODE).items():
        found[id] = {"title": e.title, "rounds": e.rounds, "parameters": e.parameters}
        found[id]["methods"] = {name: copy.deepcopy(method) for name in names}
        for bad in ("one-point", "still"):
            found[id]["methods"][bad]["regret"]["median"] = 100.0
            found[id]["methods"][bad]["variance"]["median"] = [50.0, 90.0]
            found[id]["methods"][bad]["cost_over_zeta"]["end"] = 18.0
    found["allocation"]["levels"] = {"uniform": 18.0, "offline": 5.0}
    rows = [{"horizon": t, "regret": t**0.6, "mean": t**0.6, "bound": t, "bias": 0.0, "predicted": 0.0} for t in (4, 9)]
    order = {"rows": rows, "exponent": 0.6}
    checks = {
        "lemmas": {
            "residual": {"bias": 0.01, "error": 0.01, "largest_z": 1.0},
            "modified two-point": {"bias": 0.5, "error": 0.01, "largest_z": 50.0, "predicted_bias": 0.5},
        },
        "toy": {"one-point": [1e2, 1e5], "residual": [100.0, 101.0]},
        "theorems": {"rows": rows},
        "opponents": {"before": order, "after": order},
        "contraction": {"findings": {"contraction": ["holds", "α is 0.1"]}},
        "feasible": {"queries": 100, "outside": 0},
    }
    return {"experiments": found, "checks": checks}


def verdicts(results):
    return {claim["claim"][:30]: claim["verdict"] for claim in claims(results)}


def test_where_all_is_well_all_claims_hold(results):
    found = verdicts(results)
    opponents = next(name for name in found if name.startswith("The same bounds"))
    assert found.pop(opponents) == "partly"  # simulation cannot prove a bound for every opponent
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("path", "value", "claim", "verdict"),
    [
        ("checks/lemmas/residual/largest_z", 9.0, "The residual estimate", "fails"),
        ("checks/lemmas/modified two-point/bias", 0.0, "Two-point feedback cannot", "fails"),
        ("checks/toy/residual", [100.0, 1e4], "When the level", "partly"),
        ("checks/contraction/findings/contraction", ["fails", "α is 7"], "The experiments validate", "fails"),
        ("checks/feasible/outside", 1, "With u on the sphere", "fails"),
        ("checks/opponents/after/exponent", 1.4, "The same bounds", "fails"),
        ("experiments/lqr-r1/methods/one-point/regret/median", 12.0, "Residual feedback has a much", "partly"),
        ("experiments/lqr-r1/methods/residual/regret/median", "inf", "Residual feedback has a much", "partly"),
        ("experiments/lqr-r2/methods/two-point/regret/median", 4.0, "Its regret is comparable", "partly"),
        ("experiments/lqr-r1/methods/one-point/variance/median", [1.0, 2.0], "Its estimates have a much", "partly"),
        ("experiments/lqr-r1/methods/two-point/variance/median", [0.1, 0.2], "Its variance is close", "partly"),
        ("experiments/allocation/methods/residual/cost_over_zeta/end", 17.9, "In resource allocation", "fails"),
        ("experiments/allocation/methods/two-point/cost_over_zeta/end", 5.5, "Its cost is as low", "partly"),
        ("experiments/allocation/methods/two-point/variance/median", [0.1, 0.1], "At agent 1 its variance", "partly"),
        ("experiments/lqr-r3-sigma-0.1/methods/one-point/regret/median", 10.0, "With noisy values", "partly"),
        ("experiments/lqr-r3-redrawn/methods/one-point/regret/median", 10.0, "Residual feedback always", "partly"),
    ],
)
def test_a_verdict_follows_its_number(results, path, value, claim, verdict):
    *way, last = path.split("/")
    place = results
    for key in way:
        place = place[key]
    assert last in place
    place[last] = value
    assert next(v for name, v in verdicts(results).items() if name.startswith(claim[:25])) == verdict
