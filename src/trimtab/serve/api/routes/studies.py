"""Studies: create, read, list, change, archive."""

from __future__ import annotations

import threading
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from trimtab.context import Context, contexts_of
from trimtab.serve.api.ask_tell import attributed
from trimtab.serve.api.deps import (
    NAME,
    RESPONSES,
    Administers,
    IfMatch,
    Operates,
    Reads,
    StudyName,
    etag,
    read_study,
    seq_of,
    studies_of,
)
from trimtab.serve.api.json_views import COMMAND_FIELDS, changeable_fields, details_json, summary_json
from trimtab.serve.api.models import (
    CorrectionIn,
    CorrectionOut,
    ExplanationOut,
    StudyDetails,
    StudyIn,
    StudyList,
    StudyOut,
)
from trimtab.serve.api.studies_cache import MAX_ATTEMPTS, StudyCache, busy, stale
from trimtab.serve.http.errors import ApiError
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

EXPLAINING = threading.Lock()  # one explanation at a time: it replays up to 2000 events
router = APIRouter(prefix="/v1", tags=["studies"], responses=RESPONSES)


@router.put(
    "/studies/{name}",
    response_model=StudyDetails,
    response_model_exclude_unset=True,
    status_code=201,
    responses={200: {"model": StudyDetails}},
)
async def create_study(name: StudyName, body: StudyIn, response: Response, request: Request, _: Operates) -> Json:
    """Create a study. Repeating the same body gives 200, a different one 409."""
    made, document = await run_in_threadpool(_make, studies_of(request), name, body)
    response.status_code = 201 if made else 200
    response.headers["ETag"] = etag(document["seq"])
    return document


@router.get("/studies/{name}", response_model=StudyDetails, response_model_exclude_unset=True)
async def get_study(name: StudyName, response: Response, request: Request, _: Reads) -> Json:
    """Read a study; its ETag is the sequence number of its last event."""
    document = await read_study(request, name, details_json)
    response.headers["ETag"] = etag(document["seq"])
    return document


@router.get("/studies/{name}/explanation", response_model=ExplanationOut)
async def explain_study(
    name: StudyName,
    request: Request,
    _: Reads,
    round: Annotated[int | None, Query(description="As it was before this round.", ge=0, lt=2**62)] = None,
) -> Json:
    """Explain a study: which knobs matter, where the optimum is thought to be, why it moved."""
    return await run_in_threadpool(_explain, studies_of(request), name, round)


@router.patch("/studies/{name}", response_model=CorrectionOut, responses={202: {"model": CorrectionOut}})
async def change_settings(
    name: StudyName,
    body: CorrectionIn,
    response: Response,
    request: Request,
    caller: Operates,
    if_match: IfMatch = None,
) -> Json:
    """Change settings, all or none; what was learnt is kept. 202: passed on to the process that holds the study."""

    def act(study: UnlockedStudy) -> Document:
        if study.saved.archived is not None:
            raise ApiError(410, "archived", f"study {name!r} is archived: restore it first")
        if idle := sorted(set(COMMAND_FIELDS) & set(body.changes) - set(changeable_fields(study))):
            why = f"{idle[0]} applies to `trimtab tune`, but a study made over HTTP runs no command: leave it out"
            raise ApiError(422, "invalid", why)
        changed = study.set(body.changes, who=caller.who, why=body.why)
        return {"seq": study.seq, "changed": changed, "pending": bool(changed) and study.move is None}

    document = await run_in_threadpool(lambda: studies_of(request).change(name, act, expected=seq_of(if_match)))
    response.status_code = 202 if document["pending"] else 200
    response.headers["ETag"] = etag(document["seq"])
    return document


@router.get("/studies", response_model=StudyList)
async def list_studies(
    request: Request,
    caller: Reads,
    attention: Annotated[
        str | None,
        Query(
            description=f"Only studies that need one of these, separated by commas: {', '.join(ATTENTION)}.",
            max_length=100,
        ),
    ] = None,
    search: Annotated[
        str | None, Query(description="Only studies whose name contains this text.", max_length=64)
    ] = None,
    archived: bool = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the previous page.", pattern=NAME)] = None,
) -> Json:
    """List studies by name, one page at a time."""
    needs = set() if attention is None else set(filter(None, attention.split(",")))
    if not needs <= set(ATTENTION):
        raise ApiError(422, "invalid", f"attention={attention} is unknown: choose from {', '.join(ATTENTION)}")
    wanted = StudyFilter(search or "", needs, caller.study, archived)
    found = await run_in_threadpool(_page, studies_of(request), wanted, limit + 1, after or "")
    page = dict(list(found.items())[:limit])
    return {
        "studies": [summary_json(saved) for saved in page.values() if not isinstance(saved, Damaged)],
        "damaged": [{"name": n, "detail": str(saved)} for n, saved in page.items() if isinstance(saved, Damaged)],
        "next": list(page)[-1] if len(found) > limit else None,
    }


