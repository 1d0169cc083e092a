"""Batched tells: results of many studies are stored in shared transactions."""

from __future__ import annotations

import asyncio
import datetime
import itertools
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api import ask_tell
from trimtab.serve.api.ask_tell import Result
from trimtab.serve.api.studies_cache import MAX_ATTEMPTS, StudyCache
from trimtab.serve.http.errors import ApiError, as_problem
from trimtab.store.errors import Collided
from trimtab.store.shared_store import SharedStore
from trimtab.store.tables import Commit
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document

Answer = Document | ApiError
"""Body of a 200 response, or the error."""
PendingRequest = tuple[Sequence["QueuedTell"], "asyncio.Future[list[Answer]]"]
"""Results of a request, and the future of their answers."""


class QueuedTell(NamedTuple):
    """A result, with its study and trial."""

    study: str
    trial: int
    result: Result
    next: bool
    """Whether the answer includes the next trial."""


class WriteQueue:
    """Queue of results: those that arrive while a batch is being stored form the next one.

    A worker with little load stores each request at once; under load, it stores several in one transaction. Callers
    take turns, request by request, so that one with many requests does not delay the others.
    writers: batches stored concurrently; max_size: results per batch; spare: additional writers, for callers with no
    request in progress.
    """

    def __init__(self, studies: StudyCache, writers: int, max_size: int, spare: int = 0) -> None:
        self._studies, self._max_writers, self._max_size, self._max_spare = studies, writers, max_size, spare
        self._waiting: dict[str, deque[PendingRequest]] = {}
        """Queued requests by caller; the caller whose turn it is comes first."""
        self._busy = Counter[str]()
        """Requests being stored, by caller."""
        self._writers = {False: 0, True: 0}
        """Running writers: ordinary and spare."""
        self._tasks = set[asyncio.Task[None]]()

    async def tell(self, given: Sequence[QueuedTell], who: str = "") -> list[Answer]:
        """Store the results of one request; return an answer to each."""
        future: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append((given, future))
        if self._writers[False] < self._max_writers:
            self._start_writer(spare=False)
        elif self._writers[True] < self._max_spare and not self._busy[who]:
            self._start_writer(spare=True)
        return await future

    def _start_writer(self, *, spare: bool) -> None:
        self._writers[spare] += 1
        task = asyncio.create_task(self._write(spare))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, spare: bool) -> None:
        try:
            while batch := self._next_batch(spare):
                callers = Counter(who for who, _ in batch)
                self._busy += callers
                try:
                    await self._write_batch([waiting for _, waiting in batch])
                finally:
                    self._busy -= callers
        finally:
            self._writers[spare] -= 1

    def _next_batch(self, spare: bool) -> list[tuple[str, PendingRequest]]:
        """Take one request per caller in turn until the batch is full; spare: only callers with none in progress."""
        batch: list[tuple[str, PendingRequest]] = []
        size, turns = 0, deque(who for who in self._waiting if not (spare and self._busy[who]))
        while turns:
            who = turns.popleft()
            requests = self._waiting[who]
            if batch and size + len(requests[0][0]) > self._max_size:
                continue
            batch.append((who, requests.popleft()))
            size += len(batch[-1][1][0])
            del self._waiting[who]
            if requests:
                self._waiting[who] = requests
                turns.append(who)
        return batch

    async def _write_batch(self, batch: Sequence[PendingRequest]) -> None:
        everything = [one for given, _ in batch for one in given]
        try:
            answers = iter(await run_in_threadpool(tell_many, self._studies, everything))
        except Exception as error:  # the store is unavailable: nothing was stored, and every caller gets the error
            for _, future in batch:
                if not future.done():
                    future.set_exception(as_problem(error))
            return
        for given, future in batch:
            theirs = list(itertools.islice(answers, len(given)))
            if not future.done():  # otherwise the client has disconnected
                future.set_result(theirs)


def response_to(told: ask_tell.Outcome, study: UnlockedStudy, *, next: bool) -> Answer:
    """Return the body that answers a tell, with the next trial if wanted and available."""
    if told.refused is not None:
        return ApiError(409, "outside", f"{told.refused}; the study is paused until someone resumes it")
    answer = {"seq": told.event.seq, "again": told.again, "open": study.open_id}
    trial = ask_tell.next_trial(study, datetime.datetime.now().time()) if next else None
    return answer if trial is None else {**answer, "next": trial.to_json()}


def tell_many(studies: StudyCache, given: Sequence[QueuedTell]) -> list[Answer]:
    """Store results of many studies; return their answers in order."""
    answers: list[Answer | None] = [None] * len(given)
    left, failures = list(range(len(given))), 0
    while left and failures < MAX_ATTEMPTS:
        first: dict[str, int] = {}
        for n in left:
            first.setdefault(given[n].study, n)
        with suppress(Collided), studies.pool.store() as store:
            _tell_once_each(studies, store, given, list(first.values()), answers)
        previous, left = left, [n for n in left if answers[n] is None]
        failures = failures + 1 if left == previous else 0
    busy = ApiError(503, "busy", "too many requests change this study at once: retry", {"Retry-After": "1"})
    return [busy if answer is None else answer for answer in answers]


def _tell_once_each(
    studies: StudyCache,
    store: SharedStore,
    given: Sequence[QueuedTell],
    numbers: list[int],
    answers: list[Answer | None],
) -> None:
    """Store one result per study, all in one transaction."""
    found = {row.name: row for row in store.rows([given[n].study for n in numbers])}
    ready: dict[int, tuple[int, Answer, UnlockedStudy]] = {}  # row id → (index of the result, its answer, its study)
    moves: list[Commit] = []
    for n in numbers:
        one = given[n]
        try:
            if one.study not in found:
                raise ApiError(404, "no-study", f"there is no study {one.study!r}")
            study = UnlockedStudy(store, studies.as_in_row(store, found[one.study]))
            answer = response_to(ask_tell.tell(study, one.trial, one.result), study, next=one.next)
        except Exception as error:
            answers[n] = as_problem(error)
            continue
        if study.move is None:
            answers[n] = answer
        else:
            moves.append(study.move)
            ready[study.saved.id] = (n, answer, study)
    stored = store.commit_if(moves) if moves else ()
    for id, (n, answer, study) in ready.items():
        if id in stored:
            answers[n] = answer
            studies.remember(study)
            continue
        studies.conflicts += 1
        try:
            studies.check_writable(store, given[n].study)
        except ApiError as problem:
            answers[n] = problem


def to_json_text(document: Document) -> str:
    """Serialise to JSON, several times as fast as the `json` module."""
    return to_json(document, inf_nan_mode="constants").decode()
