"""Studies with context: what a trial was for is kept, and everything is replayed exactly."""

import math

import pytest

import trimtab as tt
from trimtab.live import Store, Study
from trimtab.store import tables
from trimtab.store.shared_store import SharedStore
from trimtab.study.unlocked import UnlockedStudy, load
from trimtab.study.verify import check_study

KNOBS = [
    {"name": "x", "low": 0, "high": 1, "start": 0.4},
    {"name": "n", "low": 1, "high": 64, "start": 8, "type": "integer"},
]
CONTEXT = ["load", tt.Context("hour", period=24)]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "t.db"


def opened(file, context=CONTEXT, **more):
    return Study.open(file, "a", KNOBS, seed=1, context=context, **more)


def context_at(k):
    return {"load": None if k % 7 == 3 else math.sin(k / 6), "hour": k % 24}


def cost(trial):
    load = trial.context["load"] or 0.0
    return 100 * (trial.knobs["x"] - 0.5 - 0.2 * load) ** 2 + 8 * load


def run(study, rounds, first=0):
    for k in range(first, first + rounds):
        trial = study.ask(context_at(k))
        study.tell(trial, cost(trial))


def wrong(file):
    with Store(file) as store:
        return store.check() + [why for saved in store.all().values() for why in check_study(store, saved)]


def text_of(study):
    return study._position.snapshot(0).state


def test_the_operating_point_follows_the_load(file):
    with opened(file, ["load"]) as study:
        assert study.setup.method == tt.belief(radius=0.05)
        for k in range(150):
            trial = study.ask({"load": math.sin(k / 6)})
            study.tell(trial, cost(trial))
        assert study.at({"load": 0.9})["x"] > 0.6
        assert study.at({"load": -0.9})["x"] < 0.4
        assert study.at() == study.centre


def test_each_event_has_the_context_of_its_trial(file):
    with opened(file) as study:
        run(study, 5)
        study.skip(study.ask({"hour": 7}))
        told = [study.describe(event) for event in study.events() if event.query]
        assert [each["context"] for each in told[:5]] == [
            {name: None if value is None else float(value) for name, value in context_at(k).items()} for k in range(5)
        ]
        assert told[-1]["context"] == {"load": None, "hour": 7.0}


def test_a_study_continues_exactly_after_it_was_opened_again(file, tmp_path):
    with opened(file) as study:
        run(study, 40)
        trial = study.ask({"load": 0.3})
    with opened(file) as study:
        assert study.ask({"load": 0.3}) == trial
        study.tell(trial, 1.0)
        run(study, 10, 41)
        after = text_of(study)
    with opened(tmp_path / "other.db") as study:
        run(study, 40)
        study.tell(study.ask({"load": 0.3}), 1.0)
        run(study, 10, 41)
        assert text_of(study) == after
    assert wrong(file) == []


def test_an_undo_is_exact(file):
    with opened(file, baseline=0) as study:
        states = []
        for k in range(30):
            states.append(text_of(study))
            run(study, 1, k)
        for round in (25, 11, 3):
            study.undo(round)
            assert text_of(study) == states[round]
        run(study, 5, 3)
    assert wrong(file) == []


def test_another_context_asks_anew_and_a_trial_is_learnt_as_it_was_asked(file, tmp_path):
    with opened(file) as study, opened(tmp_path / "other.db") as other:
        run(study, 60)
        run(other, 60)
        first, second = study.ask({"load": 0.9}), study.ask({"load": -0.9})
        assert (first.id, first.knobs["x"] > second.knobs["x"]) == (second.id, True)
        assert study.ask() == second
        study.tell(first, 2.0)
        other.tell(other.ask({"load": 0.9}), 2.0)
        assert text_of(study) == text_of(other)
        with pytest.raises(ValueError, match="was told, skipped or undone before"):
            study.tell(second, 1.0)


def test_baseline_rounds_carry_the_context_and_teach_nothing(file):
    with opened(file, baseline=4) as study:
        while (trial := study.ask({"load": 0.5})).kind != "baseline":
            study.tell(trial, 1.0)
        before = text_of(study)
        study.tell(trial, 3.0)
        assert text_of(study) == before
        assert list(study.events())[-1].context == [0.5, None]


