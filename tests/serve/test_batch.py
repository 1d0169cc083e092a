"""Many results in one request: shapes of all kinds, duplicates, conflicts and failures among them."""

import asyncio
import random
import threading

import pytest

import trimtab as tt
from trimtab import core
from trimtab.live import Study
from trimtab.serve.api import ask_tell, tell_batch
from trimtab.serve.api.ask_tell import Result
from trimtab.serve.api.studies_cache import StudyCache
from trimtab.serve.api.tell_batch import QueuedTell, WriteQueue, tell_many
from trimtab.store.errors import Unavailable
from trimtab.store.pool import Pool
from trimtab.store.shared_store import SharedStore
from trimtab.study import core_calls
from trimtab.study.verify import check_study

from ..databases import server, url  # noqa: F401

PLAIN = [{"name": "heat", "low": 150, "high": 220, "start": 180}, {"name": "gain", "low": 0, "high": 1, "start": 0.5}]
LIMIT = {"limits": {"power": {"max": 3}}, "method": "primal-dual", "radius": 0.05, "step": 0.001}
KINDS = {
    "plain": {"knobs": PLAIN},
    "other": {"knobs": PLAIN, "goal": "maximise", "radius": 0.1},
    "mixed": {},
    "often": {"baseline": {"every": 3}},
    "rails": {"guard": {"failures": 2, "stop_above": 100.0}},
    "late": {"max_pending": 3},
    "limits": LIMIT,
}


