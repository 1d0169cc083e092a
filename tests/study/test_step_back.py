"""Stepping back to the baseline: on systems that tuning makes worse on purpose, and never without need."""

import numpy as np
import pytest

from trimtab.live import Stopped, Study, read_config
from trimtab.monitor.savings import Ledger
from trimtab.study.verify import check_study
from trimtab.tune.loop import Runner

from ..factories import KNOBS

WHY = "worse than the baseline, by "


def worse_when_tuned(study, rounds, loss=5.0, seed=0, until=None):
    """Run rounds in which all but the reference costs more; return the round at which the study is found worse."""
    rng = np.random.default_rng(seed)
    for n in range(rounds):
        trial = study.ask()
        study.tell(trial, 20 + rng.standard_normal() + (0.0 if trial.kind == "baseline" else loss))
        if study.worse is not None:
            return n
    return None


def opened(file, **settings):
    options = {"seed": 3, "baseline": {"every": 8, "knobs": {"gain": 4}}}
    return Study.open(file, "a", KNOBS, **options, settings=settings)


def test_a_worse_study_returns_to_its_reference(tmp_path):
    with opened(tmp_path / "a.db") as study:
        heard = []
        study.callbacks.append(lambda study, event: heard.append(event))
        assert worse_when_tuned(study, 400) < 200
        study.step_back(study.worse)
        assert (heard[-1].kind, heard[-1].note[:40]) == ("reset", "to the baseline: tuning makes it worse t")
        assert WHY in heard[-1].note
        assert study.centre == study.baseline.setting
        assert study.worse is None
        assert study._position.ledger == Ledger()
        assert study.settings["guard.largest_move"] is None
        round = study.round
        assert worse_when_tuned(study, 30, loss=-5.0) is None
        assert study.round > round
        assert check_study(study._store, study._saved) == []
        position = study._position
    with Study.open(tmp_path / "a.db", "a") as study:
        assert study._position.snapshot(0) == position.snapshot(0)


def test_a_restart_moves_less_each_time(tmp_path):
    with opened(tmp_path / "a.db", **{"guard.on_revert": "restart"}) as study:
        limits = []
        for seed in range(3):
            assert worse_when_tuned(study, 400, seed=seed) is not None
            study.step_back(study.worse)
            limits.append(study.settings["guard.largest_move"])
        assert limits == [0.05, 0.025, 0.0125]
        assert study.setup.method.max_move is not None


@pytest.mark.parametrize("settings", [{"guard.revert": False}, {}])
def test_it_does_not_step_back_without_need_or_permission(tmp_path, settings):
    with opened(tmp_path / "a.db", **settings) as study:
        assert worse_when_tuned(study, 150, loss=0.0 if not settings else 5.0) is None


TOML = """
name = "a"
command = ["sh", "-c", "test $KNOB_X = 20 && echo 2{noise} || echo 7{noise}"]
seed = 1
[knobs.x]
type = "integer"
low = 0
high = 100
start = 20
[baseline]
every = 4
[guard]
leave_at = "query"
{more}
"""


def runner(tmp_path, more=""):
    (tmp_path / "study.toml").write_text(TOML.format(noise="$((TRIMTAB_ROUND % 3))", more=more))
    config = read_config(tmp_path / "study.toml")
    return config, config.open()


def test_a_run_ends_at_the_baseline(tmp_path):
    config, opened = runner(tmp_path)
    with opened as study:
        reports = []
        with pytest.raises(Stopped, match="the run has ended at the baseline"):
            reports.extend(report for report in Runner(config, study).rounds(400))
        assert reports[-2].note.startswith("back to the baseline: ")
        assert (reports[-1].kind, reports[-1].setting) == ("leave", {"x": 20})  # whatever leave_at says
        assert len(reports) < 200


def test_a_run_goes_on_if_it_is_told_to(tmp_path):
    config, opened = runner(tmp_path, 'on_revert = "restart"')
    with opened as study:
        reports = list(Runner(config, study).rounds(150))
        back = [n for n, report in enumerate(reports) if (report.note or "").startswith("back to the baseline: ")]
        assert back
        assert any(report.kind == "tell" for report in reports[back[0] :])
        notes = [event.note for event in study.events() if event.kind == "reset"]
        assert len(notes) == len(back)


def test_an_unknown_reaction_is_refused(tmp_path):
    for settings, why in [({"guard.on_revert": "x"}, "guard.on_revert='x'"), ({"guard.revert": 1}, "guard.revert=1")]:
        with pytest.raises(ValueError, match=why):
            opened(tmp_path / "a.db", **settings)
