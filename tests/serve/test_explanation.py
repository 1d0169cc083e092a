"""The explanation of a study over HTTP, also of one with several open trials."""

import json
import random

import pytest

import trimtab as tt
from trimtab.live import Study
from trimtab.serve.api.routes import studies as routes
from trimtab.serve.http.errors import ApiError

from ..factories import KNOBS, cost


def explanation(service, name="a", **query):
    return service.http.get(f"/v1/studies/{name}/explanation", params=query)


def test_it_is_that_of_the_stored_study(service):
    service.make()
    for _ in range(30):
        trial = service.ask().json()
        assert service.tell(trial["id"], cost(trial["knobs"])).status_code == 200
    now, then = explanation(service), explanation(service, round=15)
    assert (now.status_code, then.status_code) == (200, 200)
    assert now.json()["probe"]["knobs"] == service.ask().json()["knobs"]
    with Study.open_unlocked(service.store, "a") as study:
        for answer, found in [(now, study.explain()), (then, study.explain(15))]:
            assert answer.json() == json.loads(json.dumps(found.to_dict()))


def test_late_values_are_heard_as_they_came(service):
    service.make(max_pending=4)
    tuner = tt.Tuner(knobs=KNOBS, seed=1, max_pending=4, explain=True)
    chance, open_here = random.Random(3), []
    for _ in range(70):
        if len(open_here) < 4 and chance.random() < 0.6:
            trial, ours = service.http.post("/v1/studies/a/trials:ask", params={"another": True}).json(), tuner.ask()
            open_here.append((trial, ours))
        elif open_here:
            trial, ours = open_here.pop(chance.randrange(len(open_here)))
            told = cost(trial["knobs"])
            assert service.tell(trial["id"], told).status_code == 200
            tuner.tell(ours, told)
    assert len(open_here) > 0
    assert explanation(service).json()["belief"] == tuner.belief.to_dict()


def test_refusals(service):
    service.make()
    answer = explanation(service)
    assert answer.status_code == 422
    assert answer.json()["detail"] == "study 'a' cannot be explained yet: it has no values"
    assert explanation(service, "b").status_code == 404
    assert explanation(service, round=9).status_code == 422
    assert explanation(service, round=-1).status_code == 422


def test_one_at_a_time():
    with routes.EXPLAINING, pytest.raises(ApiError) as refused:
        routes._explain(None, "a", None)
    assert (refused.value.status, refused.value.kind) == (503, "busy")
