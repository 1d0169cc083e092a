"""Health checks and Prometheus metrics."""

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
from trimtab.serve.http.observability import Metrics
from trimtab.store.errors import Damaged, StoreError
from trimtab.store.retry import delays
from trimtab.types import Json

LOG = logging.getLogger("trimtab.serve")
FIRST_DELAY, MAX_DELAY = 0.5, 30.0  # seconds between attempts to reach the store at the start
router = APIRouter(tags=["health"])


@router.get("/livez")
async def livez() -> dict[str, str]:
    """Liveness: the process answers."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: PROBLEMS[503]})
async def readyz(request: Request) -> dict[str, str]:
    """Readiness: the store answers, too."""
    await run_in_threadpool(_ping, request.app.state.studies)
    return {"status": "ready"}


@router.get("/metrics", response_class=Response, responses={401: PROBLEMS[401], 403: PROBLEMS[403]})
async def metrics(request: Request, caller: Annotated[Caller, Depends(scope("read"))]) -> Json:
    """Prometheus metrics of the whole service, as text or OpenMetrics; not available to tokens of a single study."""
    if caller.study is not None:
        raise ApiError(403, "forbidden", f"metrics cover all studies, but this token is valid only for {caller.study}")
    state = request.app.state
    metrics: Metrics = state.metrics
    metrics.streams.set(state.limits.streams + state.limits.waits)
    metrics.conflicts.set(state.studies.conflicts)
    if state.settings.metrics_studies:
        await run_in_threadpool(_update_study_metrics, metrics, state.studies, state.settings.metrics_studies)
    encode, kind = exposition.choose_encoder(request.headers.get("accept", ""))
    return Response(encode(metrics.combined_registry()), media_type=kind)


async def await_store(studies: StudyCache) -> None:
    """Retry until the store can be reached, and log it."""
    for attempts, delay in enumerate(delays(FIRST_DELAY, MAX_DELAY)):
        try:
            await run_in_threadpool(_ping, studies)
        except StoreError as error:
            LOG.warning("waiting for the store: %s; next attempt in %.1f s", error, delay)
        else:
            if attempts:
                LOG.info("the store is available after %d attempts", attempts)
            return
        await asyncio.sleep(delay)


def _ping(studies: StudyCache) -> None:
    with studies.pool.store() as store:
        store.execute("SELECT version FROM trimtab_meta")


def _update_study_metrics(metrics: Metrics, studies: StudyCache, most: int) -> None:
    metrics.study_value.clear()
    metrics.study_rounds.clear()
    with studies.pool.store() as store:
        for saved in store.page("", most).values():
            if isinstance(saved, Damaged):
                continue
            metrics.study_rounds.labels(saved.name).set(saved.status["round"])
            if saved.status["mean"] is not None:
                metrics.study_value.labels(saved.name).set(saved.status["mean"])
