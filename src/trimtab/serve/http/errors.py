"""Error responses: problem details (RFC 9457), never a traceback."""

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

from trimtab.serve.http.suggestions import sibling_fields
from trimtab.store.errors import SAFE, Damaged, Moved, StoreError, Taken, Unavailable, Unstorable
from trimtab.types import Document
from trimtab.util.text import clean
from trimtab.validation import near

LOG = logging.getLogger("trimtab.serve")
MAX_SHOWN = 60  # characters of an invalid value in a message
TOKEN = re.compile(r"\btt_\w")
BODY = "not JSON: send JSON with the header Content-Type: application/json"
BODY_ERRORS = ("missing", "model_attributes_type", "model_type", "dict_type")
MESSAGES = {"missing": "is missing: add it", "extra_forbidden": "unknown field: leave it out"}
REMEDIES: dict[str, str] = {
    **dict.fromkeys(BODY_ERRORS[1:], 'give an object, {"name": …}'),
    **dict.fromkeys(("float_type", "finite_number"), "give a number, without quotes"),
}
"""Pydantic error type → remedy, in place of messages that name Python types."""


class ApiError(Exception):
    """An HTTP error: status, machine-readable kind and message."""

    def __init__(self, status: int, kind: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.headers, self.more = status, kind, detail, headers, more

    def document(self) -> Document:
        """Return the problem document of RFC 9457."""
        return {
            "type": f"urn:trimtab:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": clean(self.detail, 1000),
            **self.more,
        }

    def response(self) -> JSONResponse:
        """Return the JSON response."""
        return JSONResponse(self.document(), self.status, headers=self.headers, media_type="application/problem+json")


def as_problem(error: Exception) -> ApiError:
    """Convert any exception to an `ApiError`."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, StoreError):
        return _store_problem(error)
    if isinstance(error, ValueError | TypeError):
        return ApiError(422, "invalid", str(error))
    LOG.error("unexpected", exc_info=error)
    return ApiError(500, "internal", "unexpected error: the service log has the reason")


def _store_problem(error: StoreError) -> ApiError:
    """Explain a store error to the caller; paths and driver messages go to the log only."""
    if isinstance(error, Unstorable):
        return ApiError(422, "invalid", "a value cannot be stored (a NUL character, or too large): give another one")
    if isinstance(error, Taken):
        return ApiError(
            409, "conflict", "another process has changed or is using the study: read it and send the request again"
        )
    LOG.error("store: %s", error)
    if isinstance(error, Unavailable):
        why = f"the store cannot be reached now: send the same request again; {SAFE}"
        return ApiError(503, "store-unavailable", why, {"Retry-After": "1"})
    if isinstance(error, Moved):
        why = "the store file was deleted or replaced: restart the service; its log names a copy"
        return ApiError(503, "store-unavailable", why)
    if isinstance(error, Damaged):
        return ApiError(500, "store", "the stored study is damaged: restore a backup; the service log has the reason")
    return ApiError(500, "store", "the store cannot be read or written: the service log has the reason")


def install(app: FastAPI, page: Callable[[Request, ApiError], Response]) -> None:
    """Register handlers that answer every error with a problem; page: renders one for browsers."""

    def answer(request: Request, problem: ApiError) -> Response:
        is_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
        return page(request, problem) if is_page else problem.response()

    async def any_error(request: Request, error: Exception) -> Response:
        return answer(request, as_problem(error))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        return answer(request, ApiError(error.status_code, "http", str(error.detail), headers))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        sent = request.headers.get("content-type", "")
        problems = [_explain(one, sent, request) for one in error.errors()[:20]]
        first = "; ".join(f"{one['where']}: {one['what']}" for one in problems[:3])
        return answer(request, ApiError(422, "invalid", f"invalid request: {first}", errors=problems))

    for kind in (ApiError, StoreError, ValueError, TypeError, Exception):
        app.add_exception_handler(kind, any_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, invalid)


def _explain(error: Document, sent: str, request: Request) -> dict[str, str]:
    """Name the field, and give the value, the reason and the remedy. sent: content type of the body."""
    kind, where = error["type"], "/".join(map(str, error["loc"]))
    if error["loc"] == ("body",) and kind in BODY_ERRORS and "json" not in sent:
        what = f"{sent} is {BODY}" if sent else f"the body is {BODY}"
    elif kind == "extra_forbidden" and (meant := near(str(error["loc"][-1]), sibling_fields(request, error["loc"]))):
        what = f"there is no such field: {meant}"
    elif kind in MESSAGES:
        what = MESSAGES[kind]
    elif kind == "json_invalid":
        what = f"not valid JSON: {error['ctx']['error']}"
    else:
        value, remedy = _shorten(error["input"]), REMEDIES.get(kind) or error["msg"]
        what = remedy if value is None else f"{value} is not valid: {remedy}"
    return {"where": clean(where, 200), "what": clean(what, 300)}


def _shorten(value: object) -> str | None:
    """Return a value as shortened JSON; None if it cannot be shown, or may contain a token."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if TOKEN.search(text) else text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
