"""Actions on a study: approve, reject, hold, resume, undo, reset, restore; author and reason are recorded."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api import ask_tell
from trimtab.serve.api.deps import RESPONSES, Administers, IfMatch, Operates, StudyName, etag, seq_of, studies_of
from trimtab.serve.api.json_views import summary_json
from trimtab.serve.api.models import ActionIn, DecisionIn, StudyOut, UndoIn
from trimtab.serve.api.studies_cache import StudyCache, stale
from trimtab.serve.http.errors import ApiError
from trimtab.store import approvals
from trimtab.study.changes.pause import paused
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document, Json

router = APIRouter(prefix="/v1", tags=["actions"], responses=RESPONSES)


@router.post("/studies/{name}:approve", response_model=StudyOut)
async def approve(
    name: StudyName, body: DecisionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Approve the proposed setting; the first decision counts."""
    return await _decide(request, response, name, True, body, caller.who, if_match)


@router.post("/studies/{name}:reject", response_model=StudyOut)
async def reject(
    name: StudyName, body: DecisionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Reject the proposed setting: its round is skipped."""
    return await _decide(request, response, name, False, body, caller.who, if_match)


@router.post("/studies/{name}:hold", response_model=StudyOut)
async def hold(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Pause the study: no new trial is handed out; the value of an open trial is still accepted."""
    return await run_in_threadpool(_pause, studies_of(request), response, name, caller.who, body.why, seq_of(if_match))


@router.post("/studies/{name}:resume", response_model=StudyOut)
async def resume(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Resume a paused study."""
    return await run_in_threadpool(_resume, studies_of(request), response, name, caller.who, body.why, seq_of(if_match))


@router.post("/studies/{name}:undo", response_model=StudyOut)
async def undo(
    name: StudyName, body: UndoIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Return to the state before a round. An undo can itself be undone."""

    def act(study: UnlockedStudy) -> None:
        study.undo(body.round)
        study.sign(caller.who, body.why)

    return await _change(request, response, name, act, if_match)


@router.post("/studies/{name}:reset", response_model=StudyOut)
async def reset(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Operates, if_match: IfMatch = None
) -> Json:
    """Return to the start, and discard what was learnt. Can be undone."""

    def act(study: UnlockedStudy) -> None:
        study.reset()
        study.sign(caller.who, body.why)

    return await _change(request, response, name, act, if_match)


@router.post("/studies/{name}:restore", response_model=StudyOut)
async def restore(
    name: StudyName, body: ActionIn, request: Request, response: Response, caller: Administers, if_match: IfMatch = None
) -> Json:
    """Restore an archived study."""
    return await run_in_threadpool(
        _restore, studies_of(request), response, name, caller.who, body.why, seq_of(if_match)
    )


async def _change(
    request: Request, response: Response, name: str, act: Callable[[UnlockedStudy], None], if_match: str | None
) -> Json:
    """Apply a change, unless another process holds the study."""

    def act_if_free(study: UnlockedStudy) -> UnlockedStudy:
        _refuse_archived(study)
        if study.saved.holder is not None and not study.released():
            raise ApiError(409, "held", f"study {name!r} is in use by {study.saved.holder}: stop that process first")
        act(study)
        return study

    study = await run_in_threadpool(lambda: studies_of(request).change(name, act_if_free, expected=seq_of(if_match)))
    return _respond(study, response)


async def _decide(
    request: Request, response: Response, name: str, yes: bool, body: DecisionIn, who: str, if_match: str | None
) -> Json:
    def decide() -> UnlockedStudy:
        with studies_of(request).pool.store() as store:
            study = UnlockedStudy(store, studies_of(request).get(store, name))
            seq = seq_of(if_match)
            if seq not in (None, study.seq):
                raise stale(name, study.seq, seq)
            try:
                approvals.decide(store, name, yes, body.round, who=who, why=body.why or None)
            except ValueError as error:
                raise ApiError(409, "nothing-to-decide", str(error)) from None
            return UnlockedStudy(store, studies_of(request).get(store, name))

    return _respond(await run_in_threadpool(decide), response)


def _pause(studies: StudyCache, response: Response, name: str, who: str, why: str, seq: int | None) -> Json:
    def act(study: UnlockedStudy) -> UnlockedStudy:
        _refuse_archived(study)
        if study.saved.holder is not None and not study.released():
            study.pause_row(paused(who, why))  # the process that holds the study records the event
        else:
            ask_tell.pause(study, who, why)
        return study

    return _respond(studies.change(name, act, expected=seq), response)


def _resume(studies: StudyCache, response: Response, name: str, who: str, why: str, seq: int | None) -> Json:
    def act(study: UnlockedStudy) -> UnlockedStudy:
        _refuse_archived(study)
        if study.saved.paused is None:
            raise ApiError(409, "not-held", f"study {name!r} is not paused: there is nothing to resume")
        if study.saved.holder is None or study.released():
            study.note("resume", ask_tell.attributed(who, why))
        study.pause_row(None)
        return study

    return _respond(studies.change(name, act, expected=seq), response)


def _restore(studies: StudyCache, response: Response, name: str, who: str, why: str, seq: int | None) -> Json:
    def act(study: UnlockedStudy) -> UnlockedStudy:
        if study.saved.archived is None:
            raise ApiError(409, "not-archived", f"study {name!r} is not archived")
        study.archive(None)
        study.note("restore", ask_tell.attributed(who, why))
        return study

    return _respond(studies.change(name, act, expected=seq), response)


def _refuse_archived(study: UnlockedStudy) -> None:
    if study.saved.archived is not None:
        raise ApiError(410, "archived", f"study {study.name!r} is archived: restore it first")


def _respond(study: UnlockedStudy, response: Response) -> Document:
    response.headers["ETag"] = etag(study.seq)
    return summary_json(study.saved)