@router.delete("/studies/{name}", response_model=StudyOut | None)
async def archive_study(
    name: StudyName,
    request: Request,
    caller: Administers,
    forever: Annotated[bool, Query(description="Erase the study and its history.")] = False,
    why: Annotated[str, Query(max_length=400)] = "",
    if_match: IfMatch = None,
) -> Json:
    """Archive a study: it becomes read-only until `:restore`. With `forever`, erase it."""
    seq = seq_of(if_match)
    if forever:
        return await run_in_threadpool(_erase, studies_of(request), name, seq)
    return await run_in_threadpool(_archive, studies_of(request), name, attributed(caller.who, why), seq)


def _explain(studies: StudyCache, name: str, round: int | None) -> Document:
    if not EXPLAINING.acquire(blocking=False):
        raise ApiError(503, "busy", "another study is being explained: retry", {"Retry-After": "1"})
    try:
        return studies.read(name, lambda study: study.explain(round).to_dict())
    finally:
        EXPLAINING.release()


def _make(studies: StudyCache, name: str, body: StudyIn) -> tuple[bool, Document]:
    asked, made = body.model_dump(exclude_none=True), False
    with studies.pool.store() as store:
        if store.marks_of(name) is None:
            made = _create(store, name, asked)
    document: Document = studies.read(name, lambda study: _details_if_same(study, asked))
    return made, document


def _create(store: SharedStore, name: str, asked: Document) -> bool:
    """Create a study from a request body; errors are worded as for a study.toml."""
    knobs, guard = Knobs.of(asked["knobs"]), Guard(**asked["guard"])
    given = {field: value for field, value in asked.items() if field not in ("max_pending", "context")}
    declared = contexts_of(Context(**each) if isinstance(each, dict) else each for each in asked.get("context", ()))
    if declared and given["method"] == "auto":
        given["method"] = "belief"  # the only method that takes a context
    config = Config(name=name, command=["over HTTP"], **{**given, "knobs": knobs, "guard": guard})
    method, limits = config.build_method(), config.limited
    try:
        create.create(
            *(store, name, config.knobs, method, config.goal == "maximise", config.seed),
            *(config.settings, config.baseline, limits, {"asked": asked}, asked.get("max_pending", 1)),
            contexts=declared,
        )
    except Taken:
        return False  # another request has just created it
    return True


def _details_if_same(study: UnlockedStudy, asked: Document) -> Document:
    stored = study.saved.setup.get("asked")
    if stored is None or canonical(stored) != canonical(asked):
        what = "another definition" if stored is None else f"another definition: {_difference(stored, asked)}"
        why = f"study {study.name!r} already exists with {what}; send the same, or another name"
        raise ApiError(409, "another", why)
    return details_json(study)


def _difference(stored: Json, asked: Json, where: str = "") -> str:
    """Describe the first difference between two bodies."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        pairs = [(key, stored.get(key), asked.get(key)) for key in (stored | asked)]
    elif isinstance(stored, list) and isinstance(asked, list) and len(stored) == len(asked):
        pairs = [(n, *pair) for n, pair in enumerate(zip(stored, asked, strict=True))]
    else:
        was, now = (f"{text[:60]}…" if len(text) > 60 else text for text in map(canonical, (stored, asked)))
        return f"{where} was {was}, and now is {now}"
    return next(_difference(a, b, f"{where}/{key}".strip("/")) for key, a, b in pairs if canonical(a) != canonical(b))


def _page(studies: StudyCache, wanted: StudyFilter, limit: int, after: str) -> dict[str, StudyRow | Damaged]:
    with studies.pool.store() as store:
        return store.page(after, limit, wanted)


def _archive(studies: StudyCache, name: str, why: str, seq: int | None) -> Document:
    def act(study: UnlockedStudy) -> Document:
        if study.saved.holder is not None and not study.released():
            raise _held(name, study.saved.holder)
        if study.saved.archived is None:
            study.note("archive", why)
            study.archive(time.time())
        return summary_json(study.saved)

    return studies.change(name, act, expected=seq)


def _erase(studies: StudyCache, name: str, seq: int | None) -> None:
    """Erase a study by its row alone, so that a damaged one can be erased, too."""
    with studies.pool.store() as store:
        for _ in range(MAX_ATTEMPTS):
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
    return ApiError(409, "held", f"study {name!r} is in use by {holder}: stop that process first")
