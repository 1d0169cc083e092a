"""The client: as a study, and through whatever happens to the service meanwhile."""

import math
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import trimtab as tt
from trimtab.client import Refused
from trimtab.live import Study, Unavailable
from trimtab.store.errors import StoreError

from ..factories import KNOBS


def work(study, rounds):
    for n in range(rounds):
        trial = study.ask()
        if n % 7 == 3:
            study.skip(trial, "no answer")
        else:
            study.tell(trial, (trial.knobs["gain"] - 6) ** 2)


def test_the_same_words_and_the_same_path(service, tmp_path):
    with tt.Client(service.url) as client, Study.open(tmp_path / "o.db", "a", KNOBS, seed=4, baseline=7) as local:
        remote = client.study("a", KNOBS, seed=4, baseline={"every": 7})
        for study in (remote, local):
            work(study, 20)
        assert remote.round == local.round == 17  # and three of the baseline
        assert remote.centre == local.centre
        assert remote.ask() == local.ask()
        assert client.study("a").round == 17
        trial = remote.ask()
        remote.tell(trial, 1.0, applied={"gain": 3.0} if trial.kind == "probe" else None)
        with pytest.raises(Refused, match="the first value is final") as refused:
            remote.tell(trial, 2.0)
        assert refused.value.status == 409
        with pytest.raises(Refused, match="there is no study 'b'"):
            client.study("b")
        with pytest.raises(Refused, match="already exists with another definition"):
            client.study("a", KNOBS, seed=5)


def test_a_remote_study_shows_what_it_knows_without_a_request(service, monkeypatch):
    with tt.Client(service.url) as client:
        study = client.study("a", KNOBS, seed=4)
        at = service.url
        assert repr(study) == f"<RemoteStudy 'a' at={at!r}>"
        trial = study.ask()
        study.tell(trial, 2.5)
        centre = study.centre
        monkeypatch.setattr(client, "request", None)
        shown = repr(study)
        assert shown.startswith(f"<RemoteStudy 'a' at={at!r} round={trial.round + 1} centre=(gain={centre['gain']:g}")
        assert shown.endswith(" value=2.5>")
        assert "RemoteStudy" in study._repr_html_()


def test_a_password_in_an_address_is_not_shown():
    with tt.Client("http://me:secret@127.0.0.1:9") as client:
        assert "secret" not in repr(tt.client.RemoteStudy(client, "a", "/v1/studies/a"))


def test_tokens_and_waiting(service):
    token = service.token("operate")["Authorization"].removeprefix("Bearer ")
    with tt.Client(service.url, token) as client:
        study = client.study("a", KNOBS, guard={"approval": True})
        with pytest.raises(TimeoutError, match="waiting for approval of round 0"):
            study.ask(wait=0)
    with tt.Client(service.url, "tt_wrong_token") as client, pytest.raises(Refused, match="revoked token"):
        client.study("a")
    with pytest.raises(ValueError, match="is not the address of a service"):
        tt.Client("file:///etc/passwd")


def test_a_service_that_goes_away_and_comes_back(service, monkeypatch):
    """A connection that is cut before and after the service has answered."""
    with tt.Client(service.url) as client:
        study, cut = client.study("a", KNOBS, seed=1), iter([True, False] * 30)
        send = client._connection.request

        def sending(*words):
            send(*words)
            if next(cut, False):
                client._connection.getresponse().read()
                raise ConnectionResetError("cut")

        monkeypatch.setattr(client._connection, "request", sending)
        work(study, 10)
        assert study.round == 10
    with (
        tt.Client("http://127.0.0.1:9", patience=0.3) as client,
        pytest.raises(Unavailable, match="check that the service is running"),
    ):
        client.study("a")


def test_what_does_not_mend_itself_is_said_at_once(service, monkeypatch):
    monkeypatch.setattr("trimtab.client.time.sleep", lambda _: pytest.fail("it was tried again"))
    with tt.Client(service.url.replace("http", "https")) as client, pytest.raises(Unavailable) as refused:
        client.study("a")
    assert str(refused.value).endswith(f"use {service.url}")


def test_waiting_for_a_service_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr("trimtab.client.delays", lambda **_: iter([0.0, 0.0, 0.0, math.inf]))
    with tt.Client("http://127.0.0.1:9") as client, pytest.raises(Unavailable):
        client.study("a")
    (said,) = caplog.records
    assert (said.name, said.levelname) == ("trimtab.client", "WARNING")
    assert "http://127.0.0.1:9 cannot be reached" in said.getMessage()
    assert said.getMessage().endswith("retrying for 60 s")


def test_a_connection_that_was_idle_for_too_long_is_no_news(service, caplog):
    with tt.Client(service.url) as client:
        study = client.study("a", KNOBS, seed=1)
        client._connection.sock.close()  # as a service closes it after some seconds
        study.ask()
    assert caplog.records == []


def test_several_threads_may_use_one(service):
    with tt.Client(service.url) as client:
        study, wrong = client.study("a", KNOBS, seed=1, baseline={"every": 0}), []

        def one():
            for _ in range(10):
                trial = study.ask()
                try:
                    study.tell(trial, float(trial.round))
                except StoreError as error:
                    wrong.append(error)

        threads = [threading.Thread(target=one) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        values = [event["value"] for event in service.events()][1:]
        assert values == [float(n) for n in range(len(values))]


def test_limits_are_told_as_to_a_study(service):
    options = {
        "method": "primal-dual",
        "radius": 0.05,
        "step": 0.02,
        "limits": {"heat": {"max": 60}},
        "baseline": {"every": 0},
    }
    with tt.Client(service.url) as client:
        study = client.study("hot", KNOBS, **options)
        study.tell(study.ask(), 1.0, limits={"heat": 50.0})
        with pytest.raises(ValueError, match="heat is missing"):
            study.tell(study.ask(), 1.0)
        assert study.summary()["limits"][0]["value"] == 50.0


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl: apt-get install curl")
def test_the_lines_of_the_page_do_what_it_says(service):
    """Every curl line of docs/serve.md, one after the other, on one service; a stream is only begun."""
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```", page, flags=re.S | re.M))
    for there, here in (("http://127.0.0.1:8765", service.url), ("?wait=30", "?wait=0"), ("curl -N", "curl -m 1")):
        lines = lines.replace(there, here)
    shell = "curl() { command curl -s -o /dev/null -w '%{http_code} %{method} %{url_effective}\\n' \"$@\"; }\n"
    done = subprocess.run(["bash", "-c", shell + lines], capture_output=True, text=True, timeout=300)
    answers = [line.split() for line in done.stdout.splitlines()]
    assert len(answers) == lines.count("curl ") >= 20
    refused = {url.removeprefix(service.url): status for status, _, url in answers if not status.startswith("2")}
    assert refused == {}
