"""Several services on one file: a name that is made anew, a row that is damaged, a file that goes away."""

import os
import sqlite3

import pytest

from trimtab.live import Damaged, Store
from trimtab.store.backends.sqlite import SqliteDatabase
from trimtab.store.shared_store import SharedStore

from .test_batch import replayed

OTHERS = [{"name": "volts", "low": 100, "high": 200, "start": 150}, {"name": "amps", "low": 0, "high": 9, "start": 3}]


def remade(one, other):
    """A study that the first service knows, erased and made anew by the other."""
    one.make()
    assert one.ask().status_code == 200
    assert other.http.delete("/v1/studies/a", params={"forever": True}).status_code == 200
    other.make("a", knobs=OTHERS)


@pytest.mark.parametrize("words", ["INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER PRIMARY KEY"])
def test_a_study_that_was_made_anew_is_another_one(start, monkeypatch, words):
    """Also in a store from before, whose tables give a number that is free to the next study."""
    monkeypatch.setitem(SqliteDatabase.words, "id", words)
    one, other = start(), start()
    remade(one, other)
    assert one.ask().json()["knobs"] == {"volts": 150.0, "amps": 3.0}
    assert one.act("hold").status_code == 200
    assert one.http.patch("/v1/studies/a", json={"changes": {"radius": 0.02}}).status_code == 200
    assert other.act("resume").status_code == 200
    for service in (one, other):
        trial = service.ask().json()
        assert service.tell(trial["id"], 1.0).status_code == 200
    assert [event["kind"] for event in one.events()] == ["start", "pause", "set", "resume", "tell", "tell"]
    replayed(one.store)


def test_a_move_of_a_study_that_was_erased_meanwhile_is_not_stored(start, monkeypatch):
    monkeypatch.setitem(SqliteDatabase.words, "id", "INTEGER PRIMARY KEY")
    one, other = start(), start()
    one.make()
    known = SharedStore.commit_if

    def later(self, moves, rows=()):
        monkeypatch.setattr(SharedStore, "commit_if", known)
        other.http.delete("/v1/studies/a", params={"forever": True})
        other.make("a", knobs=OTHERS)
        return known(self, moves, rows)

    for tell in ({"value": 1.0}, {"value": 1.0, "note": "the long way"}):
        monkeypatch.setattr(SharedStore, "commit_if", later)
        one.http.put("/v1/studies/a/trials/1/result", json=tell)
        replayed(one.store)


def damage(where, name, change):
    with sqlite3.connect(where) as database:
        assert database.execute(f"UPDATE trimtab_studies SET {change} WHERE name = ?", (name,)).rowcount == 1
    database.close()


@pytest.mark.parametrize(
    "change",
    [
        "checksum = checksum + 1",
        "checksum = 'x'",
        "marked = marked + 1",
        "paused = 'nonsense'",
        "paused = CAST(x'7bff' AS TEXT)",
        "proposal = '[1, 1]'",
        "proposal = x'00ff'",
        "decision = 'nonsense'",
        "holder = 7",
        "holder = 'nobody'",
        "failures = 'x'",
        "failures = 9",
        "advised = 9",
        "told = 'x'",
        "seq = 'x'",
        "uid = 7",
        "setup = 7",
        "setup = CAST(x'7bff' AS TEXT)",
        "status = 'x'",
        "created = 'x'",
    ],
)
def test_a_damaged_study_hides_no_other_and_can_be_erased(start, change):
    service = start(metrics_studies=10)
    for name in "abcd":
        service.make(name)
        service.run(1, name)
    damage(service.store, "b", change)
    first = service.http.get("/v1/studies", params={"limit": 2}).json()
    assert [one["name"] for one in first["studies"]] == ["a"]
    assert [(one["name"], "is damaged" in one["detail"]) for one in first["damaged"]] == [("b", True)]
    rest = service.http.get("/v1/studies", params={"limit": 2, "after": first["next"]}).json()
    assert ([one["name"] for one in rest["studies"]], rest["damaged"], rest["next"]) == (["c", "d"], [], None)
    for path in ("/", "/fleet/rows?study=a&study=b"):
        answer = service.http.get(path)
        assert (answer.status_code, "damaged (the checksum does not match)" in answer.text) == (200, True), path
    assert service.http.get("/metrics").status_code == 200
    assert {event["study"] for event in service.http.get("/v1/events").json()["events"]} >= {"a", "c", "d"}
    other = start()
    for path in ("/v1/studies/b", "/studies/b"):
        alone = other.http.get(path)
        assert (alone.status_code, "damaged" in alone.text) == (500, True)
    for answer in (other.act("hold", "b"), other.ask("b"), other.tell(2, 1.0, "b"), other.tell(2, 1.0, "b", note="x")):
        assert answer.status_code == 500, answer.text
    assert other.tell(2, 1.0, "c").status_code == 200
    with Store(service.store, "read") as store:
        assert [name for name, study in store.all().items() if isinstance(study, Damaged)] == ["b"]
    assert service.http.delete("/v1/studies/b", params={"forever": True}).status_code == 200
    service.make("b", knobs=OTHERS)
    replayed(service.store)


def test_a_file_that_was_replaced_is_answered_for_by_nobody(start, tmp_path):
    service, other = start(), start()
    service.make()
    with SharedStore(service.store) as store:
        store.backup(tmp_path / "copy.db")
    assert service.tell(1, 1.0).status_code == 200
    for name in ("t.db", "t.db-wal", "t.db-shm"):
        (tmp_path / name).unlink()
    os.replace(tmp_path / "copy.db", tmp_path / "t.db")
    for _ in range(3):
        for one in (service, other):
            for answer in (one.tell(2, 2.0), one.http.get("/readyz"), one.http.get("/v1/studies"), one.tell(1, 1.0)):
                assert answer.status_code == 503, answer.text
                assert "restart" in answer.json()["detail"]
    copies = [file for file in tmp_path.glob("t.db.rescued-*") if not file.name.endswith(("-wal", "-shm"))]
    assert 1 <= len(copies) <= 2  # one of each service
    with SharedStore(copies[0]) as store:
        assert store.load("a").seq == 1  # what was acknowledged is there
    assert start().get()["seq"] == 0
