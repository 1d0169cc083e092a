"""The sampler under Optuna's own tests, after kills, in several processes, and on what Optuna users do to a study."""

import copy
import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from wsgiref.util import setup_testing_defaults

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase
from optuna.trial import TrialState

import trimtab as tt
from trimtab.adapters.optuna import Sampler

optuna.logging.set_verbosity(optuna.logging.WARNING)
START = {"x": 4.0, "y": 0.1}


class TestByOptuna(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return Sampler


class TestByOptunaWithWorkers(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: Sampler(workers=2, radius=0.2, seed=3)


def excess(trial_number, x, y):
    """A quadratic whose optimum goes round, in shares of the ranges −5 to 5 and, of a logarithm, 0.01 to 1."""
    t = trial_number / 64
    return (x / 10 - 0.2 * np.cos(t)) ** 2 + (np.log10(y) / 2 + 0.5 - 0.2 * np.sin(t)) ** 2


def drifting(trial):
    return excess(trial.number, trial.suggest_float("x", -5, 5), trial.suggest_float("y", 0.01, 1, log=True))


def played(study):
    return [trial.params for trial in study.trials]


def test_one_query_per_round_every_one_feasible_and_far_better_than_standing_still():
    study = optuna.create_study(sampler=Sampler(start=START, seed=0))
    study.optimize(drifting, n_trials=500)
    params = played(study)
    assert params[0] == START
    assert len(params) == 500
    assert all(-5 <= p["x"] <= 5 and 0.01 <= p["y"] <= 1 for p in params)
    assert np.abs(np.diff([p["x"] for p in params[:20]])).max() < 2.5  # it looks around the start, it does not jump
    found = np.mean([trial.value for trial in study.trials[300:]])
    assert found < 0.1 * np.mean([excess(t, **START) for t in range(300, 500)])


def test_maximises():
    study = optuna.create_study(direction="maximize", sampler=Sampler(start={"x": 0.9}, seed=0))
    study.optimize(lambda trial: -((trial.suggest_float("x", 0, 1) - 0.3) ** 2), n_trials=200)
    assert study.sampler.setting(study)["x"] == pytest.approx(0.3, abs=0.05)


def test_is_the_tuner_that_one_would_write_by_hand():
    study = optuna.create_study(sampler=Sampler(start=START, seed=5))
    study.optimize(drifting, n_trials=60)
    knobs = [
        {"name": "x", "low": -5, "high": 5, "start": START["x"]},
        {"name": "y", "low": 0.01, "high": 1, "start": START["y"], "scale": "log"},
    ]
    tuner = tt.Tuner(knobs=knobs, seed=5)
    tuner.state = tuner.state._replace(round=1)  # trial 0 told Optuna which parameters there are
    for params in played(study)[1:]:
        trial = tuner.ask()
        assert trial.knobs == params
        tuner.tell(trial, float(excess(trial.id, **trial.knobs)))


RUN = """if True:
    import os, signal, sys, optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    from tests_objective import drifting
    from trimtab.adapters.optuna import Sampler
    path, trials, kill, workers = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    def objective(trial):
        value = drifting(trial)
        if kill == f"in {trial.number}":
            os.kill(os.getpid(), signal.SIGKILL)
        if kill == f"fail {trial.number}":
            raise RuntimeError
        return value
    def after(study, trial):
        if kill == f"after {trial.number}":
            os.kill(os.getpid(), signal.SIGKILL)
    sampler = Sampler(start={"x": 4.0, "y": 0.1}, workers=workers)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
    study = optuna.create_study(study_name="drift", storage=storage, sampler=sampler, load_if_exists=True)
    study.optimize(objective, n_trials=trials, callbacks=[after], catch=RuntimeError)
"""


def run(folder, journal, trials, kill="", workers=1, wait=True):
    (folder / "tests_objective.py").write_text(
        "import numpy as np\n"
        "def drifting(trial):\n"
        "    x, y = trial.suggest_float('x', -5, 5), trial.suggest_float('y', 0.01, 1, log=True)\n"
        "    t = trial.number / 64\n"
        "    return (x / 10 - 0.2 * np.cos(t)) ** 2 + (np.log10(y) / 2 + 0.5 - 0.2 * np.sin(t)) ** 2\n"
    )
    path = str(folder / journal)
    process = subprocess.Popen([sys.executable, "-c", RUN, path, str(trials), kill, str(workers)], cwd=folder)
    if wait:
        process.wait()
    return process, path


def load(path):
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
    return optuna.load_study(study_name="drift", storage=storage)


def test_after_a_kill_it_goes_on_with_the_trial_that_would_have_come_next(tmp_path):
    _, path = run(tmp_path, "whole", 12)
    killed, again = run(tmp_path, "killed", 12, kill="after 5")
    assert killed.returncode == -9
    run(tmp_path, "killed", 6)
    whole = played(load(path))
    assert len(whole) == 12
    assert played(load(again)) == whole


def test_a_trial_that_was_killed_counts_as_failed(tmp_path):
    _, path = run(tmp_path, "whole", 12, kill="fail 5")
    run(tmp_path, "killed", 12, kill="in 5")
    _, again = run(tmp_path, "killed", 6)
    whole = load(path)
    killed = load(again)
    assert whole.trials[5].state == TrialState.FAIL
    assert killed.trials[5].state == TrialState.RUNNING
    assert played(killed) == played(whole)


def test_several_processes(tmp_path):
    run(tmp_path, "several", 1)
    at_work = [run(tmp_path, "several", 12, workers=3, wait=False) for _ in range(3)]
    assert [process.wait() for process, _ in at_work] == [0, 0, 0]
    study = load(at_work[0][1])
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 37
    first, *rest = (trial.params for trial in study.trials)
    assert len({tuple(params.values()) for params in rest}) > 20  # they do not do the same work
    assert max(abs(params["x"] - first["x"]) for params in rest[:5]) < 2.0  # and all of it around the first
    settings = [Sampler(start=START, workers=3).setting(study) for _ in range(2)]
    assert settings[0] == settings[1] != pytest.approx(START)  # what was learnt is in the storage


def test_what_finished_earlier_and_is_seen_later_is_learnt_in_its_place():
    space = {"x": FloatDistribution(0, 1)}
    study = optuna.create_study(study_name="order", sampler=Sampler(start={"x": 0.5}, seed=0, workers=2))
    for value in (1.0, 2.0, 1.5):
        study.tell(study.ask(space), value)
    open = [study.ask(space) for _ in range(2)]
    study.tell(open[1], 3.0)
    study.ask(space)
    study.tell(open[0], 0.1)
    fresh = Sampler(start={"x": 0.5}, seed=0, workers=2)
    assert fresh.setting(study) == study.sampler.setting(study)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
def test_copies_go_on(copied):
    study = optuna.create_study(sampler=Sampler(start=START))
    study.optimize(drifting, n_trials=20)
    first = study.sampler.setting(study)
    study.sampler = copied(study.sampler)
    assert study.sampler.setting(study) == first
    study.optimize(drifting, n_trials=3)


def test_threads():
    study = optuna.create_study(sampler=Sampler(start=START, workers=3))
    study.optimize(drifting, n_trials=60, n_jobs=3)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


def moved(study, last):
    before = study.sampler.setting(study)
    trial = study.ask({"x": FloatDistribution(0, 1)})
    last(trial)
    return study.sampler.setting(study) != before


@pytest.fixture
def study():
    study = optuna.create_study(sampler=Sampler(start={"x": 0.2}, seed=1))
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.7) ** 2, n_trials=15)
    return study


