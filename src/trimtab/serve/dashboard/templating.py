"""Render pages; number and age formats for templates."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from trimtab.serve.http.auth import Caller
from trimtab.serve.http.errors import ApiError
from trimtab.util.text import clean, moment

HERE = Path(__file__).parent
AGES = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
templates = Jinja2Templates(HERE / "templates")


async def visitor(request: Request) -> Caller | None:
    """Return the caller of a page; None if they must sign in first."""
    try:
        caller: Caller = await request.app.state.authenticator.caller(request)
    except ApiError as problem:
        if problem.status == 401:
            return None
        raise
    return caller


def page(request: Request, template: str, caller: Caller | None, status: int = 200, **more: Any) -> Response:
    """Render a page that browsers must not cache."""
    context = {"caller": caller, "csrf": caller.csrf if caller else "", **more}
    return templates.TemplateResponse(request, template, context, status, headers={"Cache-Control": "no-store"})


def problem_page(request: Request, problem: ApiError) -> Response:
    """Render an error page."""
    document = problem.document()
    answer = page(request, "problem.html", None, problem.status, title=document["title"], detail=document["detail"])
    answer.headers.update(problem.headers or {})
    return answer


def number(value: Any) -> str:
    """Format a number in four digits, with a minus sign; other values as text.

    >>> number(-0.123456), number(None), number(True), number(12345678), number("zstd")
    ('−0.1235', '–', 'yes', '1.235e+07', 'zstd')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.4g}".replace("-", "−") if abs(value) < 1e15 else f"{value:.3g}".replace("-", "−")
    return clean(str(value), 60)


def percent(value: float | None) -> str:
    r"""Format a share in percent, with a space that does not break.

    >>> percent(0.1234), percent(None)
    ('12\xa0%', '–')
    """
    return (
        "–" if value is None else f"{100 * value:.{1 if abs(value) < 0.1 else 0}f}\N{NO-BREAK SPACE}%".replace("-", "−")
    )


def age(then: float | None) -> str:
    """Format how long ago something was.

    >>> age(time.time() - 7300), age(None)
    ('2 h', 'never')
    """
    if then is None:
        return "never"
    seconds = max(time.time() - then, 0.0)
    size, unit = next((pair for pair in AGES if seconds >= pair[0]), (1.0, "s"))
    return f"{int(seconds // size)} {unit}"


templates.env.filters.update(number=number, percent=percent, age=age, moment=moment, clean=clean)
