"""Connections whose requests begin in time: the headers of one have an end, by the clock and by their size.

Uvicorn waits for the end of the headers for ever, and httptools keeps as many as come. Bodies are limited by
`trimtab.serve.limits`, which only sees a request whose headers are there.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST = 65_536  # bytes of the headers of a request


class Prompt(HttpToolsProtocol):
    """A connection that is closed unless the headers of a request are there so many seconds after their first byte.

    Of the first request, after the connection was made.
    """

    def __init__(self, *given: Any, header_seconds: float, **options: Any) -> None:
        super().__init__(*given, **options)
        self._seconds, self._size = header_seconds, 0
        self._inside = self._passed = False  # the headers of a request; and whether some of it ended in what came last
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there."""
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._have_headers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request, perhaps the first of the next one."""
        if self._end is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers()
        self._passed = False
        super().data_received(data)
        # Also while a request before is still answered. What came before the headers in the same data does not count.
        self._size = self._size + len(data) if self._inside and not self._passed else 0
        if self._size > LARGEST:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """The headers of a request begin."""
        self._inside = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A request begins."""
        self._inside, self._passed = False, True
        self._have_headers()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Its body is there."""
        self._passed = True
        super().on_message_complete()

    def _expect_headers(self) -> None:
        self._end = self.loop.call_later(self._seconds, self._refuse, b"408 Request Timeout")

    def _have_headers(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _refuse(self, status: bytes) -> None:
        self._have_headers()
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:  # not in the middle of an answer
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
