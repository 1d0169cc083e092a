"""How a service starts, and where it does not."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from trimtab.serve.api.routes import health
from trimtab.store.errors import StoreError, Unavailable

from ..program import run, start


@pytest.mark.parametrize("more", [[], ["--demo"], ["--workers", "2"]])
def test_a_port_in_use_is_said_before_anything_is_started(tmp_path, more):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("serve", "--port", port, *more, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"error: port {port} is in use: stop the other program, or give another --port\n"
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_not_of_this_machine(tmp_path):
    done = run("serve", "--host", "192.0.2.1", cwd=tmp_path)
    assert done.returncode == 2
    assert "--host 192.0.2.1" in done.stderr
    assert "give an address of this machine" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_whatever_is_logged_is_a_line_of_json():
    """Also by the packages that are used, by Python's own warnings, and in a worker that has begun twice."""
    say = """
import logging, warnings
from trimtab.serve.server import configure_logging
configure_logging()
configure_logging()
logging.getLogger("psycopg.pool").warning("error connecting")
logging.getLogger("uvicorn.error").info("started")
logging.getLogger("trimtab.serve").info("GET")
warnings.warn("old")
"""
    done = subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"][:16] for line in said[:3]] == ["error connecting", "started", "GET"]
    assert len(said) == 4


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_store_that_is_away_at_the_start_is_waited_for(tmp_path, host):
    """It says so, is not ready, and Ctrl-C ends it."""
    pytest.importorskip("psycopg_pool", reason="no psycopg_pool: it comes with the extra postgres")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    store = f"postgresql://nobody@/none?host={tmp_path}"
    with start("serve", "--port", port, "--host", host, "--store", store, cwd=tmp_path) as serving:
        late = threading.Timer(300, serving.kill)  # should it never say so
        late.start()
        said = [json.loads(serving.stderr.readline())["message"]]
        while not (said[-1].startswith("waiting") and any("running on" in line for line in said)):
            said.append(json.loads(serving.stderr.readline())["message"])
        assert "next attempt in" in said[-1]
        assert httpx.get(f"http://127.0.0.1:{port}/livez").status_code == 200
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 503
        serving.send_signal(signal.SIGINT)
        _, rest = serving.communicate(timeout=300)
        late.cancel()
    assert serving.returncode in (0, 130), rest
    assert "Traceback" not in rest


def test_the_store_is_looked_for_until_it_is_there(monkeypatch, caplog):
    looks = iter([Unavailable("away"), StoreError("no such database"), None])

    def look(studies):
        if (error := next(looks)) is not None:
            raise error

    monkeypatch.setattr(health, "_ping", look)
    monkeypatch.setattr(health, "delays", lambda *_: iter([0.0] * 3))
    caplog.set_level("INFO", "trimtab.serve")
    asyncio.run(health.await_store(None))
    assert [record.getMessage() for record in caplog.records] == [
        "waiting for the store: away; next attempt in 0.0 s",
        "waiting for the store: no such database; next attempt in 0.0 s",
        "the store is available after 2 attempts",
    ]


def test_the_limit_of_open_files_is_raised():
    pytest.importorskip("resource")
    say = """
import resource
from trimtab.serve.server import most_connections, raise_file_limit
from trimtab.serve.settings import Settings
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 800))
raise_file_limit(600)
print(resource.getrlimit(resource.RLIMIT_NOFILE), most_connections(Settings()))
raise_file_limit()
raise_file_limit(300)
print(resource.getrlimit(resource.RLIMIT_NOFILE), most_connections(Settings(most_connections=7)))
"""
    done = subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(600, 800) 450", "(800, 800) 7"]
