"""The demonstration: three systems that tuning makes better, and the program that shows them."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from trimtab.live import Study
from trimtab.serve.demo import SYSTEMS, tune

PROGRAM = Path(sys.executable).with_name("trimtab")


@pytest.mark.parametrize("name", SYSTEMS)
def test_tuning_makes_it_better(name, tmp_path):
    system = SYSTEMS[name]
    knobs, maximise = system.study["knobs"], system.study.get("goal") == "maximise"
    paid = at_start = 0.0
    with Study.open(tmp_path / "t.db", name, knobs, maximise=maximise, seed=1, baseline=0) as study:
        study._store._db.execute("PRAGMA synchronous=OFF")
        for n in range(400):
            trial = study.ask()
            value = system.cost(trial.round, trial.knobs)
            study.tell(trial, value)
            if n >= 200:
                paid, at_start = paid + value, at_start + system.cost(trial.round, study.start)
    assert (paid > 1.1 * at_start) if maximise else (paid < 0.9 * at_start)


def test_the_players_use_the_api(service):
    tune(service.url, "pump", rounds=5)
    assert service.get("pump")["seq"] == 5


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_the_program(until, tmp_path, sign):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    words, env = [PROGRAM, "serve", "--demo", "--port", str(port)], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as demo:
        try:
            assert f"http://127.0.0.1:{port}" in demo.stdout.readline()

            def moving():
                try:
                    found = httpx.get(f"http://127.0.0.1:{port}/v1/studies", timeout=5).json()["studies"]
                except httpx.HTTPError:
                    time.sleep(0.2)
                    return False
                return len(found) == 3 and all(study["rounds"] >= 3 for study in found)

            until(moving, 120)
            assert list(tmp_path.iterdir())
        finally:
            demo.send_signal(sign)
            try:
                demo.communicate(timeout=120)  # the players write to it as well: until they, too, have ended
            finally:
                demo.kill()
    assert list(tmp_path.iterdir()) == []
