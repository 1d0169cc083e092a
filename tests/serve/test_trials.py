"""Ask and tell over HTTP: every status, whatever comes twice, late, or not at all."""

import threading

import pytest

from trimtab.live import Study


def test_a_study_is_made_once(service):
    body = {"knobs": [{"name": "x", "low": 0, "high": 1, "start": 0.5}], "goal": "maximise"}
    put = service.http.put
    first = put("/v1/studies/a", json=body)
    assert (first.status_code, first.headers["etag"]) == (201, '"0"')
    assert put("/v1/studies/a", json=body).status_code == 200
    other = put("/v1/studies/a", json={**body, "goal": "minimise"})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert other.json()["type"] == "urn:trimtab:problem:another"
    assert service.get()["goal"] == "maximise"
    assert service.http.get("/v1/studies/b").status_code == 404
    assert service.http.get("/v1/studies/..%2F..%2Fetc").status_code in (404, 422)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"knobs": []},
        {"knobs": [{"name": "x", "low": 1, "high": 0, "start": 0}]},
        {"knobs": [{"name": "x", "low": 0, "high": 1, "start": 0.5}], "method": "residual"},
        {"knobs": [{"name": "x", "low": 0, "high": 1, "start": 0.5}], "command": ["rm", "-r", "/"]},
        {"knobs": [{"name": "x", "low": 0, "high": 1, "start": 0.5}], "guard": {"quiet_hours": ["noon"]}},
        {"knobs": [{"name": "x", "low": 0, "high": 1, "start": 0.5, "radius": 7}]},
    ],
)
def test_what_is_no_study_is_refused(service, body):
    answer = service.http.put("/v1/studies/a", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"]
    assert service.http.get("/v1/studies/a").status_code == 404


def test_the_same_path_as_a_study(service, tmp_path):
    service.make(baseline={"every": 7})
    service.run(30)
    with Study.open(tmp_path / "other.db", "a", service.get()["knobs"], seed=1, baseline=7) as study:
        for _ in range(30):
            trial = study.ask()
            study.tell(trial, (trial.knobs["gain"] - 6) ** 2)
        told = [study.describe(event) for event in study.events()]
    there = service.events()
    assert {event["kind"] for event in there} == {"start", "tell", "baseline"}
    assert service.get()["saving"]
    for one, other in zip(there, told, strict=True):
        assert {**one, "time": 0} == {"study": "a", "limits": None, **other, "time": 0}


def test_ask_and_tell_may_be_repeated(service):
    service.make()
    trial = service.ask().json()
    assert service.ask().json() == trial
    assert trial["id"] == 1
    first = service.tell(1, 3.5, note="warm")
    assert first.json() == {"seq": 1, "again": False, "open": 2}
    assert first.headers["etag"] == '"1"'
    assert service.tell(1, 3.5, note="warm").json() == {"seq": 1, "again": True, "open": 2}
    other = service.tell(1, 4.5)
    assert (other.status_code, other.json()["open"]) == (409, 2)
    assert service.tell(1, 3.5, note="cold").status_code == 409
    assert service.tell(3, 1.0).status_code == 404
    assert service.tell(0, 1.0).status_code == 404
    assert [event["kind"] for event in service.events()] == ["start", "tell"]


def test_no_value_is_no_value(service):
    service.make()
    assert service.tell(1, None, note="the pump was off").status_code == 200
    assert service.tell(1, None, note="the pump was off").json()["again"]
    assert service.tell(1, 1.0).status_code == 409
    assert service.get()["failures"] == 1
    assert service.events()[-1]["kind"] == "skip"


@pytest.mark.parametrize(
    "body", ['{"value": NaN}', '{"value": Infinity}', '{"value": 1e400}', '{"value": "3"', "{}", "[]", ""]
)
def test_what_is_no_value_is_refused(service, body):
    service.make()
    header = {"content-type": "application/json"}
    answer = service.http.put("/v1/studies/a/trials/1/result", content=body, headers=header)
    assert answer.status_code in (400, 422)
    assert service.get()["seq"] == 0


def test_a_trial_from_before_an_undo_is_gone(service):
    service.make()
    last = service.run(5)
    stale = service.ask().json()["id"]
    assert service.act("undo", round=2).status_code == 200
    answer = service.tell(stale, 1.0)
    assert (answer.status_code, answer.json()["type"]) == (410, "urn:trimtab:problem:undone")
    assert service.tell(last, (5.0 - 6) ** 2).status_code == 409
    assert service.ask().json()["round"] == 2
    assert service.ask().json()["id"] == answer.json()["open"] == 7


def test_what_was_really_set_is_learnt_from(service, tmp_path):
    service.make()
    service.run(3)
    trial = service.ask().json()
    applied = {"gain": trial["knobs"]["gain"] + 0.2}
    assert service.tell(trial["id"], 7.0, applied=applied).status_code == 200
    assert service.tell(trial["id"], 7.0, applied=applied).json()["again"]
    assert service.tell(trial["id"], 7.0, applied={"gain": 9.0}).status_code == 409
    event = service.events()[-1]
    assert (event["kind"], event["query"]["gain"]) == ("applied", applied["gain"])
    service.run(120)  # beyond a snapshot
    service.make("b")
    service.run(3, "b")
    service.tell(service.ask("b").json()["id"], 7.0, "b")
    assert service.get("b")["centre"] != event["centre"]
    with Study.open(service.store, "a") as study:  # from the last state, value by value
        assert study.seq == 124
        study.undo(4)
        assert study.centre["gain"] == pytest.approx(event["centre"]["gain"], abs=1e-12)


def test_what_was_set_outside_the_limits_holds_the_study(service):
    service.make()
    trial = service.ask().json()
    answer = service.tell(trial["id"], 7.0, applied={"gain": 11})
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:trimtab:problem:outside")
    assert "11" in service.get()["paused"]["why"]
    assert service.ask().status_code == 202
    assert service.tell(trial["id"], 7.0, applied={"gian": 5}).status_code == 422
    assert service.act("resume").status_code == 200
    assert service.ask().json() == trial
    assert service.tell(trial["id"], 7.0).status_code == 200


def test_after_failures_it_rests_until_a_value_comes(service):
    service.make(guard={"failures": 2})
    service.run(3)
    centre = service.get()["centre"]
    for _ in range(2):
        service.tell(service.ask().json()["id"], None)
    rest = service.ask().json()
    assert rest["kind"] == "rest"
    assert rest["knobs"] == centre
    assert service.tell(rest["id"], None).status_code == 200
    assert service.ask().json()["id"] == rest["id"] + 1
    assert service.tell(rest["id"] + 1, 3.0).status_code == 200
    assert service.tell(rest["id"] + 1, 3.0).json()["again"]
    assert service.ask().json()["kind"] == "probe"
    assert service.get()["centre"] == centre
    assert [event["kind"] for event in service.events()][-3:] == ["skip", "hold", "hold"]


def test_back_to_the_start_after_failures(service):
    service.make(guard={"failures": 2, "on_failures": "start"})
    service.run(20)
    for _ in range(2):
        service.tell(service.ask().json()["id"], None)
    rest = service.ask().json()
    assert rest["knobs"] == service.get()["start"]
    assert service.ask().json() == rest
    assert [event["kind"] for event in service.events()][-2:] == ["skip", "reset"]


def test_a_value_beyond_the_guard_holds_the_study(service):
    service.make(guard={"stop_above": 100})
    service.tell(1, 101.0)
    assert service.get()["paused"]["by"] == "the service"
    assert service.ask().json()["blocked"] == "pause"
    assert "stop_above" in service.events()[-1]["note"]


def test_quiet_hours(service):
    service.make(guard={"quiet_hours": ["00:00-12:00", "12:00-00:00"]})
    answer = service.ask()
    assert (answer.status_code, answer.json()["blocked"]) == (202, "quiet hours")


def test_waiting_for_approval(service, until):
    service.make(guard={"approval": True})
    answer = service.ask()
    assert (answer.status_code, answer.json()["blocked"], answer.headers["retry-after"]) == (202, "approval", "1")
    assert service.tell(1, 1.0).status_code == 409
    assert service.get()["waits"]["setting"] == answer.json()["setting"]
    assert [one["name"] for one in service.http.get("/v1/studies?attention=waiting").json()["studies"]] == ["a"]
    found = []
    waiting = threading.Thread(target=lambda: found.append(service.ask(wait=30)))
    waiting.start()
    assert service.act("approve", round=7).status_code == 409
    assert service.act("approve", why="looks fine", headers={"If-Match": '"0"'}).status_code == 200
    waiting.join(30)
    assert found[0].status_code == 200
    assert found[0].json()["knobs"] == answer.json()["setting"]
    again = service.act("reject")
    assert (again.status_code, again.json()["type"]) == (409, "urn:trimtab:problem:nothing-to-decide")
    assert service.tell(1, 1.0, note="ok").status_code == 200
    assert service.tell(1, 1.0, note="ok").json()["again"]
    assert service.events()[-1]["note"] == "ok; approved by this machine: looks fine"
    service.ask()
    assert service.act("reject", why="too far").status_code == 200
    assert service.ask().json()["blocked"] == "approval"
    last = service.events()[-1]
    assert (last["kind"], last["note"]) == ("skip", "rejected by this machine: too far")


def test_many_at_once(service):
    for name in "abc":
        service.make(name)
    results = [{"study": name, "trial": 1, "value": 2.0} for name in "abc"]
    results += [{"study": "a", "trial": 2, "value": 3.0}, {"study": "a", "trial": 1, "value": 2.0}]
    results += [{"study": "b", "trial": 1, "value": 9.0}, {"study": "z", "trial": 1, "value": 1.0}]
    results += [{"study": "c", "trial": 9, "value": 1.0}]
    answer = service.http.post("/v1/tells", json={"results": results}).json()["results"]
    assert [one["status"] for one in answer] == [200, 200, 200, 200, 200, 409, 404, 404]
    assert [one["result"]["again"] for one in answer[:5]] == [False] * 4 + [True]
    assert service.get("a")["seq"] == 2
    again = service.http.post("/v1/tells", json={"results": results}).json()["results"]
    assert all(one["result"]["again"] for one in again[:5])
    assert service.get("a")["seq"] == 2


def test_racing_clients_move_a_study_once_a_round(service):
    service.make()
    taken = []

    def work():
        for _ in range(40):
            trial = service.ask().json()
            answer = service.tell(trial["id"], (trial["knobs"]["gain"] - 6) ** 2)
            assert answer.status_code in (200, 409), answer.text
            if answer.status_code == 200 and not answer.json()["again"]:
                taken.append(trial["id"])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    events = service.events()
    assert sorted(taken) == [event["seq"] for event in events if event["kind"] == "tell"]
    assert [event["seq"] for event in events] == list(range(len(events)))
    with Study.open_unlocked(service.store, "a") as study:
        assert study.centre == service.get()["centre"]


def test_values_in_any_order_find_their_trial(service):
    names = [f"s{n}" for n in range(6)]
    for name in names:
        service.make(name)
    sent = [(name, n) for n in range(1, 8) for name in names]
    for n, (name, id) in enumerate(sent):
        assert service.tell(id, float(id), name).status_code == 200
        for late, old in (sent[n // 2], sent[n // 3]):
            assert service.tell(old, float(old), late).json()["again"]
    for name in names:
        assert [event["value"] for event in service.events(name)][1:] == [float(n) for n in range(1, 8)]


def test_the_trial_that_follows_comes_with_the_answer(service):
    service.make()
    answer = service.http.put("/v1/studies/a/trials/1/result?next=true", json={"value": 1.0}).json()
    assert answer["next"] == service.ask().json()
    again = service.http.put("/v1/studies/a/trials/1/result?next=true", json={"value": 1.0}).json()
    assert (again["again"], again["next"]) == (True, answer["next"])
    body = {"results": [{"study": "a", "trial": 2, "value": 2.0}], "next": True}
    assert service.http.post("/v1/tells", json=body).json()["results"][0]["result"]["next"] == service.ask().json()
    service.act("hold")
    assert "next" not in service.http.put("/v1/studies/a/trials/3/result?next=true", json={"value": 1.0}).json()
