"""Corrections, limits and baselines over HTTP, and a study that `trimtab tune` holds."""

import json
import threading

import pytest

from trimtab.live import Study, read_config
from trimtab.store.shared_store import SharedStore
from trimtab.study.changes.pause import paused
from trimtab.study.verify import check_study
from trimtab.tune.loop import Runner

from ..factories import KNOBS

LIMITED = {"method": "primal-dual", "radius": 0.05, "step": 0.02, "limits": {"heat": {"max": 60, "scale": 10}}}


def correct(service, changes, why="", headers=None, name="a"):
    body = {"changes": changes, "why": why}
    return service.http.patch(f"/v1/studies/{name}", json=body, headers=headers)


def checked(service, name="a"):
    with SharedStore(service.store) as store:
        return check_study(store, store.load(name))


def test_what_may_change_is_corrected_and_what_was_learnt_is_kept(service):
    service.make()
    service.run(30)
    before = service.get()
    answer = correct(service, {"radius": 0.02, "knobs.gain.high": 8, "guard.failures": 3}, "it rattles")
    assert answer.status_code == 200
    assert answer.json() == {
        "seq": 31,
        "changed": {"radius": [0.05, 0.02], "knobs.gain.high": [10, 8], "guard.failures": [None, 3]},
        "pending": False,
    }
    after = service.get()
    assert answer.headers["etag"] == '"31"'
    assert (after["seq"], after["rounds"]) == (31, before["rounds"])
    assert after["fields"]["radius"] == 0.02
    assert after["fields"]["guard.failures"] == 3
    assert after["centre"]["gain"] == pytest.approx(before["centre"]["gain"])
    (event,) = service.events(after="30")
    assert event["kind"] == "set"
    assert "knobs.gain.high 10 → 8" in event["note"]
    assert event["note"].endswith(": it rattles)")
    for _ in range(20):
        trial = service.ask().json()
        assert trial["knobs"]["gain"] <= 8
        assert service.tell(trial["id"], (trial["knobs"]["gain"] - 6) ** 2).status_code == 200
    assert checked(service) == []


def test_guard_rails_hold_as_they_are_corrected(service):
    service.make()
    trial = service.ask().json()
    assert correct(service, {"guard.stop_above": 10}).status_code == 200
    assert service.ask().json() == trial  # of the run alone: what is open stays so
    assert service.tell(trial["id"], 11.0).status_code == 200
    assert service.ask().json()["blocked"] == "pause"
    assert "above guard.stop_above=10" in service.events()[-1]["note"]
    again = service.tell(trial["id"], 11.0)
    assert (again.status_code, again.json()["again"]) == (200, True)
    assert service.tell(trial["id"], 12.0).status_code == 409


def test_a_trial_from_before_other_probes_is_gone(service):
    service.make()
    service.run(3)
    trial = service.ask().json()
    assert correct(service, {"radius": 0.02}).status_code == 200
    assert service.ask().json()["id"] != trial["id"]
    late = service.tell(trial["id"], 1.0)
    assert late.status_code == 410
    assert "predates the event 'set'" in late.json()["detail"]


def test_all_or_nothing_in_the_users_words(service):
    service.make()
    for changes, word in [
        ({"radius": 0.02, "seed": 3}, "seed cannot change once the study has begun"),
        ({"radius": 0.9}, "radius=0.9"),
        ({"knobs.gain.high": 0}, "gain"),
        ({"knobs.other.high": 1}, "there is no knob 'other'"),
        ({"guard.quiet_hours": ["late"]}, "not a valid time span"),
        ({"command": ["rm"]}, "read from study.toml"),
        ({"knobs.gain.high": "much"}, "gain"),
        ({"keep": 10**400}, "keep"),
        ({"guard.stop_above": 10**400}, "stop_above"),
    ]:
        answer = correct(service, changes)
        assert (answer.status_code, word in answer.json()["detail"]) == (422, True), answer.text
    assert service.get()["seq"] == 0
    assert correct(service, {}).status_code == 422
    assert correct(service, {"radius": 0.05}).json() == {"seq": 0, "changed": {}, "pending": False}


