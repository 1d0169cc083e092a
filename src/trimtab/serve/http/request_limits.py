"""Limits of a worker: body size and time, concurrent requests and streams, requests per second."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimtab.serve.http.auth import COOKIE
from trimtab.serve.http.errors import ApiError, as_problem
from trimtab.serve.settings import Settings
from trimtab.store.errors import StoreError

STREAM, EVENTS = "/v1/events", "text/event-stream"
MAX_RATES = 10_000  # callers whose rate is tracked


class Limits:
    """Count the requests in progress, and refuse those beyond the limits with 429."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.requests = self.streams = self.waits = 0
        self.bodies = dict.fromkeys((False, True), 0)
        """Bodies being received, by whether the caller is authenticated: anonymous clients cannot block the others."""
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request while it is handled."""
        if self.requests - self.streams - self.waits >= self._settings.most_requests:
            raise _too_many("the service is busy", 1.0)
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    @contextmanager
    def body(self, authenticated: bool) -> Iterator[None]:
        """Count a body while it is received."""
        if self.bodies[authenticated] >= self._settings.most_requests:
            raise _too_many("too many requests send a body at once", 1.0)
        self.bodies[authenticated] += 1
        try:
            yield
        finally:
            self.bodies[authenticated] -= 1

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Count a request while it waits for a blocked trial."""
        if self.waits >= self._settings.most_streams:
            raise _too_many("too many requests are waiting for trials", 5.0)
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Count an event stream; streams do not count against the limit on requests."""
        if self.streams >= self._settings.most_streams:
            raise _too_many("too many requests are waiting for events", 5.0)
        self.requests += 1
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1
            self.requests -= 1

    def check_rate(self, caller: str) -> None:
        """Apply a token bucket that holds one second's worth of requests."""
        rate, now = self._settings.rate, time.monotonic()
        if not rate:
            return
        most = max(rate, 1.0)
        left, then = self._rates.pop(caller, (most, now))
        left = min(left + (now - then) * rate, most)
        self._rates[caller] = (left - 1 if left >= 1 else left, now)
        if len(self._rates) > MAX_RATES:
            self._rates.popitem(last=False)
        if left < 1:
            raise _too_many(f"more than {rate:g} requests per second", (1 - left) / rate)


class LimitsMiddleware:
    """Refuse requests beyond the limits before they reach the application."""

    def __init__(self, app: ASGIApp, limits: Limits, settings: Settings) -> None:
        self._app, self._limits, self._settings = app, limits, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["path"] in ("/livez", "/readyz"):
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
            if _has_body(scope):
                receive = await self._receive_body(scope, receive)
            with self._limits.stream() if _is_stream(scope) else self._limits.request():
                await self._app(scope, receive, send)
        except ApiError as problem:
            await problem.response()(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        request = Request(scope)
        if b"%00" in scope["query_string"] or "\0" in scope["path"]:
            raise ApiError(422, "invalid", "the address contains a NUL character (%00): leave it out")
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length) > self._settings.largest_body:
            raise self._too_large()
        if self._settings.rate:
            self._limits.check_rate(hashlib.sha256(_rate_key(request).encode()).hexdigest())

    async def _receive_body(self, scope: Scope, receive: Receive) -> Receive:
        """Receive the whole body before the request counts; callers of the API are authenticated first."""
        authenticated = scope["path"].startswith("/v1/")
        if authenticated:
            try:
                await scope["app"].state.authenticator.caller(Request(scope))
            except StoreError as error:
                raise as_problem(error) from None
        with self._limits.body(authenticated):
            body: Message | None = {"type": "http.request", "body": await self._read(receive), "more_body": False}

        async def replay() -> Message:
            nonlocal body
            message, body = body, None
            return await receive() if message is None else message  # afterwards, detect a disconnect

        return replay

    async def _read(self, receive: Receive) -> bytes:
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ApiError(400, "http", "the body ended early: send it again")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._settings.largest_body:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise ApiError(408, "http", "the body took too long: send it in one go", {"Connection": "close"}) from None

    def _too_large(self) -> ApiError:
        what = f"the body is larger than {self._settings.largest_body} bytes: send less at once"
        return ApiError(413, "too-large", what, {"Connection": "close"})


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _is_stream(scope: Scope) -> bool:
    """Return whether a request asks for the event stream."""
    return scope["path"] == STREAM and EVENTS in Request(scope).headers.get("accept", "")


def _rate_key(request: Request) -> str:
    """Identify whose rate a request counts against: a token, a session or an address."""
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    return token or request.cookies.get(COOKIE) or (request.client.host if request.client else "")


def _too_many(why: str, seconds: float) -> ApiError:
    return ApiError(429, "too-many", f"{why}: retry later", {"Retry-After": str(max(1, round(seconds)))})
