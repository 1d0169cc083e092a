"""Actions of people on studies, stale requests, and changes to studies held by another process."""

import contextlib
import re
import sqlite3
import subprocess
import sys

import pytest

from trimtab.live import Study
from trimtab.store.shared_store import SharedStore
from trimtab.store.tables import row_checksum
from trimtab.study.verify import check_study


def test_each_is_recorded_with_who_and_why(service):
    service.make()
    service.run(8)
    for action, body in (("hold", {}), ("resume", {}), ("undo", {"round": 3}), ("reset", {})):
        answer = service.act(action, why=f"to {action}", **body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["etag"] == f'"{answer.json()["seq"]}"'
    events = service.events()[-4:]
    assert [event["kind"] for event in events] == ["pause", "resume", "undo", "reset"]
    assert [event["note"] for event in events] == [
        "this machine: to hold",
        "this machine: to resume",
        "from round 8, by this machine: to undo",
        "to start, by this machine: to reset",
    ]
    service.run(3)
    with SharedStore(service.store) as store:
        assert check_study(store, store.load("a")) == []


def test_what_is_stale_is_refused(service):
    service.make()
    service.run(2)
    for action, body in (("hold", {}), ("undo", {"round": 0}), ("reset", {}), ("approve", {}), ("reject", {})):
        for match in ('"1"', '"99"', "nonsense"):
            answer = service.act(action, headers={"If-Match": match}, **body)
            assert (answer.status_code, answer.json()["type"]) == (412, "urn:trimtab:problem:stale")
    assert service.get()["seq"] == 2
    assert service.act("hold", headers={"If-Match": '"2"'}).status_code == 200
    assert service.act("resume", headers={"If-Match": "*"}).status_code == 200
    assert service.act("resume").status_code == 409
    assert service.act("undo", round=77).status_code == 422


def test_hold_and_resume(service):
    service.make()
    trial = service.ask().json()
    service.act("hold", why="maintenance")
    blocked = service.ask().json()
    assert (blocked["blocked"], blocked["detail"]) == ("pause", "paused by this machine: maintenance")
    assert [one["name"] for one in service.http.get("/v1/studies?attention=paused").json()["studies"]] == ["a"]
    assert service.tell(trial["id"], 2.0).status_code == 200  # it was set before
    service.act("resume")
    assert service.ask().json()["round"] == 1


def test_archive_restore_erase(service):
    service.make()
    service.run(3)
    delete = service.http.delete
    assert delete("/v1/studies/a?why=old").json()["archived"]
    assert service.http.get("/v1/studies").json()["studies"] == []
    assert len(service.http.get("/v1/studies?archived=true").json()["studies"]) == 1
    assert service.ask().status_code == 410
    assert service.tell(4, 1.0).status_code == 410
    assert service.act("reset").status_code == 410
    assert service.get()["rounds"] == 3
    assert service.act("restore").status_code == 200
    assert service.act("restore").status_code == 409
    service.run(2)
    assert [event["kind"] for event in service.events()][4:6] == ["archive", "restore"]
    assert delete("/v1/studies/a?forever=true").status_code == 200
    assert service.http.get("/v1/studies/a").status_code == 404
    service.make()
    assert service.ask().json()["id"] == 1
    assert service.events()[0]["kind"] == "start"


HOLDER = """
import sys
from trimtab.live import Study
with Study.open(sys.argv[1], "a") as study:
    print("held", flush=True)
    sys.stdin.readline()
    trial = study.ask()
    study.tell(trial, 1.0)
    print("told", flush=True)
    sys.stdin.readline()
    import os
    os.kill(os.getpid(), 9)
"""


def test_a_study_that_a_process_holds_is_watched_but_not_told(service):
    service.make()
    service.run(2)
    words = [sys.executable, "-c", HOLDER, service.store]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        for answer in (service.ask(), service.tell(3, 5.0), service.act("undo", round=0), service.act("reset")):
            assert (answer.status_code, answer.json()["type"]) == (409, "urn:trimtab:problem:held")
        assert service.http.delete("/v1/studies/a").status_code == 409
        results = {"results": [{"study": "a", "trial": 3, "value": 5.0}]}
        assert service.http.post("/v1/tells", json=results).json()["results"][0]["status"] == 409
        assert service.act("hold", why="look").json()["paused"]["why"] == "look"
        assert service.act("resume").status_code == 200
        assert service.get()["seq"] == 2
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "told\n"
        assert service.get()["value"] == 1.0
        holder.stdin.write("\n")
        holder.stdin.flush()
        holder.wait(30)
    assert service.get()["holder"]  # it was killed, and left its name
    assert service.run(1) == 4
    assert service.get()["holder"] is None
    with Study.open(service.store, "a") as study:
        assert study.round == 4


@pytest.mark.parametrize(("query", "names"), [("", "abc"), ("search=B", "b"), ("search=b", "b"), ("search=%25", "")])
def test_the_list(service, query, names):
    for name in ("c", "a", "b"):
        service.make(name)
    found, after = [], ""
    while after is not None:
        page = service.http.get(f"/v1/studies?limit=1&{query}" + (f"&after={after}" if after else "")).json()
        found += [study["name"] for study in page["studies"]]
        after = page["next"]
    assert "".join(found) == names
    assert service.http.get("/v1/studies?attention=nothing").status_code == 422
    assert service.http.get("/v1/studies?after=%F0").status_code == 422


def test_those_that_need_somebody_are_found_and_sorted_by_the_store(service):
    """The columns of a row agree with its status, also for callers who may see only one study."""
    for name in ("advice", "failing", "held", "fine", "old", "waits"):
        service.make(name, **({"guard": {"approval": True}} if name == "waits" else {}))
    for _ in range(2):
        service.tell(service.ask("failing").json()["id"], None, "failing")
    for _ in range(50):
        service.tell(service.ask("advice").json()["id"], 1.0, "advice")
    service.act("hold", "held")
    assert service.ask("waits").status_code == 202
    with contextlib.closing(sqlite3.connect(service.store)) as db, db:
        db.execute("UPDATE trimtab_studies SET created = 0 WHERE name = 'old'")
        columns = "uid, name, created, setup, seq, status, failures, advised, told"
        sealed = row_checksum(*db.execute(f"SELECT {columns} FROM trimtab_studies WHERE name = 'old'").fetchone())
        db.execute("UPDATE trimtab_studies SET checksum = ? WHERE name = 'old'", [sealed])
    needs = {"waits": "waiting", "failing": "failing", "held": "paused", "old": "stale", "advice": "advice"}
    every = {one["name"]: one["attention"] for one in service.http.get("/v1/studies").json()["studies"]}
    assert every == {**{name: [word] for name, word in needs.items()}, "fine": []}
    for name, word in needs.items():
        found = service.http.get("/v1/studies", params={"attention": word}).json()["studies"]
        assert [one["name"] for one in found] == [name]
    both = service.http.get("/v1/studies", params={"attention": "advice,stale", "limit": 1}).json()
    assert ([one["name"] for one in both["studies"]], both["next"]) == (["advice"], "advice")
    rest = service.http.get("/v1/studies", params={"attention": "advice,stale", "after": both["next"]}).json()
    assert ([one["name"] for one in rest["studies"]], rest["next"]) == (["old"], None)
    page = service.http.get("/").text
    assert re.findall(r'data-study="(\w+)"', page) == [*needs, "fine"]
    assert all(f"{word} (1)" in page for word in needs.values())
    only = service.http.get("/", params={"search": "A", "attention": "advice"}).text
    assert re.findall(r'data-study="(\w+)"', only) == ["advice"]
    assert "No study matches" in service.http.get("/", params={"search": "nobody"}).text
    service.token("admin")
    mine = service.http.get("/v1/studies?attention=advice,failing", headers=service.token("read", "failing")).json()
    assert [one["name"] for one in mine["studies"]] == ["failing"]


@pytest.mark.parametrize("forever", [False, True])
def test_what_is_stale_is_neither_archived_nor_erased(service, forever):
    service.make()
    service.run(2)

    def delete(seen):
        return service.http.delete("/v1/studies/a", params={"forever": forever}, headers={"If-Match": seen})

    assert delete('"1"').status_code == 412
    assert service.get()["archived"] is None
    assert delete('W/"2"').status_code == 200
    assert service.http.get("/v1/studies/a").status_code == (404 if forever else 200)
    assert forever or service.events()[-1]["kind"] == "archive"


def test_a_restore_that_somebody_else_was_faster_than_is_done_once(service, monkeypatch):
    service.make()
    service.http.delete("/v1/studies/a")
    whole = SharedStore.commit_if

    def slower(self, moves, rows=()):
        monkeypatch.setattr(SharedStore, "commit_if", whole)
        return set()

    monkeypatch.setattr(SharedStore, "commit_if", slower)
    assert service.act("restore").status_code == 200
    assert service.get()["archived"] is None
    assert [event["kind"] for event in service.events()] == ["start", "archive", "restore"]
