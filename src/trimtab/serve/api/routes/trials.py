"""Trials: ask and tell, for one study or many."""

from __future__ import annotations

import asyncio
import datetime
import re
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api import ask_tell
from trimtab.serve.api.ask_tell import Blocked, Result
from trimtab.serve.api.deps import NAME, RESPONSES, StudyName, Tells, etag, studies_of
from trimtab.serve.api.models import AskIn, BlockedOut, ResultIn, ResultOut, TellsIn, TellsOut, TrialOut
from trimtab.serve.api.tell_batch import Answer, QueuedTell, WriteQueue, to_json_text
from trimtab.serve.http.auth import Caller, scope
from trimtab.serve.http.errors import ApiError
from trimtab.study.study import Trial
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document, Json
from trimtab.util.durations import seconds

router = APIRouter(prefix="/v1", tags=["trials"], responses=RESPONSES)
POLL_INTERVAL = 0.25  # seconds between checks of a blocked study


class FastRoute(APIRoute):
    """A busy route: well-formed requests bypass FastAPI's dependency injection, all others take the usual way."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Json, Json, Response]]:
        """Wrap FastAPI's handler, whose dependency injection costs as much as a tell."""
        handle_usual = super().get_route_handler()

        async def handle(request: Request) -> Response:
            respond = _parse_fast(request, await request.body())
            return await handle_usual(request) if respond is None else await respond(await authorise(request))

        return handle


authorise = scope("tell")
fast_router = APIRouter(route_class=FastRoute)


def _parse_fast(request: Request, body: bytes) -> Callable[[Caller], Coroutine[Json, Json, Response]] | None:
    """Return a function that answers the request once its caller is known; None if it is not well-formed."""
    if request.headers.get("content-type") != "application/json":
        return None
    try:
        if "name" not in request.path_params:
            many = TellsIn.model_validate_json(body)
            return lambda caller: _tell_many(request, many, caller)
        tell = _parse_tell(request, body)
        return None if tell is None else lambda _: _tell_one(request, tell)
    except ValueError:
        return None


def _parse_tell(request: Request, body: bytes) -> QueuedTell | None:
    """Parse the request of a single tell."""
    name, id, query = request.path_params["name"], request.path_params["id"], request.scope["query_string"]
    if query not in (b"", b"next=true") or not (id.isascii() and id.isdigit() and len(id) < 19):
        return None
    if not re.fullmatch(NAME, name):
        return None
    return QueuedTell(name, int(id), _result(ResultIn.model_validate_json(body)), query != b"")


async def _tell_one(request: Request, given: QueuedTell) -> Response:
    queue: WriteQueue = request.app.state.single_tells
    (answer,) = await queue.tell([given], request.state.who)
    if isinstance(answer, ApiError):
        raise answer
    return Response(to_json_text(answer), headers={"ETag": etag(answer["seq"])}, media_type="application/json")


@fast_router.put("/studies/{name}/trials/{id}/result", response_model=ResultOut)
async def tell(
    name: StudyName,
    id: Annotated[int, Path(ge=0, lt=2**62)],
    body: ResultIn,
    request: Request,
    _: Tells,
    next: Annotated[bool, Query(description="Include the next trial in the response.")] = False,
) -> Json:
    """Tell the value of a trial, or null. The same again gives 200, another value 409, a trial before an undo 410."""
    return await _tell_one(request, QueuedTell(name, id, _result(body), next))


@router.post("/studies/{name}/trials:ask", response_model=TrialOut, responses={202: {"model": BlockedOut}})
async def ask(
    name: StudyName,
    request: Request,
    _: Tells,
    wait: Annotated[
        float,
        Field(ge=0, le=60),
        BeforeValidator(seconds),
        Query(description='How long to wait while the study is blocked, in seconds or as a text such as "500ms".'),
    ] = 0.0,
    another: Annotated[
        bool, Query(description="Hand out another trial beside the open ones, if max_pending allows it.")
    ] = False,
    body: AskIn | None = None,
) -> Json:
    """Ask for the open trial, the same one until it is told; 202 while approval, a pause or quiet hours block it.

    If max_pending is above 1, this is the oldest open trial; with `another` a new one, or 409 if no more may be open.
    In a study with contexts, give the present one in the body; another context asks anew, under a new id.
    """
    context = None if body is None else body.context

    def act(study: UnlockedStudy) -> Trial | Blocked | None:
        return ask_tell.ask(study, datetime.datetime.now().time(), another=another, context=context)

    end = time.monotonic() + wait
    with ExitStack() as stack:
        waits = False
        while True:
            found = await run_in_threadpool(studies_of(request).change, name, act)
            if isinstance(found, Trial):
                return JSONResponse(found.to_json())
            if found is None:
                continue
            if time.monotonic() >= end or await request.is_disconnected():
                blocked = {"blocked": found.by, "detail": found.detail, "setting": found.setting}
                return JSONResponse(blocked, 202, {"Retry-After": "1"})
            if not waits:
                stack.enter_context(request.app.state.limits.wait())
                waits = True
            await asyncio.sleep(min(POLL_INTERVAL, max(end - time.monotonic(), 0.0)))


@fast_router.post("/tells", response_model=TellsOut)
async def tell_many(body: TellsIn, request: Request, caller: Tells) -> Json:
    """Tell results of many studies in one transaction; each is answered as a single tell would be."""
    return await _tell_many(request, body, caller)


router.include_router(fast_router)


async def _tell_many(request: Request, body: TellsIn, caller: Caller) -> Response:
    answers: dict[int, Answer] = {
        n: ApiError(403, "forbidden", f"this token is not valid for study {one.study!r}")
        for n, one in enumerate(body.results)
        if not caller.may("tell", one.study)
    }
    permitted = {n: one for n, one in enumerate(body.results) if n not in answers}
    given = [QueuedTell(one.study, one.trial, _result(one), body.next) for one in permitted.values()]
    queue: WriteQueue = request.app.state.batch_tells
    answers |= zip(permitted, await queue.tell(given, caller.who), strict=True)
    document = {"results": [_tell_json(answers[n]) for n in range(len(answers))]}
    return Response(to_json_text(document), media_type="application/json")


def _result(body: ResultIn) -> Result:
    return Result(ask_tell.normalise(body.value), body.note, body.applied, body.values)


def _tell_json(answer: Answer) -> Document:
    """Return the entry of one result in the response."""
    if isinstance(answer, ApiError):
        return {"status": answer.status, "problem": answer.document()}
    return {"status": 200, "result": answer}
