"""Every command for live studies, through a real shell."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trimtab.cli import app
from trimtab.live import Study
from trimtab.live.example import write_example

PROGRAM = Path(sys.executable).with_name("trimtab")


def shell(folder, line, status=0):
    """What a line of shell prints; `trimtab` is the program under test."""
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "COLUMNS": "120"}
    environment.pop("TRIMTAB_STORE", None)
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    if status:
        assert "Traceback" not in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        return done.stderr
    return done.stdout


@pytest.fixture
def example(tmp_path):
    write_example(tmp_path / "study.toml")
    return tmp_path


def test_a_day_with_a_study(tmp_path):
    shell(tmp_path, "trimtab init")
    lines = shell(tmp_path, "trimtab tune study.toml --rounds 80").splitlines()
    assert len(lines) == 80
    values = [float(line.split()[4]) for line in lines]
    assert sum(values[-20:]) / 20 < 0.6 * values[0]  # visibly better

    table = shell(tmp_path, "trimtab show demo; trimtab list")
    for word in ("demo: 80 rounds, minimise", "valve", "rpm", "contraction", "Last events", "tell", "trend"):
        assert word in table
    found = json.loads(shell(tmp_path, "trimtab show --json --last 5"))
    assert found["rounds"] == 80
    assert set(found["centre"]) == {"valve", "pump"}
    assert set(found["diagnostics"]) == {"contrast", "drift", "contraction", "signal", "capped", "edge"}
    assert [event["round"] for event in found["events"]] == [75, 76, 77, 78, 79]
    rows = list(csv.DictReader(shell(tmp_path, "trimtab show demo --csv").splitlines()))
    assert len(rows) == 81
    assert float(rows[-1]["value"]) == found["value"]
    assert shell(tmp_path, "trimtab show demo --plot demo.png") == "drawn: demo.png\n"
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    (listed,) = json.loads(shell(tmp_path, "trimtab list --json"))
    assert listed["name"] == "demo"
    assert listed["value"] == found["value"]
    assert listed["holder"] is None


def test_a_study_moves_and_goes_back(tmp_path):
    knobs = [{"name": "x", "low": 0, "high": 10, "start": 4}]
    with Study.open(tmp_path / "trimtab.db", "demo", knobs, seed=0) as study:
        for _ in range(100):
            trial = study.ask()
            study.tell(trial, trial.knobs["x"])
    moved = "--store other.db"
    line = f"trimtab export demo demo.json && trimtab import demo.json --as moved {moved}"
    assert shell(tmp_path, line) == "written: demo.json\nimported: moved\n"
    assert "the next round is 80" in shell(tmp_path, f"trimtab undo 80 {moved}")
    assert "centre: x 4" in shell(tmp_path, "TRIMTAB_STORE=other.db trimtab reset-to start --study moved")
    with Study.look(tmp_path / "other.db", "moved") as study:
        assert [event.kind for event in study.events()][-3:] == ["import", "undo", "reset"]


@pytest.mark.usefixtures("example")
def test_a_second_process_is_refused(tmp_path):
    with subprocess.Popen([PROGRAM, "tune", "study.toml"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as first:
        first.stdout.readline()
        told = shell(tmp_path, "trimtab tune study.toml", 2)
        assert "study 'demo' is held by" in told
        assert f"process {first.pid}, since" in told
        assert json.loads(shell(tmp_path, "trimtab list --json"))[0]["holder"]  # reading goes on
        first.send_signal(signal.SIGTERM)
        first.stdout.read()
    assert first.returncode == 0


@pytest.mark.usefixtures("example")
def test_approve(tmp_path):
    with open(tmp_path / "study.toml", "a") as file:
        file.write("approval = true\n")
    words = [PROGRAM, "tune", "study.toml", "--rounds", "2"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as tuning:
        proposed = tuning.stdout.readline()
        assert "proposed: waiting for trimtab approve demo" in proposed
        assert "round 0 approved: valve" in shell(tmp_path, "trimtab approve demo")
        assert "tell" in tuning.stdout.readline()
        assert "proposed" in tuning.stdout.readline()
        assert "round 1 rejected" in shell(tmp_path, "trimtab approve --reject")
        assert "rejected" in tuning.stdout.read()


@pytest.mark.usefixtures("example")
def test_dry_run(tmp_path):
    lines = shell(tmp_path, "trimtab tune study.toml --dry-run --rounds 3").splitlines()
    assert [line.split(":")[0] for line in lines] == ["round 0", "round 1", "round 2"]
    assert not (tmp_path / "trimtab.db").exists()


@pytest.mark.usefixtures("example")
def test_a_guard_rail_ends_with_status_3(tmp_path):
    line = "sed -i 's/stop_above = 100/stop_above = 1/' study.toml; trimtab tune study.toml"
    assert "above guard.stop_above=1: the run has ended" in shell(tmp_path, line, 3)


@pytest.mark.usefixtures("example")
def test_the_display(tmp_path):
    """In a terminal: value, trend, knobs in their ranges, signal, failures."""
    line = f"script -qc '{PROGRAM} tune study.toml --rounds 3' /dev/null"
    shown = shell(tmp_path, f"command -v script > /dev/null || exit 0; {line}")
    if not shown:
        pytest.skip("no script(1) here to make a terminal with")
    for word in ("trend", "valve", "●", "signal", "moves", "failures in a row"):
        assert word in shown


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("trimtab show", "there is no store"),
        ("trimtab tune none.toml", "there is no none.toml: `trimtab init` writes an example"),
        ("echo hello > trimtab.db; trimtab list", "file is not a database"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, line, reason):
    assert reason in shell(tmp_path, line, 2)


@pytest.mark.parametrize("name", ["init", "tune", "approve", "show", "list", "export", "import", "undo", "reset-to"])
def test_every_command_has_an_example(name):
    assert f"Example: trimtab {name}" in CliRunner().invoke(app, [name, "--help"]).stdout