def test_a_stale_view_is_refused(service):
    service.make()
    service.run(2)
    assert correct(service, {"radius": 0.02}, headers={"If-Match": '"1"'}).status_code == 412
    assert correct(service, {"radius": 0.02}, headers={"If-Match": '"2"'}).status_code == 200
    assert correct(service, {"radius": 0.03}, headers={"If-Match": '"2"'}).status_code == 412
    assert correct(service, {"radius": 0.02}, name="none").status_code == 404
    assert service.http.delete("/v1/studies/a").status_code == 200
    assert correct(service, {"radius": 0.03}).status_code == 410


def test_the_last_correction_is_taken_back(service):
    service.make()
    service.run(3)
    correct(service, {"radius": 0.02})
    assert service.act("undo").status_code == 200
    assert service.get()["fields"]["radius"] == 0.05
    assert service.act("undo").status_code == 422  # nothing to take back
    assert checked(service) == []


def test_limits(service):
    service.make(**LIMITED)
    for round in range(40):
        trial = service.ask().json()
        values = {"heat": 10 * trial["knobs"]["gain"]}
        if round == 5:
            missing = service.tell(trial["id"], 1.0)
            assert (missing.status_code, "heat is missing" in missing.json()["detail"]) == (422, True)
            assert service.tell(trial["id"], 1.0, values={"cold": 3}).status_code == 422
        more = {"applied": {"gain": 3.0}} if round == 7 else {}
        told = service.tell(trial["id"], (trial["knobs"]["gain"] - 9) ** 2, values=values, **more)
        assert told.status_code == 200, told.text
    again = service.tell(trial["id"], (trial["knobs"]["gain"] - 9) ** 2, values=values)
    assert again.json()["again"]
    assert service.tell(trial["id"], (trial["knobs"]["gain"] - 9) ** 2, values={"heat": 1}).status_code == 409
    (limit,) = service.get()["limits"]
    assert (limit["name"], limit["side"], limit["bound"], limit["value"]) == ("heat", "max", 60, values["heat"])
    assert service.events()[-1]["limits"] == values
    assert service.events()[8]["kind"] == "applied"
    trial = service.ask().json()
    body = {"study": "a", "trial": trial["id"], "value": 2.0, "values": {"heat": 50}}
    answer = service.http.post("/v1/tells", json={"results": [body]}).json()
    assert answer["results"][0]["status"] == 200
    assert checked(service) == []
    with SharedStore(service.store) as store:
        assert store.events(store.load("a"))[-1].limits == [50.0]


def test_limits_that_cannot_be_are_refused(service):
    for limits, word in [
        ({"heat": {}}, "neither max nor min"),
        ({"heat": {"max": 1, "min": 2}}, "must be below"),
        ({"heat": {"max": 1, "scale": 0}}, "scale"),
    ]:
        body = {"knobs": KNOBS, **LIMITED, "limits": limits}
        answer = service.http.put("/v1/studies/b", json=body)
        assert (answer.status_code, word in answer.json()["detail"]) == (422, True), answer.text


def test_the_saving_is_shown(service):
    service.make(baseline={"every": 4, "knobs": {"gain": 3}})
    kinds = []
    for _ in range(60):
        trial = service.ask().json()
        kinds.append(trial["kind"])
        service.tell(trial["id"], (trial["knobs"]["gain"] - 6) ** 2 + 1)
        if trial["kind"] == "baseline":
            assert trial["knobs"]["gain"] == 3
    saving = service.get()["saving"]
    assert saving["baseline_rounds"] == kinds.count("baseline") == 15
    assert saving["saved"] > 0
    assert "the reference" in saving["sentence"]


def config(tmp_path, more=""):
    text = f"""name = "a"
store = "t.db"
command = ["echo", "{{x}}"]
{more}
[knobs.x]
low = 0
high = 1
start = 0.5
"""
    (tmp_path / "study.toml").write_text(text)
    return read_config(tmp_path / "study.toml")


