"""One trial, one setting: whoever asks, in whichever thread or process, at whatever moment."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx

from trimtab.randomness import Keyed
from trimtab.store.shared_store import SharedStore
from trimtab.study.unlocked import UnlockedStudy, load

from .test_kills import end
from .test_kills import service as served

ROUNDED = [
    {"name": "size", "type": "integer", "low": 0, "high": 9, "start": 4, "radius": 0.3},
    {"name": "codec", "choices": ["gzip", "zstd", "lz4"], "start": "zstd"},
    {"name": "cache", "type": "bool", "start": True},
    {"name": "rate", "low": 0.0, "high": 1.0, "start": 0.5, "step": 0.1, "radius": 0.3},
]
ASKERS = 12


def at_once(work):
    """The answers to concurrent requests that start together."""
    together = threading.Barrier(ASKERS)
    with ThreadPoolExecutor(ASKERS) as pool:
        return list(pool.map(lambda n: (together.wait(), work(n))[1], range(ASKERS)))


def test_whoever_draws_meanwhile_changes_nothing(service, monkeypatch):
    """A worker's cache serves all its threads; here another thread draws in the middle of each draw."""
    service.make(knobs=ROUNDED)
    for id in range(1, 6):  # nothing is looked at beside the start until there are values
        assert service.tell(id, float(id % 3)).status_code == 200
    with SharedStore(service.store) as store:
        (known,) = load(store, ["a"])
        expected = [trial.knobs for trial in UnlockedStudy(store, known).ahead(20)]
        alone, draws = Keyed.generators, []

        def disturbed(self, *about):
            (generator,) = alone(self, *about)
            monkeypatch.setattr(Keyed, "generators", alone)
            other = threading.Thread(target=lambda: draws.append(list(UnlockedStudy(store, known).ahead(3))))
            other.start()
            other.join()
            monkeypatch.setattr(Keyed, "generators", disturbed)
            yield generator

        monkeypatch.setattr(Keyed, "generators", disturbed)
        found = [trial.knobs for trial in UnlockedStudy(store, known).ahead(20)]
    assert len(draws) >= 20
    assert len({str(setting) for setting in found}) > 5
    assert found == expected


def test_clients_of_one_service_get_the_setting_that_is_learnt(start):
    service = start(connections=ASKERS)
    service.make(knobs=ROUNDED)
    asked = []
    for id in range(1, 31):
        trials = at_once(lambda _: service.ask().json()["knobs"])
        assert trials == [trials[0]] * ASKERS, id
        asked.append(trials[0])
        assert service.tell(id, float(trials[0]["size"])).status_code == 200
    assert [event["query"] for event in service.events() if event["kind"] == "tell"] == asked


def test_clients_of_several_processes_get_the_setting_that_is_learnt(tmp_path, until):
    running, url = served(str(tmp_path / "t.db"), 2)
    try:
        with contextlib.ExitStack() as stack:
            http = stack.enter_context(httpx.Client(base_url=url, timeout=300))

            def ready():
                try:
                    return http.get("/readyz").status_code == 200
                except httpx.TransportError:
                    return False

            until(ready)
            made = http.put("/v1/studies/a", json={"knobs": ROUNDED, "seed": 1, "baseline": {"every": 0}})
            assert made.status_code == 201
            asked = []
            each = [stack.enter_context(httpx.Client(base_url=url, timeout=300)) for _ in range(ASKERS)]
            for id in range(1, 21):
                trials = at_once(lambda n: each[n].post("/v1/studies/a/trials:ask").json()["knobs"])
                assert trials == [trials[0]] * ASKERS, id
                asked.append(trials[0])
                told = http.put(f"/v1/studies/a/trials/{id}/result", json={"value": float(trials[0]["size"])})
                assert told.status_code == 200
            events = http.get("/v1/events", params={"study": "a"}).json()["events"]
    finally:
        end(running)
    assert [event["query"] for event in events if event["kind"] == "tell"] == asked
