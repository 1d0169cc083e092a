"""The application: routes, and what stands around them."""

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
from trimtab.serve.dashboard.fleet_page import Overview
from trimtab.serve.dashboard.templating import HERE, problem_page
from trimtab.serve.http import errors
from trimtab.serve.http.auth import Authenticator
from trimtab.serve.http.head_requests import HeadMiddleware
from trimtab.serve.http.observability import Figures, MetricsMiddleware
from trimtab.serve.http.request_limits import Limits, LimitsMiddleware
from trimtab.serve.settings import Settings
from trimtab.store.pool import Pool
from trimtab.types import Document

ABOUT = "Tune running systems over HTTP: ask for a setting, tell the value. Every value is on disk before 200."

# How many lots of results are stored at once, and how large they may be. Of those that come one by one, two lots at
# once would be smaller, and cost more; where many come at once, the next goes on while a lot waits for the disk.
SINGLE, MANY = {"at_once": 1, "most": 100}, {"at_once": 2, "most": 1000, "spare": 1}


def create(settings: Settings | None = None) -> FastAPI:
    """An application for one worker; without settings, with those of the environment."""
    settings = settings or Settings.from_environment()
    limits, figures = Limits(settings), Figures()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        pool = await asyncio.to_thread(Pool, settings.store, settings.connections, patient=True)
        anyio.to_thread.current_default_thread_limiter().total_tokens = 4 * settings.connections
        app.state.fleet, app.state.door, app.state.watch = (
            StudyCache(pool, settings.cache),
            Authenticator(pool),
            ChangePoller(pool),
        )
        app.state.overview, app.state.single = Overview(pool), WriteQueue(app.state.fleet, **SINGLE)
        app.state.many = WriteQueue(app.state.fleet, **MANY)
        waiting = asyncio.create_task(health.await_store(app.state.fleet))
        try:
            yield
        finally:
            waiting.cancel()
            await asyncio.to_thread(pool.close)

    app = FastAPI(title="trimtab", version=__version__, description=ABOUT, lifespan=life, docs_url=None, redoc_url=None)
    app.state.settings, app.state.limits, app.state.figures = settings, limits, figures
    for routes in (trials, studies, actions, events, health, login):  # most requests are for the first
        app.include_router(routes.router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    errors.install(app, problem_page)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(LimitsMiddleware, limits=limits, settings=settings)
    app.add_middleware(MetricsMiddleware, figures=figures, settings=settings)
    return app


def openapi() -> Document:
    """The description of the API, as docs/openapi.json has it."""
    return create(Settings()).openapi()


if __name__ == "__main__":
    print(json.dumps(openapi(), indent=1))
