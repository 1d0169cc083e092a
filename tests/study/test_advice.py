"""Every sentence of advice, on runs where it is right and on runs where it must not appear; and following it works."""

import logging
import math
import warnings

import numpy as np
import pytest

import trimtab as tt
from trimtab.live import Study
from trimtab.spec.knob_encoding import Knob
from trimtab.study.advice import ENOUGH, beyond
from trimtab.study.changes.queue import read_change


def knob(name, low=0.0, high=1.0, start=0.5, **more):
    return {"name": name, "low": low, "high": high, "start": start, **more}


def bowl(x, y):
    return lambda t, knobs, rng: (knobs["x"] - x) ** 2 + (knobs["y"] - y) ** 2


def noisy(cost, size):
    return lambda t, knobs, rng: cost(t, knobs, rng) + size * rng.normal()


def outliers(cost):
    return lambda t, knobs, rng: cost(t, knobs, rng) + 0.001 * rng.normal() + 50 * (rng.random() < 0.03)


TWO = [knob("x"), knob("y")]
FEW = [knob("x", 2, 8, 4, type="integer"), knob("y")]
BATCH = [knob("x", 1, 512, 32, type="integer", scale="log"), knob("y")]
FAR = [knob("x", 0, 4000, 10.0), knob("y", 0, 4000, 10.0)]
LARGE_BATCH = lambda t, knobs, rng: math.log(knobs["x"] / 2048) ** 2 + (knobs["y"] - 0.4) ** 2  # noqa: E731


def runaway(t, knobs, rng):
    return bowl(10 + 2 * t, 10 + 2 * t)(t, knobs, rng) / 1e4


def circle(rate):
    def cost(t, knobs, rng):
        return bowl(0.5 + 0.3 * math.cos(t / rate), 0.5 + 0.3 * math.sin(t / rate))(t, knobs, rng)

    return cost


def run(cost, knobs=TWO, method=None, *, seed, rounds=300, maximise=False, **settings):
    """Return the study after this many rounds, and all advice given in any of them: {figure: sentences}."""
    rng, said = np.random.default_rng(seed + 100), {}
    study = Study.open(":memory:", "a", knobs, method, seed=seed, maximise=maximise, settings=settings)
    for t in range(rounds):
        trial = study.ask()
        value = cost(t, trial.knobs, rng)
        study.tell(trial, -value if maximise else value)
        for figure, found in study.findings().items():
            if found.advice:
                said.setdefault(figure, []).append(found.advice)
    return study, said


def follow(study, sentence):
    """Follow the advice literally."""
    words = sentence.rstrip(".").split("trimtab set a ")[1].split()
    return study.set(dict([read_change(words[0].rstrip("."))]))


SEEDS = (0, pytest.param(1, marks=pytest.mark.long))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("cost", "knobs", "side", "wanted"),
    [
        (bowl(1.5, 0.4), TWO, "high", 1.5),
        (noisy(bowl(1.5, 0.4), 0.005), TWO, "high", 1.5),
        (noisy(LARGE_BATCH, 0.01), BATCH, "high", 1024),
        (bowl(-3, 0.4), [knob("x", 2.0, 8.0, 4.0), knob("y")], "low", 1.0),
        (bowl(-30.0, 0.4), [knob("x", -4.0, 8.0, 4.0), knob("y")], "low", -10.0),
    ],
)
def test_advice_names_a_limit_beyond_which_the_value_improves(cost, knobs, side, wanted, seed):
    study, said = run(cost, knobs, seed=seed, rounds=500)  # enough to be certain despite the noise
    with study:
        assert set(said) == {"edge"}
        sentence = said["edge"][-1]
        assert f"x is at its {side} limit, and the value improves towards it" in sentence
        assert f"trimtab set a knobs.x.{side}={wanted}." in sentence
        before = cost(0, study.centre, np.random.default_rng(0))
        assert list(follow(study, sentence)) == [f"knobs.x.{side}"]
        assert study.findings()["edge"].advice is None  # it was just followed
        for t in range(100):
            trial = study.ask()
            study.tell(trial, cost(t, trial.knobs, np.random.default_rng(t)))
        assert cost(0, study.centre, np.random.default_rng(0)) < before - 0.1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("cost", "knobs", "method"),
    [
        (bowl(1.0, 0.4), TWO, None),
        (noisy(bowl(1.0, 0.4), 0.01), TWO, None),
        (bowl(2, 0.4), FEW, None),
        (noisy(bowl(2, 0.4), 0.01), FEW, tt.auto(radius=0.1)),
        (noisy(bowl(8, 0.4), 0.01), FEW, None),
        (bowl(1, 0.4), [knob("x", 1, 8, 4, type="integer"), knob("y")], None),
        (bowl(-2.0, 0.4), TWO, None),  # 0 is a natural limit
        (bowl(0, 0.4), [knob("x", 0, 8, 4, type="integer"), knob("y")], tt.residual(radius=0.1, step=0.001)),
    ],
)
def test_no_advice_on_a_natural_limit_or_one_at_the_optimum(cost, knobs, method, seed):
    study, said = run(cost, knobs, method, seed=seed)
    with study:
        assert "edge" not in said
        rng = np.random.default_rng(0)
        assert cost(0, study.centre, rng) < cost(0, study.start, rng) - 0.05  # it did move to the limit


