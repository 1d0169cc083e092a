"""What routes have in common: the worker's things, the caller, and numbers in headers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Path, Request
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api.models import PROBLEMS
from trimtab.serve.api.studies_cache import StudyCache
from trimtab.serve.http.auth import Caller, scope
from trimtab.serve.http.errors import ApiError
from trimtab.study.unlocked import UnlockedStudy

T = TypeVar("T")
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

StudyName = Annotated[str, Path(pattern=NAME, description="Name of the study.")]
Reads = Annotated[Caller, Depends(scope("read"))]
Tells = Annotated[Caller, Depends(scope("tell"))]
Operates = Annotated[Caller, Depends(scope("operate"))]
Administers = Annotated[Caller, Depends(scope("admin"))]
IfMatch = Annotated[str | None, Header(description='ETag of the last answer, for example "12".', max_length=40)]
ANSWERS = PROBLEMS


def fleet(request: Request) -> StudyCache:
    """The worker's studies."""
    found: StudyCache = request.app.state.fleet
    return found


def expected(if_match: str | None) -> int | None:
    """The sequence number of an If-Match, if one is given."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = re.fullmatch(r'\s*(?:W/)?"?(\d{1,18})"?\s*', if_match, re.ASCII)  # a proxy that compresses makes it weak
    if not found:
        raise ApiError(412, "stale", f"If-Match: {if_match} is not the ETag of a study: send the one that GET returned")
    return int(found[1])


def etag(seq: int) -> str:
    """Of a study."""
    return f'"{seq}"'


async def look(request: Request, name: str, act: Callable[[UnlockedStudy], T]) -> T:
    """Read a study, in a thread."""
    return await run_in_threadpool(fleet(request).look, name, act)
