"""How much is answered: sizes of bodies and the time they take, requests at once, streams, requests per second."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimtab.serve.problems import Problem
from trimtab.serve.settings import Settings

MOST = 10_000  # callers whose rate is remembered


class Limits:
    """Counts what goes on in a worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.requests = self.streams = 0
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @contextmanager
    def request(self) -> Iterator[None]:
        """One at a time of so many."""
        if self.requests - self.streams >= self._settings.most_requests:
            raise _too_many("the service is busy", 1.0)
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    def check_streams(self) -> None:
        """Whether there is room for one more."""
        if self.streams >= self._settings.most_streams:
            raise _too_many("too many wait for events or trials", 5.0)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A request that takes its time."""
        self.check_streams()
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    def check_rate(self, caller: str) -> None:
        """A bucket with one second's worth of requests, which fills again at the rate."""
        rate, now = self._settings.rate, time.monotonic()
        if not rate:
            return
        most = max(rate, 1.0)
        left, then = self._rates.pop(caller, (most, now))
        left = min(left + (now - then) * rate, most)
        self._rates[caller] = (left - 1 if left >= 1 else left, now)
        if len(self._rates) > MOST:
            self._rates.popitem(last=False)
        if left < 1:
            raise _too_many(f"more than {rate:g} requests per second", (1 - left) / rate)


class Bounded:
    """The application within its limits: what is too much never gets there."""

    def __init__(self, app: ASGIApp, limits: Limits, settings: Settings) -> None:
        self._app, self._limits, self._settings = app, limits, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"] in ("/livez", "/readyz"):
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
            with self._limits.request():
                await self._app(scope, self._bounded(receive), send)
        except Problem as problem:
            await problem.response()(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._settings.largest_body:
            raise Problem(
                413, "too-large", f"a body may have {self._settings.largest_body} bytes", {"Connection": "close"}
            )
        if not self._settings.rate:
            return
        key = headers.get(b"authorization") or headers.get(b"cookie") or str((scope.get("client") or [""])[0]).encode()
        self._limits.check_rate(hashlib.sha256(key).hexdigest())

    def _bounded(self, receive: Receive) -> Receive:
        size, whole, left = 0, False, self._settings.body_seconds

        async def received() -> Message:
            nonlocal size, whole, left
            if whole:
                return await receive()  # whether they are still there
            began = time.monotonic()
            try:
                async with asyncio.timeout(max(left, 0.0)):
                    message = await receive()
                left -= time.monotonic() - began
            except TimeoutError:
                raise HTTPException(408, "the body took too long", {"Connection": "close"}) from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > self._settings.largest_body:
                what = f"a body may have {self._settings.largest_body} bytes"
                raise HTTPException(413, what, {"Connection": "close"})
            return message

        return received


def _too_many(why: str, seconds: float) -> Problem:
    return Problem(429, "too-many", f"{why}: try again later", {"Retry-After": str(max(1, round(seconds)))})
