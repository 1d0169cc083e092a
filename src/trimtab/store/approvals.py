"""Proposed settings and decisions on them. A decision applies to one setting at one `seq`; the first is final."""

from __future__ import annotations

import json
import time
from typing import NamedTuple

from trimtab.store.store import Store, person
from trimtab.store.tables import Setting, StudyRow
from trimtab.util.text import moment


class Proposal(NamedTuple):
    """A setting that waits for approval."""

    seq: int
    round: int
    setting: Setting


class Decision(NamedTuple):
    """A person's decision on the proposal of the same `seq`."""

    seq: int
    approved: bool
    by: str
    time: float
    why: str | None = None


def waiting(saved: StudyRow) -> Proposal | None:
    """Return the proposal that waits for a decision, if any."""
    if saved.proposal is None or saved.decision is not None:
        return None
    proposal = Proposal(*json.loads(saved.proposal))
    return proposal if proposal.seq == saved.seq else None


def propose(store: Store, study: StudyRow, proposal: Proposal) -> None:
    """Store a proposal. One that is already stored keeps its decision."""
    text = json.dumps(proposal)
    if store.load(study.name).proposal != text:
        store.propose(study, text)


def decision(saved: StudyRow, proposal: Proposal) -> Decision | None:
    """Return the decision on exactly this proposal, if there is one."""
    if saved.decision is None or saved.proposal != json.dumps(proposal):
        return None
    found = Decision(*json.loads(saved.decision))
    return found if found.seq == proposal.seq else None


def decide(
    store: Store, name: str, approve: bool, round: int | None, *, who: str | None = None, why: str | None = None
) -> Proposal:
    """Decide on the waiting proposal; ValueError if it has been decided on already."""
    saved = store.load(name)
    proposal = waiting(saved)
    if proposal is None:
        raise ValueError(_already_decided(saved))
    if round is not None and round != proposal.round:
        raise ValueError(f"study {name!r} now proposes round {proposal.round}, not {round}: review it first")
    if not store.decide(saved, json.dumps(Decision(proposal.seq, approve, who or person(), time.time(), why))):
        raise ValueError(_already_decided(store.load(name)))
    return proposal


def _already_decided(saved: StudyRow) -> str:
    if saved.decision is not None:
        found = Decision(*json.loads(saved.decision))
        if found.seq == saved.seq:
            word, when = "approved" if found.approved else "rejected", moment(found.time)
            return f"study {saved.name!r}: already {word} by {found.by}, {when}: the first decision is final"
    return (
        f"study {saved.name!r} has no proposal: it makes one while trimtab tune runs it"
        " with approval = true under [guard]"
    )