def test_an_exported_study_is_the_same_elsewhere(file, tmp_path):
    with opened(file) as study:
        run(study, 25)
        text, before = study.export(), text_of(study)
    there = tmp_path / "other.db"
    Study.import_text(there, text)
    with opened(there) as study:
        assert text_of(study) == before
        assert study.contexts == (tt.Context("load"), tt.Context("hour", period=24))
        run(study, 5, 25)
        assert study.at({"load": 0.5}).keys() == {"x", "n"}
    assert wrong(there) == []


def test_a_changed_context_in_an_exported_study_is_refused(file, tmp_path):
    with opened(file) as study:
        run(study, 2)
        text = study.export()
    for old, new in [('"context":[0.0,0.0]', '"context":[0.0]'), ('"context":[0.0,0.0]', '"context":[0.0,"noon"]')]:
        assert old in text
        with pytest.raises(ValueError, match="not an exported study, or is damaged"):
            Study.import_text(tmp_path / "other.db", text.replace(old, new))


@pytest.mark.parametrize("keep", [None, ["load"], ["load", "hour"]])
def test_the_context_of_a_study_stays_as_it_was_declared(file, keep):
    opened(file).close()
    if keep is None:
        Study.open(file, "a", KNOBS).close()
        return
    with pytest.raises(ValueError, match=r"its context is load, hour \(period 24\), but its definition says load"):
        opened(file, keep)
    with Study.open(file, "a") as study, pytest.raises(ValueError, match="context cannot change once the study"):
        study.set({"context": ["load"]})


def test_a_wrong_context_says_what_to_give(file):
    with opened(file) as study:
        with pytest.raises(ValueError, match="'laod' was not declared: did you mean 'load'"):
            study.ask({"laod": 1.0})
        assert study.seq == 0
    with Study.open(file, "plain", KNOBS) as study:
        with pytest.raises(
            ValueError, match=r"none was declared: declare it when the study is created, context=\['load'\]"
        ):
            study.ask({"load": 1.0})
        with pytest.raises(ValueError, match="has no context: see its centre"):
            study.at({"load": 1.0})
    with pytest.raises(ValueError, match=r"takes no context: use tt\.belief"):
        Study.open(file, "other", KNOBS, tt.residual(radius=0.05, step=0.1), context=["load"])


def test_auto_with_a_context_is_the_belief_and_opens_again(file):
    for _ in range(2):
        with Study.open(file, "informed", KNOBS, tt.auto(radius=0.07), context=["load"]) as study:
            assert study.setup.method == tt.belief(radius=0.07)


def test_a_study_without_context_is_stored_as_if_there_were_none():
    event = tables.Event(3, 2, "tell", 1.5, [0.25, 8.0], [0.5, 9.0], 1.0, None)
    plain, with_context = (tables.event_row(1, each) for each in (event, event._replace(context=[0.7, None])))
    assert len(plain[5]) == 16
    assert with_context[5][:16] == plain[5]
    for row in (plain, with_context):
        read = tables.read_event(row[1:], "here")
        assert read == (event if row is plain else event._replace(context=[0.7, None]))


def test_changed_settings_keep_the_context(file):
    with opened(file) as study:
        run(study, 20)
        study.set({"radius": 0.03, "knobs.x.high": 0.9})
        assert [each.name for each in study.contexts] == ["load", "hour"]
        run(study, 5, 20)
        study.undo()
        run(study, 5, 25)
        study.reset()
        run(study, 5, 30)
    assert wrong(file) == []


def changed(store, act):
    """Change the study as a request to the service does: only the store knows what was before."""
    (known,) = load(store, ["a"])
    study = UnlockedStudy(store, known)
    found = act(study)
    assert study.stored()
    return found


