"""Whether the service lives, whether it can work, and its figures."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import exposition
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api.models import PROBLEMS
from trimtab.serve.api.studies_cache import StudyCache
from trimtab.serve.http.auth import Caller, scope
from trimtab.serve.http.errors import ApiError
from trimtab.serve.http.observability import Figures
from trimtab.store.errors import Damaged, StoreError
from trimtab.store.retry import delays
from trimtab.types import Json

LOG = logging.getLogger("trimtab.serve")
FIRST, LONGEST = 0.5, 30.0  # seconds between two looks for a store that is away at the start
router = APIRouter(tags=["health"])


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process answers."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: PROBLEMS[503]})
async def readyz(request: Request) -> dict[str, str]:
    """The store answers, too."""
    await run_in_threadpool(_ping, request.app.state.fleet)
    return {"status": "ready"}


@router.get("/metrics", response_class=Response, responses={401: PROBLEMS[401], 403: PROBLEMS[403]})
async def metrics(request: Request, caller: Annotated[Caller, Depends(scope("read"))]) -> Json:
    """For Prometheus, in its text format or as OpenMetrics; of the whole service, so not with a token of one study."""
    if caller.study is not None:
        raise ApiError(403, "forbidden", f"metrics are of all studies, and this token is for {caller.study} alone")
    state = request.app.state
    figures: Figures = state.figures
    figures.streams.set(state.limits.streams + state.limits.waits)
    figures.conflicts.set(state.fleet.conflicts)
    if state.settings.metrics_studies:
        await run_in_threadpool(_measure, figures, state.fleet, state.settings.metrics_studies)
    encode, kind = exposition.choose_encoder(request.headers.get("accept", ""))
    return Response(encode(figures.collected()), media_type=kind)


async def await_store(studies: StudyCache) -> None:
    """Look for a store that is away at the start until it is there, and say so in the log."""
    for tries, delay in enumerate(delays(FIRST, LONGEST)):
        try:
            await run_in_threadpool(_ping, studies)
        except StoreError as error:
            LOG.warning("waiting for the store: %s; next try in %.1f s", error, delay)
        else:
            if tries:
                LOG.info("the store is there, after %d tries", tries)
            return
        await asyncio.sleep(delay)


def _ping(studies: StudyCache) -> None:
    with studies.pool.store() as store:
        store.execute("SELECT version FROM trimtab_meta")


def _measure(figures: Figures, studies: StudyCache, most: int) -> None:
    figures.value.clear()
    figures.rounds.clear()
    with studies.pool.store() as store:
        for saved in store.page("", most).values():
            if isinstance(saved, Damaged):
                continue
            figures.rounds.labels(saved.name).set(saved.status["round"])
            if saved.status["mean"] is not None:
                figures.value.labels(saved.name).set(saved.status["mean"])
