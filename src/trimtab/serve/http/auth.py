"""Authentication and authorisation, by a bearer token or a session cookie."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from trimtab.serve.http import tokens
from trimtab.serve.http.errors import ApiError
from trimtab.serve.settings import is_loopback
from trimtab.store.pool import Pool
from trimtab.util.text import clean

COOKIE = "trimtab_session"
SAFE = ("GET", "HEAD", "OPTIONS")
TOKEN_CACHE_SECONDS = 4.0  # a stream notices a revoked token at most one second after that
MAX_CACHED_TOKENS = 10_000


class Caller(NamedTuple):
    """The sender of a request, with their permissions."""

    who: str
    scope: str
    study: str | None = None
    """The only study they may access; None for all."""
    csrf: str = ""
    """Token that a page sends with each change; empty without a session cookie."""

    def may(self, scope: str, study: str | None = None) -> bool:
        """Return whether the caller has this scope, for this study."""
        enough = tokens.SCOPES.index(self.scope) >= tokens.SCOPES.index(scope)
        return enough and (self.study is None or study is None or study == self.study)


class Authenticator:
    """Authenticate requests; tokens are cached for `TOKEN_CACHE_SECONDS`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._cache: OrderedDict[str, tuple[float, tokens.Token | None]] = OrderedDict()
        self._open: tuple[float, bool] = (0.0, False)

    async def caller(self, request: Request) -> Caller:
        """Return the caller of a request and record it for the log; raise 401 without valid credentials."""
        found = await self._find(request)
        request.state.who = found.who
        return found

    async def _find(self, request: Request) -> Caller:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        cookie = request.cookies.get(COOKIE)
        if scheme:
            token = await self.token(text.strip()) if scheme.lower() == "bearer" else None
            if token is None or token.parent is not None:
                raise _unauthorised("unknown or revoked token: create another with trimtab token create")
            return Caller(name_of(token), token.scope, token.study)
        if cookie:
            token = await self.token(cookie)
            if token is not None and token.parent is not None:
                return Caller(name_of(token), token.scope, token.study, csrf_of(cookie))
        if await self.is_open():
            return _local_caller(request)
        raise _unauthorised("a token is needed: send it as Authorization: Bearer TOKEN, or sign in")

    async def token(self, text: str) -> tokens.Token | None:
        """Look up a token; None if it is unknown, expired or revoked."""
        key, now = hashlib.sha256(text.encode()).hexdigest(), time.monotonic()
        found = self._cache.get(key)
        if found is None or found[0] < now:
            found = (now + TOKEN_CACHE_SECONDS, await run_in_threadpool(self._look_up, text))
            self._cache[key] = found
            if len(self._cache) > MAX_CACHED_TOKENS:
                self._cache.popitem(last=False)
        token = found[1]
        over = token is not None and token.expires is not None and token.expires < time.time()
        return None if over else token

    async def is_open(self) -> bool:
        """Return whether the store has no tokens, so that requests from this machine need none."""
        until, is_open = self._open
        if until < time.monotonic():
            is_open = not await run_in_threadpool(self._has_tokens)
            self._open = (time.monotonic() + (TOKEN_CACHE_SECONDS if is_open else 3600.0), is_open)
        return is_open

    def forget(self, text: str) -> None:
        """Drop a token from the cache, after signing out."""
        self._cache.pop(hashlib.sha256(text.encode()).hexdigest(), None)

    def _look_up(self, text: str) -> tokens.Token | None:
        with self._pool.store() as store:
            return tokens.find(store, text)

    def _has_tokens(self) -> bool:
        with self._pool.store() as store:
            return tokens.has_tokens(store)


def scope(needed: str) -> Callable[[Request], Coroutine[Any, Any, Caller]]:
    """Return a route dependency that admits callers with this scope, for the study in the path."""

    async def authorise(request: Request) -> Caller:
        caller: Caller = await request.app.state.authenticator.caller(request)
        if request.method not in SAFE:
            check_origin(request, caller)
        if not caller.may(needed, request.path_params.get("name")):
            whose = f" for study {caller.study}" if caller.study else ""
            raise ApiError(
                403, "forbidden", f"this needs a token with scope {needed}; yours has scope {caller.scope}{whose}"
            )
        return caller

    return authorise


def check_origin(request: Request, caller: Caller) -> None:
    """Refuse cross-site changes: a foreign Origin, or a session without its CSRF token."""
    origin = request.headers.get("origin")
    if origin is not None and _netloc(origin) != request.headers.get("host"):
        raise ApiError(403, "cross-site", "changes from pages of another site are refused")
    sent = request.headers.get("x-csrf-token", "")[:200]
    if caller.csrf and not hmac.compare_digest(caller.csrf.encode(), sent.encode()):
        raise ApiError(403, "csrf", "the header X-CSRF-Token is missing or wrong: reload the page")


def csrf_of(cookie: str) -> str:
    """Derive the CSRF token of a session; pages embed it, the cookie itself is hidden from scripts."""
    return hashlib.sha256(f"csrf {cookie}".encode()).hexdigest()


def name_of(token: tokens.Token) -> str:
    """Return the label of a token, or its id."""
    return clean(token.label or f"token {token.parent or token.id}", 100)


def _local_caller(request: Request) -> Caller:
    """Admit a request without a token: only from this machine, and only for a loopback host (DNS rebinding)."""
    peer = request.client.host if request.client else ""
    host = _host(request.headers.get("host", ""))
    if not (is_loopback(peer) and is_loopback(host)):
        raise ApiError(403, "no-tokens", "until a token exists, only this machine is allowed: trimtab token create")
    return Caller("this machine", "admin")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _unauthorised(why: str) -> ApiError:
    return ApiError(401, "unauthorised", why, {"WWW-Authenticate": "Bearer"})
