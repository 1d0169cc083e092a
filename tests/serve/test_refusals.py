"""Invalid requests: errors with the value, the reason and the remedy, and HTTP status."""

import json

import pytest

from ..factories import KNOBS

JSON = {"content-type": "application/json"}


def put(service, body, name="b"):
    return service.http.put(f"/v1/studies/{name}", json=body)


def why(answer, status=422):
    assert answer.status_code == status, answer.text
    return answer.json()["detail"]


@pytest.mark.parametrize("sent", ["application/x-www-form-urlencoded", None])
def test_a_body_that_is_not_said_to_be_json(service, sent):
    text = json.dumps({"knobs": KNOBS})
    answer = service.http.put("/v1/studies/b", content=text, headers={"content-type": sent} if sent else None)
    assert "send JSON with the header Content-Type: application/json" in why(answer)
    assert (sent or "the body") + " is not JSON" in why(answer)
    assert "Content-Type" in why(service.http.put("/v1/studies/b"))
    assert "not valid JSON: Expecting" in why(service.http.put("/v1/studies/b", content="{", headers=JSON))
    assert "[1] is not valid: give an object" in why(service.http.put("/v1/studies/b", json=[1]))


def test_what_was_sent_is_shown_and_shortened(service):
    assert """body/goal: "best" is not valid""" in why(put(service, {"knobs": KNOBS, "goal": "best"}))
    assert 'query/limit: "0" is not valid' in why(service.http.get("/v1/studies?limit=0"))
    long = why(put(service, {"knobs": KNOBS, "goal": "x" * 70_000}))
    assert "xxx… is not valid" in long
    assert len(long) < 250
    assert "body/knobs: is missing" in why(put(service, {}))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"metod": "auto"}, 'body/metod: there is no such field: did you mean "method"?'),
        ({"knobs": [{"name": "x", "hihg": 3}]}, 'body/knobs/0/hihg: there is no such field: did you mean "high"?'),
        ({"guard": {"falures": 3}}, 'body/guard/falures: there is no such field: did you mean "failures"?'),
        ({"limits": {"heat": {"mx": 3}}}, 'body/limits/heat/mx: there is no such field: did you mean "max"?'),
        ({"guard": {"high": 3}}, "body/guard/high: unknown field: leave it out"),  # which is one of a knob
    ],
)
def test_the_field_that_was_meant_is_named(service, more, said):
    assert said in why(put(service, {"knobs": KNOBS, **more}))


def test_the_field_of_a_result_that_was_meant_is_named(service):
    service.make()
    told = service.http.put("/v1/studies/a/trials/1/result", json={"valeu": 3})
    assert 'body/valeu: there is no such field: did you mean "value"?' in why(told)
    many = service.http.post("/v1/tells", json={"results": [{"study": "a", "trail": 1, "value": 3}]})
    assert 'body/results/0/trail: there is no such field: did you mean "trial"?' in why(many)


def test_a_wait_may_have_a_unit(service):
    service.make()
    assert service.http.post("/v1/studies/a/trials:ask?wait=10ms", json={}).status_code == 200
    assert "query/wait: 120.0 is not valid" in why(service.http.post("/v1/studies/a/trials:ask?wait=2m", json={}))


def test_a_token_in_the_wrong_place_is_not_repeated(service):
    token = service.token("read")["Authorization"].removeprefix("Bearer ")
    service.http.headers.update(service.token("admin"))
    for body in ({"knobs": KNOBS, "token": token}, {"knobs": KNOBS, "goal": token}, {"knobs": token}):
        assert token not in put(service, body).text
        assert put(service, body).status_code == 422


def test_one_message_for_what_may_be_of_several_types(service):
    (wrong,) = put(service, {"knobs": [{"name": "x", "low": [1], "high": 3}]}).json()["errors"]
    said = {"where": "body/knobs/0/low", "what": "[1] is not valid: give a number, text, true or false"}
    assert wrong == said
    service.make()
    (wrong,) = service.http.patch("/v1/studies/a", json={"changes": {"radius": [[1]]}}).json()["errors"]
    assert wrong["where"] == "body/changes/radius"
    assert "a list of strings" in wrong["what"]


