"""Clocks that are set forward or back while a study runs: `trimtab tune`, `trimtab serve`, quiet hours and charts."""

import contextlib
import csv
import datetime
import io
import itertools
import os
import subprocess
import threading
import time

import pytest

from trimtab.live import Study
from trimtab.store.shared_store import SharedStore
from trimtab.study.verify import check_study

from ..factories import ONE_KNOB
from ..serve.processes import PROGRAM, end, service

LEADS = (6, 40, 200)  # seconds until the change; more, if a busy machine needs so long to start
PATIENCE = 60  # seconds after it
ROUNDS = 5  # before and after the change
HOUR = datetime.timedelta(hours=1)
STUDY = """
name = "a"
command = ["sh", "-c", "date +%s"]
pause = 0.05
[guard]
quiet_hours = {quiet}
[knobs.x]
low = 0
high = 10
start = 5
"""


class Change:
    """A time zone whose clocks are set forward, or back, by an hour, `lead` seconds from now."""

    def __init__(self, lead, forward):
        utc = datetime.datetime.fromtimestamp(int(time.time()) + lead, datetime.UTC)
        self.at, offset = utc.timestamp(), datetime.timedelta(0) if forward else HOUR
        self.before, self.after = utc + offset, utc + (HOUR - offset)  # local time, just before and just after
        rules = [f"{self.before:%j/%T}", f"{utc + datetime.timedelta(days=150):%j}"]
        # Days are counted from 0, the local time of each rule is that before it.
        this, other = (f"{int(rule[:3]) - 1}{rule[3:]}" for rule in rules)
        self.zone = f"WINTER0SUMMER-1,{this},{other}" if forward else f"WINTER0SUMMER-1,{other},{this}"

    def hours(self, begin, end):
        """Quiet hours from so many minutes after one local time until so many after another."""
        limits = [when + datetime.timedelta(minutes=minutes) for when, minutes in (begin, end)]
        return "-".join(f"{limit:%H:%M}" for limit in limits)


def changes(forward):
    for lead in LEADS:
        yield Change(lead, forward)


@contextlib.contextmanager
def tuning(folder, change, quiet=None):
    """`trimtab tune` in this zone, which ends, should it wait for ever, long after the change."""
    (folder / "study.toml").write_text(STUDY.format(quiet=[] if quiet is None else [quiet]).replace("'", '"'))
    words = [PROGRAM, "tune", "study.toml", "--plain"]
    env = {**os.environ, "TZ": change.zone}
    with subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as running:
        timer = threading.Timer(change.at - time.time() + PATIENCE, running.kill)
        timer.start()
        try:
            yield running
        finally:
            timer.cancel()
            running.kill()


def stored(folder):
    """The events of rounds, all of which are there."""
    with SharedStore(folder / "trimtab.db") as store:
        saved = store.load("a")
        assert check_study(store, saved) == []
        events = store.events(saved)
    assert [event.seq for event in events] == list(range(len(events)))
    return [event for event in events if event.kind in ("tell", "baseline")]


@pytest.mark.parametrize("forward", [True, False], ids=["forward", "back"])
def test_rounds_go_on_and_their_times_are_ordered(tmp_path_factory, forward):
    for change in changes(forward):
        folder = tmp_path_factory.mktemp("study")
        with tuning(folder, change) as running:
            before = after = 0
            while after < ROUNDS:
                assert running.stdout.readline(), "it has ended"
                before, after = before + (time.time() < change.at), after + (time.time() > change.at + 1)
            running.terminate()
            assert running.wait(60) == 0
        if before >= ROUNDS:
            break
    else:
        pytest.fail("it never started in time")
    times = [event.time for event in stored(folder)]
    assert times == sorted(times)
    words = [PROGRAM, "show", "a", "--csv"]
    shown = subprocess.run(words, cwd=folder, env={**os.environ, "TZ": change.zone}, capture_output=True, text=True)
    rows = [datetime.datetime.fromisoformat(row["time"]) for row in csv.DictReader(io.StringIO(shown.stdout))]
    offsets = [when.utcoffset() for when in rows]
    assert [offset for offset, _ in itertools.groupby(offsets)] == [HOUR * (not forward), HOUR * forward]
    assert rows == sorted(rows)


