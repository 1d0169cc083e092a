"""A history of operations by many clients, and whether a study's events explain it: is it linearisable?

The store says in which order everything was written, so nothing has to be searched for: an operation that changed
something stands at its event, one that read stands between two, and all that is left is to see whether each can have
happened between its request and its answer. An operation without an answer may be there or not; if it is, then at any
time from its request on.
"""

import math
import re
from collections import defaultdict
from typing import NamedTuple

from trimtab.store.tables import STILL


class Op(NamedTuple):
    """One operation of a client on a study."""

    kind: str
    """"ask" and "look" read; "tell", "skip", "set" and "undo" write."""
    begin: float
    end: float = math.inf
    outcome: str = "ok"
    """Or "refused": it was not done and never will be; or "unknown": there was no answer."""
    token: str | None = None
    """A mark to identify the event by: the value, or #number in a note; the same for a repeated request."""
    trial: int | None = None
    query: list | None = None
    round: int | None = None
    seq: int | None = None
    """Sequence number of the event in the answer; for a read, the last one returned."""
    closes: bool = True
    """Whether the open trial is another one afterwards."""


class Write(NamedTuple):
    """All attempts at one change, as one operation."""

    op: Op
    begin: float
    end: float
    outcome: str


def token_of(event):
    if event.value is not None:
        return repr(event.value)
    found = re.search(r"#\d+\b", event.note or "")
    return found and found[0]


def check(ops, events):
    """List contradictions between a history of one study and its events."""
    if [event.seq for event in events] != list(range(len(events))):
        return [f"seq is not contiguous: {[event.seq for event in events]}"]
    wrong, writes = _writes([op for op in ops if op.token is not None])
    reads = [op for op in ops if op.token is None]
    wrong += _attributed(writes, events)
    by_seq = {event.seq: writes.get(token_of(event)) for event in events}
    opened, closed = _spans(by_seq, events)
    wrong += _handed_out(reads, by_seq, events, opened)
    return wrong or _ordered(reads, by_seq, events, opened, closed)


def _writes(ops):
    attempts = defaultdict(list)
    for op in ops:
        attempts[op.token].append(op)
    wrong, writes = [], {}
    for token, some in attempts.items():
        outcomes = {op.outcome for op in some}
        if {"ok", "refused"} <= outcomes:
            wrong.append(f"{token}: acknowledged and refused")
        outcome = next(one for one in ("ok", "refused", "unknown") if one in outcomes)
        end = min((op.end for op in some if op.outcome == "ok"), default=math.inf)
        known = next((op for op in some if op.outcome == "ok"), some[0])
        writes[token] = Write(known, min(op.begin for op in some), end, outcome)
    return wrong, writes


def _attributed(writes, events):
    """Every event is of one operation, and every acknowledged operation has one."""
    wrong, there = [], defaultdict(list)
    for event in events[1:]:
        there[token_of(event)].append(event.seq)
    for token, seqs in there.items():
        if token not in writes:
            wrong.append(f"events {seqs}: {token} was sent by nobody")
        elif len(seqs) > 1:
            wrong.append(f"{token} is there more than once: {seqs}")
        elif writes[token].outcome == "refused":
            wrong.append(f"{token} was refused, and is event {seqs[0]}")
        elif writes[token].op.seq not in (None, seqs[0]):
            wrong.append(f"{token} was answered with seq {writes[token].op.seq}, and is event {seqs[0]}")
    lost = [token for token, write in writes.items() if write.outcome == "ok" and token not in there]
    return wrong + [f"{token} was acknowledged, and is lost" for token in lost]


def _spans(by_seq, events):
    """Trial → the event after which it is the open one, and the event after which it is no more."""
    opened, closed, open_one = {1: 0}, {}, 1
    for event in events[1:]:
        write = by_seq[event.seq]
        if event.kind in STILL or (write is not None and not write.op.closes):
            continue
        closed[open_one], open_one = event.seq, event.seq + 1
        opened[open_one] = event.seq
    return opened, closed


def _handed_out(reads, by_seq, events, opened):
    """Each trial has one setting, and is told at it."""
    wrong, given = [], {}
    for op in reads:
        if op.kind == "ask":
            if op.trial not in opened:
                wrong.append(f"trial {op.trial} was handed out, and was never open")
            if given.setdefault(op.trial, (op.query, op.round)) != (op.query, op.round):
                wrong.append(f"trial {op.trial} was handed out as {given[op.trial]} and as {(op.query, op.round)}")
    open_one = 1
    for event in events[1:]:
        write = by_seq[event.seq]
        if event.query is not None and write is not None:
            if write.op.trial != open_one:
                wrong.append(f"event {event.seq} is of trial {open_one}, and was told under {write.op.trial}")
            elif given.get(open_one, (event.query, event.round)) != (event.query, event.round):
                wrong.append(f"event {event.seq} is at {event.query}, and trial {open_one} was {given[open_one]}")
        open_one = event.seq + 1 if event.seq + 1 in opened else open_one
    return wrong


def _ordered(reads, by_seq, events, opened, closed):
    """Each has a moment between its request and its answer, in the order of the events: the earliest is tried."""
    wrong, spans, until = [], [], defaultdict(list)
    for op in reads:
        after, before = (opened[op.trial], closed.get(op.trial)) if op.kind == "ask" else (op.seq, op.seq + 1)
        spans.append((op, after))
        until[before].append(op.begin)
    earliest, moment = [], -math.inf
    for event in events:
        write = by_seq[event.seq] if event.seq else None
        begin, end = (write.begin, write.end) if write else (-math.inf, math.inf)
        moment = max(moment, begin, *until[event.seq]) if until[event.seq] else max(moment, begin)
        earliest.append(moment)
        if moment > end:
            wrong.append(f"event {event.seq} was answered before what comes before it was asked for")
    for op, after in spans:
        if after >= len(events) or max(op.begin, earliest[after]) > op.end:
            wrong.append(f"{op.kind} saw what was not there yet: {op}")
    return wrong