def test_a_study_that_is_held_gets_the_correction_from_its_holder(service, tmp_path):
    with config(tmp_path).open() as study:
        study.tell(study.ask(), 1.0)
        answer = correct(service, {"radius": 0.02}, "too far")
        assert (answer.status_code, answer.json()["pending"]) == (202, True)
        assert service.get()["fields"]["radius"] == 0.05
        assert correct(service, {"seed": 1}).status_code == 422
        study.ask()
        assert study.setup.method.radius == 0.02
        assert list(study.events())[-1].note.endswith(": too far)")
    assert service.get()["fields"]["radius"] == 0.02


def test_tune_waits_while_it_is_held_over_the_service(service, tmp_path, until):
    with config(tmp_path).open() as study:
        runner, reports = Runner(config(tmp_path), study), []
        assert service.act("hold", why="the pump is repaired").status_code == 200

        def work():
            reports.extend(runner.rounds(3))

        thread = threading.Thread(target=work)
        thread.start()
        until(lambda: [e for e in service.events() if e["kind"] == "pause"])
        assert service.get()["rounds"] == 0
        assert service.get()["attention"] == ["paused"]
        assert service.act("resume").status_code == 200
        thread.join(60)
    kinds = [report.kind for report in reports]
    assert kinds[:2] == ["note", "note"]
    assert reports[0].note.endswith("the pump is repaired: waiting")
    assert reports[1].note == "resumed"
    assert len([kind for kind in kinds if kind in ("tell", "baseline")]) == 3
    assert [e["kind"] for e in service.events()[:3]] == ["start", "pause", "resume"]


def test_a_held_run_can_be_stopped(service, tmp_path):
    with config(tmp_path).open() as study:
        with SharedStore(service.store) as store:
            store.pause(store.load("a"), paused("anna", ""))
        runner = Runner(config(tmp_path), study)
        for report in runner.rounds():
            assert report.note == "held by anna: waiting"
            runner.stop.set()
        assert study.round == 0
    assert json.loads(SharedStore(service.store).load("a").paused)["by"] == "anna"


def test_a_store_that_is_away_at_first(start, tmp_path):
    pytest.importorskip("psycopg_pool", reason="no psycopg_pool: it comes with the extra postgres")
    service = start(store=f"postgresql://nobody@/none?host={tmp_path}")
    assert service.http.get("/livez").status_code == 200
    assert service.http.get("/readyz").status_code == 503
    assert service.http.get("/v1/studies/a").status_code == 503


def test_corrected_over_http_and_opened_again(service):
    service.make()
    service.run(3)
    correct(service, {"guard.failures": 4, "knobs.size.high": 128})
    with Study.open(service.store, "a") as study:
        assert study.settings["guard.failures"] == 4
        assert study.knobs.all[1].high == 128


def test_what_cannot_be_computed_with_is_refused(service):
    """A cap whose square is no number, and probes whose square is none."""
    service.make()
    for changes in ({"max_move": 1e300}, {"knobs.gain.radius": 1e-300}, {"radius": 1e-300}, {"max_move": "far"}):
        answer = service.http.patch("/v1/studies/a", json={"changes": changes})
        assert answer.status_code == 422, (changes, answer.text)
    assert service.http.patch("/v1/studies/a", json={"changes": {"max_move": 1e20}}).status_code == 200
    service.run(3)
    knob = {"name": "x", "low": 0, "high": 1, "start": 0.5}
    for body in ({"knobs": [knob], "radius": 1e-300}, {"knobs": [{**knob, "radius": 1e-300}]}):
        answer = service.http.put("/v1/studies/b", json=body)
        assert answer.status_code == 422, answer.text
        assert "1e-300" in answer.json()["detail"]
    small = {"knobs": [{**knob, "radius": 1e-30}]}
    assert service.http.put("/v1/studies/b", json=small).status_code == 201
    service.tell(1, 1.0, "b")
    service.tell(2, 2.0, "b")
    assert service.http.get("/studies/b").status_code == 200
