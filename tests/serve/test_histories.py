"""Random operations by many clients under faults are linearisable, and a history that is not is found."""

import os
import random
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from trimtab.store.shared_store import SharedStore
from trimtab.study.verify import check_study

from ..databases import server  # noqa: F401
from .crowd import Crowd
from .history import Op, check
from .processes import end, service, workers

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")


def event(seq, kind, value=None, query=None, note=None, round=0):
    return SimpleNamespace(seq=seq, kind=kind, value=value, query=query, note=note, round=round)


def history():
    """Two clients, one study: five writes, of which one was not answered, and reads between them."""
    ops = [
        Op("ask", 0, 1, trial=1, query=[1.0], round=0),
        Op("look", 1, 2, seq=0),
        Op("tell", 2, 3, token="0.5", trial=1, seq=1),
        Op("ask", 2.5, 5, trial=2, query=[2.0], round=1),
        Op("tell", 3, 4, token="9.5", trial=1, outcome="refused"),
        Op("tell", 4, token="0.25", trial=2, outcome="unknown"),
        Op("set", 5, 6, token="#1", closes=False, seq=3),
        Op("tell", 6, 7, token="0.25", trial=2, seq=2),  # sent again
        Op("undo", 8, 9, token="#2", seq=4),
        Op("look", 8, 10, seq=3),  # while the undo was under way
        Op("ask", 9, 10, trial=5, query=[1.0], round=0),
        Op("skip", 10, token="#3", trial=5, outcome="unknown"),
        Op("tell", 11, token="0.75", trial=5, outcome="unknown"),  # it never arrived
    ]
    events = [
        event(0, "start"),
        event(1, "tell", 0.5, [1.0]),
        event(2, "tell", 0.25, [2.0], round=1),
        event(3, "set", note="keep 100000 → 5000 (local: #1)", round=2),
        event(4, "undo", note="from round 2, by local: #2"),
        event(5, "skip", None, [1.0], note="#3"),
    ]
    return ops, events


def test_a_history_that_is_linearisable():
    assert check(*history()) == []


def test_what_was_not_answered_may_be_there_or_not():
    ops, events = history()
    assert check(ops, events[:5]) == []
    events[5] = event(5, "tell", 0.75, [1.0])
    assert check(ops, events) == []


def renumbered(events):
    return [SimpleNamespace(**{**vars(event), "seq": seq}) for seq, event in enumerate(events)]


def lost_at_the_end(ops, events):
    return ops, events[:4]


def lost_within(ops, events):
    return ops, events[:2] + events[3:]


def lost_and_renumbered(ops, events):
    ops = [op._replace(seq=None) if op.token else op for op in ops]
    return ops, renumbered(events[:1] + events[2:])


def duplicated(ops, events):
    return ops, [*events, event(6, "tell", 0.5, [1.0])]


def reordered(ops, events):
    """Undo and correction change places: each is there, but the correction was answered before the undo was sent."""
    ops = [op._replace(seq=None) if op.token in ("#1", "#2") else op for op in ops if op.kind != "look"]
    ops = [op._replace(trial=4) if op.trial == 5 else op for op in ops]
    return ops, renumbered([*events[:3], events[4], events[3], events[5]])


def at_another_setting(ops, events):
    events[2].query = [2.5]
    return ops, events


def in_another_round(ops, events):
    events[2].round = 7
    return ops, events


def under_another_trial(ops, events):
    return [op._replace(trial=1) if op.token == "0.25" else op for op in ops], events


def handed_out_twice(ops, events):
    return [*ops, Op("ask", 9, 12, trial=5, query=[1.5], round=0)], events


def handed_out_and_never_open(ops, events):
    return [*ops, Op("ask", 9, 12, trial=4, query=[1.5], round=0)], events


def sent_by_nobody(ops, events):
    return ops, [*events, event(6, "tell", 3.5, [1.0])]


def refused_and_there(ops, events):
    return [op._replace(outcome="refused") if op.token == "#3" else op for op in ops], events


def acknowledged_and_refused(ops, events):
    return [*ops, Op("tell", 9, 10, token="0.5", trial=1, outcome="refused")], events


def answered_with_another_number(ops, events):
    return [op._replace(seq=3) if op.token == "#2" else op for op in ops], events


def read_too_late(ops, events):
    """A worker that answers from what it remembers."""
    return [*ops, Op("look", 7.5, 8, seq=2)], events


