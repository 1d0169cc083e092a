"""Trials for a context over HTTP: the same path as a Tuner's, whichever worker answers, and clear refusals."""

import math

import pytest

import trimtab as tt
from trimtab.client import Refused
from trimtab.live import Study
from trimtab.store.store import Store
from trimtab.study.verify import check_study

from ..factories import KNOBS

CONTEXT = ["load", {"name": "hour", "period": 24}]


def context_at(k):
    return {"load": None if k % 5 == 3 else math.sin(k / 4), "hour": k % 24}


def value(knobs, context):
    return (knobs["gain"] - 5 - 2 * (context["load"] or 0.0)) ** 2


def ask(service, context=None, **query):
    body = {} if context is None else {"context": context}
    return service.http.post("/v1/studies/a/trials:ask", params=query, json=body)


def whole(service):
    with Store(service.store, "read") as store:
        assert check_study(store, store.load("a")) == []
    return Study.open_unlocked(service.store, "a")


def test_the_path_is_that_of_a_local_study(service, tmp_path):
    service.make(context=CONTEXT, baseline={"every": 7})
    with Study.open(
        tmp_path / "o.db", "a", KNOBS, seed=1, baseline=7, context=["load", tt.Context("hour", period=24)]
    ) as local:
        for k in range(30):
            trial, ours = ask(service, context_at(k)).json(), local.ask(context_at(k))
            assert (trial["knobs"], trial["kind"], trial["context"]) == (ours.knobs, ours.kind, ours.context)
            told = value(ours.knobs, ours.context)
            assert service.tell(trial["id"], told).status_code == 200
            local.tell(ours, told)
        with whole(service) as study:
            assert study.state.centre.tolist() == local.state.centre.tolist()
            assert study.at({"load": 0.5}) == local.at({"load": 0.5})


def test_the_open_trial_stays_until_another_context_is_given(service):
    details = service.make(context=CONTEXT)
    assert details["context"] == [{"name": "load", "period": None}, {"name": "hour", "period": 24.0}]
    first = ask(service, {"load": 0.5}).json()
    assert first["context"] == {"load": 0.5, "hour": None}
    assert ask(service).json() == ask(service, {"load": 0.5, "hour": None}).json() == first
    assert service.get()["pending"] == [first]
    second = ask(service, {"load": 0.7}).json()
    assert second["context"] == {"load": 0.7, "hour": None}
    assert second["round"] == first["round"]
    assert second["id"] > first["id"]
    gone = service.tell(first["id"], 1.0)
    assert gone.status_code == 410
    assert f"asked for again with another context, as trial {second['id']}" in gone.json()["detail"]
    assert service.tell(second["id"], 1.0).json()["again"] is False
    assert service.tell(second["id"], 1.0).json()["again"] is True
    told = service.events()[-1]
    assert (told["kind"], told["context"]) == ("tell", {"load": 0.7, "hour": None})
    whole(service).close()


def test_several_open_trials_have_a_context_each_and_are_told_late(service):
    service.make(context=["load"], max_pending=3)
    trials = [ask(service, {"load": load}, another=True).json() for load in (-0.5, 0.0, 0.5)]
    assert [trial["context"]["load"] for trial in trials] == [-0.5, 0.0, 0.5]
    assert ask(service, {"load": 0.1}, another=True).status_code == 409
    for trial in reversed(trials):
        assert service.tell(trial["id"], value(trial["knobs"], trial["context"])).status_code == 200
    assert [e["context"]["load"] for e in service.events() if e["kind"] == "tell"] == [0.5, 0.0, -0.5]
    whole(service).close()


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"laod": 1.0}, "context 'laod' was not declared: did you mean 'load'?"),
        ({"load": "high"}, 'context/load: "high" is not valid: give a number, without quotes'),
        ({"load": True}, "context/load: "),
        ("load", 'context: "load" is not valid: give an object'),
    ],
)
def test_a_wrong_context_is_refused_and_hands_out_nothing(service, context, words):
    service.make(context=["load"])
    answer = ask(service, context)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert service.get()["pending"] == []


def test_a_study_without_context_refuses_one_and_answers_as_before(service):
    assert "context" not in service.make()
    answer = ask(service, {"load": 1.0})
    assert answer.status_code == 422
    assert "none was declared: declare it when the study is created, context=['load']" in answer.json()["detail"]
    assert "context" not in service.ask().json()
    service.run(2)
    assert all("context" not in event for event in service.events())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"context": ["load"], "method": "residual", "step": 0.1}, "takes no context"),
        ({"context": ["load", "load"]}, "context 'load' is declared twice"),
        ({"context": [{"name": "hour", "period": -1}]}, "period=-1.0 of 'hour' must be positive"),
        ({"context": ["a", "b", "c", "d"]}, "context"),
    ],
)
def test_a_wrong_declaration_is_refused(service, more, words):
    answer = service.http.put("/v1/studies/a", json={"knobs": KNOBS, **more})
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


def test_the_client_gives_a_context(service):
    with tt.Client(service.url) as client:
        study = client.study("a", KNOBS, seed=4, context=["load", tt.Context("hour", period=24)])
        for k in range(8):
            trial = study.ask(context=context_at(k))
            study.tell(trial, value(trial.knobs, trial.context))
        assert trial.context == {"load": math.sin(7 / 4), "hour": 7.0}
        with pytest.raises(Refused, match="did you mean 'load'"):
            study.ask(context={"laod": 1.0})


def test_a_trial_for_a_context_survives_a_restart_of_the_service(service):
    service.make(context=["load"])
    trial = ask(service, {"load": 0.4}).json()
    with whole(service) as study:
        assert study.ask().knobs == trial["knobs"]
        assert study.ask().context == {"load": 0.4}


def test_an_approved_setting_is_handed_out_for_its_context(service):
    service.make(context=["load"], guard={"approval": True})
    blocked = ask(service, {"load": 0.4})
    assert (blocked.status_code, blocked.json()["blocked"]) == (202, "approval")
    assert service.act("approve").status_code == 200
    trial = ask(service, {"load": 0.4}).json()
    assert (trial["knobs"], trial["context"]) == (blocked.json()["setting"], {"load": 0.4})
    assert service.tell(trial["id"], 1.0).status_code == 200
    whole(service).close()


def test_an_undo_closes_the_open_trial(service):
    service.make(context=["load"])
    for load in (0.1, 0.2, 0.3):
        service.tell(ask(service, {"load": load}).json()["id"], load)
    trial = ask(service, {"load": 0.4}).json()
    assert service.act("undo", round=2).status_code == 200
    assert service.tell(trial["id"], 1.0).status_code == 410
    again = ask(service, {"load": 0.3}).json()
    assert again["round"] == 2
    assert again["knobs"] == service.events()[5]["query"]
    assert service.tell(again["id"], 0.3).status_code == 200
    whole(service).close()
