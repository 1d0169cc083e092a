"""Sweeps on Ray: real clusters of several processes, a worker killed in each."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="needs ray[client]")
sys.path.insert(0, os.fspath(Path(__file__).parents[1] / "lab"))

import clusters  # noqa: E402

from trimtab import lab  # noqa: E402
from trimtab.lab.parallel import executors  # noqa: E402


def test_a_killed_worker_costs_its_cell(tmp_path):
    clusters.a_killed_worker_costs_its_cell("ray", tmp_path)


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    clusters.ctrl_c_keeps_what_is_finished("ray", tmp_path)


@pytest.mark.filterwarnings("default")
def test_the_same_bytes(tmp_path):
    options = {"rounds": 12, "trials": 4, "tuning_trials": 3, "variances": 2, "seed": 2}
    names = ["residual", "two-point", "still"]
    for folder, some in (("here", {}), ("ray", {"jobs": 2, "backend": "ray"})):
        assert lab.compare("lqr-v1", names, folder=tmp_path / folder, **some, **options).complete
    here, there = (
        {file.name: file.read_bytes() for file in (tmp_path / name / "cells").iterdir()} for name in ("here", "ray")
    )
    assert len(here) == 6
    assert there == here


@pytest.fixture
def head():
    """A cluster as an administrator would start it, with a client server; ended with all its processes."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        port, client = one.getsockname()[1], two.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # a short path: Ray puts sockets there
    words = ["start", "--head", "--block", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
    words += ["--node-ip-address=127.0.0.1", f"--port={port}", f"--ray-client-server-port={client}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", *words, f"--temp-dir={folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + clusters.PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", client), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"no Ray: {process.communicate()[0] if process.poll() is not None else 'too slow'}")
                time.sleep(0.2)
        yield f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=clusters.PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_cluster_at_an_address_is_used_and_left(head, tmp_path):
    for n, address in enumerate(head):
        folder = tmp_path / str(n)
        folder.mkdir()
        sweep = clusters.Sweep("ray", folder, address)
        assert sweep.end() == clusters.SQUARES
        assert sweep.process.pid not in {process for _, process in sweep.begun()}


@pytest.mark.parametrize("failures", [1, executors.CONNECT_ATTEMPTS - 1, executors.CONNECT_ATTEMPTS])
def test_a_connection_that_ray_aborts_is_asked_for_again(failures, monkeypatch):
    """The server that Ray starts for each client dies at its fork now and then: the next one lives."""
    asked = []

    def init(**options):
        asked.append(options)
        if len(asked) <= failures:
            raise ConnectionAbortedError("Initialization failure from server")

    monkeypatch.setattr(ray, "init", init)
    if failures == executors.CONNECT_ATTEMPTS:
        with pytest.raises(ConnectionAbortedError):
            executors.Ray(2, "ray://127.0.0.1:1")
    else:
        executors.Ray(2, "ray://127.0.0.1:1")
    assert len(asked) == min(failures + 1, executors.CONNECT_ATTEMPTS)
    assert {options["address"] for options in asked} == {"ray://127.0.0.1:1"}
