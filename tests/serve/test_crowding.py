"""Slow senders, listeners and waiting requests do not block others."""

import contextlib
import socket

import httpx
import pytest

from trimtab.serve.http.header_timeout import MAX_OVERHEAD

HEAD = b"PUT /v1/studies/a/trials/1/result HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def connected(service):
    return socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])))


def answered(connection):
    """Once the head of an answer has come."""
    connection.settimeout(300)
    found = b""
    while b"\r\n\r\n" not in found:
        some = connection.recv(4096)
        assert some, found
        found += some
    return found


def test_a_stranger_is_sent_away_before_the_body_is_there(start):
    service = start(most_requests=4, body_seconds=3600)
    mine = service.token("admin")
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            connection = stack.enter_context(connected(service))
            connection.sendall(HEAD + b"Content-Length: 20\r\n\r\n{")
            assert answered(connection).startswith(b"HTTP/1.1 401 ")
        assert service.http.get("/v1/studies", headers=mine).status_code == 200


def test_a_body_that_does_not_come_holds_up_no_request_that_is_there(start, until):
    """Neither on a service without tokens, nor where somebody signs in."""
    service = start(most_requests=4, body_seconds=3600)
    service.make()
    login = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n\r\nt"
    with contextlib.ExitStack() as stack:
        for n in range(12):  # two of each more than may send at once: a tell of ours may take the place of one
            connection = stack.enter_context(connected(service))
            connection.sendall(login if n < 6 else HEAD + b"Content-Length: 20\r\n\r\n{")
        until(lambda: service.tell(1, 1.0).status_code == 429)  # as many as may send at once do
        for _ in range(6):
            assert service.http.get("/v1/studies").status_code == 200
            assert service.ask().status_code == 200
    until(lambda: service.tell(1, 1.0).status_code == 200)  # they have gone


def test_those_who_listen_do_not_keep_others_from_asking(start):
    service = start(most_streams=3)
    service.make()
    service.make("b")
    service.act("hold", "b")
    listen = b"GET /v1/events?study=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(connected(service))
            connection.sendall(listen)
            assert answered(connection).startswith(b"HTTP/1.1 200 ")
        refused = service.http.get("/v1/events?study=a", headers={"Accept": "text/event-stream"})
        assert refused.status_code == 429
        service.run(2)
        assert service.ask(wait=30).status_code == 200
        assert service.ask("b", wait=0.01).status_code == 202


