"""Trials: ask what to set, and tell what came of it; one study at a time, or many."""

from __future__ import annotations

import asyncio
import datetime
import time
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from trimtab.live.row import RowStudy
from trimtab.live.study import Trial
from trimtab.serve import rounds
from trimtab.serve.batch import answered, outside, tell_many
from trimtab.serve.models import BlockedOut, ResultIn, ResultOut, TellsIn, TellsOut, TrialOut
from trimtab.serve.rounds import Blocked, Result
from trimtab.serve.wiring import ANSWERS, StudyName, Tells, etag, fleet
from trimtab.types import Document, Json

router = APIRouter(prefix="/v1", tags=["trials"], responses=ANSWERS)
POLL = 0.25  # seconds between two looks at what blocks a trial


@router.post("/studies/{name}/trials:ask", response_model=TrialOut, responses={202: {"model": BlockedOut}})
async def ask(
    name: StudyName,
    request: Request,
    _: Tells,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait where something blocks.")] = 0.0,
) -> Json:
    """The open trial, the same one until it is told. 202 where approval, a hold or quiet hours block it that long."""
    end = time.monotonic() + wait
    with request.app.state.limits.waiting():
        while True:
            found = await run_in_threadpool(fleet(request).change, name, _ask)
            if isinstance(found, Trial):
                return JSONResponse(found._asdict())
            if found is None:
                continue
            if time.monotonic() >= end or await request.is_disconnected():
                blocked = {"blocked": found.by, "detail": found.detail, "setting": found.setting}
                return JSONResponse(blocked, 202, {"Retry-After": "1"})
            await asyncio.sleep(min(POLL, max(end - time.monotonic(), 0.0)))


@router.put("/studies/{name}/trials/{id}/result", response_model=ResultOut)
async def tell(
    name: StudyName,
    id: Annotated[int, Path(ge=0, lt=2**62)],
    body: ResultIn,
    request: Request,
    _: Tells,
    next: Annotated[bool, Query(description="Answer with the trial that follows, too.")] = False,
) -> Json:
    """The value of a trial, or null. Idempotent: the same again is 200, another is 409, one from before an undo 410."""
    result = Result(rounds.number(body.value), body.note, body.applied, body.values)

    def act(study: RowStudy) -> Document:
        return answered(rounds.tell(study, id, result), study, next=next)

    answer = await run_in_threadpool(lambda: fleet(request).change(name, act, hasty=True))
    if "refused" in answer:
        raise outside(answer["refused"])
    return JSONResponse(answer, headers={"ETag": etag(answer["seq"])})


@router.post("/tells", response_model=TellsOut)
async def tells(body: TellsIn, request: Request, caller: Tells) -> Json:
    """Results of many studies in one transaction; each is answered as it would be alone."""
    return JSONResponse(
        {"results": await run_in_threadpool(tell_many, fleet(request), caller, body.results, body.next)}
    )


def _ask(study: RowStudy) -> Trial | Blocked | None:
    return rounds.ask(study, datetime.datetime.now().time())
