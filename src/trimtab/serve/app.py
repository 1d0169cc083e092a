"""The ASGI application: routes, middleware and shared state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from trimtab import __version__
from trimtab.serve.api.change_polling import ChangePoller
from trimtab.serve.api.routes import actions, events, health, studies, trials
from trimtab.serve.api.studies_cache import StudyCache
from trimtab.serve.api.tell_batch import WriteQueue
from trimtab.serve.dashboard import login
from trimtab.serve.dashboard.fleet_page import FleetOverview
from trimtab.serve.dashboard.templating import HERE, problem_page
from trimtab.serve.http import errors
from trimtab.serve.http.auth import Authenticator
from trimtab.serve.http.head_requests import HeadMiddleware
from trimtab.serve.http.observability import Metrics, MetricsMiddleware
from trimtab.serve.http.request_limits import Limits, LimitsMiddleware
from trimtab.serve.settings import Settings
from trimtab.store.pool import Pool
from trimtab.types import Document

DESCRIPTION = (
    "Tune running systems over HTTP: ask for a setting, tell the value. Values are on disk before the 200 is sent."
)

# Batches written concurrently, and their size. Tells that come one by one are written by one task: two would halve
# the batches and cost more. For requests with many tells, the next batch is prepared while one waits for the disk.
SINGLE_TELLS = {"writers": 1, "max_size": 100}
BATCH_TELLS = {"writers": 2, "max_size": 1000, "spare": 1}


def create(settings: Settings | None = None) -> FastAPI:
    """Create the application of one worker; settings default to those in the environment."""
    settings = settings or Settings.from_environment()
    limits, metrics = Limits(settings), Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pool = await asyncio.to_thread(Pool, settings.store, settings.connections, patient=True)
        anyio.to_thread.current_default_thread_limiter().total_tokens = 4 * settings.connections
        app.state.studies = studies = StudyCache(pool, settings.cache)
        app.state.authenticator, app.state.poller, app.state.overview = (
            Authenticator(pool),
            ChangePoller(pool),
            FleetOverview(pool),
        )
        app.state.single_tells = WriteQueue(studies, **SINGLE_TELLS)
        app.state.batch_tells = WriteQueue(studies, **BATCH_TELLS)
        waiting = asyncio.create_task(health.await_store(studies))
        try:
            yield
        finally:
            waiting.cancel()
            await asyncio.to_thread(pool.close)

    app = FastAPI(
        title="trimtab", version=__version__, description=DESCRIPTION, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.state.settings, app.state.limits, app.state.metrics = settings, limits, metrics
    for routes in (trials, studies, actions, events, health, login):  # the busiest first
        app.include_router(routes.router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    errors.install(app, problem_page)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(LimitsMiddleware, limits=limits, settings=settings)
    app.add_middleware(MetricsMiddleware, metrics=metrics, settings=settings)
    return app


def openapi() -> Document:
    """Return the OpenAPI document, as in docs/openapi.json."""
    return create(Settings()).openapi()


if __name__ == "__main__":
    print(json.dumps(openapi(), indent=1))
