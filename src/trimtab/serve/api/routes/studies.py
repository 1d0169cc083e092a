"""Studies: make, read, list, archive."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api.ask_tell import words
from trimtab.serve.api.deps import (
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
from trimtab.serve.api.json_views import OF_COMMANDS, at_a_glance, correctable, whole
from trimtab.serve.api.models import CorrectionIn, CorrectionOut, StudyIn, StudyList, StudyOut, StudyWhole
from trimtab.serve.api.studies_cache import TRIES, StudyCache, busy, stale
from trimtab.serve.http.errors import ApiError
from trimtab.spec.constraints import Limits
from trimtab.spec.guard import Guard
from trimtab.spec.knob_encoding import Knobs
from trimtab.store.errors import Damaged, Taken
from trimtab.store.shared_store import SharedStore
from trimtab.store.study_filter import ATTENTION, StudyFilter
from trimtab.store.tables import StudyRow
from trimtab.study import create
from trimtab.study.unlocked import UnlockedStudy
from trimtab.tune.config import Config
from trimtab.types import Document, Json
from trimtab.util.checksums import canonical

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

    def act(study: UnlockedStudy) -> Document:
        if study.saved.archived is not None:
            raise ApiError(410, "archived", f"study {name!r} is archived: restore it first")
        if idle := sorted(set(OF_COMMANDS) & set(body.changes) - set(correctable(study))):
            why = f"{idle[0]} applies to `trimtab tune`, but a study made over HTTP runs no command: leave it out"
            raise ApiError(422, "invalid", why)
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
        str | None, Query(description=f"Only studies that need any of {ATTENTION}, by commas.", max_length=100)
    ] = None,
    search: Annotated[str | None, Query(description="Text that the name contains.", max_length=64)] = None,
    archived: bool = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the previous page.", pattern=NAME)] = None,
) -> Json:
    """Studies by name, a page at a time."""
    wanted = set() if attention is None else set(filter(None, attention.split(",")))
    if not wanted <= set(ATTENTION):
        raise ApiError(422, "invalid", f"attention={attention} is unknown: choose from {', '.join(ATTENTION)}")
    these = StudyFilter(search or "", wanted, caller.study, archived)
    found = await run_in_threadpool(_page, fleet(request), these, limit + 1, after or "")
    page = dict(list(found.items())[:limit])
    return {
        "studies": [at_a_glance(saved) for saved in page.values() if not isinstance(saved, Damaged)],
        "damaged": [{"name": n, "detail": str(saved)} for n, saved in page.items() if isinstance(saved, Damaged)],
        "next": list(page)[-1] if len(found) > limit else None,
    }


@router.delete("/studies/{name}", response_model=StudyOut | None)
async def archive(
    name: StudyName,
    request: Request,
    caller: Administers,
    forever: Annotated[bool, Query(description="Erase the study with its whole history.")] = False,
    why: Annotated[str, Query(max_length=400)] = "",
    if_match: IfMatch = None,
) -> Json:
    """Put a study aside: it can be looked at, and taken out again with `:restore`. With `forever`, erase it."""
    seq = expected(if_match)
    if forever:
        return await run_in_threadpool(_erase, fleet(request), name, seq)
    return await run_in_threadpool(_archive, fleet(request), name, words(caller.who, why), seq)


def _make(studies: StudyCache, name: str, body: StudyIn) -> tuple[bool, Document]:
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
        create.create(
            *(store, name, config.knobs, method, config.goal == "maximise", config.seed),
            *(config.settings, config.baseline, limits, {"asked": asked}, asked.get("max_pending", 1)),
        )
    except Taken:
        return False  # somebody else made one of that name just now
    return True


def _compared(study: UnlockedStudy, asked: Document) -> Document:
    there = study.saved.setup.get("asked")
    if there is None or canonical(there) != canonical(asked):
        what = "another definition" if there is None else f"another definition: {_difference(there, asked)}"
        why = f"study {study.name!r} already exists with {what}; send the same, or another name"
        raise ApiError(409, "another", why)
    return whole(study)


def _difference(there: Json, asked: Json, where: str = "") -> str:
    """The first thing in which two bodies differ."""
    if isinstance(there, dict) and isinstance(asked, dict):
        pairs = [(key, there.get(key), asked.get(key)) for key in (there | asked)]
    elif isinstance(there, list) and isinstance(asked, list) and len(there) == len(asked):
        pairs = [(n, *pair) for n, pair in enumerate(zip(there, asked, strict=True))]
    else:
        was, now = (f"{text[:60]}…" if len(text) > 60 else text for text in map(canonical, (there, asked)))
        return f"{where} was {was}, and now is {now}"
    return next(_difference(a, b, f"{where}/{key}".strip("/")) for key, a, b in pairs if canonical(a) != canonical(b))


def _page(studies: StudyCache, wanted: StudyFilter, limit: int, after: str) -> dict[str, StudyRow | Damaged]:
    with studies.pool.store() as store:
        return store.page(after, limit, wanted)


def _archive(studies: StudyCache, name: str, why: str, seq: int | None) -> Document:
    def put_aside(study: UnlockedStudy) -> Document:
        if study.saved.holder is not None and not study.released():
            raise _held(name, study.saved.holder)
        if study.saved.archived is None:
            study.note("archive", why)
            study.archive(time.time())
        return at_a_glance(study.saved)

    return studies.change(name, put_aside, expected=seq)


def _erase(studies: StudyCache, name: str, seq: int | None) -> None:
    """By its row alone: a study that is damaged can be erased, too."""
    with studies.pool.store() as store:
        for _ in range(TRIES):
            found = store.numbers([name], 1)
            if not found:
                raise ApiError(404, "no-study", f"there is no study {name!r}")
            id, uid, _, now = found[0]
            if seq not in (None, now):
                raise stale(name, now, seq)
            if (holder := store.holder(name)) is not None:
                raise _held(name, holder)
            if store.erase(id, uid, now):
                studies.forget(name)
                return
    raise busy(name)


def _held(name: str, holder: str) -> ApiError:
    return ApiError(409, "held", f"study {name!r} is in use by {holder}: stop that first")
