"""What a person does with a study: approve, reject, hold, resume, undo, reset, restore; who and why are recorded."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api import ask_tell
from trimtab.serve.api.deps import ANSWERS, Administers, IfMatch, Operates, StudyName, etag, expected, fleet
from trimtab.serve.api.json_views import at_a_glance
from trimtab.serve.api.models import ActionIn, DecisionIn, StudyOut, UndoIn
from trimtab.serve.api.studies_cache import StudyCache, stale
from trimtab.serve.http.errors import ApiError
from trimtab.store import approvals
from trimtab.study.changes.pause import paused
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document, Json

router = APIRouter(prefix="/v1", tags=["actions"], responses=ANSWERS)


@router.post("/studies/{name}:approve", response_model=StudyOut)
async def approve(
    name: StudyName, body: DecisionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Let what is proposed be set; the first word counts."""
    return await _decide(request, response, name, True, body, caller.who, if_match)


@router.post("/studies/{name}:reject", response_model=StudyOut)
async def reject(
    name: StudyName, body: DecisionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Skip what is proposed."""
    return await _decide(request, response, name, False, body, caller.who, if_match)


@router.post("/studies/{name}:hold", response_model=StudyOut)
async def hold(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Set nothing new until it is resumed; the value of what is set already is still taken."""
    return await run_in_threadpool(_pause, fleet(request), response, name, caller.who, body.why, expected(if_match))


@router.post("/studies/{name}:resume", response_model=StudyOut)
async def resume(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Go on."""
    return await run_in_threadpool(_resume, fleet(request), response, name, caller.who, body.why, expected(if_match))


@router.post("/studies/{name}:undo", response_model=StudyOut)
async def undo(
    name: StudyName, body: UndoIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Back to the state in which a round was the next one; itself to be undone."""

    def act(study: UnlockedStudy) -> None:
        study.undo(body.round)
        study.sign(caller.who, body.why)

    return await _change(request, response, name, act, if_match)


@router.post("/studies/{name}:reset", response_model=StudyOut)
async def reset(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Back to where the system was at first, with nothing learnt."""

    def act(study: UnlockedStudy) -> None:
        study.reset()
        study.sign(caller.who, body.why)

    return await _change(request, response, name, act, if_match)


@router.post("/studies/{name}:restore", response_model=StudyOut)
async def restore(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Administers, if_match: IfMatch = None
) -> Json:
    """Take an archived study out again."""
    return await run_in_threadpool(_restore, fleet(request), response, name, caller.who, body.why, expected(if_match))


async def _change(
    request: Request, response: Response, name: str, act: Callable[[UnlockedStudy], None], if_match: str | None
) -> Json:
    """Something that a process which holds the study would have to do itself."""

    def free(study: UnlockedStudy) -> UnlockedStudy:
        _there(study)
        if study.saved.holder is not None and not study.released():
            raise ApiError(409, "held", f"study {name!r} is in use by {study.saved.holder}: stop that first")
        act(study)
        return study

    study = await run_in_threadpool(lambda: fleet(request).change(name, free, expected=expected(if_match)))
    return _shown(study, response)


async def _decide(
    request: Request, response: Response, name: str, yes: bool, body: DecisionIn, who: str, if_match: str | None
) -> Json:
    def decide() -> UnlockedStudy:
        with fleet(request).pool.store() as store:
            study = UnlockedStudy(store, fleet(request).known(store, name))
            wanted = expected(if_match)
            if wanted not in (None, study.seq):
                raise stale(name, study.seq, wanted)
            try:
                approvals.decide(store, name, yes, body.round, who=who, why=body.why or None)
            except ValueError as error:
                raise ApiError(409, "nothing-to-decide", str(error)) from None
            return UnlockedStudy(store, fleet(request).known(store, name))

    return _shown(await run_in_threadpool(decide), response)


def _pause(studies: StudyCache, response: Response, name: str, who: str, why: str, seq: int | None) -> Json:
    def act(study: UnlockedStudy) -> UnlockedStudy:
        _there(study)
        if study.saved.holder is not None and not study.released():
            study.pause_row(paused(who, why))  # the process that holds it sees that, and records it
        else:
            ask_tell.pause(study, who, why)
        return study

    return _shown(studies.change(name, act, expected=seq), response)


def _resume(studies: StudyCache, response: Response, name: str, who: str, why: str, seq: int | None) -> Json:
    def act(study: UnlockedStudy) -> UnlockedStudy:
        _there(study)
        if study.saved.paused is None:
            raise ApiError(409, "not-held", f"study {name!r} is not paused: there is nothing to resume")
        if study.saved.holder is None or study.released():
            study.note("resume", ask_tell.words(who, why))
        study.pause_row(None)
        return study

    return _shown(studies.change(name, act, expected=seq), response)


def _restore(studies: StudyCache, response: Response, name: str, who: str, why: str, seq: int | None) -> Json:
    def act(study: UnlockedStudy) -> UnlockedStudy:
        if study.saved.archived is None:
            raise ApiError(409, "not-archived", f"study {name!r} is not archived")
        study.archive(None)
        study.note("restore", ask_tell.words(who, why))
        return study

    return _shown(studies.change(name, act, expected=seq), response)


def _there(study: UnlockedStudy) -> None:
    if study.saved.archived is not None:
        raise ApiError(410, "archived", f"study {study.name!r} is archived: restore it first")


def _shown(study: UnlockedStudy, response: Response) -> Document:
    response.headers["ETag"] = etag(study.seq)
    return at_a_glance(study.saved)