def test_quiet_hours_that_the_clock_skips_end_at_once(tmp_path_factory):
    """Clocks go from 2 to 3: the hours from 1:30 to 2:30 end then."""
    for change in changes(forward=True):
        folder = tmp_path_factory.mktemp("study")
        with tuning(folder, change, change.hours((change.before, -30), (change.before, 30))) as running:
            began = time.time()
            lines = [running.stdout.readline() for _ in range(ROUNDS)]
            running.terminate()
            assert running.wait(60) == 0
        if began + 1 < change.at and "quiet hours: waiting" in lines[0]:
            break
    else:
        pytest.fail("it never started in time")
    assert not any("quiet" in line for line in lines[1:])
    assert min(event.value for event in stored(folder)) >= change.at


def test_quiet_hours_that_the_clock_returns_to_begin_again(tmp_path_factory):
    """Clocks go from 3 to 2: the hours from 1:30 to 2:30 are not over yet."""
    for change in changes(forward=False):
        folder = tmp_path_factory.mktemp("study")
        with tuning(folder, change, change.hours((change.after, -30), (change.after, 30))) as running:
            lines = list(itertools.takewhile(lambda line: "quiet" not in line, running.stdout))
            running.terminate()
            assert running.wait(60) == 0
        if len(lines) >= ROUNDS:
            break
    else:
        pytest.fail("it never started in time")
    assert all(event.value < change.at for event in stored(folder)[:-1])  # the last one may have begun just before


def test_the_service_hands_out_a_trial_when_the_quiet_hours_end(tmp_path_factory, monkeypatch, until):
    httpx = pytest.importorskip("httpx", reason='no httpx: pip install "trimtab[dev]"')
    for change in changes(forward=True):
        monkeypatch.setenv("TZ", change.zone)
        running, url = service(tmp_path_factory.mktemp("study") / "t.db", 1)
        try:
            with httpx.Client(base_url=url, timeout=300) as http:

                def ready(http=http):
                    with contextlib.suppress(httpx.TransportError):
                        return http.get("/readyz").status_code == 200

                until(ready)
                guard = {"quiet_hours": [change.hours((change.before, -30), (change.before, 30))]}
                http.put("/v1/studies/a", json=body(guard))
                first = http.post("/v1/studies/a/trials:ask")
                in_time = time.time() < change.at
                until(lambda http=http: http.post("/v1/studies/a/trials:ask?wait=20").status_code == 200)
                assert time.time() >= change.at
        finally:
            end(running)
        if in_time:
            break
    else:
        pytest.fail("it never started in time")
    assert (first.status_code, first.json()["blocked"]) == (202, "quiet hours")


def body(guard):
    return {"knobs": [{"name": "x", "low": 0, "high": 1, "start": 0.5}], "guard": guard}


@pytest.fixture
def berlin(monkeypatch):
    """Local time of this process."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_chart_shows_the_hour_that_comes_twice_once(tmp_path, monkeypatch):
    pytest.importorskip("plotly", reason='no Plotly: pip install "trimtab[live]"')
    began = datetime.datetime(2026, 10, 25, 0, 10, tzinfo=datetime.UTC).timestamp()  # 2:10; at 3:00 it is 2:00 again
    ticks = itertools.count()
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: began + 600 * next(ticks))
        with Study.open(tmp_path / "t.db", "a", ONE_KNOB, seed=1, baseline=0) as study:
            while study.seq < 8:
                study.tell(study.ask(), float(study.seq))
            last = list(study.events())[-1].time
            drawn = study.figure()
    assert last > began + 3600
    assert drawn.layout.xaxis3.title.text == "time (CET)"
    for trace in drawn.data:
        assert list(trace.x) == sorted(set(trace.x)), trace.name
        assert trace.x[-1:] in ((), (f"{datetime.datetime.fromtimestamp(last)}.000",)), trace.name
