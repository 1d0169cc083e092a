"""Studies: make, read, list, archive."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from trimtab.live import beginning
from trimtab.live.attention import ATTENTION, Wanted
from trimtab.live.checksums import canonical
from trimtab.live.config import Config
from trimtab.live.errors import Taken
from trimtab.live.guard import Guard
from trimtab.live.knobs import Knobs
from trimtab.live.limits import Limits
from trimtab.live.row import RowStudy
from trimtab.live.shared import SharedStore
from trimtab.serve.fleet import Fleet
from trimtab.serve.models import CorrectionIn, CorrectionOut, StudyIn, StudyList, StudyOut, StudyWhole
from trimtab.serve.problems import Problem
from trimtab.serve.rounds import words
from trimtab.serve.showing import at_a_glance, whole
from trimtab.serve.wiring import (
    ANSWERS,
    NAME,
    Administers,
    IfMatch,
    Operates,
    Reads,
    StudyName,
    etag,
    expected,
    fleet,
    look,
)
from trimtab.types import Document, Json

router = APIRouter(prefix="/v1", tags=["studies"], responses=ANSWERS)


@router.put("/studies/{name}", response_model=StudyWhole, status_code=201, responses={200: {"model": StudyWhole}})
async def make(name: StudyName, body: StudyIn, response: Response, request: Request, _: Operates) -> Json:
    """Make a study. The same body again: 200; another body: 409."""
    made, document = await run_in_threadpool(_make, fleet(request), name, body)
    response.status_code = 201 if made else 200
    response.headers["ETag"] = etag(document["seq"])
    return document


@router.get("/studies/{name}", response_model=StudyWhole)
async def read(name: StudyName, response: Response, request: Request, _: Reads) -> Json:
    """A study as it is now; its ETag is the number of the last event."""
    document = await look(request, name, whole)
    response.headers["ETag"] = etag(document["seq"])
    return document


@router.patch("/studies/{name}", response_model=CorrectionOut, responses={202: {"model": CorrectionOut}})
async def correct(
    name: StudyName,
    body: CorrectionIn,
    response: Response,
    request: Request,
    caller: Operates,
    if_match: IfMatch = None,
) -> Json:
    """Correct what may change, all or nothing; what was learnt is kept. 202: the process that holds it was asked to."""

    def act(study: RowStudy) -> Document:
        if study.saved.archived is not None:
            raise Problem(410, "archived", f"study {name!r} is archived: restore it first")
        changed = study.set(body.changes, who=caller.who, why=body.why)
        return {"seq": study.seq, "changed": changed, "pending": bool(changed) and study.move is None}

    document = await run_in_threadpool(lambda: fleet(request).change(name, act, expected=expected(if_match)))
    response.status_code = 202 if document["pending"] else 200
    response.headers["ETag"] = etag(document["seq"])
    return document


@router.get("/studies", response_model=StudyList)
async def listed(
    request: Request,
    caller: Reads,
    attention: Annotated[
        str | None, Query(description=f"Only those that need it: any of {ATTENTION}, by commas.", max_length=100)
    ] = None,
    search: Annotated[str | None, Query(description="Part of the name.", max_length=64)] = None,
    archived: bool = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the page before.", pattern=NAME)] = None,
) -> Json:
    """Studies by name, a page at a time."""
    wanted = set() if attention is None else set(filter(None, attention.split(",")))
    if not wanted <= set(ATTENTION):
        raise Problem(422, "invalid", f"attention={attention} is unknown: choose from {', '.join(ATTENTION)}")
    these = Wanted(search or "", wanted, caller.study, archived)
    found = await run_in_threadpool(_page, fleet(request), these, limit + 1, after or "")
    more = len(found) > limit
    page = found[:limit]
    return {"studies": page, "next": page[-1]["name"] if more else None}


@router.delete("/studies/{name}", response_model=StudyOut | None)
async def archive(
    name: StudyName,
    request: Request,
    caller: Administers,
    forever: Annotated[bool, Query(description="Erase it with its whole history.")] = False,
    why: Annotated[str, Query(max_length=400)] = "",
) -> Json:
    """Put a study aside: it can be looked at, and taken out again with `:restore`. With `forever`, erase it."""
    return await run_in_threadpool(_archive, fleet(request), name, caller.who, why, forever)


def _make(studies: Fleet, name: str, body: StudyIn) -> tuple[bool, Document]:
    asked, made = body.model_dump(exclude_none=True), False
    with studies.pool.store() as store:
        if store.glance(name) is None:
            made = _create(store, name, asked)
    document: Document = studies.look(name, lambda study: _compared(study, asked))
    return made, document


def _create(store: SharedStore, name: str, asked: Document) -> bool:
    """The study of a body; what is wrong with it is said as for a study.toml."""
    knobs, guard = Knobs.of(asked["knobs"]), Guard(**asked["guard"])
    given = {field: value for field, value in asked.items() if field != "max_pending"}
    config = Config(name=name, command=["over HTTP"], **{**given, "knobs": knobs, "guard": guard})
    method, limits = config.build_method(), Limits.of(config.limits)
    try:
        beginning.create(
            *(store, name, knobs, method, config.goal == "maximise", config.seed),
            *(config.settings, config.baseline, limits, {"asked": asked}, asked.get("max_pending", 1)),
        )
    except Taken:
        return False  # somebody else made one of that name just now
    return True


def _compared(study: RowStudy, asked: Document) -> Document:
    there = study.saved.setup.get("asked")
    if there is None or canonical(there) != canonical(asked):
        raise Problem(409, "another", f"study {study.name!r} is there already, and was made of something else")
    return whole(study)


def _page(studies: Fleet, wanted: Wanted, limit: int, after: str) -> list[Document]:
    with studies.pool.store() as store:
        return [at_a_glance(saved) for saved in store.page(after, limit, wanted)]


def _archive(studies: Fleet, name: str, who: str, why: str, forever: bool) -> Document | None:
    def put_aside(study: RowStudy) -> None:
        if study.saved.holder is not None and not study.released():
            raise Problem(409, "held", f"study {name!r} is held by {study.saved.holder}: end that first")
        if study.saved.archived is None and not forever:
            study.note("archive", words(who, why))

    studies.change(name, put_aside)
    with studies.pool.store() as store:
        saved = studies.known(store, name).saved
        if forever:
            store.erase(saved)
            studies.forget(name)
            return None
        if saved.archived is None:
            store.archive(saved, time.time())
        return at_a_glance(studies.known(store, name).saved)
