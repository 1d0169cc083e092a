"""Every study in `golden.py` gives the recorded trials, events, summaries, advice and savings."""

import pytest

from trimtab.live import Study

from ..golden import check, recorded
from . import golden

AGAIN = "python -m tests.study.golden"
ONE = "auto, mixed, baseline 5, maximise"


@pytest.mark.parametrize("name", golden.NAMES)
def test_a_study_gives_the_recorded_history(name):
    check(golden.FILE, {name: golden.hash_of(name)}, AGAIN)


def test_studies_and_records_correspond():
    assert sorted(golden.NAMES) == sorted(recorded(golden.FILE)["hashes"])


def test_seeds_lie_on_both_sides_of_the_signed_64_bit_range():
    seeds = {case.seed >= 2**63 for case in golden.CASES.values()}
    assert seeds == {False, True}


def test_a_changed_value_is_detected_at_the_round_where_it_changes(monkeypatch):
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
    "record_hold": lambda study, setting, value, note=None, *, kind="hold": study.note("pause", note or kind),
    "set": lambda study, changes, *, who=None, why=None: {},
    "ahead": lambda study, rounds: [study.ask()] * rounds,
    "findings": lambda study: {},
    "saving": property(lambda study: SAVING.fget(study)._replace(saved=0.0)),
    "probes": property(lambda study: dict.fromkeys(study.start, 0.0)),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_study_that_behaves_differently_is_detected(broken, monkeypatch):
    monkeypatch.setattr(Study, broken, BROKEN[broken])
    assert golden.hash_of(ONE) != recorded(golden.FILE)["hashes"][ONE]


def test_an_import_that_loses_the_learnt_state_is_detected(monkeypatch):
    import_text = Study.import_text

    def forgetful(where, text, name=None):
        import_text(where, text, name)
        with Study.open(where, name) as study:
            study.reset()

    monkeypatch.setattr(Study, "import_text", staticmethod(forgetful))
    before = recorded(golden.FILE)["hashes"][ONE].split("-")
    found = golden.hash_of(ONE).split("-")
    assert found[:2] == before[:2]
    assert found != before
