"""Shared by routes: dependencies, path and header types, ETags."""

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
RESPONSES = PROBLEMS


def studies_of(request: Request) -> StudyCache:
    """Return the worker's cache of studies."""
    found: StudyCache = request.app.state.studies
    return found


def seq_of(if_match: str | None) -> int | None:
    """Parse the sequence number of an If-Match header; None without one."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = re.fullmatch(r'\s*(?:W/)?"?(\d{1,18})"?\s*', if_match, re.ASCII)  # a compressing proxy makes the ETag weak
    if not found:
        raise ApiError(412, "stale", f"If-Match: {if_match} is not the ETag of a study: send the one that GET returned")
    return int(found[1])


def etag(seq: int) -> str:
    """Return the ETag of a study."""
    return f'"{seq}"'


async def read_study(request: Request, name: str, act: Callable[[UnlockedStudy], T]) -> T:
    """Read a study in a worker thread."""
    return await run_in_threadpool(studies_of(request).read, name, act)
