"""Tests that every backend must pass, shared by the tests of loky and Dask here, and of Ray in tests/hosts."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

SWEEPER = Path(__file__).with_name("sweeper.py")
PATIENCE = 240.0  # far more than a loaded machine needs; only a failure waits so long
SQUARES = [n * n for n in range(16)]


class Sweep:
    """A run of sweeper.py, in a session of its own, as a shell would start it."""

    def __init__(self, backend, tmp_path, address=None, folder="kept"):
        self.log, self.kept = tmp_path / "log", tmp_path / folder
        self.log.mkdir(exist_ok=True)
        words = [sys.executable, SWEEPER, backend, self.kept, self.log, *([address] if address else [])]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def begun(self):
        """(cell, process), in order; a last line that is still being written does not count."""
        file = self.log / "begun"
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        return [tuple(map(int, line.split())) for line in lines]

    def saved(self):
        return len(list((self.kept / "cells").glob("*.json")))

    def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                os.killpg(self.process.pid, signal.SIGKILL)
                raise AssertionError(f"{self.begun()}, {self.saved()} saved, {self.process.communicate()}")
            time.sleep(0.05)

    def interrupt(self):
        """Ctrl-C: the whole group hears it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self):
        try:
            out, err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"it hangs: {self.process.communicate()}") from None
        assert self.process.returncode == 0, err
        return json.loads(out.splitlines()[-1])


def a_killed_worker_costs_its_cell(backend, tmp_path, address=None):
    (tmp_path / "log").mkdir()
    hold = tmp_path / "log" / "hold-3"
    hold.touch()
    sweep = Sweep(backend, tmp_path, address)
    sweep.until(lambda: sweep.saved() == 15)  # all but the one that is held
    (victim,) = [process for n, process in sweep.begun() if n == 3]
    os.kill(victim, signal.SIGKILL)
    sweep.until(lambda: sum(n == 3 for n, _ in sweep.begun()) == 2)
    hold.unlink()
    assert sweep.end() == SQUARES
    assert Counter(n for n, _ in sweep.begun()) == {**dict.fromkeys(range(16), 1), 3: 2}
    assert [process for n, process in sweep.begun() if n == 3] != [victim, victim]


def ctrl_c_keeps_what_is_finished(backend, tmp_path, address=None):
    (tmp_path / "log").mkdir()
    holds = [tmp_path / "log" / f"hold-{n}" for n in (10, 11)]
    for hold in holds:
        hold.touch()
    sweep = Sweep(backend, tmp_path, address)
    sweep.until(lambda: sweep.saved() == 10 and {n for n, _ in sweep.begun()} >= {10, 11})
    sweep.interrupt()
    assert sweep.end() == [n * n if n < 10 else None for n in range(16)]
    for hold in holds:
        hold.unlink()
    before = len(sweep.begun())
    again = Sweep(backend, tmp_path, address)
    assert again.end() == SQUARES
    assert sorted(n for n, _ in again.begun()[before:]) == [10, 11, 12, 13, 14, 15]