def test_failed_pruned_and_infinite_trials_move_nothing(study):
    assert not moved(study, lambda trial: study.tell(trial, state=TrialState.FAIL))
    assert not moved(study, lambda trial: study.tell(trial, state=TrialState.PRUNED))
    assert not moved(study, lambda trial: study.tell(trial, float("inf")))
    assert moved(study, lambda trial: study.tell(trial, (trial.params["x"] - 0.7) ** 2))


def test_what_was_measured_elsewhere_moves_nothing(study):
    study.enqueue_trial({"x": 0.99})
    assert not moved(study, lambda trial: study.tell(trial, 0.0))
    assert study.trials[-1].params == {"x": 0.99}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_retried_trial_is_learnt_where_it_looked(study):
    lost = study.ask({"x": FloatDistribution(0, 1)})
    study.tell(lost, state=TrialState.FAIL)
    optuna.storages.RetryHeartbeatStaleTrialCallback()(study, study.trials[-1])
    assert moved(study, lambda trial: study.tell(trial, (trial.params["x"] - 0.7) ** 2))
    assert study.trials[-1].params == lost.params


def test_starts_at_an_enqueued_trial():
    study = optuna.create_study(sampler=Sampler(seed=0))
    study.enqueue_trial({"x": -3.0, "y": 0.5})
    study.optimize(drifting, n_trials=1)
    assert study.sampler.setting(study) == pytest.approx({"x": -3.0, "y": 0.5})


