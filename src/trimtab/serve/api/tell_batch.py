"""Many results at once: each study's next one in one transaction, until none is left."""

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
from trimtab.serve.api.studies_cache import TRIES, StudyCache
from trimtab.serve.http.errors import ApiError, as_problem
from trimtab.store.errors import Collided
from trimtab.store.shared_store import SharedStore
from trimtab.store.tables import Commit
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document

Answer = Document | ApiError
"""The body of 200, or what is wrong."""
Waiting = tuple[Sequence["QueuedTell"], "asyncio.Future[list[Answer]]"]
"""The results of a request, and where its answers go."""


class QueuedTell(NamedTuple):
    """A result, and whose it is."""

    study: str
    trial: int
    result: Result
    next: bool
    """Whether to answer with the trial that follows, too."""


class WriteQueue:
    """Results that come in requests, stored together: while some are being stored, those that come meanwhile gather.

    A worker that has little to do stores each request at once; one that has much, several in one transaction. Callers
    take turns, request by request, so that one who sends much delays nobody for long.
    at_once: how many lots may be under way; most: results at which a lot is full; spare: lots beyond that, for callers
    who have none under way.
    """

    def __init__(self, studies: StudyCache, at_once: int, most: int, spare: int = 0) -> None:
        self._studies, self._at_once, self._most, self._spare = studies, at_once, most, spare
        self._waiting: dict[str, deque[Waiting]] = {}
        """Requests by caller, the one whose turn it is first."""
        self._busy = Counter[str]()
        """Requests under way, by caller."""
        self._lots = {False: 0, True: 0}
        """How many are under way, and how many spare ones."""
        self._tasks = set[asyncio.Task[None]]()

    async def tell(self, given: Sequence[QueuedTell], who: str = "") -> list[Answer]:
        """What becomes of those of one request; answers of `tell_many`."""
        future: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append((given, future))
        if self._lots[False] < self._at_once:
            self._start(spare=False)
        elif self._lots[True] < self._spare and not self._busy[who]:
            self._start(spare=True)
        return await future

    def _start(self, *, spare: bool) -> None:
        self._lots[spare] += 1
        task = asyncio.create_task(self._store(spare))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _store(self, spare: bool) -> None:
        try:
            while lot := self._take(spare):
                callers = Counter(who for who, _ in lot)
                self._busy += callers
                try:
                    await self._one([waiting for _, waiting in lot])
                finally:
                    self._busy -= callers
        finally:
            self._lots[spare] -= 1

    def _take(self, spare: bool) -> list[tuple[str, Waiting]]:
        """A lot: a request of each caller in turn, until none fits any more; spare: of those with none under way."""
        lot: list[tuple[str, Waiting]] = []
        size, turns = 0, deque(who for who in self._waiting if not (spare and self._busy[who]))
        while turns:
            who = turns.popleft()
            requests = self._waiting[who]
            if lot and size + len(requests[0][0]) > self._most:
                continue
            lot.append((who, requests.popleft()))
            size += len(lot[-1][1][0])
            del self._waiting[who]
            if requests:
                self._waiting[who] = requests
                turns.append(who)
        return lot

    async def _one(self, lot: Sequence[Waiting]) -> None:
        everything = [one for given, _ in lot for one in given]
        try:
            answers = iter(await run_in_threadpool(tell_many, self._studies, everything))
        except Exception as error:  # the store is away: none of them is stored, and each is told so
            for _, future in lot:
                if not future.done():
                    future.set_exception(as_problem(error))
            return
        for given, future in lot:
            theirs = list(itertools.islice(answers, len(given)))
            if not future.done():  # the one who asked is gone
                future.set_result(theirs)


def answered(told: ask_tell.Told, study: UnlockedStudy, *, next: bool) -> Answer:
    """What a value led to; with the trial that follows, if that is wanted and can be said."""
    if told.refused is not None:
        return ApiError(409, "outside", f"{told.refused}; the study is paused until someone resumes it")
    answer = {"seq": told.event.seq, "again": told.again, "open": study.open_id}
    trial = ask_tell.following(study, datetime.datetime.now().time()) if next else None
    return answer if trial is None else {**answer, "next": trial._asdict()}


def tell_many(studies: StudyCache, given: Sequence[QueuedTell]) -> list[Answer]:
    """What becomes of each, in their order."""
    answers: list[Answer | None] = [None] * len(given)
    left, in_vain = list(range(len(given))), 0
    while left and in_vain < TRIES:
        first: dict[str, int] = {}
        for n in left:
            first.setdefault(given[n].study, n)
        with suppress(Collided), studies.pool.store() as store:
            _wave(studies, store, given, list(first.values()), answers)
        before, left = left, [n for n in left if answers[n] is None]
        in_vain = in_vain + 1 if left == before else 0
    busy = ApiError(503, "busy", "too many requests change this study at once: retry", {"Retry-After": "1"})
    return [busy if answer is None else answer for answer in answers]


def _wave(
    studies: StudyCache,
    store: SharedStore,
    given: Sequence[QueuedTell],
    numbers: list[int],
    answers: list[Answer | None],
) -> None:
    """One result of each study, all in one transaction."""
    found = {row[2]: row for row in store.rows([given[n].study for n in numbers])}
    ready: dict[int, tuple[int, Answer]] = {}  # study → whose answer this is, once it is stored
    moves: list[Commit] = []
    for n in numbers:
        one = given[n]
        try:
            if one.study not in found:
                raise ApiError(404, "no-study", f"there is no study {one.study!r}")
            study = UnlockedStudy(store, studies.as_in_row(store, found[one.study]))
            answer = answered(ask_tell.tell(study, one.trial, one.result), study, next=one.next)
        except Exception as error:
            answers[n] = as_problem(error)
            continue
        if study.move is None:
            answers[n] = answer
        else:
            moves.append(study.move)
            ready[study.saved.id] = (n, answer)
    stored = store.commit_if(moves) if moves else ()
    for id, (n, answer) in ready.items():
        if id in stored:
            answers[n] = answer
            continue
        studies.conflicts += 1
        try:
            studies.refuse(store, given[n].study)
        except ApiError as problem:
            answers[n] = problem


def written(document: Document) -> str:
    """JSON, several times as fast as by Python's own module."""
    return to_json(document, inf_nan_mode="constants").decode()