HEALTHY = {
    "still": (bowl(0.6, 0.4), {}),
    "noise": (noisy(bowl(0.6, 0.4), 0.01), {}),
    "much noise": (noisy(bowl(0.6, 0.4), 0.3), {}),
    "outliers": (outliers(bowl(0.6, 0.4)), {}),
    "maximised": (noisy(bowl(0.6, 0.4), 0.01), {"maximise": True}),
    "radius too wide": (noisy(bowl(0.6, 0.4), 0.001), {"method": tt.auto(radius=0.4)}),
    "radius too narrow, on its way": (bowl(0.6, 0.4), {"method": tt.auto(radius=0.0005), "rounds": 150}),
    "slow drift": (circle(60), {}),
    "fast drift": (circle(8), {}),
    "better by itself": (lambda t, knobs, rng: bowl(0.6, 0.4)(t, knobs, rng) - 0.01 * t, {}),
    "worse by itself": (lambda t, knobs, rng: bowl(0.6, 0.4)(t, knobs, rng) + 0.01 * t, {}),
    "drift while improving": (lambda t, knobs, rng: runaway(t, knobs, rng) - t, {"knobs": FAR}),
    "few whole numbers": (noisy(bowl(5, 0.4), 0.01), {"knobs": FEW}),
    "a cap that seldom holds": (noisy(bowl(0.6, 0.4), 0.001), {"guard.largest_move": 0.01}),
    "a step": (noisy(bowl(0.6, 0.4), 0.001), {"method": tt.residual(radius=0.05, step=0.03)}),
    "a step and outliers": (outliers(bowl(0.6, 0.4)), {"method": tt.residual(radius=0.05, step=0.03)}),
    "a step too long for its cap": (
        bowl(0.6, 0.4),
        {"method": tt.residual(radius=0.05, step=2.0), "guard.largest_move": 0.005},
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", HEALTHY)
def test_a_healthy_study_gets_no_advice(kind, seed):
    cost, options = HEALTHY[kind]
    study, said = run(cost, seed=seed, **options)
    study.close()
    assert said == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_advice_on_an_optimum_that_drifts_too_fast(seed):
    study, said = run(runaway, FAR, tt.auto(radius=0.000125), seed=seed, rounds=700)
    with study:
        assert set(said) == {"drift"}
        assert len(said["drift"]) > 50
        assert said["drift"][-1].endswith("widen the probes with trimtab set a radius=0.0005.")
        lag = runaway(700, study.centre, None)
        for _ in range(2):
            follow(study, f"trimtab set a radius={4 * study.setup.method.radius}.")
        for t in range(700, 1000):
            trial = study.ask()
            study.tell(trial, runaway(t, trial.knobs, None))
        assert runaway(1000, study.centre, None) < 0.1 * lag  # it has caught up


@pytest.mark.parametrize("seed", SEEDS)
def test_advice_on_a_cap_that_slows_the_study(seed):
    cost = noisy(bowl(0.9, 0.1), 0.001)
    study, said = run(cost, seed=seed, rounds=250, **{"guard.largest_move": 0.0005})
    with study:
        assert set(said) == {"capped"}
        assert list(follow(study, said["capped"][-1])) == ["guard.largest_move"]
        assert study.settings["guard.largest_move"] == 0.001


@pytest.mark.parametrize("seed", SEEDS)
def test_advice_on_a_step_that_is_too_large(seed):
    cost = noisy(bowl(0.6, 0.4), 0.001)
    study, said = run(cost, method=tt.residual(radius=0.05, step=2.0), seed=seed)
    with study:
        assert set(said) == {"contraction"}
        follow(study, said["contraction"][-1])
        assert study.setup.longest == pytest.approx(0.35 * study.setup.probe_length, rel=0.05)
        for t in range(300):
            trial = study.ask()
            study.tell(trial, cost(t, trial.knobs, np.random.default_rng(t)))
        assert study.diagnostics.long < 0.1
        assert study.findings()["contraction"].advice is None


def test_advice_on_a_value_that_never_changes():
    study, said = run(lambda t, knobs, rng: 3.5, seed=0, rounds=60)
    with study:
        assert set(said) == {"contrast"}
        assert "check that the command in study.toml uses the knobs" in said["contrast"][0]
    study, said = run(lambda t, knobs, rng: 3.5, seed=0, rounds=49)
    with study:
        assert said == {}  # too early


@pytest.mark.parametrize(
    ("options", "side", "wanted"),
    [
        ({"low": 1, "high": 512, "scale": "log", "type": "int"}, "high", 1024),
        ({"low": 0.01, "high": 1.0, "scale": "log"}, "low", 0.005),
        ({"low": 3, "high": 9, "type": "int"}, "high", 12),
        ({"low": 3, "high": 9, "type": "int"}, "low", 2),
        ({"low": 3, "high": 9, "type": "int", "scale": "log"}, "low", 1),
        ({"low": 2, "high": 9, "type": "int", "scale": "log"}, "low", 1),
        ({"low": 0.5, "high": 2.0, "step": 0.5}, "high", 3.0),
        ({"low": 0.5, "high": 2.0, "step": 0.5}, "low", 0.0),
        ({"low": 0.0, "high": 2.0}, "low", None),
        ({"low": 1, "high": 9, "type": "int"}, "low", None),
    ],
)
def test_the_suggested_limit(options, side, wanted):
    one = Knob(name="x", start=options["high"], **options)
    assert beyond(one, side) == wanted
    if wanted is not None:
        assert type(wanted) is (int if one.type == "integer" else float)
        with Study.open(":memory:", "a", [one], seed=0) as study:
            study.set({f"knobs.x.{side}": beyond(one, side)})


def told_the_same(study, rounds):
    for _ in range(rounds):
        study.tell(study.ask(), 3.0)


def test_new_advice_is_a_warning_and_a_log_line(tmp_path, caplog, recwarn, monkeypatch):
    warnings.simplefilter("always")
    monkeypatch.setattr(logging.getLogger("trimtab.live"), "propagate", True)
    caplog.set_level("INFO", "trimtab.live")
    with Study.open(tmp_path / "a.db", "a", TWO, seed=0, baseline=0) as study:
        told_the_same(study, ENOUGH - 1)
        assert not recwarn
        told_the_same(study, 20)
        (sentence,) = study.new_advice()
        assert study.new_advice() == []
    (warning,) = recwarn
    assert warning.category is tt.AdviceWarning
    assert warning.filename == __file__
    assert str(warning.message) == f"study 'a': {sentence}"
    assert "has been the same" in sentence
    assert [record.getMessage() for record in caplog.records if "advice" in record.getMessage()] == [
        f"advice for study a: {sentence}"
    ]
    with Study.open(tmp_path / "a.db", "a") as study:
        told_the_same(study, 20)
    assert len(recwarn) == 1  # it was known when the study was opened


def test_a_value_is_stored_even_if_warnings_are_errors(tmp_path):
    with Study.open(tmp_path / "a.db", "a", TWO, seed=0, baseline=0) as study:
        warnings.simplefilter("error")
        with pytest.raises(tt.AdviceWarning, match="has been the same"):
            told_the_same(study, 100)
        assert study.round == ENOUGH
        told_the_same(study, 5)


def test_a_tuner_warns_with_the_same_class():
    with pytest.warns(tt.AdviceWarning, match="no method and no bounds"):
        tt.Tuner([1.0], seed=0)