def test_all_kinds_of_parameters():
    def objective(trial):
        value = abs(trial.suggest_int("n", 1, 64, log=True) - 16) / 16
        value += abs(trial.suggest_int("k", 0, 12, step=3) - 9) / 9
        value += abs(trial.suggest_float("q", 0.1, 2.1, step=0.25) - 1.35)
        return value + (trial.suggest_categorical("c", [None, True, "a", 2.5]) != "a")

    start = {"n": 2, "k": 0, "q": 0.1, "c": None}
    study = optuna.create_study(sampler=Sampler(start={**start, "c": True}, seed=2))
    study.optimize(objective, n_trials=400)
    values = [trial.value for trial in study.trials]
    assert np.mean(values[-100:]) < 0.5 * np.mean(values[:20])  # 0.08 to 0.38 over twelve runs: choices take longer
    assert {p["k"] for p in played(study)} <= {0, 3, 6, 9, 12}
    assert {p["c"] for p in played(study)} == {None, True, "a", 2.5}
    assert study.sampler.setting(study)["k"] in (6, 9, 12)
    assert {type(value) for p in played(study) for name, value in p.items() if name in "nk"} == {int}


def test_parameters_that_come_and_go_are_drawn_independently():
    def objective(trial):
        value = (trial.suggest_float("x", 0, 1) - 0.5) ** 2
        return value + (trial.suggest_float("y", 0, trial.number + 1) if trial.number % 3 else 0.0)

    study = optuna.create_study(sampler=Sampler(start={"x": 0.1}, seed=0))
    study.optimize(objective, n_trials=30)
    assert list(study.sampler.setting(study)) == ["x"]
    again = optuna.create_study(study_name=study.study_name, sampler=Sampler(start={"x": 0.1}, seed=0))
    again.optimize(objective, n_trials=30)
    assert played(again) == played(study)


def test_limits_that_are_measured():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("heat", x - 0.3)
        return (x - 0.9) ** 2

    method = tt.primal_dual(radius=0.05, step=0.02, dual_step=0.02)
    study = optuna.create_study(sampler=Sampler(method=method, start={"x": 0.1}, seed=0))
    study.optimize(objective, n_trials=1000)
    assert study.sampler.setting(study)["x"] == pytest.approx(0.3, abs=0.07)
    with pytest.warns(UserWarning, match=r"tt.primal_dual\(.*limits=1\)"):
        optuna.create_study(sampler=Sampler()).optimize(objective, n_trials=1)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # where PyTorch is at hand, it is imported too
def test_the_dashboard_shows_the_study(tmp_path):
    import optuna_dashboard  # here, because it takes long, and every process that runs tests would wait

    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    study = optuna.create_study(study_name="drift", storage=storage, sampler=Sampler(start=START))
    study.optimize(drifting, n_trials=12)
    app = optuna_dashboard.wsgi(storage)

    def get(path):
        environ, answered = {"PATH_INFO": path, "wsgi.input": io.BytesIO()}, []
        setup_testing_defaults(environ)
        body = b"".join(app(environ, lambda status, headers, *_: answered.append(status)))
        assert answered == ["200 OK"]
        return json.loads(body)

    assert [shown["study_name"] for shown in get("/api/studies")["study_summaries"]] == ["drift"]
    shown = get(f"/api/studies/{study._study_id}")
    assert [trial["number"] for trial in shown["trials"]] == list(range(12))
    assert shown["trials"][-1]["values"] == [study.trials[-1].value]
    assert {space["name"] for space in shown["union_search_space"]} == {"x", "y"}


def test_optunahub_can_load_it():
    import optunahub  # the same

    hub = Path(__file__).parents[2] / "hub"
    module = optunahub.load_local_module("samplers/trimtab", registry_root=str(hub))
    study = optuna.create_study(sampler=module.Sampler(start=START))
    study.optimize(drifting, n_trials=5)
    assert (hub / "samplers/trimtab/README.md").read_text().startswith("---\nauthor")


@pytest.mark.parametrize("options", [{"radius": -1.0}, {"seed": -1}, {"workers": 0}])
def test_what_cannot_be_is_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Sampler(**options)


def test_a_start_outside_is_not_used():
    study = optuna.create_study(sampler=Sampler(start={"x": 7.0, "c": "z"}, seed=0))
    trial = study.ask({"x": FloatDistribution(0, 1), "c": CategoricalDistribution(["a", "b"])})
    assert 0 <= trial.params["x"] <= 1
    assert trial.params["c"] in ("a", "b")


def test_the_pip_command():
    code = "import sys; sys.modules['optuna'] = None; import trimtab.adapters.optuna"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: trimtab.adapters.optuna needs optuna: pip install" in done.stderr
    assert "[optuna]" in done.stderr