def asked_too_late(ops, events):
    return [*ops, Op("ask", 7.5, 8, trial=2, query=[2.0], round=1)], events


def read_too_early(ops, events):
    """An event that is not stored yet, and may never be."""
    return [*ops, Op("look", 7, 7.5, seq=4)], events


def read_backwards(ops, events):
    """Each read alone could be; but the second saw less than the first, which it came after."""
    ops = [op for op in ops if op.kind != "look"]
    ops = [op._replace(begin=0, end=20) if op.token == "#2" else op for op in ops]
    return [*ops, Op("look", 7, 7.5, seq=4), Op("look", 7.6, 7.9, seq=3)], events


BROKEN = {
    lost_at_the_end: "#2 was acknowledged, and is lost",
    lost_within: "seq is not contiguous",
    lost_and_renumbered: "0.5 was acknowledged, and is lost",
    duplicated: "0.5 is there more than once: [1, 6]",
    reordered: "event 4 was answered before what comes before it was asked for",
    at_another_setting: "event 2 is at [2.5], and trial 2 was ([2.0], 1)",
    in_another_round: "event 2 is at [2.0], and trial 2 was ([2.0], 1)",
    under_another_trial: "event 2 is of trial 2, and was told under 1",
    handed_out_twice: "trial 5 was handed out as ([1.0], 0) and as ([1.5], 0)",
    handed_out_and_never_open: "trial 4 was handed out, and was never open",
    sent_by_nobody: "events [6]: 3.5 was sent by nobody",
    refused_and_there: "#3 was refused, and is event 5",
    acknowledged_and_refused: "0.5: acknowledged and refused",
    answered_with_another_number: "#2 was answered with seq 3, and is event 4",
    read_too_late: "event 3 was answered before what comes before it was asked for",
    asked_too_late: "event 2 was answered before what comes before it was asked for",
    read_too_early: "look saw what was not there yet",
    read_backwards: "look saw what was not there yet",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_history_that_is_not(broken):
    wrong = check(*broken(*history()))
    assert any(BROKEN[broken] in line for line in wrong), wrong


def linearisable(where, crowd):
    """Each study's history, and the replay of its events."""
    assert crowd.wrong == []
    with SharedStore(where) as store:
        for name in crowd.studies:
            saved = store.load(name)
            assert check(crowd.ops[name], store.events(saved)) == []
            assert check_study(store, saved) == []


def under_faults(where, studies, until, faults, between, seed):
    """A service on a store and a crowd that uses both, with a fault after every so many acknowledged changes."""
    running, url = service(where, 2)
    crowd = Crowd(url, where, studies, seed)
    try:
        crowd.make()
        for thread in crowd.threads:
            thread.start()
        for fault in (*faults, None):
            before = crowd.count()
            until(lambda before=before: crowd.wrong or crowd.count() >= before + between, 300)
            if fault is not None:
                fault(running)
        until(lambda: crowd.wrong or crowd.did_all(), 300)
    finally:
        crowd.stop = True
        for thread in crowd.threads:
            thread.join(90)
        end(running)
    linearisable(where, crowd)
    return crowd.did()


def killing_workers(until, seed):
    chance = random.Random(seed)

    def kill(running):
        until(lambda: workers(running.pid))
        os.kill(chance.choice(workers(running.pid)), signal.SIGKILL)

    return kill


@needs_proc
def test_histories_on_sqlite(tmp_path, until):
    where = str(tmp_path / "t.db")
    under_faults(where, ["a", "b"], until, [killing_workers(until, 1)] * 2, 60, seed=1)


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_histories_on_postgresql(server, until, seed):  # noqa: F811
    import psycopg

    where, control = server
    kill = killing_workers(until, seed)

    def drop(_):
        """Every connection of the moment, of the service and of those who hold studies."""
        with psycopg.connect(where, autocommit=True) as one:
            one.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    def crash(_):
        control("-m", "immediate", "restart")

    names = [f"history-{seed}-{n}" for n in range(3)]
    print(under_faults(where, names, until, [drop, kill, crash, drop, kill] * 3, 150, seed))


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 6])
def test_long_histories_on_sqlite(tmp_path, until, seed):
    where = str(tmp_path / "t.db")
    print(under_faults(where, ["a", "b", "c"], until, [killing_workers(until, seed)] * 8, 150, seed))
