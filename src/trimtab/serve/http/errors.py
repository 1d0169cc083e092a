"""What is answered when something is not as asked: problem details (RFC 9457), and never a traceback."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from trimtab.serve.http.suggestions import fields_at
from trimtab.store.errors import SAFE, Damaged, Moved, StoreError, Taken, Unavailable, Unstorable
from trimtab.types import Document
from trimtab.util.text import clean
from trimtab.validation import near

LOG = logging.getLogger("trimtab.serve")
SHORT = 60  # characters of a value that is shown
TOKEN = re.compile(r"\btt_\w")
BODY = "not JSON: send JSON with the header Content-Type: application/json"
WHOLE = ("missing", "model_attributes_type", "model_type", "dict_type")
SAID = {"missing": "is missing: add it", "extra_forbidden": "unknown field: leave it out"}
REMEDIES: dict[str, str] = {
    **dict.fromkeys(WHOLE[1:], 'give an object, {"name": …}'),
    **dict.fromkeys(("float_type", "finite_number"), "give a number, without quotes"),
}
"""Kinds of errors → what to say instead of Pydantic's words, which are of Python."""


class ApiError(Exception):
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


def as_problem(error: Exception) -> ApiError:
    """What an error is to the one who asked."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, StoreError):
        return _of_store(error)
    if isinstance(error, ValueError | TypeError):
        return ApiError(422, "invalid", str(error))
    LOG.error("unexpected", exc_info=error)
    return ApiError(500, "internal", "unexpected error: the log of the service has the reason")


def _of_store(error: StoreError) -> ApiError:
    """Tell what it means to the caller; where the store is, and what its driver said, is for the log alone."""
    if isinstance(error, Unstorable):
        return ApiError(422, "invalid", "a value cannot be stored (a NUL character, or too large): give another one")
    if isinstance(error, Taken):
        return ApiError(
            409, "conflict", "another process changed or uses the study: read it and send the request again"
        )
    LOG.error("store: %s", error)
    if isinstance(error, Unavailable):
        why = f"the store cannot be reached now: send the same request again; {SAFE}"
        return ApiError(503, "store-unavailable", why, {"Retry-After": "1"})
    if isinstance(error, Moved):
        why = "the file of the store was deleted or replaced: restart the service; its log says where to find a copy"
        return ApiError(503, "store-unavailable", why)
    if isinstance(error, Damaged):
        return ApiError(500, "store", "the stored study is damaged: restore a backup; the log has the reason")
    return ApiError(500, "store", "the store cannot be read or written: the log of the service has the reason")


def install(app: FastAPI, shown: Callable[[Request, ApiError], Response]) -> None:
    """Answer every error with a problem; shown: as a page, to who looks at one."""

    def answer(request: Request, problem: ApiError) -> Response:
        is_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
        return shown(request, problem) if is_page else problem.response()

    async def any_error(request: Request, error: Exception) -> Response:
        return answer(request, as_problem(error))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        return answer(request, ApiError(error.status_code, "http", str(error.detail), headers))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        sent = request.headers.get("content-type", "")
        wrong = [_wrong(one, sent, request) for one in error.errors()[:20]]
        what = "; ".join(f"{one['where']}: {one['what']}" for one in wrong[:3])
        return answer(request, ApiError(422, "invalid", f"invalid request: {what}", errors=wrong))

    for kind in (ApiError, StoreError, ValueError, TypeError, Exception):
        app.add_exception_handler(kind, any_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, invalid)


def _wrong(error: Document, sent: str, request: Request) -> dict[str, str]:
    """Which field, and what of it: the value, the reason and the remedy. sent: the type of the body."""
    kind, where = error["type"], "/".join(map(str, error["loc"]))
    if error["loc"] == ("body",) and kind in WHOLE and "json" not in sent:
        what = f"{sent} is {BODY}" if sent else f"the body is {BODY}"
    elif kind == "extra_forbidden" and (meant := near(str(error["loc"][-1]), fields_at(request, error["loc"]))):
        what = f"there is no such field: {meant}"
    elif kind in SAID:
        what = SAID[kind]
    elif kind == "json_invalid":
        what = f"not valid JSON: {error['ctx']['error']}"
    else:
        value, remedy = _given(error["input"]), REMEDIES.get(kind) or error["msg"]
        what = remedy if value is None else f"{value} is not valid: {remedy}"
    return {"where": clean(where, 200), "what": clean(what, 300)}


def _given(value: object) -> str | None:
    """What was sent, as JSON and shortened; a token is not repeated."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if TOKEN.search(text) else text if len(text) <= SHORT else f"{text[:SHORT]}…"
