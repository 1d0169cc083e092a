"""What is answered when something is not as asked: problem details (RFC 9457), and never a traceback."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from trimtab.live.errors import StoreError, Taken, Unavailable
from trimtab.live.text import clean
from trimtab.types import Document

LOG = logging.getLogger("trimtab.serve")


class Problem(Exception):
    """A status, a word for programs, and a sentence for people."""

    def __init__(self, status: int, kind: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.headers, self.more = status, kind, detail, headers, more

    def document(self) -> Document:
        """As RFC 9457 has it."""
        return {
            "type": f"urn:trimtab:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": clean(self.detail, 1000),
            **self.more,
        }

    def response(self) -> JSONResponse:
        """To be sent."""
        return JSONResponse(self.document(), self.status, headers=self.headers, media_type="application/problem+json")


def as_problem(error: Exception) -> Problem:
    """What an error is to the one who asked."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Unavailable):
        return Problem(503, "store-unavailable", str(error), {"Retry-After": "1"})
    if isinstance(error, Taken):
        return Problem(409, "conflict", str(error))
    if isinstance(error, ValueError | TypeError):
        return Problem(422, "invalid", str(error))
    if isinstance(error, StoreError):
        LOG.error("store: %s", error)
        return Problem(500, "store", str(error))
    LOG.error("unexpected", exc_info=error)
    return Problem(500, "internal", "something unexpected happened: it is in the log of the service")


def install(app: FastAPI) -> None:
    """Answer every error with a problem."""

    async def any_error(_: Request, error: Exception) -> JSONResponse:
        return as_problem(error).response()

    async def http_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        return Problem(error.status_code, "http", str(error.detail), headers).response()

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        wrong = [
            {"where": clean("/".join(map(str, e["loc"])), 200), "what": clean(e["msg"], 200)}
            for e in error.errors()[:20]
        ]
        what = "; ".join(f"{one['where']}: {one['what']}" for one in wrong[:3])
        return Problem(422, "invalid", f"the request is not as described: {what}", errors=wrong).response()

    for kind in (Problem, StoreError, ValueError, TypeError, Exception):
        app.add_exception_handler(kind, any_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, invalid)
