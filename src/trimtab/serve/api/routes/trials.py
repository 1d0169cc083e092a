"""Trials: ask what to set, and tell what came of it; one study at a time, or many."""

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
from trimtab.serve.api.deps import ANSWERS, NAME, StudyName, Tells, etag, fleet
from trimtab.serve.api.models import BlockedOut, ResultIn, ResultOut, TellsIn, TellsOut, TrialOut
from trimtab.serve.api.tell_batch import Answer, QueuedTell, WriteQueue, written
from trimtab.serve.http.auth import Caller, scope
from trimtab.serve.http.errors import ApiError
from trimtab.study.study import Trial
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document, Json
from trimtab.util.durations import seconds

router = APIRouter(prefix="/v1", tags=["trials"], responses=ANSWERS)
POLL = 0.25  # seconds between two looks at what blocks a trial


class Quick(APIRoute):
    """A route that most requests are for: what is as described is taken at once, anything else goes the usual way."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Json, Json, Response]]:
        """As FastAPI makes it, with a way around it: finding out what a function wants costs as much as a tell."""
        usual = super().get_route_handler()

        async def handle(request: Request) -> Response:
            answer = _shortcut(request, await request.body())
            return await usual(request) if answer is None else await answer(await allowed(request))

        return handle


allowed = scope("tell")
quick = APIRouter(route_class=Quick)


def _shortcut(request: Request, body: bytes) -> Callable[[Caller], Coroutine[Json, Json, Response]] | None:
    """What answers a request that needs no second look, once it is known who asks."""
    if request.headers.get("content-type") != "application/json":
        return None
    try:
        if "name" not in request.path_params:
            many = TellsIn.model_validate_json(body)
            return lambda caller: _all_told(request, many, caller)
        given = _given(request, body)
        return None if given is None else lambda _: _told(request, given)
    except ValueError:
        return None


def _given(request: Request, body: bytes) -> QueuedTell | None:
    """A single result."""
    name, id, query = request.path_params["name"], request.path_params["id"], request.scope["query_string"]
    if query not in (b"", b"next=true") or not (id.isascii() and id.isdigit() and len(id) < 19):
        return None
    if not re.fullmatch(NAME, name):
        return None
    return QueuedTell(name, int(id), _result(ResultIn.model_validate_json(body)), query != b"")


async def _told(request: Request, given: QueuedTell) -> Response:
    gathering: WriteQueue = request.app.state.single
    (answer,) = await gathering.tell([given], request.state.who)
    if isinstance(answer, ApiError):
        raise answer
    return Response(written(answer), headers={"ETag": etag(answer["seq"])}, media_type="application/json")


@quick.put("/studies/{name}/trials/{id}/result", response_model=ResultOut)
async def tell(
    name: StudyName,
    id: Annotated[int, Path(ge=0, lt=2**62)],
    body: ResultIn,
    request: Request,
    _: Tells,
    next: Annotated[bool, Query(description="Also answer with the next trial.")] = False,
) -> Json:
    """The value of a trial, or null. Idempotent: the same again is 200, another is 409, one from before an undo 410."""
    return await _told(request, QueuedTell(name, id, _result(body), next))


@router.post("/studies/{name}/trials:ask", response_model=TrialOut, responses={202: {"model": BlockedOut}})
async def ask(
    name: StudyName,
    request: Request,
    _: Tells,
    wait: Annotated[
        float,
        Field(ge=0, le=60),
        BeforeValidator(seconds),
        Query(description='Seconds to wait while the study is blocked, or a text such as "500ms".'),
    ] = 0.0,
    another: Annotated[bool, Query(description="Another trial besides the open ones, if max_pending allows.")] = False,
) -> Json:
    """The open trial, the same one until it is told. 202 where approval, a hold or quiet hours block it that long.

    In a study with max_pending > 1, the oldest open one; with `another`, a new one, or 409 where no more may be open.
    """

    def act(study: UnlockedStudy) -> Trial | Blocked | None:
        return ask_tell.ask(study, datetime.datetime.now().time(), another=another)

    end = time.monotonic() + wait
    with ExitStack() as stack:
        waits = False
        while True:
            found = await run_in_threadpool(fleet(request).change, name, act)
            if isinstance(found, Trial):
                return JSONResponse(found._asdict())
            if found is None:
                continue
            if time.monotonic() >= end or await request.is_disconnected():
                blocked = {"blocked": found.by, "detail": found.detail, "setting": found.setting}
                return JSONResponse(blocked, 202, {"Retry-After": "1"})
            if not waits:
                stack.enter_context(request.app.state.limits.wait())
                waits = True
            await asyncio.sleep(min(POLL, max(end - time.monotonic(), 0.0)))


@quick.post("/tells", response_model=TellsOut)
async def tells(body: TellsIn, request: Request, caller: Tells) -> Json:
    """Results of many studies in one transaction; each is answered as it would be alone."""
    return await _all_told(request, body, caller)


router.include_router(quick)


async def _all_told(request: Request, body: TellsIn, caller: Caller) -> Response:
    answers: dict[int, Answer] = {
        n: ApiError(403, "forbidden", f"this token is not for study {one.study!r}")
        for n, one in enumerate(body.results)
        if not caller.may("tell", one.study)
    }
    theirs = {n: one for n, one in enumerate(body.results) if n not in answers}
    given = [QueuedTell(one.study, one.trial, _result(one), body.next) for one in theirs.values()]
    gathering: WriteQueue = request.app.state.many
    answers |= zip(theirs, await gathering.tell(given, caller.who), strict=True)
    said = {"results": [_said(answers[n]) for n in range(len(answers))]}
    return Response(written(said), media_type="application/json")


def _result(body: ResultIn) -> Result:
    return Result(ask_tell.number(body.value), body.note, body.applied, body.values)


def _said(answer: Answer) -> Document:
    """What became of one of many."""
    if isinstance(answer, ApiError):
        return {"status": answer.status, "problem": answer.document()}
    return {"status": 200, "result": answer}
