"""Events as JSON and as a stream that goes on where it was; health, figures, limits."""

import asyncio
import contextlib
import json
import re
import socket
import time
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from trimtab.serve.api import change_polling


def read_stream(service, count, kinds=("event",), headers=None, meanwhile=lambda: None, **query):
    """So many events, each as (id, kind, data); `meanwhile` is done once the first has come."""
    found, one = [], {}
    headers = {"Accept": "text/event-stream", **(headers or {})}
    with service.http.stream("GET", "/v1/events", params=query, headers=headers, timeout=300) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line:
                key, _, value = line.partition(": ")
                one[key] = value
                continue
            if one.get("event") in kinds:
                found.append((one.get("id"), one["event"], json.loads(one["data"])))
                if len(found) == 1:
                    meanwhile()
            one = {}
            if len(found) >= count:
                return found
    return found


def test_pages_of_events(service):
    service.make()
    service.make("b")
    service.run(5)
    service.run(2, "b")
    found, after = [], None
    for _ in range(10):
        page = service.http.get("/v1/events", params={"limit": 3, **({"after": after} if after else {})}).json()
        found += page["events"]
        after = page["next"]
    assert [(e["study"], e["seq"]) for e in found] == [("a", n) for n in range(6)] + [("b", n) for n in range(3)]
    assert [event["seq"] for event in service.events(after=3)] == [4, 5]
    for wrong in ("x", "1:", "1:2:3", "١"):
        assert service.http.get("/v1/events", params={"after": wrong}).status_code == 422
    assert service.http.get("/v1/events?study=zzz").status_code == 404


def test_a_stream_goes_on_where_it_was(service):
    service.make()
    service.make("b")
    service.run(3)
    found = read_stream(service, 4, after="-1", study="a")
    assert [data["seq"] for _, _, data in found] == [0, 1, 2, 3]
    service.run(2)
    service.run(2, "b")
    rest = read_stream(service, 5, headers={"Last-Event-ID": found[-1][0]}, study=["a", "b"])
    assert [(data["study"], data["seq"]) for _, _, data in rest] == [("a", 4), ("a", 5), ("b", 0), ("b", 1), ("b", 2)]


def test_a_place_beyond_the_end_is_the_end(service):
    """As after a store was restored from a copy: what follows is not missed."""
    service.make()
    service.run(2)
    page = service.http.get("/v1/events", params={"study": "a", "after": 99}).json()
    assert page["events"] == []
    row = page["next"].partition(":")[0]
    assert page["next"] == f"{row}:2"
    for headers, query in (({"Last-Event-ID": f"{row}:99"}, {}), ({}, {"after": "99"})):
        found = read_stream(
            *(service, 3, ("status", "event"), headers), meanwhile=lambda: service.run(1), study="a", **query
        )
        assert "event" in [kind for _, kind, _ in found]


def test_a_stream_shows_what_happens_now(service):
    service.make()

    def act():
        service.run(1)
        service.act("hold", why="now")

    found = read_stream(service, 4, kinds=("event", "status"), meanwhile=act, study="a")
    assert found[0][1] == "status"  # as it is, at first
    assert found[0][2]["seq"] == 0
    assert next(data["kind"] for _, kind, data in found if kind == "event") == "tell"


def test_a_change_is_seen_by_the_next_look_and_looks_are_a_fraction_of_a_second_apart(monkeypatch):
    """Live within a second of the commit, whatever the machine: the waits on the way are all there is to wait for."""
    script = (Path(change_polling.__file__).parents[1] / "dashboard" / "static" / "app.js").read_text()
    live = int(re.search(r"MIN_INTERVAL = \{ live: (\d+)", script)[1])
    assert change_polling.POLL_INTERVAL + live / 1000 <= 0.75
    rows, looks = {1: (1, 0)}, []

    class Stored:
        @contextlib.contextmanager
        def store(self):
            yield self

        def marks_by_id(self, ids):
            looks.append(ids)
            return {id: rows[id] for id in ids if id in rows}

    async def watched():
        with change_polling.ChangePoller(Stored()).subscribe({1}) as changes:
            assert await changes.next(600) == {1}  # all is new at first
            for seq in range(1, 5):
                rows[1], before = (1, seq), len(looks)
                while not await changes.next(600):
                    pass
                assert len(looks) - before <= 2, "one that had begun, and the next"

    monkeypatch.setattr(change_polling, "POLL_INTERVAL", 0.001)
    asyncio.run(watched())


