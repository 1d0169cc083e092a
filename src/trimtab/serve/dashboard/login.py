"""Sign in and out. Pages are rendered on the server, without inline scripts or content from other hosts.

Pages get `caller` and `csrf`. To change anything, static/app.js calls the API with the header X-CSRF-Token, which it
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

SESSION_SECONDS = 12 * 3600.0
router = APIRouter(include_in_schema=False)
router.include_router(routes.router)


@router.get("/login")
async def login(request: Request) -> Response:
    """Show the sign-in page."""
    return page(request, "login.html", None)


@router.post("/login")
async def sign_in(request: Request) -> Response:
    """Exchange a token for a session cookie that scripts cannot read."""
    check_origin(request, Caller("nobody", "read"))
    form = parse_qs((await request.body()).decode(errors="replace"), max_num_fields=10)
    text = form.get("token", [""])[0].strip()
    authenticator: Authenticator = request.app.state.authenticator
    token = await authenticator.token(text)
    if token is None or token.parent is not None:
        return page(request, "login.html", None, 401, wrong="Unknown or revoked token.")
    request.state.who = name_of(token)
    session = await run_in_threadpool(_begin, request, token)
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, session, int(SESSION_SECONDS), httponly=True, samesite="strict", secure=secure, path="/")
    return answer


@router.post("/logout")
async def sign_out(request: Request) -> Response:
    """End the session."""
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
        return tokens.begin_session(store, token, SESSION_SECONDS)


def _end(request: Request, cookie: str) -> None:
    with request.app.state.studies.pool.store() as store:
        token = tokens.find(store, cookie)
        if token is not None:
            tokens.end_session(store, token.id)
