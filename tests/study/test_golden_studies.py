"""Every study shows what was recorded: trials, events, summaries, advice, savings (`golden.py` has the studies)."""

import pytest

from trimtab.live import Study

from ..golden import check, recorded
from . import golden

AGAIN = "python -m tests.study.golden"
ONE = "auto, mixed, baseline 5, maximise"


@pytest.mark.parametrize("name", golden.NAMES)
def test_a_study_shows_what_was_recorded(name):
    check(golden.FILE, {name: golden.hash_of(name)}, AGAIN)


def test_each_study_is_recorded_and_each_record_is_a_study():
    assert sorted(golden.NAMES) == sorted(recorded(golden.FILE)["hashes"])


def test_seeds_lie_on_both_sides_of_what_a_signed_number_holds():
    seeds = {case.seed >= 2**63 for case in golden.CASES.values()}
    assert seeds == {False, True}


def test_a_changed_value_is_noticed_from_where_it_changes(monkeypatch):
    before, cost = golden.hash_of(ONE), golden.cost
    monkeypatch.setattr(golden, "cost", lambda knobs, turn: cost(knobs, turn) + 1e-6 * (turn >= 120))
    (first, *_, last), (recorded_first, *_, recorded_last) = golden.hash_of(ONE).split("-"), before.split("-")
    assert first == recorded_first
    assert last != recorded_last


SAVING = Study.saving
BROKEN = {
    "undo": lambda study, *to: None,
    "reset": lambda study, failures=0: study.note("resume", "to start"),
    "note": lambda study, kind, words: None,
    "held": lambda study, setting, value, note=None, *, kind="hold": study.note("pause", note or kind),
    "set": lambda study, changes, *, who=None, why=None: {},
    "ahead": lambda study, rounds: [study.ask()] * rounds,
    "findings": lambda study: {},
    "saving": property(lambda study: SAVING.fget(study)._replace(saved=0.0)),
    "probes": property(lambda study: dict.fromkeys(study.start, 0.0)),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_study_that_does_something_else_is_noticed(broken, monkeypatch):
    monkeypatch.setattr(Study, broken, BROKEN[broken])
    assert golden.hash_of(ONE) != recorded(golden.FILE)["hashes"][ONE]


def test_an_import_that_loses_what_was_learnt_is_noticed(monkeypatch):
    adopt = Study.adopt

    def forgetful(where, text, name=None):
        adopt(where, text, name)
        with Study.open(where, name) as study:
            study.reset()

    monkeypatch.setattr(Study, "adopt", staticmethod(forgetful))
    before = recorded(golden.FILE)["hashes"][ONE].split("-")
    found = golden.hash_of(ONE).split("-")
    assert found[:2] == before[:2]
    assert found != before