def sent(service, results, **more):
    answer = service.http.post("/v1/tells", json={"results": results, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


def replayed(where):
    """All studies, each of which is whole: what is in its row is what its values lead to."""
    with SharedStore(where) as store:
        found = store.all()
        for saved in found.values():
            assert check_study(store, saved) == []
        return found


def test_a_mixture_of_shapes(service):
    chance, names = random.Random(0), [f"{kind}{n}" for kind in KINDS for n in range(8)]
    for n, name in enumerate(names):
        service.make(name, seed=n, **KINDS[name.rstrip("0123456789")])
    trials = {name: service.ask(name).json() for name in names}
    for _ in range(7):
        results = []
        for name in names:
            value = None if chance.random() < 0.1 else chance.gauss(0, 1)
            beside = {"values": {"power": chance.random()}} if name.startswith("limits") and value is not None else {}
            results.append({"study": name, "trial": trials[name]["id"], "value": value, **beside})
        results += chance.sample(results, 10)  # some of them twice
        answers = sent(service, results, next=True)
        assert [one["status"] for one in answers] == [200] * len(results)
        assert [one["result"]["again"] for one in answers] == [False] * len(names) + [True] * 10
        for name, one in zip(names, answers, strict=False):
            following = one["result"].get("next") or service.ask(name).json()
            assert following == service.ask(name).json()
            trials[name] = following
        assert all(one["result"]["again"] for one in sent(service, results))
    assert all(saved.status["round"] >= 1 for saved in replayed(service.store).values())


def test_lots_and_single_tells_lead_to_the_same(service):
    for name in ("a", *(f"b{n}" for n in range(7))):
        service.make(name, knobs=PLAIN, baseline={"every": 4})
    chance = random.Random(1)
    for _ in range(110):  # past a snapshot
        trial, value = service.ask("a").json(), chance.gauss(0, 1)
        assert service.tell(trial["id"], value, "a").json()["seq"] == trial["id"]
        results = [{"study": f"b{n}", "trial": trial["id"], "value": value} for n in range(7)]
        assert [one["result"]["seq"] for one in sent(service, results)] == [trial["id"]] * 7
    with Study.open_unlocked(service.store, "a") as a:
        expected = a._position.snapshot(110)
        for n in range(7):
            with Study.open_unlocked(service.store, f"b{n}") as b:
                assert b._position.snapshot(110) == expected
    replayed(service.store)


def test_one_that_fails_does_not_spoil_the_rest(service):
    names = [f"s{n}" for n in range(12)]
    for name in names:
        service.make(name, knobs=PLAIN, guard={"stop_above": 50.0})
    with SharedStore(service.store) as store:
        store.execute("UPDATE trimtab_studies SET status = '{}' WHERE name = 's1'")  # damaged
    service.http.delete("/v1/studies/s2")
    service.act("hold", "s3")
    statuses = [200, 500, 410, 200, 409, 200, 404, 409, 200, 200, 200, 200, 404]
    results = [{"study": name, "trial": 1, "value": 1.0} for name in names]
    results[5]["value"] = 99.0  # beyond the rails
    results[6]["trial"] = 7
    results[7]["applied"] = {"heat": 1000.0}
    results[8]["note"] = "by hand"
    results[9]["value"] = None
    results.append({"study": "nobody", "trial": 1, "value": 1.0})
    with Study.open(service.store, "s4"):
        answers = sent(service, results, next=True)
    assert [one["status"] for one in answers] == statuses
    following = [one["result"].get("next") is not None for one in answers if one["status"] == 200]
    assert following == [True, False, False, True, True, True, True]
    assert service.get("s5")["paused"]["why"].startswith("the value 99 is above")
    assert service.events("s8")[-1]["note"] == "by hand"
    statuses[4] = 200  # whoever held it is gone
    assert [one["status"] for one in sent(service, results)] == statuses


@pytest.mark.parametrize("kind", ["file", "server"])
def test_those_that_somebody_else_was_faster_with_are_told_again(kind, tmp_path, request, monkeypatch):
    """Others tell some of the studies between the look at their rows and the commit: each value is there once."""
    where = str(tmp_path / "t.db") if kind == "file" else request.getfixturevalue("url")
    names = [f"{kind}{n}" for n in range(10)]
    for n, name in enumerate(names):
        Study.open(where, name, PLAIN, seed=n, baseline=0).close()
    pool = Pool(where, 3)
    mine, theirs = StudyCache(pool, 100), StudyCache(pool, 100)
    tell, raced = ask_tell.tell, []

    def slower(*told):
        if not raced:
            raced.append(True)
            answers = tell_many(theirs, [QueuedTell(name, 1, Result(5.0), False) for name in names[:4]])
            assert [answer["again"] for answer in answers] == [False] * 4
        return tell(*told)

    monkeypatch.setattr(ask_tell, "tell", slower)
    given = [QueuedTell(name, 1, Result(5.0 if n < 2 else 6.0), True) for n, name in enumerate(names)]
    answers = tell_many(mine, given)
    assert [getattr(answer, "status", 200) for answer in answers] == [200, 200, 409, 409, *[200] * 6]
    assert [answer["again"] for answer in (*answers[:2], *answers[4:])] == [True, True, *[False] * 6]
    assert mine.conflicts == 4
    with pool.store() as store:
        for n, name in enumerate(names):
            (event,) = store.events(store.load(name), after=0)
            assert (event.seq, event.value) == (1, 5.0 if n < 4 else 6.0)
    pool.close()
    replayed(where)


@pytest.mark.parametrize("kind", ["file", "server"])
def test_several_who_send_the_same_lots_at_once(kind, tmp_path, request):
    where = str(tmp_path / "t.db") if kind == "file" else request.getfixturevalue("url")
    names = [f"race{kind}{n}" for n in range(20)]
    for n, name in enumerate(names):
        Study.open(where, name, PLAIN, seed=n, baseline=0).close()
    pool, taken = Pool(where, 6), []

    def work(seed):
        fleet, chance = StudyCache(pool, 100), random.Random(seed)
        for trial in range(1, 13):
            some = chance.sample(names, len(names))
            answers = tell_many(fleet, [QueuedTell(name, trial, Result(trial / 7), True) for name in some])
            assert not [answer for answer in answers if not isinstance(answer, dict)]
            taken.extend((name, trial) for name, answer in zip(some, answers, strict=True) if not answer["again"])

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == sorted((name, trial) for name in names for trial in range(1, 13))
    pool.close()
    replayed(where)


def test_two_who_wait_for_each_other_are_told_apart_by_the_server(url, monkeypatch):  # noqa: F811
    """The one that the server turns away stores the same again."""
    psycopg = pytest.importorskip("psycopg")
    Study.open(url, "deadlock", PLAIN, baseline=0).close()
    pool, seen = Pool(url, 1), []
    with pool.store() as store:
        connection = type(store._db._db)
    execute = connection.execute

    def turned_away(self, query, *values, **options):
        if "INSERT INTO trimtab_events" in query and not seen:
            seen.append(query)
            raise psycopg.errors.DeadlockDetected("deadlock detected")
        return execute(self, query, *values, **options)

    monkeypatch.setattr(connection, "execute", turned_away)
    (answer,) = tell_many(StudyCache(pool, 100), [QueuedTell("deadlock", 1, Result(5.0), False)])
    assert (len(seen), answer["seq"], answer["again"]) == (1, 1, False)
    pool.close()
    replayed(url)


def test_requests_that_come_while_others_are_stored_are_stored_together(monkeypatch):
    lots, open_now = [], threading.Event()

    def stored(_, given):
        open_now.wait(300)
        lots.append([one.study for one in given])
        if lots[-1] == ["away"]:
            raise Unavailable("the store is away")
        return [{"seq": one.trial} for one in given]

    async def run():
        queue = WriteQueue(None, writers=1, max_size=4)
        names = ["a", "bc", "de", "fghijk", "away"]
        tasks = []
        for name in names:
            given = [QueuedTell(one, ord(one), Result(1.0), False) for one in name]
            given = [QueuedTell(name, 1, Result(1.0), False)] if name == "away" else given
            tasks.append(asyncio.create_task(queue.tell(given)))
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        open_now.set()
        return names, await asyncio.gather(*tasks, return_exceptions=True)

    monkeypatch.setattr(tell_batch, "tell_many", stored)
    names, answers = asyncio.run(run())
    assert lots == [["a"], ["b", "c", "d", "e"], list("fghijk"), ["away"]]
    for name, answer in zip(names, answers, strict=True):
        if name == "away":
            assert (answer.status, answer.kind) == (503, "store-unavailable")
        else:
            assert answer == [{"seq": ord(one)} for one in name]


@pytest.mark.parametrize("spare", [1, 0])
def test_callers_take_turns(monkeypatch, spare):
    """One whose large requests are under way, and wait, delays another neither now nor later."""
    lots, go_on = [], threading.Event()

    def stored(_, given):
        if given[0].study == "large":
            go_on.wait(300)
        lots.append("".join(one.study for one in given))
        return [{"seq": 1}] * len(given)

    async def run():
        queue = WriteQueue(None, writers=1, max_size=3, spare=spare)

        def tell(who, *names):
            return asyncio.create_task(queue.tell([QueuedTell(name, 1, Result(1.0), False) for name in names], who))

        waiting = [tell("busy", "large", "large", "large") for _ in range(3)]
        await asyncio.sleep(0)  # the first is under way
        if spare:
            await asyncio.wait_for(tell("anna", "a"), 300)
            await asyncio.wait_for(asyncio.gather(tell("anna", "b"), tell("bob", "c")), 300)
        else:
            waiting += [tell("anna", "d"), tell("bob", *"efg"), tell("busy", "h"), tell("anna", "i")]
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*waiting)

    monkeypatch.setattr(tell_batch, "tell_many", stored)
    asyncio.run(run())
    large = "large" * 3
    assert lots == (["a", "bc", *[large] * 3] if spare else [large, large, "di", "efg", large, "h"])


def test_states_in_rows_that_are_out_of_date_or_gone_do_not_matter(service):
    for n in range(9):
        service.make(f"s{n}", knobs=PLAIN)
        assert service.tell(1, 1.0, f"s{n}").status_code == 200
    with SharedStore(service.store) as store:
        store.execute("UPDATE trimtab_studies SET state = NULL WHERE name IN ('s1', 's2')")
        store.execute("UPDATE trimtab_studies SET state = ? WHERE name = 's3'", b"what is this")
    for n in (4, 5):  # a process that holds a study does not write them
        with Study.open(service.store, f"s{n}") as study:
            study.tell(study.ask(), 2.0)
    results = [{"study": f"s{n}", "trial": 3 if n in (4, 5) else 2, "value": 3.0} for n in range(9)]
    assert [one["status"] for one in sent(service, results)] == [200] * 9
    with SharedStore(service.store) as store:
        assert store.execute("SELECT COUNT(*) FROM trimtab_studies WHERE state IS NULL") == [(0,)]
    replayed(service.store)


def test_one_whose_numbers_are_beyond_all_bounds_fails_alone(service, monkeypatch):
    """Whatever is wrong with one study, those in the same request are stored."""
    for name in "abcdefgh":
        service.make(name, knobs=PLAIN)
    tell = ask_tell.tell

    def fails(study, *rest):
        if study.name == "c":
            raise OverflowError("34, Numerical result out of range")
        return tell(study, *rest)

    monkeypatch.setattr(ask_tell, "tell", fails)
    answers = sent(service, [{"study": name, "trial": 1, "value": 1.0} for name in "abcdefgh"])
    assert [answer["status"] for answer in answers] == [200, 200, 500, *[200] * 5]
    monkeypatch.undo()
    again = sent(service, [{"study": name, "trial": 1, "value": 1.0} for name in "abcdefgh"], next=True)
    assert [answer["result"]["again"] for answer in again] == [True, True, False, *[True] * 5]
    replayed(service.store)


def test_more_results_of_one_study_than_anybody_tries_again(service):
    service.make(max_pending=50)
    ids = [service.ask(another=True).json()["id"] for _ in range(50)]
    answers = sent(service, [{"study": "a", "trial": id, "value": 1.0} for id in ids])
    assert [answer["status"] for answer in answers] == [200] * 50


def test_a_told_round_asks_the_core_once(tmp_path, monkeypatch):
    """For the next trial: the one that is told was asked for in the round before, and its cost is that of the same."""
    where, asked, started = f"{tmp_path}/trimtab.db", [], []
    names = [f"study{n}" for n in range(40)]
    for n, name in enumerate(names):
        with Study.open(where, name, PLAIN, seed=n, baseline=0):
            pass
    pool = Pool(where)
    cache = StudyCache(pool, 100)
    trials = dict.fromkeys(names, 1)

    def tell_all(value):
        answers = tell_many(cache, [QueuedTell(name, trials[name], Result(value), True) for name in names])
        trials.update((name, answer["next"]["id"]) for name, answer in zip(names, answers, strict=True))

    for round in range(12):
        tell_all(float(round % 3))
    source = tt.Orthogonal.source
    monkeypatch.setattr(tt.Orthogonal, "source", lambda *given: started.append(given) or source(*given))
    ask = core.ask
    monkeypatch.setattr(core, "ask", lambda *given: asked.append(given) or ask(*given))
    monkeypatch.setattr(core_calls, "probing_cost", lambda *given: None)  # asks again for the same: nothing is computed
    for round in range(4):
        tell_all(float(round % 3))
    assert len(asked) == 4 * len(names)
    assert started == []  # what the next rounds need was drawn ahead
    pool.close()
