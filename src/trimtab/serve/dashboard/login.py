"""Pages: signing in and out, and the dashboard. Rendered here; no inline script, nothing from elsewhere.

A page gets `caller` and `csrf`; a change is a request to the API with the header X-CSRF-Token, which static/app.js
reads from <meta name="csrf">.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from trimtab.serve.dashboard import routes
from trimtab.serve.dashboard.templating import page, visitor
from trimtab.serve.http import tokens
from trimtab.serve.http.auth import COOKIE, Authenticator, Caller, check_origin, name_of

DAY = 12 * 3600.0  # seconds that a session lasts
router = APIRouter(include_in_schema=False)
router.include_router(routes.router)


@router.get("/login")
async def login(request: Request) -> Response:
    """Where a token is asked for."""
    return page(request, "login.html", None)


@router.post("/login")
async def sign_in(request: Request) -> Response:
    """A token for a cookie that no script can read."""
    check_origin(request, Caller("nobody", "read"))
    form = parse_qs((await request.body()).decode(errors="replace"), max_num_fields=10)
    text = form.get("token", [""])[0].strip()
    door: Authenticator = request.app.state.authenticator
    token = await door.token(text)
    if token is None or token.parent is not None:
        return page(request, "login.html", None, 401, wrong="Unknown or revoked token.")
    request.state.who = name_of(token)
    session = await run_in_threadpool(_begin, request, token)
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, session, int(DAY), httponly=True, samesite="strict", secure=secure, path="/")
    return answer


@router.post("/logout")
async def sign_out(request: Request) -> Response:
    """The session is over."""
    check_origin(request, Caller("nobody", "read"))
    cookie = request.cookies.get(COOKIE, "")
    caller = await visitor(request)
    if caller is not None:
        form = parse_qs((await request.body()).decode(errors="replace"), max_num_fields=10)
        sent = form.get("csrf", [""])[0]
        check_origin(request, caller._replace(csrf="" if sent == caller.csrf else caller.csrf))
        request.app.state.authenticator.forget(cookie)
        await run_in_threadpool(_end, request, cookie)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer


def _begin(request: Request, token: tokens.Token) -> str:
    with request.app.state.studies.pool.store() as store:
        return tokens.begin_session(store, token, DAY)


def _end(request: Request, cookie: str) -> None:
    with request.app.state.studies.pool.store() as store:
        token = tokens.find(store, cookie)
        if token is not None:
            tokens.end_session(store, token.id)
