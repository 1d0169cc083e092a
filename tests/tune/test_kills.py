"""kill -9 at random moments: the path equals that of an uninterrupted run, and no acknowledged value is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trimtab.live import Runner, Study, read_config

KILLING = Path(__file__).with_name("killing.py")
PROGRAM = Path(sys.executable).with_name("trimtab")
STUDY = """
name = "killed"
command = ["sh", "-c", "echo $((KNOB_N * KNOB_N / 9 + TRIMTAB_ROUND % 7)).{share}"]
seed = 5
[baseline]
every = 3
[knobs.n]
type = "integer"
low = 1
high = 900
start = 400
[knobs.share]
type = "integer"
low = 10
high = 90
start = 80
"""


def history(folder, store="trimtab.db"):
    with Study.open_unlocked(folder / store, "killed") as study:
        return [event._replace(time=0.0) for event in study.events() if event.kind != "leave"]


def round_count(events):
    return sum(event.kind in ("tell", "skip", "baseline") for event in events)


def saving(folder, store):
    """Return the saving and its sums, rebuilt from a snapshot and the values since."""
    with Study.open_unlocked(folder / store, "killed") as study:
        return study._position.ledger, study.baseline, study.saving


def undisturbed(folder, rounds):
    config = read_config(folder / "study.toml")
    config.__dict__["store"] = "other.db"
    with config.open() as study:
        for _ in Runner(config, study).rounds(rounds):
            pass
    return history(folder, "other.db")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_fifty_kills_do_not_change_the_path(tmp_path, seed):
    (tmp_path / "study.toml").write_text(STUDY)
    done = subprocess.run(
        [sys.executable, KILLING, tmp_path, "50", str(seed)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "errors.txt").exists(), (tmp_path / "errors.txt").read_text()
    found = json.loads(done.stdout)
    assert sum(found["kills"].values()) == 50
    assert min(found["kills"].values()) > 8  # in each phase: asking, the command, the commit
    killed = history(tmp_path)
    assert killed == undisturbed(tmp_path, found["rounds"])
    stored = {(event.kind, event.round): event.value for event in killed}
    assert sum(event.kind == "baseline" for event in killed) - round_count(killed) // 3 in (0, 1)
    acknowledged = [json.loads(line) for line in (tmp_path / "acks.txt").read_text().splitlines()]
    assert len(acknowledged) > 25  # so that more than eight are baseline rounds
    assert {kind for kind, _, _ in acknowledged} == {"tell", "baseline"}
    assert all(stored[kind, round] == value for kind, round, value in acknowledged)
    assert saving(tmp_path, "trimtab.db") == saving(tmp_path, "other.db")
    assert saving(tmp_path, "trimtab.db")[-1].saved is not None


def test_the_killed_program_resumes(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    chance, printed = random.Random(3), []
    for _ in range(5):
        with subprocess.Popen(
            [PROGRAM, "tune", "study.toml"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            printed += [running.stdout.readline() for _ in range(chance.randint(1, 5))]
            time.sleep(chance.random() * 0.02)
            os.kill(running.pid, signal.SIGKILL)
            printed += running.stdout.readlines()
    killed = history(tmp_path)
    assert killed == undisturbed(tmp_path, round_count(killed))
    stored = {(event.kind, event.round): "-" if event.value is None else f"{event.value:.6g}" for event in killed}
    whole = [line.split() for line in printed if line.endswith("\n") and "note" not in line]
    assert whole
    assert all(stored[words[3], int(words[2])] == words[4] for words in whole)
