"""Limits on the time and size of request headers, trailers and chunk framing.

Uvicorn waits indefinitely for the end of the headers, and httptools accepts any number of headers and trailers.
Bodies are limited by `trimtab.serve.http.request_limits`, which sees a request only once its headers are complete.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_OVERHEAD = 65_536  # bytes of a request besides its body: headers, trailers, chunk sizes and extensions
CHUNK_OVERHEAD = 8  # further bytes allowed per byte of body: a chunk of one byte has five


class IdleConnections:
    """Connections waiting for a request, longest first; most: limit on all connections, idle or not."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._waiting: dict[HeaderTimeoutProtocol, None] = {}

    def add(self, connection: HeaderTimeoutProtocol) -> None:
        """Mark a connection as idle from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None

    def discard(self, connection: HeaderTimeoutProtocol) -> None:
        """Mark a connection as busy or closed."""
        self._waiting.pop(connection, None)

    def oldest(self) -> HeaderTimeoutProtocol | None:
        """Return the connection that has been idle longest."""
        return next(iter(self._waiting), None)


class HeaderTimeoutProtocol(HttpToolsProtocol):
    """Close connections that send no complete headers within `header_seconds`.

    The time runs from the first byte of a request; for the first request, from the connection. If there are too many
    connections, the one idle longest is closed, so that the process never runs out of file descriptors.
    """

    def __init__(self, *given: Any, header_seconds: float, idle: IdleConnections, **options: Any) -> None:
        super().__init__(*given, **options)
        self._idle = idle
        self._header_seconds = header_seconds
        self._size = self._body = 0  # bytes received of the current request, and of its body alone
        self._in_request = self._past_headers = False
        self._just_began = False  # in the data received last
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the header timeout; close an idle connection if there are too many."""
        super().connection_made(transport)
        self._expect_headers()
        if len(self.connections) > self._idle.most:
            (self._idle.oldest() or self)._refuse(b"503 Service Unavailable")
        self._idle.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._have_headers()
        self._idle.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data, and count the bytes of the request."""
        if self._header_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers()
        self._just_began, before = False, self._body
        super().data_received(data)
        # Counted also while the previous request is being answered; bytes before this request are not counted.
        if self._in_request and not self._just_began:
            self._size += len(data) - (self._body - before)
        if self._size > MAX_OVERHEAD + CHUNK_OVERHEAD * self._body:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Reset the counts for a new request."""
        self._in_request = self._just_began = True
        self._size = self._body = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, and ignore trailers."""
        if not self._past_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Cancel the timeout and dispatch the request."""
        self._past_headers = True
        self._have_headers()
        self._idle.discard(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the bytes of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        self._in_request = self._past_headers = False
        self._size = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Mark the connection as idle, unless another request is queued."""
        if not self.pipeline and not self.transport.is_closing():
            self._idle.add(self)
        super().on_response_complete()

    def _expect_headers(self) -> None:
        self._header_timer = self.loop.call_later(self._header_seconds, self._refuse, b"408 Request Timeout")

    def _have_headers(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _refuse(self, status: bytes) -> None:
        self._have_headers()
        self._idle.discard(self)
        if self.transport.is_closing():
            return
        unanswered = self._past_headers and not self.pipeline and not self.cycle.response_started
        if unanswered or self.cycle is None or self.cycle.response_complete:  # never in the middle of a response
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
