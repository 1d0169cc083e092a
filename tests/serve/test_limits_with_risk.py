"""Limits with a risk over HTTP: created, told in part, told again, and with the client."""

import pytest

import trimtab as tt
from trimtab.store.shared_store import SharedStore
from trimtab.study.verify import check_study

from ..factories import KNOBS

LIMITS = {"heat": {"max": 60, "risk": 0.02}, "load": {"min": 1}}


def checked(service):
    with SharedStore(service.store) as store:
        return check_study(store, store.load("a"))


def test_a_study_is_created_without_a_step(service):
    service.make(limits=LIMITS)
    service.make(limits=LIMITS)
    for round in range(12):
        trial = service.ask().json()
        values = {"heat": 10 * trial["knobs"]["gain"]} if round % 3 else None
        value = None if round == 5 else float(round)
        told = service.tell(trial["id"], value, **({} if values is None else {"values": values}))
        assert told.status_code == 200, told.text
        again = service.tell(trial["id"], value, **({} if values is None else {"values": values}))
        assert again.json()["again"]
    assert service.tell(trial["id"], value, values={"heat": 1}).status_code == 409
    wrong = service.tell(service.ask().json()["id"], 1.0, values={"cold": 3})
    assert (wrong.status_code, "was not declared" in wrong.json()["detail"]) == (422, True)
    events = [event for event in service.events() if event["kind"] in ("tell", "skip")]
    assert events[1]["limits"].keys() == LIMITS.keys()
    assert events[1]["limits"]["load"] is None
    assert service.get()["limits"][0]["risk"] == 0.02
    assert checked(service) == []
    with SharedStore(service.store) as store:
        assert store.load("a").status["limits"][0]["measured"] > 0


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"limits": {"heat": {"max": 1, "risk": 0.9}}}, "risk"),
        ({"limits": {"heat": {"max": 1, "scale": 2}}}, "needs a step"),
        ({"limits": {"heat": {"max": 1, "risk": 0.1}}, "step": 0.1}, "without a step"),
        ({"limits": LIMITS, "step": 0.1, "context": ["load"]}, "step does not apply"),
    ],
)
def test_limits_that_do_not_fit_are_refused(service, more, word):
    answer = service.http.put("/v1/studies/b", json={"knobs": KNOBS, **more})
    assert (answer.status_code, word in answer.json()["detail"]) == (422, True), answer.text


def test_limits_beside_a_context_and_late_values(service):
    service.make(limits=LIMITS, context=["load"], max_pending=2, baseline={"every": 0})
    first = service.http.post("/v1/studies/a/trials:ask", json={"context": {"load": 0.5}}).json()
    assert service.tell(first["id"], 2.0, values={"heat": 30}).status_code == 200
    assert service.get()["limits"][0]["value"] == 30
    assert checked(service) == []


def test_the_page_has_the_room_left_to_each_limit(service):
    service.make(limits=LIMITS)
    for _ in range(4):
        assert service.tell(service.ask().json()["id"], 1.0, values={"heat": 20.0}).status_code == 200
    page = service.http.get("/studies/a", headers={"accept": "text/html"}).text
    about = page[page.index('data-part="limits"') : page.index('data-part="health"')]
    assert '<th scope="row">heat</th><td class="figure">20</td><td>max 60</td>' in about
    assert "0 of 4 (95 %: 0.0\xa0% to 60\xa0%), promised at most 2.0\xa0%" in about
    assert "0 of 0, promised at most 1.0\xa0%" in about
    service.make("plain")
    page = service.http.get("/studies/plain", headers={"accept": "text/html"}).text
    assert 'data-part="limits"' not in page


def test_the_client_tells_what_was_measured(service):
    with tt.Client(service.url) as client:
        study = client.study("hot", KNOBS, limits=LIMITS, baseline={"every": 0})
        study.tell(study.ask(), 1.0, limits={"heat": 50.0})
        study.tell(study.ask(), 1.0)
        study.tell(study.ask(), None, limits={"load": 3.0})
        heat, load = study.summary()["limits"]
        assert (heat["value"], heat["measured"], load["value"]) == (50.0, 1, 3.0)
