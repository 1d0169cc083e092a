"""The same result sent twice is taken once, whatever is in it; and what cannot be taken changes nothing."""

import pytest

from .test_batch import replayed

HEAT = [
    {"name": "heat", "low": 150, "high": 220, "start": 180},
    {"name": "speed", "type": "integer", "low": 1, "high": 60, "start": 20},
    {"name": "valve", "low": 0, "high": 1, "start": 0.5, "step": 0.25},
    {"name": "fan", "type": "bool", "start": True},
    {"name": "mode", "choices": ["a", "b"], "start": "a"},
]
LIMIT = {"limits": {"noise": {"max": 3}}, "method": "primal-dual", "radius": 0.05, "step": 0.001}


def twice(service, id, value, **more):
    """The event of a result that is sent two times."""
    first, second = (service.tell(id, value, **more) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200), (first.text, second.text)
    assert (first.json()["again"], second.json()["again"]) == (False, True)
    assert first.json()["seq"] == second.json()["seq"]
    replayed(service.store)
    return service.events()[-1]


def test_no_value_of_what_was_set_instead(service):
    service.make(knobs=HEAT)
    event = twice(service, 1, None, applied={"heat": 181.5}, note="the door was open")
    assert (event["kind"], event["query"]["heat"]) == ("skip", 181.5)
    assert service.tell(1, None, applied={"heat": 190.0}).status_code == 409


def test_a_value_that_is_none_of_the_reference(service):
    service.make(knobs=HEAT, baseline={"every": 2})
    trial = service.ask().json()
    while trial["kind"] != "baseline":
        service.tell(trial["id"], 1.0)
        trial = service.ask().json()
    event = twice(service, trial["id"], 12.1, applied={"heat": 181.5}, note="a" * 480)
    assert (event["kind"], event["value"], event["query"]["heat"]) == ("baseline", None, 181.5)
    assert "12.1" in event["note"]
    assert service.tell(trial["id"], 12.2, applied={"heat": 181.5}).status_code == 409
    assert service.ask().json()["kind"] == "probe"


@pytest.mark.parametrize("more", [{}, {"applied": {"gain": 2.1}}])
def test_a_value_without_the_numbers_beside_it(service, more):
    service.make(**LIMIT)
    event = twice(service, 1, 5.0, values={"noise": None}, **more)
    assert (event["kind"], event["value"]) == ("skip", None)
    assert "5.0" in event["note"]
    assert "noise" in event["note"]
    assert service.tell(1, 6.0, values={"noise": None}).status_code == 409
    assert service.tell(1, 5.0, values={"noise": 1.0}).status_code == 409


@pytest.mark.parametrize("note", ["n" * 490, "n" * 700, "\n" * 490])
def test_a_long_note_of_a_value_beyond_the_rails(service, note):
    service.make(guard={"stop_above": 100})
    event = twice(service, 1, 101.0, note=note)
    assert "held: " in event["note"]
    assert service.tell(1, 101.0, note="another").status_code == 409


def test_a_long_word_and_a_long_note(service):
    service.make(guard={"approval": True})
    service.ask()
    assert service.act("approve", why="w" * 400).status_code == 200
    event = twice(service, 1, 1.0, note="n" * 200)
    assert event["note"].startswith("n" * 200 + "; approved by this machine: www")


def test_a_number_with_more_digits_than_are_kept(service):
    service.make(knobs=[{"name": "x", "low": 0, "high": 1e16, "start": 1e15}])
    twice(service, 1, 1.0, applied={"x": 9007199254740993})


def test_what_no_knob_can_be_set_to_is_refused_and_holds_nothing(service):
    service.make(knobs=HEAT)
    wrong = [{"speed": 20.4}, {"heat": "hot"}, {"heat": True}, {"fan": 0.5}, {"fan": "on"}, {"mode": 1}]
    for applied in wrong:
        answer = service.tell(1, 3.0, applied=applied)
        assert answer.status_code == 422, (applied, answer.text)
        assert next(iter(applied)) in answer.json()["detail"]
    for name, number in (("speed", "1e999"), ("speed", "1" + "0" * 400), ("heat", "1e999"), ("fan", "1e999")):
        body = f'{{"value": 3.0, "applied": {{"{name}": {number}}}}}'
        answer = service.http.put(
            "/v1/studies/a/trials/1/result", content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 422, (name, number, answer.text)
    now = service.get()
    assert (now["seq"], now["paused"]) == (0, None)
    event = twice(service, 1, 3.0, applied={"speed": 21.0, "fan": False, "mode": "b", "valve": 0.3, "heat": 181})
    assert event["query"] == {"heat": 181.0, "speed": 21, "valve": 0.3, "fan": False, "mode": "b"}
    assert service.tell(2, 3.0, applied={"mode": "c"}).status_code == 409  # beyond what it may be: somebody has to look


def test_what_is_refused_leaves_an_archived_study_as_it_is(service):
    service.make()
    service.act("hold", why="first")
    service.http.delete("/v1/studies/a")
    assert service.act("resume").status_code == 410
    assert service.get()["paused"]["why"] == "first"
    service.make("b")
    service.http.delete("/v1/studies/b")
    assert service.act("hold", "b").status_code == 410
    assert service.get("b")["paused"] is None
