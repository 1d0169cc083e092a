"""Events: as JSON, and as server-sent events; one stream for all studies of a page.

A place in the history of several studies is a list of their numbers and sequences, "3:120,7:15": it is the id of each
sent event, so that a stream goes on where it was, with whichever worker, and nothing is sent twice or left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from trimtab.live.row import RowStudy
from trimtab.serve.access import Caller
from trimtab.serve.fleet import Fleet
from trimtab.serve.models import EventList
from trimtab.serve.problems import Problem
from trimtab.serve.showing import at_a_glance, described
from trimtab.serve.watching import Watch
from trimtab.serve.wiring import ANSWERS, Reads, fleet
from trimtab.types import Document, Json

router = APIRouter(prefix="/v1", tags=["events"], responses=ANSWERS)
MOST = 200  # studies of one stream
PAGE = 1000  # events of one answer
BEAT = 15.0  # seconds after which a stream says that it lives
Place = dict[int, int]
"""The number of a study's row → its last event that was seen."""

Names = Annotated[list[str], Query(description="The studies (default: all, if they are few).", max_length=MOST)]
After = Annotated[
    str | None,
    Query(description="`next` of the answer before; of a single study also a sequence number.", max_length=10_000),
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
    if "text/event-stream" in request.headers.get("accept", ""):
        place = (
            _place(last_event_id or after, names)
            if last_event_id or after
            else {id: seq for id, (_, seq) in names.items()}
        )
        request.app.state.limits.check_streams()
        stream = _stream(request, studies, request.app.state.watch, names, place)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
    place = _place(after, names)
    found = await run_in_threadpool(_since, studies, names, place, limit)
    return {"events": [event for _, event in found], "next": _written(place)}


async def _stream(
    request: Request, studies: Fleet, watch: Watch, names: dict[int, tuple[str, int]], place: Place
) -> AsyncIterator[str]:
    """Events as they come, and a study's status after them, or when something else about it changed."""
    with request.app.state.limits.waiting(), watch.of(set(names)) as changes:
        yield f"retry: 1000\nid: {_written(place)}\n\n"
        while not await request.is_disconnected():
            changed = await changes.next(BEAT)
            if not changed:
                yield ": alive\n\n"
                continue
            while found := await run_in_threadpool(_since, studies, {id: names[id] for id in changed}, place, PAGE):
                for at, event in found:
                    yield f"id: {at}\nevent: event\ndata: {json.dumps(event)}\n\n"
            for document in await run_in_threadpool(_statuses, studies, [names[id][0] for id in changed]):
                yield f"event: status\ndata: {json.dumps(document)}\n\n"


def _chosen(studies: Fleet, caller: Caller, names: list[str]) -> dict[int, tuple[str, int]]:
    """Row → name and sequence of the studies that were asked for."""
    if caller.study is not None:
        names = names or [caller.study]
    if any(not caller.may("read", name) for name in names):
        raise Problem(403, "forbidden", f"this token is for study {caller.study} alone")
    with studies.pool.store() as store:
        rows = store.numbers(names, MOST + 1)
    if missing := set(names) - {name for _, name, _ in rows}:
        raise Problem(404, "no-study", f"there is no study {sorted(missing)[0]!r}")
    if len(rows) > MOST:
        raise Problem(422, "too-many", f"there are more than {MOST} studies: name those you mean, study=a&study=b")
    return {id: (name, seq) for id, name, seq in rows}


def _since(studies: Fleet, names: dict[int, tuple[str, int]], place: Place, limit: int) -> list[tuple[str, Document]]:
    """Events after a place, which moves on; each with the place after it."""
    found: list[tuple[str, Document]] = []
    with studies.pool.store() as store:
        for id, (name, _) in names.items():
            if len(found) >= limit:
                break
            try:
                study = RowStudy(store, studies.known(store, name))
            except Problem:
                continue  # erased meanwhile
            for event in store.some_events(study.saved, place.get(id, -1), limit - len(found)):
                place[id] = event.seq
                found.append((_written(place), described(study, event)))
    return found


def _statuses(studies: Fleet, names: list[str]) -> list[Document]:
    with studies.pool.store() as store:
        return [at_a_glance(saved) for saved in store.some(names)]


def _written(place: Place) -> str:
    return ",".join(f"{id}:{seq}" for id, seq in place.items())


def _place(text: str | None, names: dict[int, tuple[str, int]]) -> Place:
    if text is None or text == "":
        return {}
    if len(names) == 1 and re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        return {next(iter(names)): int(text)}
    if not re.fullmatch(r"(\d{1,9}:-?\d{1,18})(,\d{1,9}:-?\d{1,18})*", text, re.ASCII):
        raise Problem(422, "invalid", "after is no place in the history: send `next`, or the id of the last event")
    pairs = (part.split(":") for part in text.split(","))
    return {int(id): int(seq) for id, seq in pairs if int(id) in names}
