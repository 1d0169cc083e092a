"""Proposals and a person's word on them: it is on one setting, at one point of a study, and the first counts."""

from __future__ import annotations

import json
import time
from typing import NamedTuple

from trimtab.store.store import Store, person
from trimtab.store.tables import Setting, StudyRow
from trimtab.util.text import moment


class Proposal(NamedTuple):
    """A setting that waits for a person's word."""

    seq: int
    round: int
    setting: Setting


class Decision(NamedTuple):
    """A person's word on the proposal of the same `seq`."""

    seq: int
    approved: bool
    by: str
    time: float
    why: str | None = None


def waiting(saved: StudyRow) -> Proposal | None:
    """What waits for a decision now, if anything does."""
    if saved.proposal is None or saved.decision is not None:
        return None
    proposal = Proposal(*json.loads(saved.proposal))
    return proposal if proposal.seq == saved.seq else None


def propose(store: Store, study: StudyRow, proposal: Proposal) -> None:
    """Write it down, unless it is there already: then a decision on it stays."""
    text = json.dumps(proposal)
    if store.load(study.name).proposal != text:
        store.propose(study, text)


def decision(saved: StudyRow, proposal: Proposal) -> Decision | None:
    """The word on this very proposal, if there is one."""
    if saved.decision is None or saved.proposal != json.dumps(proposal):
        return None
    found = Decision(*json.loads(saved.decision))
    return found if found.seq == proposal.seq else None


def decide(
    store: Store, name: str, approve: bool, round: int | None, *, who: str | None = None, why: str | None = None
) -> Proposal:
    """A word on what waits, unless somebody was faster."""
    saved = store.load(name)
    proposal = waiting(saved)
    if proposal is None:
        raise ValueError(_decided(saved))
    if round is not None and round != proposal.round:
        raise ValueError(f"study {name!r} now proposes round {proposal.round}, not {round}: review it first")
    if not store.decide(saved, json.dumps(Decision(proposal.seq, approve, who or person(), time.time(), why))):
        raise ValueError(_decided(store.load(name)))
    return proposal


def _decided(saved: StudyRow) -> str:
    if saved.decision is not None:
        found = Decision(*json.loads(saved.decision))
        if found.seq == saved.seq:
            word, when = "approved" if found.approved else "rejected", moment(found.time)
            return f"study {saved.name!r}: already {word} by {found.by}, {when}: the first decision is final"
    return (
        f"study {saved.name!r} has no proposal: it makes one while trimtab tune runs it"
        " with approval = true under [guard]"
    )