def test_health_and_figures(start):
    service = start(metrics_studies=1)
    service.make()
    service.make("b")
    service.run(3)
    assert service.http.get("/livez").json() == {"status": "alive"}
    assert service.http.get("/readyz").json() == {"status": "ready"}
    plain = service.http.get("/metrics")
    found = {family.name: family for family in parse(plain.text)}
    told = [s for s in found["trimtab_requests"].samples if "result" in s.labels["route"]]
    assert [(s.labels["status"], s.value) for s in told if s.name.endswith("total")] == [("200", 3.0)]
    assert [s.labels for s in found["trimtab_study_rounds"].samples] == [{"study": "a"}]
    newer = service.http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert "openmetrics" in newer.headers["content-type"]
    names = {family.name for family in openmetrics.text_string_to_metric_families(newer.text)}
    assert {"trimtab_requests", "trimtab_request_seconds"} <= names


def test_too_many_requests(start):
    service = start(rate=5)
    answers = [service.http.get("/v1/studies") for _ in range(10)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert refused[0].headers["retry-after"] == "1"
    assert refused[0].json()["title"] == "Too Many Requests"
    assert service.http.get("/livez").status_code == 200


def test_bodies_that_are_too_large(start):
    service = start(largest_body=1000)
    big = {"knobs": [], "why": "x" * 2000}
    assert service.http.put("/v1/studies/a", json=big).status_code == 413
    assert service.http.put("/v1/studies/a", content=iter([b"x" * 600] * 10)).status_code == 413
    deep = service.http.put("/v1/studies/a", content=b"[" * 900, headers={"content-type": "application/json"})
    assert deep.status_code in (400, 422)


@contextlib.contextmanager
def slow_clients(service, count):
    """Connections that have sent half of a head, or half of a body, in turn."""
    port = int(service.url.rpartition(":")[2])
    head = b"PUT /v1/studies/a/trials/1/result HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
        for n, connection in enumerate(found):
            connection.sendall(head[:40] if n % 2 else head + b"Content-Length: 20\r\n\r\n{")
        yield found


def test_slow_clients_do_not_hold_up_others(start):
    service = start(body_seconds=3600, header_seconds=3600)  # nobody ends them: others are answered all the same
    service.make()
    with slow_clients(service, 60):
        service.run(3)


def answers(connection):
    """All that comes before the other end closes."""
    connection.settimeout(120)
    found = b""
    while some := connection.recv(4096):
        found += some
    return found


def test_slow_clients_are_sent_away_and_hold_up_nobody(start):
    """Headers that never end and bodies that never come: dribbled as slowly as keeps a connection alive elsewhere."""
    service, patient = start(body_seconds=0.3, header_seconds=0.3), start()
    patient.make()
    head = b"PUT /v1/studies/a/trials/1/result HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    where = ("127.0.0.1", int(service.url.rpartition(":")[2]))
    silent, slow, half = ([socket.create_connection(where) for _ in range(20)] for _ in range(3))
    for connection in slow:
        connection.sendall(head[:40])
    for connection in half:
        connection.sendall(head + b"Content-Length: 20\r\n\r\n{")
    for n in range(20):  # a byte now and then does not help
        with contextlib.suppress(OSError):
            slow[0].sendall(head[40 + n : 41 + n])
        time.sleep(0.03)
    for connection in (*silent, *slow[1:], *half):
        assert answers(connection).startswith(b"HTTP/1.1 408 ")
        connection.close()
    with contextlib.suppress(OSError):  # what was sent after the end resets a connection
        answers(slow[0])
    slow[0].close()
    patient.run(2)


def test_a_second_request_of_a_connection_must_have_an_end_too(start):
    service = start(header_seconds=3)
    with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        connection.settimeout(120)
        first = connection.recv(4096)
        assert first.startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /livez HTTP/1.1\r\nX: ")
        assert b"HTTP/1.1 408 " in answers(connection)


def test_headers_without_end_are_too_large(start):
    service = start(header_seconds=600)
    with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\n" + b"X: " + b"x" * 60_000)
        with contextlib.suppress(OSError):
            connection.sendall(b"x" * 60_000)
        found = b""
        with contextlib.suppress(OSError):
            found = answers(connection)
    assert found in (
        b"",
        b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    )
    assert service.http.get("/livez").status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/nothing", "/static/../app.py", "/static/%2e%2e/app.py", "/v1/"])
def test_nothing_else_is_there(service, path):
    assert service.http.get(path).status_code == 404
