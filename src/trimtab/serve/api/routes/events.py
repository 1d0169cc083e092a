"""Events: as JSON, and as server-sent events; one stream for all studies of a page.

A place in the history of several studies is a list of their numbers and sequences, "3:120,7:15": it is the id of each
sent event, so that a stream goes on where it was, with whichever worker, and nothing is sent twice or left out.
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
from trimtab.serve.api.deps import ANSWERS, Reads, fleet
from trimtab.serve.api.json_views import at_a_glance, described
from trimtab.serve.api.models import EventList
from trimtab.serve.api.studies_cache import StudyCache
from trimtab.serve.http.auth import Caller
from trimtab.serve.http.errors import ApiError
from trimtab.serve.http.request_limits import EVENTS
from trimtab.store.errors import Damaged, StoreError, Unavailable
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document, Json

router = APIRouter(prefix="/v1", tags=["events"], responses=ANSWERS)
MOST = 200  # studies of one stream
PAGE = 1000  # events of one answer
BEAT = 15.0  # seconds after which a stream says that it lives
LOOK = 1.0  # seconds after which it is asked whether its token still is one


class Chosen(NamedTuple):
    """A study that somebody asks for, as it was then."""

    name: str
    uid: str
    seq: int


Chosens = dict[int, Chosen]
"""By the number of a study's row."""
Place = dict[int, int]
"""The number of a study's row → its last event that was seen."""

Names = Annotated[list[str], Query(description="Names of studies (default: all, if they are few).", max_length=MOST)]
After = Annotated[
    str | None,
    Query(description="`next` of the previous answer; for a single study also a sequence number.", max_length=10_000),
]


@router.get(
    "/events",
    response_model=EventList,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Events, or a stream of them"}},
)
async def events(
    request: Request,
    caller: Reads,
    study: Names = [],  # noqa: B006
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
    last_event_id: Annotated[str | None, Header(max_length=10_000)] = None,
) -> Json:
    """What happened, the oldest first; with `Accept: text/event-stream`, also what happens from now on."""
    studies = fleet(request)
    names = await run_in_threadpool(_chosen, studies, caller, study)
    if EVENTS in request.headers.get("accept", ""):
        end = {id: chosen.seq for id, chosen in names.items()}
        place = _place(last_event_id or after, names) if last_event_id or after else end
        stream = _stream(request, studies, request.app.state.watch, names, place)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
    place = _place(after, names)
    found = await run_in_threadpool(_since, studies, names, place, limit)
    return {"events": [event for _, event in found], "next": _written(place)}


async def _stream(
    request: Request, studies: StudyCache, watch: ChangePoller, names: Chosens, place: Place
) -> AsyncIterator[str]:
    """Events as they come, and a study's status after them, or when something else about it changed."""
    with watch.of(set(names)) as changes:
        yield f"retry: 1000\nid: {_written(place)}\n\n"
        beat = time.monotonic() + BEAT
        while not await request.is_disconnected():
            changed = await changes.next(LOOK)
            if not await _may_stay(request):
                return
            if not changed and time.monotonic() >= beat:
                beat = time.monotonic() + BEAT
                yield ": alive\n\n"
            if not changed:
                continue
            while found := await run_in_threadpool(_since, studies, {id: names[id] for id in changed}, place, PAGE):
                for at, event in found:
                    yield f"id: {at}\nevent: event\ndata: {json.dumps(event)}\n\n"
            for document in await run_in_threadpool(_statuses, studies, [names[id].name for id in changed]):
                yield f"event: status\ndata: {json.dumps(document)}\n\n"


async def _may_stay(request: Request) -> bool:
    """Whether the one who listens would still be let in."""
    try:
        await request.app.state.door.caller(request)
    except ApiError:
        return False
    except StoreError as error:
        return isinstance(error, Unavailable)  # it is away: streams wait
    return True


def _chosen(studies: StudyCache, caller: Caller, names: list[str]) -> Chosens:
    """The studies that were asked for."""
    if caller.study is not None:
        names = names or [caller.study]
    if any(not caller.may("read", name) for name in names):
        raise ApiError(403, "forbidden", f"this token is for study {caller.study} alone")
    with studies.pool.store() as store:
        rows = store.numbers(names, MOST + 1)
    if missing := set(names) - {name for _, _, name, _ in rows}:
        raise ApiError(404, "no-study", f"there is no study {sorted(missing)[0]!r}")
    if len(rows) > MOST:
        raise ApiError(422, "too-many", f"there are more than {MOST} studies: name the ones you want, study=a&study=b")
    return {id: Chosen(name, uid, seq) for id, uid, name, seq in rows}


def _since(studies: StudyCache, names: Chosens, place: Place, limit: int) -> list[tuple[str, Document]]:
    """Events after a place, which moves on; each with the place after it."""
    found: list[tuple[str, Document]] = []
    with studies.pool.store() as store:
        for id, (name, uid, _) in names.items():
            if len(found) >= limit:
                break
            try:
                study = UnlockedStudy(store, studies.known(store, name))
                told = store.some_events(study.saved, place.get(id, -1), limit - len(found))
            except ApiError:
                continue  # erased meanwhile
            except Damaged:
                if len(names) == 1:
                    raise
                continue  # that it is is said when it is looked at alone
            if study.uid != uid:
                continue  # made anew meanwhile
            for event in told:
                place[id] = event.seq
                found.append((_written(place), described(study, event)))
    return found


def _statuses(studies: StudyCache, names: list[str]) -> list[Document]:
    with studies.pool.store() as store:
        return [at_a_glance(saved) for saved in store.some(names).values() if not isinstance(saved, Damaged)]


def _written(place: Place) -> str:
    return ",".join(f"{id}:{seq}" for id, seq in place.items())


def _place(text: str | None, names: Chosens) -> Place:
    """What a text says; beyond the last event of a study, that one, so that none that follows is missed."""
    if text is None or text == "":
        return {}
    if len(names) == 1 and re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        text = f"{next(iter(names))}:{text}"
    if not re.fullmatch(r"(\d{1,9}:-?\d{1,18})(,\d{1,9}:-?\d{1,18})*", text, re.ASCII):
        raise ApiError(422, "invalid", "after is not a place in the history: send `next`, or the id of the last event")
    pairs = (part.split(":") for part in text.split(","))
    return {id: min(seq, names[id].seq) for id, seq in ((int(a), int(b)) for a, b in pairs) if id in names}
