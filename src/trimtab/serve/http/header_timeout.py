"""Limit the time and the size of all of a request that is not its body.

Uvicorn waits for the end of the headers for ever, and httptools keeps as many as come, before a body and after it.
Bodies are limited by `trimtab.serve.http.request_limits`, which only sees a request whose headers are there.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST = 65_536  # bytes of a request that are not of its body: headers, trailers, sizes and extensions of chunks
FRAMING = 8  # bytes more for each byte of a body that comes in chunks: one of a single byte has five


class Silent:
    """Connections that wait for a request, in the order in which they began to; most: connections of all kinds."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._waiting: dict[HeaderTimeoutProtocol, None] = {}

    def add(self, connection: HeaderTimeoutProtocol) -> None:
        """It waits from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None

    def discard(self, connection: HeaderTimeoutProtocol) -> None:
        """It has a request, or is gone."""
        self._waiting.pop(connection, None)

    def oldest(self) -> HeaderTimeoutProtocol | None:
        """The one that has waited for longest."""
        return next(iter(self._waiting), None)


class HeaderTimeoutProtocol(HttpToolsProtocol):
    """A connection that is closed unless the headers of a request are there so many seconds after their first byte.

    Of the first request, after the connection was made. Where there are too many connections, the one that has waited
    for longest makes room, before the system has no file left for a newcomer.
    """

    def __init__(self, *given: Any, header_seconds: float, silent: Silent, **options: Any) -> None:
        super().__init__(*given, **options)
        self._silent = silent
        self._seconds, self._size, self._body = (
            header_seconds,
            0,
            0,
        )  # of the request: bytes besides its body, and of it
        self._inside = self._in_body = self._began = False  # a request; its body or what follows; in the last data
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there."""
        super().connection_made(transport)
        self._expect_headers()
        if len(self.connections) > self._silent.most:
            (self._silent.oldest() or self)._refuse(b"503 Service Unavailable")
        self._silent.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._have_headers()
        self._silent.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request, perhaps the first of the next one."""
        if self._end is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers()
        self._began, before = False, self._body
        super().data_received(data)
        # Also while a request before is still answered. What came before this one in the same data does not count.
        if self._inside and not self._began:
            self._size += len(data) - (self._body - before)
        if self._size > LARGEST + FRAMING * self._body:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """The headers of a request begin."""
        self._inside = self._began = True
        self._size = self._body = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, which follow the body, are not used."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A request begins."""
        self._in_body = True
        self._have_headers()
        self._silent.discard(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Its body is there."""
        self._inside = self._in_body = False
        self._size = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered."""
        if not self.pipeline and not self.transport.is_closing():
            self._silent.add(self)
        super().on_response_complete()

    def _expect_headers(self) -> None:
        self._end = self.loop.call_later(self._seconds, self._refuse, b"408 Request Timeout")

    def _have_headers(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _refuse(self, status: bytes) -> None:
        self._have_headers()
        self._silent.discard(self)
        if self.transport.is_closing():
            return
        waiting = self._in_body and not self.pipeline and not self.cycle.response_started
        if waiting or self.cycle is None or self.cycle.response_complete:  # not in the middle of an answer
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