@pytest.mark.parametrize("part", [b"X: ", b"X: y\r\n"])
def test_headers_without_end_behind_a_stream_are_too_large(start, part):
    service = start(header_seconds=600)
    service.make()
    listen = b"GET /v1/events?study=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    with connected(service) as connection:
        connection.sendall(listen)
        answered(connection)
        connection.settimeout(300)
        some = b"x" * 10_000 if part == b"X: " else b"X: y\r\n" * 1500
        connection.sendall(b"GET /livez HTTP/1.1\r\n" + part)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 200e6:
                connection.sendall(some)
                sent += len(some)
        assert sent < 200e6, "nobody ends it"
    service.run(1)


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize("line", [b"X: y\r\n", b"1" + b";x" * 50 + b"\r\nb\r\n"])
def test_what_is_not_body_has_an_end_after_the_headers(start, line, signed_in):
    """Trailers, and extensions of chunks: as many bytes as headers may have, then 431, whoever sends them."""
    service = start()
    service.make()
    path = "/v1/studies/a/trials/1/result" if signed_in else "/login"
    head = f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    with connected(service) as connection:
        connection.sendall(head.encode())
        assert answered(connection).startswith(b"HTTP/1.1 100 ")
        start_of_it = b"0\r\n" if line.startswith(b"X") else b""
        body = 0 if start_of_it else 1
        counted = len(start_of_it)
        sent = bytearray(start_of_it)
        while counted <= MAX_OVERHEAD + 8 * body * (len(sent) // len(line)):
            sent += line
            counted += len(line) - body
        connection.sendall(sent)
        answer = answered(connection)
        assert answer.startswith(b"HTTP/1.1 431 "), answer
        assert connection.recv(4096) == b""


def test_trailers_are_not_kept(service):
    service.make()
    trailer = b"Authorization: Bearer tt_a_b\r\n\r\n"
    with connected(service) as connection:
        head = HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        connection.sendall(head + b'c\r\n{"value": 1}\r\n0\r\n' + trailer)
        assert answered(connection).startswith(b"HTTP/1.1 200 ")


def test_a_body_in_small_chunks_is_taken(service):
    service.make()
    with connected(service) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        body = b'{"value": 1' + b" " * 50_000 + b"}"
        connection.sendall(b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")
        assert answered(connection).startswith(b"HTTP/1.1 200 ")


def test_a_large_body_before_the_next_headers_is_no_header(service):
    """Both in one piece, as a client that does not wait for answers sends them."""
    service.make()
    body = b'{"value": 1.0, "note": "' + b"n" * 60_000 + b'"}'
    first = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with connected(service) as connection:
        connection.sendall(first + b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: " + b"y" * 30_000)
        connection.sendall(b"\r\nConnection: close\r\n\r\n")
        connection.settimeout(300)
        found = b""
        while some := connection.recv(4096):
            found += some
    assert found.count(b"HTTP/1.1 200 ") == 2, found


def test_a_rate_is_of_a_token_however_it_is_written(start):
    service = start(rate=1)
    token = service.token("read")["Authorization"].removeprefix("Bearer ")
    ways = [f"Bearer{' ' * n}{token}" for n in range(1, 9)] + [f"bearer {token}", f"BEARER  {token}"]
    statuses = [service.http.get("/v1/studies", headers={"Authorization": way}).status_code for way in ways]
    cookie = [{"Cookie": f"other={n}; trimtab_session=tt_a_b"} for n in range(10)]
    sessions = [service.http.get("/v1/studies", headers=headers).status_code for headers in cookie]
    assert 429 in statuses
    assert 429 in sessions


def test_head_is_get_without_a_body(service):
    service.make()
    for path in ("/livez", "/readyz", "/v1/studies", "/v1/studies/a", "/metrics", "/", "/v1/events"):
        answer = service.http.head(path, headers={"Accept": "text/event-stream"})
        assert (answer.status_code, answer.content) == (200, b""), path
    with httpx.Client(base_url=service.url) as http:
        assert http.head("/v1/studies/a").headers["etag"] == '"0"'
    assert service.http.head("/v1/studies/b").status_code == 404
    assert service.ask().status_code == 200


def test_the_connections_that_are_silent_for_longest_make_room(start):
    """None that is answered does, nor one that came just now."""
    service = start(most_connections=10, header_seconds=3600)
    service.make()
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(connected(service))
        listening.sendall(b"GET /v1/events?study=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
        answered(listening)
        silent = []
        for _ in range(40):
            silent.append(stack.enter_context(connected(service)))
            if len(silent) > 12:  # those before are seen by now
                assert httpx.get(f"{service.url}/livez").status_code == 200
        assert answered(silent[0]).startswith(b"HTTP/1.1 503 ")
        assert silent[0].recv(100) == b""
        silent[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answered(silent[-1]).startswith(b"HTTP/1.1 200 ")
        service.run(1)
        assert b"event: event" in until_event(listening)


def until_event(connection):
    found = b""
    while b"event: event" not in found:
        found += (some := connection.recv(65536))
        assert some, found
    return found


def test_as_many_streams_as_are_allowed_can_begin_at_once(start):
    """However few requests may be computed at once."""
    service = start(most_requests=2, most_streams=30)
    service.make()
    listen = b"GET /v1/events?study=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connected(service)) for _ in range(33)]
        for connection in connections:
            connection.sendall(listen)
        statuses = sorted(answered(connection).split()[1] for connection in connections)
        assert statuses == [b"200"] * 30 + [b"429"] * 3
        service.run(1)