@pytest.mark.parametrize("value", [True, "12.5", [1]])
def test_a_measured_value_is_a_number(service, value):
    service.make()
    service.make("hot", method="primal-dual", radius=0.05, step=0.02, limits={"heat": {"max": 60}})
    trial = service.ask().json()["id"]
    said = f"{json.dumps(value)} is not valid: give a number, without quotes"
    assert said in why(service.tell(trial, value))
    assert said in why(service.tell(service.ask("hot").json()["id"], 1.0, "hot", values={"heat": value}))
    many = {"results": [{"study": "a", "trial": trial, "value": value}]}
    assert said in why(service.http.post("/v1/tells", json=many))
    assert service.tell(trial, 3).status_code == 200  # as JSON writes 3.0


def test_a_limit_that_was_left_out(service):
    service.make("hot", method="primal-dual", radius=0.05, step=0.02, limits={"heat": {"max": 60}})
    detail = why(service.tell(service.ask("hot").json()["id"], 1.0, "hot"))
    assert "heat is missing" in detail
    assert "over HTTP: values" in detail


def test_another_body_says_what_of_it_is_another(service):
    service.make()
    body = {"knobs": KNOBS, "seed": 1, "baseline": {"every": 0}}
    for other, said in [
        ({"seed": 2}, "seed was 1, and now is 2"),
        ({"knobs": [KNOBS[0], {**KNOBS[1], "high": 128}]}, "knobs/1/high was 256, and now is 128"),
        ({"guard": {"stop_above": 3}}, "guard/stop_above was null, and now is 3"),
        ({"knobs": KNOBS[:1]}, "knobs was [{"),
    ]:
        detail = why(put(service, {**body, **other}, "a"), 409)
        assert f"another definition: {said}" in detail
        assert detail.endswith("send the same, or another name")
    assert put(service, body, "a").status_code == 200


@pytest.mark.parametrize("field", ["pause", "timeout", "guard.dry_run", "guard.leave_at"])
def test_what_only_a_command_needs_is_no_field_of_a_study_without_one(service, field):
    service.make()
    assert field not in service.get()["fields"]
    answer = service.http.patch("/v1/studies/a", json={"changes": {field: "start", "radius": 0.02}})
    assert f"{field} applies to `trimtab tune`, but" in why(answer)
    assert service.get()["seq"] == 0


@pytest.mark.parametrize(
    "path",
    ["/v1/events?study=a%00b", "/v1/studies?search=%00", "/?search=%00", "/fleet/rows?study=%00", "/studies/%00/live"],
)
def test_a_nul_in_an_address(service, path):
    assert "NUL" in why(service.http.get(path))
    assert service.http.get("/v1/studies?search=%2500").status_code == 200


def test_where_the_store_is_and_what_its_driver_said_is_for_the_log_alone(start, tmp_path, caplog):
    pytest.importorskip("psycopg_pool", reason="no psycopg_pool: it comes with the extra postgres")
    service = start(store=f"postgresql://nobody@/none?host={tmp_path}")
    said = "the store cannot be reached now: send the same request again"
    for path in ("/readyz", "/v1/studies", "/v1/events", "/v1/studies/a", "/metrics"):
        assert said in why(service.http.get(path, headers={"Authorization": "Bearer tt_a_b"}), 503)
    page = service.http.get("/", headers={"Accept": "text/html"})
    assert (page.status_code, str(tmp_path) in page.text, said in page.text) == (503, False, True)
    assert str(tmp_path) in caplog.text


def test_a_limit_that_is_exceeded_in_most_rounds_is_said_aloud(service, caplog):
    service.make(method="primal-dual", radius=0.05, step=0.02, limits={"heat": {"max": 60}})
    for n in range(30):
        assert service.tell(service.ask().json()["id"], 1.0 + n, values={"heat": 253}).status_code == 200
    assert service.http.get("/v1/studies?attention=advice").json()["studies"][0]["name"] == "a"
    assert (
        "heat was above its limit of 60 in 100% of the last rounds, and is 253" in service.http.get("/studies/a").text
    )
    (line,) = [one for one in caplog.records if "its limit" in one.getMessage()]
    assert (line.levelname, line.trimtab) == ("WARNING", {"study": "a"})
