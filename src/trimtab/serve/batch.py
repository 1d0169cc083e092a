"""Many results at once: each study's next one in one transaction, until none is left."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Sequence
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from trimtab.live.row import RowStudy
from trimtab.live.shared import SharedStore
from trimtab.serve import rounds
from trimtab.serve.fleet import TRIES, Fleet
from trimtab.serve.problems import Problem, as_problem
from trimtab.serve.rounds import Result
from trimtab.types import Document

Answer = Document | Problem
"""The body of 200, or what is wrong."""
LOTS = 2  # of single results that are stored at once: while one waits for the disk, the other is computed
MOST = 100  # results of a lot


class Given(NamedTuple):
    """A result, and whose it is."""

    study: str
    trial: int
    result: Result
    next: bool
    """Whether to answer with the trial that follows, too."""


class Gathering:
    """Results that come one by one, stored together: while some are being stored, those that come meanwhile gather.

    A worker that has little to do stores each at once; one that has much, many in one transaction.
    """

    def __init__(self, studies: Fleet) -> None:
        self._studies, self._waiting, self._lots = studies, list[tuple[Given, asyncio.Future[Answer]]](), 0
        self._tasks = set[asyncio.Task[None]]()

    async def tell(self, given: Given) -> Answer:
        """What becomes of one; an answer of `tell_many`."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((given, future))
        if self._lots < LOTS:
            self._lots += 1
            task = asyncio.create_task(self._store())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        answer: Answer = await future
        return answer

    async def _store(self) -> None:
        try:
            while self._waiting:
                lot, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                await self._one(lot)
        finally:
            self._lots -= 1

    async def _one(self, lot: list[tuple[Given, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await run_in_threadpool(tell_many, self._studies, [given for given, _ in lot])
        except Exception as error:  # the store is away: none of them is stored, and each is told so
            answers = [as_problem(error)] * len(lot)
        for (_, future), answer in zip(lot, answers, strict=True):
            if not future.done():  # the one who asked is gone
                future.set_result(answer)


def answered(told: rounds.Told, study: RowStudy, *, next: bool) -> Answer:
    """What a value led to; with the trial that follows, if that is wanted and can be said."""
    if told.refused is not None:
        return Problem(409, "outside", f"{told.refused}; the study is held until somebody resumes it")
    answer = {"seq": told.event.seq, "again": told.again, "open": study.open_id}
    trial = rounds.following(study, datetime.datetime.now().time()) if next else None
    return answer if trial is None else {**answer, "next": trial._asdict()}


def tell_many(studies: Fleet, given: Sequence[Given]) -> list[Answer]:
    """What becomes of each, in their order."""
    answers: list[Answer | None] = [None] * len(given)
    hasty = True
    for _ in range(TRIES):
        left = [n for n, answer in enumerate(answers) if answer is None]
        if not left:
            break
        first: dict[str, int] = {}
        for n in left:
            first.setdefault(given[n].study, n)
        with studies.pool.store() as store:
            _wave(studies, store, given, list(first.values()), answers, hasty)
        hasty = False
    busy = Problem(503, "busy", "too many change this study at once: try again", {"Retry-After": "1"})
    return [busy if answer is None else answer for answer in answers]


def _wave(
    studies: Fleet,
    store: SharedStore,
    given: Sequence[Given],
    numbers: list[int],
    answers: list[Answer | None],
    hasty: bool,
) -> None:
    """One result of each study, all in one transaction."""
    ready: dict[int, tuple[int, RowStudy, Answer]] = {}
    known = studies.known_many(store, [given[n].study for n in numbers], hasty=hasty)
    for n in numbers:
        one = given[n]
        try:
            if one.study not in known:
                raise Problem(404, "no-study", f"there is no study {one.study!r}")
            study = RowStudy(store, known[one.study])
            answer = answered(rounds.tell(study, one.trial, one.result), study, next=one.next)
        except Exception as error:
            problem = as_problem(error)
            if hasty and problem.status in (404, 409):
                continue  # with what is remembered; the next wave looks
            answers[n] = problem
            continue
        if study.move is None:
            answers[n] = answer
        else:
            ready[study.saved.id] = (n, study, answer)
    stored = store.commit_if([study.move for _, study, _ in ready.values() if study.move is not None]) if ready else ()
    for id, (n, study, answer) in ready.items():
        if id in stored:
            studies.remember(study)
            answers[n] = answer
            continue
        studies.conflicts += 1
        try:
            studies.refuse(store, study.name)
        except Problem as problem:
            answers[n] = problem
