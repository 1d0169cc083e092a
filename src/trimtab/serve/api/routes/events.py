"""Events of studies, as JSON or as server-sent events; one stream can cover many studies.

A cursor lists the row id and last sequence number of each study, as in "3:120,7:15". It is the id of every event sent,
so a stream resumes where it stopped, with any worker, without gaps or repetitions.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api.change_polling import ChangePoller
from trimtab.serve.api.deps import RESPONSES, Reads, studies_of
from trimtab.serve.api.json_views import event_json, summary_json
from trimtab.serve.api.models import EventList
from trimtab.serve.api.studies_cache import StudyCache
from trimtab.serve.http.auth import Caller
from trimtab.serve.http.errors import ApiError
from trimtab.serve.http.request_limits import EVENTS
from trimtab.store.errors import Damaged, StoreError, Unavailable
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document, Json

router = APIRouter(prefix="/v1", tags=["events"], responses=RESPONSES)
MAX_STUDIES = 200  # per stream
MAX_EVENTS = 1000  # per response
HEARTBEAT = 15.0  # seconds between comments that keep an idle stream open
TOKEN_CHECK = 1.0  # seconds between checks of a stream's token


class RequestedStudy(NamedTuple):
    """A requested study, with its state when the request began."""

    name: str
    uid: str
    seq: int


StudiesById = dict[int, RequestedStudy]
"""Row id → study."""
Cursor = dict[int, int]
"""Row id → sequence number of the last event seen."""

Names = Annotated[
    list[str],
    Query(description=f"Names of studies (default: all, if there are at most {MAX_STUDIES}).", max_length=MAX_STUDIES),
]
After = Annotated[
    str | None,
    Query(
        description="`next` of the previous response; for a single study, also a sequence number.", max_length=10_000
    ),
]


@router.get(
    "/events",
    response_model=EventList,
    response_model_exclude_unset=True,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Events, or a stream of them"}},
)
async def events(
    request: Request,
    caller: Reads,
    study: Names = [],  # noqa: B006
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=MAX_EVENTS)] = MAX_EVENTS,
    last_event_id: Annotated[str | None, Header(max_length=10_000)] = None,
) -> Json:
    """List events, oldest first. With `Accept: text/event-stream`, also stream new ones."""
    studies = studies_of(request)
    names = await run_in_threadpool(_find_studies, studies, caller, study)
    if EVENTS in request.headers.get("accept", ""):
        end = {id: requested.seq for id, requested in names.items()}
        cursor = _parse_cursor(last_event_id or after, names) if last_event_id or after else end
        stream = _stream(request, studies, request.app.state.poller, names, cursor)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
    cursor = _parse_cursor(after, names)
    found = await run_in_threadpool(_events_after, studies, names, cursor, limit)
    return {"events": [event for _, event in found], "next": _format_cursor(cursor)}


async def _stream(
    request: Request, studies: StudyCache, poller: ChangePoller, names: StudiesById, cursor: Cursor
) -> AsyncIterator[str]:
    """Stream events as they occur, each study's status after them and whenever it changes otherwise."""
    with poller.subscribe(set(names)) as changes:
        yield f"retry: 1000\nid: {_format_cursor(cursor)}\n\n"
        heartbeat = time.monotonic() + HEARTBEAT
        while not await request.is_disconnected():
            changed = await changes.next(TOKEN_CHECK)
            if not await _may_stay(request):
                return
            if not changed and time.monotonic() >= heartbeat:
                heartbeat = time.monotonic() + HEARTBEAT
                yield ": alive\n\n"
            if not changed:
                continue
            while found := await run_in_threadpool(
                _events_after, studies, {id: names[id] for id in changed}, cursor, MAX_EVENTS
            ):
                for at, event in found:
                    yield f"id: {at}\nevent: event\ndata: {json.dumps(event)}\n\n"
            for document in await run_in_threadpool(_statuses, studies, [names[id].name for id in changed]):
                yield f"event: status\ndata: {json.dumps(document)}\n\n"


async def _may_stay(request: Request) -> bool:
    """Return whether the caller's token is still valid."""
    try:
        await request.app.state.authenticator.caller(request)
    except ApiError:
        return False
    except StoreError as error:
        return isinstance(error, Unavailable)  # the store is unavailable: streams wait
    return True


def _find_studies(studies: StudyCache, caller: Caller, names: list[str]) -> StudiesById:
    """Find the requested studies; by default all that the caller may read."""
    if caller.study is not None:
        names = names or [caller.study]
    if any(not caller.may("read", name) for name in names):
        raise ApiError(403, "forbidden", f"this token is valid only for study {caller.study}")
    with studies.pool.store() as store:
        rows = store.numbers(names, MAX_STUDIES + 1)
    if missing := set(names) - {name for _, _, name, _ in rows}:
        raise ApiError(404, "no-study", f"there is no study {sorted(missing)[0]!r}")
    if len(rows) > MAX_STUDIES:
        raise ApiError(
            422, "too-many", f"there are more than {MAX_STUDIES} studies: name those you want: study=a&study=b"
        )
    return {id: RequestedStudy(name, uid, seq) for id, uid, name, seq in rows}


def _events_after(studies: StudyCache, names: StudiesById, cursor: Cursor, limit: int) -> list[tuple[str, Document]]:
    """Read events after the cursor and advance it; each event comes with the cursor after it."""
    found: list[tuple[str, Document]] = []
    with studies.pool.store() as store:
        for id, (name, uid, _) in names.items():
            if len(found) >= limit:
                break
            try:
                study = UnlockedStudy(store, studies.get(store, name))
                told = store.some_events(study.saved, cursor.get(id, -1), limit - len(found))
            except ApiError:
                continue  # erased meanwhile
            except Damaged:
                if len(names) == 1:
                    raise
                continue  # reported when the study is requested by itself
            if study.uid != uid:
                continue  # replaced by a new study of the same name
            for event in told:
                cursor[id] = event.seq
                found.append((_format_cursor(cursor), event_json(study, event)))
    return found


def _statuses(studies: StudyCache, names: list[str]) -> list[Document]:
    with studies.pool.store() as store:
        return [summary_json(saved) for saved in store.some(names).values() if not isinstance(saved, Damaged)]


def _format_cursor(cursor: Cursor) -> str:
    return ",".join(f"{id}:{seq}" for id, seq in cursor.items())


def _parse_cursor(text: str | None, names: StudiesById) -> Cursor:
    """Parse a cursor; positions beyond a study's last event are moved back to it, so that no later event is missed."""
    if text is None or text == "":
        return {}
    if len(names) == 1 and re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        text = f"{next(iter(names))}:{text}"
    if not re.fullmatch(r"(\d{1,9}:-?\d{1,18})(,\d{1,9}:-?\d{1,18})*", text, re.ASCII):
        raise ApiError(422, "invalid", "after is not a valid cursor: send `next`, or the id of the last event")
    pairs = (part.split(":") for part in text.split(","))
    return {id: min(seq, names[id].seq) for id, seq in ((int(a), int(b)) for a, b in pairs) if id in names}
