"""Who is asking, and whether they may: tokens in a header, or in the cookie that signing in gives."""

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
TRUST = 4.0  # seconds for which what is known of a token holds: with what a stream takes to look again, five
MOST = 10_000  # tokens that are remembered


class Caller(NamedTuple):
    """The one who asks."""

    who: str
    scope: str
    study: str | None = None
    """The only one that they may see."""
    csrf: str = ""
    """What a page has to send along with a change, if they came with a cookie."""

    def may(self, scope: str, study: str | None = None) -> bool:
        """Whether they may do what needs that scope, with that study."""
        enough = tokens.SCOPES.index(self.scope) >= tokens.SCOPES.index(scope)
        return enough and (self.study is None or study is None or study == self.study)


class Authenticator:
    """Knows tokens, for a moment."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: OrderedDict[str, tuple[float, tokens.Token | None]] = OrderedDict()
        self._open: tuple[float, bool] = (0.0, False)

    async def caller(self, request: Request) -> Caller:
        """The one who asks, whom the log names from then on; or a 401."""
        found = await self._find(request)
        request.state.who = found.who
        return found

    async def _find(self, request: Request) -> Caller:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        cookie = request.cookies.get(COOKIE)
        if scheme:
            token = await self.token(text.strip()) if scheme.lower() == "bearer" else None
            if token is None or token.parent is not None:
                raise _refused("unknown or revoked token: make another with trimtab token create")
            return Caller(name_of(token), token.scope, token.study)
        if cookie:
            token = await self.token(cookie)
            if token is not None and token.parent is not None:
                return Caller(name_of(token), token.scope, token.study, csrf_of(cookie))
        if await self.is_open():
            return _neighbour(request)
        raise _refused("a token is needed: send it as Authorization: Bearer TOKEN, or sign in")

    async def token(self, text: str) -> tokens.Token | None:
        """What a text is good for."""
        key, now = hashlib.sha256(text.encode()).hexdigest(), time.monotonic()
        found = self._known.get(key)
        if found is None or found[0] < now:
            found = (now + TRUST, await run_in_threadpool(self._look, text))
            self._known[key] = found
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        token = found[1]
        over = token is not None and token.expires is not None and token.expires < time.time()
        return None if over else token

    async def is_open(self) -> bool:
        """Whether there are no tokens at all, so that whoever is on this machine may do everything."""
        until, open = self._open
        if until < time.monotonic():
            open = not await run_in_threadpool(self._any)
            self._open = (time.monotonic() + (TRUST if open else 3600.0), open)
        return open

    def forget(self, text: str) -> None:
        """After signing out."""
        self._known.pop(hashlib.sha256(text.encode()).hexdigest(), None)

    def _look(self, text: str) -> tokens.Token | None:
        with self._pool.store() as store:
            return tokens.find(store, text)

    def _any(self) -> bool:
        with self._pool.store() as store:
            return tokens.any_there(store)


def scope(needed: str) -> Callable[[Request], Coroutine[Any, Any, Caller]]:
    """A dependency of a route: the caller, if the scope and the study in the path are theirs."""

    async def allowed(request: Request) -> Caller:
        caller: Caller = await request.app.state.door.caller(request)
        if request.method not in SAFE:
            check_origin(request, caller)
        if not caller.may(needed, request.path_params.get("name")):
            whose = f" of study {caller.study}" if caller.study else ""
            raise ApiError(403, "forbidden", f"this needs a token with scope {needed}; yours is {caller.scope}{whose}")
        return caller

    return allowed


def check_origin(request: Request, caller: Caller) -> None:
    """No other site makes a browser change anything."""
    origin = request.headers.get("origin")
    if origin is not None and _place(origin) != request.headers.get("host"):
        raise ApiError(403, "cross-site", "a page of another site must not change anything here")
    sent = request.headers.get("x-csrf-token", "")[:200]
    if caller.csrf and not hmac.compare_digest(caller.csrf.encode(), sent.encode()):
        raise ApiError(403, "csrf", "the header X-CSRF-Token is missing or wrong: reload the page")


def csrf_of(cookie: str) -> str:
    """What only a page of ours knows, beside the cookie that no page can read."""
    return hashlib.sha256(f"csrf {cookie}".encode()).hexdigest()


def name_of(token: tokens.Token) -> str:
    """Label of a token, or its id."""
    return clean(token.label or f"token {token.parent or token.id}", 100)


def _neighbour(request: Request) -> Caller:
    """Without tokens: only from this machine, and not through a name that somebody else lets point to it."""
    peer = request.client.host if request.client else ""
    host = _host(request.headers.get("host", ""))
    if not (is_loopback(peer) and is_loopback(host)):
        raise ApiError(403, "no-tokens", "without any token only this machine is answered: trimtab token create")
    return Caller("this machine", "admin")


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _refused(why: str) -> ApiError:
    return ApiError(401, "unauthorised", why, {"WWW-Authenticate": "Bearer"})
