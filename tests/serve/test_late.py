"""Several trials open at once, values late and out of order: the same as a Tuner, bit by bit."""

import random
import sqlite3
import threading

import pytest

import trimtab as tt
from trimtab.live import Study
from trimtab.store.store import Store
from trimtab.study.verify import check_study

from ..factories import KNOBS


def value(knobs):
    return (knobs["gain"] - 6) ** 2 + 0.1 * knobs["size"]


def another(service, **query):
    return service.ask(another=True, **query)


def whole(service, name="a"):
    """The study, after a look at everything that is stored of it: states, events, and that these lead to those."""
    with Store(service.store, "read") as store:
        assert check_study(store, store.load(name)) == []
    return Study.open_unlocked(service.store, name)


def test_values_come_late_and_the_path_is_the_tuners(service):
    service.make(max_pending=4)
    tuner = tt.Tuner(knobs=KNOBS, seed=1, max_pending=4)
    chance, open_here = random.Random(3), []
    for _ in range(60):
        if len(open_here) < 4 and chance.random() < 0.6:
            trial, ours = another(service).json(), tuner.ask()
            assert trial["knobs"] == ours.knobs
            open_here.append((trial, ours))
        elif open_here:
            trial, ours = open_here.pop(chance.randrange(len(open_here)))
            told = None if chance.random() < 0.1 else value(trial["knobs"])
            answer = service.tell(trial["id"], told)
            assert answer.status_code == 200, answer.text
            tuner.skip(ours) if told is None else tuner.tell(ours, told)
        assert [one["id"] for one in service.get()["pending"]] == [trial["id"] for trial, _ in open_here]
    with whole(service) as study:
        assert study.state.centre.tolist() == tuner.state.centre.tolist()
        assert study.state.round == tuner.state.round


def test_the_oldest_one_again_until_it_is_told_and_no_more_than_allowed(service):
    service.make(max_pending=2)
    first = service.ask().json()
    assert service.ask().json() == first == service.get()["pending"][0]
    second = another(service).json()
    assert second["id"] != first["id"]
    assert second["knobs"] != first["knobs"]
    full = another(service)
    assert (full.status_code, full.json()["pending"]) == (409, [first["id"], second["id"]])
    assert service.tell(second["id"], 2.0).status_code == 200
    assert service.ask().json() == first, "what is told beside it does not change it"
    assert service.act("hold").status_code == 200
    assert service.ask().status_code == 202, "nothing new is set, and what was set already may be told"
    assert service.tell(first["id"], 1.0).status_code == 200
    assert service.get()["pending"] == []


def test_duplicates_other_values_and_trials_that_never_were(service):
    service.make(max_pending=3)
    first, second = service.ask().json()["id"], another(service).json()["id"]
    assert service.tell(second, 2.0).json()["again"] is False
    assert service.tell(second, 2.0).json()["again"] is True
    assert service.tell(second, 3.0).status_code == 409
    assert service.tell(first, 1.0).json()["again"] is False
    assert service.tell(first, 1.0).json()["again"] is True
    assert service.tell(99, 1.0).status_code == 404
    assert service.tell(service.get()["open"], 1.0).status_code == 404, "the next one was not handed out"
    both = service.http.post(
        "/v1/tells",
        json={"results": [{"study": "a", "trial": n, "value": v} for n, v in ((first, 1.0), (second, 2.5))]},
    )
    assert [one["status"] for one in both.json()["results"]] == [200, 409]


@pytest.mark.parametrize("action", [("undo", {"round": 1}), ("reset", {})])
def test_trials_from_before_an_undo_are_gone(service, action):
    service.make(max_pending=3)
    first = service.ask().json()["id"]
    service.tell(first, 1.0)
    older = [another(service).json()["id"] for _ in range(2)]
    assert service.act(action[0], **action[1]).status_code == 200
    for id in older:
        assert service.tell(id, 1.0).status_code == 410
    assert service.get()["pending"] == []
    if action[0] == "undo":
        assert service.get()["rounds"] == 1
    assert service.tell(service.ask().json()["id"], 2.0).status_code == 200
    whole(service).close()


def test_a_correction_of_the_probes_closes_them_and_one_of_the_run_does_not(service):
    service.make(max_pending=3)
    first, second = service.ask().json()["id"], another(service).json()["id"]
    patch = lambda **changes: service.http.patch("/v1/studies/a", json={"changes": changes})  # noqa: E731
    assert patch(**{"guard.failures": 5}).status_code == 200
    assert service.tell(first, 1.0).status_code == 200
    assert service.tell(first, 1.0).json()["again"] is True
    assert patch(**{"knobs.gain.high": 5}).status_code == 200
    assert service.tell(second, 1.0).status_code == 410
    whole(service).close()


def test_what_was_really_set_and_limits_of_a_late_trial(service):
    service.make(max_pending=2)
    first, second = service.ask().json(), another(service).json()
    assert service.tell(second["id"], 2.0, applied={"gain": 2.25}).status_code == 200
    assert service.tell(first["id"], 1.0).status_code == 200
    kinds = [event["kind"] for event in service.events()]
    assert kinds == ["start", "ask", "ask", "applied", "tell"]
    assert service.events()[3]["query"]["gain"] == 2.25
    whole(service).close()


def test_the_reference_is_measured_alone(service):
    service.make(max_pending=3, baseline={"every": 3})
    for _ in range(12):
        trial = service.ask().json()
        if trial["kind"] == "baseline":
            assert service.get()["pending"] == []
        else:
            more = another(service)
            assert more.status_code == 200 or "alone" in more.json()["detail"]
        for one in service.get()["pending"] or [trial]:
            assert service.tell(one["id"], value(one["knobs"])).status_code == 200
    kinds = [event["kind"] for event in service.events()]
    assert kinds.count("baseline") >= 3
    whole(service).close()


def test_approval_is_of_the_one_that_is_handed_out(service):
    service.make(max_pending=2, guard={"approval": True})
    assert service.ask().status_code == 202
    assert service.act("approve").status_code == 200
    first = service.ask().json()
    assert another(service).status_code == 202
    assert service.act("reject", why="too hot").status_code == 200
    assert another(service).status_code == 202, "the next one waits, too"
    assert service.tell(first["id"], 1.0).status_code == 200
    assert [event["kind"] for event in service.events()] == ["start", "ask", "skip", "tell"]
    whole(service).close()


def test_many_at_once_get_trials_of_their_own_and_none_is_lost(service):
    service.make(max_pending=6)
    wrong = []

    def work(seed):
        client = tt.Client(service.url)
        study, chance = client.study("a"), random.Random(seed)
        for _ in range(8):
            trial = study.ask(another=True)
            if chance.random() < 0.3:
                study.tell(trial, value(trial.knobs))
            study.tell(trial, value(trial.knobs))
        client.close()

    def watched(seed):
        try:
            work(seed)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=watched, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    with sqlite3.connect(service.store) as db:
        told = db.execute("SELECT round, COUNT(*) FROM trimtab_events WHERE kind = 'tell' GROUP BY round").fetchall()
    assert sorted(told) == [(round, 1) for round in range(48)]
    with whole(service) as study:
        assert study.round == 48


def test_a_study_that_is_opened_goes_on_beside_what_is_open(service):
    service.make(max_pending=2)
    late = service.ask().json()["id"]
    with Study.open(service.store, "a") as study:
        study.tell(study.ask(), 3.0)
        assert service.tell(late, 1.0).status_code == 409, "it is held"
    assert service.tell(late, 1.0).status_code == 200
    whole(service).close()
