"""Many results at once: each study's next one in one transaction, until none is left."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from trimtab.live.row import RowStudy
from trimtab.live.shared import SharedStore
from trimtab.serve import rounds
from trimtab.serve.access import Caller
from trimtab.serve.fleet import TRIES, Fleet
from trimtab.serve.models import TellIn
from trimtab.serve.problems import Problem, as_problem
from trimtab.serve.rounds import Result
from trimtab.types import Document

Answer = Document


def answered(told: rounds.Told, study: RowStudy, *, next: bool) -> Answer:
    """What a value led to; with the trial that follows, if that is wanted and can be said."""
    if told.refused is not None:
        return {"refused": told.refused}
    answer = {"seq": told.event.seq, "again": told.again, "open": study.open_id}
    trial = rounds.following(study, datetime.datetime.now().time()) if next else None
    return answer if trial is None else {**answer, "next": trial._asdict()}


def outside(why: str) -> Problem:
    """What was set is not what may be set."""
    return Problem(409, "outside", f"{why}; the study is held until somebody resumes it")


def tell_many(studies: Fleet, caller: Caller, given: Sequence[TellIn], next: bool) -> list[Answer]:
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
            _wave(studies, store, caller, given, list(first.values()), answers, hasty, next)
        hasty = False
    busy = Problem(503, "busy", "too many change this study at once: try again")
    return [_refused(busy) if answer is None else answer for answer in answers]


def _wave(
    studies: Fleet,
    store: SharedStore,
    caller: Caller,
    given: Sequence[TellIn],
    numbers: list[int],
    answers: list[Answer | None],
    hasty: bool,
    next: bool,
) -> None:
    """One result of each study, all in one transaction."""
    ready: dict[int, tuple[int, RowStudy, Answer]] = {}
    known = studies.known_many(store, [given[n].study for n in numbers], hasty=hasty)
    for n in numbers:
        one = given[n]
        try:
            if not caller.may("tell", one.study):
                raise Problem(403, "forbidden", f"this token is not for study {one.study!r}")
            if one.study not in known:
                raise Problem(404, "no-study", f"there is no study {one.study!r}")
            study = RowStudy(store, known[one.study])
            told = rounds.tell(study, one.trial, Result(rounds.number(one.value), one.note, one.applied, one.values))
            answer = answered(told, study, next=next)
            answer = _refused(outside(answer["refused"])) if "refused" in answer else {"status": 200, "result": answer}
        except Exception as error:
            problem = as_problem(error)
            if hasty and problem.status in (404, 409):
                continue  # with what is remembered; the next wave looks
            answers[n] = _refused(problem)
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
            answers[n] = _refused(problem)


def _refused(problem: Problem) -> Answer:
    return {"status": problem.status, "problem": problem.document()}