def test_a_trial_handed_out_is_known_with_its_context_by_every_worker(file, tmp_path):
    with opened(file, baseline=0) as study, opened(tmp_path / "other.db", baseline=0) as other:
        run(study, 40)
        run(other, 42)
        after = text_of(other)
    with SharedStore(file) as store:
        for k in (40, 41):
            changed(store, lambda study: study.hand_out(context={"load": 0.123}))
            trial = changed(store, lambda study, k=k: study.hand_out(context=context_at(k)))  # asked for anew
            assert changed(store, lambda study: study.pending) == [trial]
            changed(store, lambda study, trial=trial: study.tell(study.pending[0], cost(trial)))
        assert load(store, ["a"])[0].position.state.round == 42
    with opened(file) as study:
        assert text_of(study) == after
    assert wrong(file) == []


def test_a_trial_of_the_service_is_told_where_it_was_applied(file):
    opened(file, baseline=0).close()
    with SharedStore(file) as store:
        for k in range(12):
            trial = changed(store, lambda study, k=k: study.hand_out(context=context_at(k)))
            elsewhere = trial._replace(knobs={**trial.knobs, "x": trial.knobs["x"] + 0.01})
            changed(store, lambda study, elsewhere=elsewhere: study.tell_at(elsewhere, cost(elsewhere)))
    with opened(file) as study:
        assert [event.kind for event in study.events()][-2:] == ["ask", "applied"]
        run(study, 2, 12)
    assert wrong(file) == []


def test_a_held_study_takes_over_a_trial_that_the_service_had_handed_out(file):
    with opened(file, baseline=0) as study:
        run(study, 20)
    with SharedStore(file) as store:
        trial = changed(store, lambda study: study.hand_out(context={"load": 0.5}))
    with opened(file) as study:
        assert study.ask().knobs == trial.knobs
        assert study.ask({"load": -0.5}).round == trial.round
        study.tell(study.ask({"load": -0.5}), 1.0)
        assert study.round == trial.round + 1
    assert wrong(file) == []


def test_what_is_believed_of_each_context(file):
    """The load explains everything, the other number nothing."""
    with opened(file, ["load", "other"], baseline=0) as study:
        assert {name: found[:2] for name, found in study.context_beliefs.items()} == dict.fromkeys(
            ["load", "other"], (None, None)
        )
        for k in range(200):
            trial = study.ask({"load": math.sin(k / 6), "other": math.cos(7.0 * k)})
            study.tell(trial, cost(trial))
            if k == 10:
                assert study.context_beliefs["load"].share is None
        load, other = study.context_beliefs.values()
        assert load.share > 0.9
        assert other.share < 0.5
        assert (load.low, load.high) == (pytest.approx(-1.0, abs=0.01), pytest.approx(1.0, abs=0.01))
    with Study.open(":memory:", "plain", KNOBS) as study:
        assert study.context_beliefs == {}


def test_tables_of_the_history_have_a_column_for_each_context(file):
    from trimtab.study.plots.data_frame import columns

    with opened(file, baseline=0) as study:
        study.tell(study.ask({"load": 0.25}), 1.0)
        study.tell(study.ask({"load": 0.5, "hour": 3}), 1.0)
        found = columns(study)
    assert found["context_load"] == [None, 0.25, 0.5]
    assert found["context_hour"] == [None, None, 3.0]
    assert list(found)[-3:] == ["context_load", "context_hour", "note"]


def test_the_command_line_shows_the_context(file):
    import csv
    import json

    from typer.testing import CliRunner

    from trimtab.cli import app

    with opened(file, baseline=0) as study:
        run(study, 30)

    def shown(*more):
        answer = CliRunner().invoke(app, ["show", "a", "--store", str(file), *more], env={"COLUMNS": "200"})
        assert answer.exit_code == 0, answer.output
        return answer.stdout

    rows = list(csv.DictReader(shown("--csv").splitlines()))
    assert [(row["context_load"], row["context_hour"]) for row in rows[:2]] == [("", ""), ("0.0", "0.0")]
    assert rows[4]["context_load"] == ""
    document = json.loads(shown("--json"))
    assert set(document["context"]) == {"load", "hour"}
    assert document["events"][2]["context"] == {"load": math.sin(1 / 6), "hour": 1.0}
    assert document["context"]["hour"]["high"] == 23.0
    text = shown()
    assert "share of the belief that depends on it" in text
    assert f"{math.sin(29 / 6):.5g}" in text
    assert "(add [baseline] with every = 20)" in text
