"""Every command for live studies, through a real shell."""

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trimtab.cli import app
from trimtab.cli.stores import COLUMNS, table_lines
from trimtab.live import Store, Study
from trimtab.tune.template import write_example
from trimtab.util.extras import pip_install

from ..program import run, start

PROGRAM = Path(sys.executable).with_name("trimtab")


def shell(folder, line, status=0):
    """Output of a shell command line, in which `trimtab` is the program under test."""
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "COLUMNS": "120"}
    environment.pop("TRIMTAB_STORE", None)
    if re.fullmatch(r"trimtab [\w .-]*", line):  # nothing in it for a shell to do
        done = run(*line.split()[1:], cwd=folder, env=environment)
    else:
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    if status:
        assert "Traceback" not in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        return done.stderr
    return done.stdout


@pytest.fixture
def example(tmp_path):
    write_example(tmp_path / "study.toml")
    seeded(tmp_path)
    return tmp_path


def seeded(folder):
    """With a seed whose first baseline round is the 17th."""
    file = folder / "study.toml"
    file.write_text(file.read_text().replace("# seed = 1 ", "seed = 1 "))


def test_a_day_with_a_study(tmp_path):
    shell(tmp_path, "trimtab init")
    seeded(tmp_path)
    lines = shell(tmp_path, "trimtab tune study.toml --rounds 80").splitlines()
    assert len(lines) == 81
    assert [line.split()[-1] for line in lines[:80]] == [f"{n}/80" for n in range(1, 81)]
    assert lines.pop().split()[3] == "leave"
    assert sum(line.split()[3] == "baseline" for line in lines) == 4
    values = [float(line.split()[4]) for line in lines if line.split()[3] == "tell"]
    assert sum(values[-20:]) / 20 < 0.6 * values[0]  # visibly better

    table = shell(tmp_path, "trimtab show demo") + shell(tmp_path, "trimtab list")
    for word in (
        "demo: no saving shown yet: 4 of 8 baseline rounds",
        "demo: minimise",
        "76 rounds and 4 baseline rounds: value ",
        " 76 rounds and 4 baseline rounds  ",  # of the list
        "probe",
        "valve",
        "rpm",
        "contraction",
        "Last events",
        "tell",
        "trend",
    ):
        assert word in table
    found = json.loads(shell(tmp_path, "trimtab show --json --last 6"))
    assert found["rounds"] == 76
    assert list(found["centre"]) == ["valve", "pump"]  # in the order of the file
    assert set(found["diagnostics"]) == {"contrast", "drift", "contraction", "signal", "capped", "edge"}
    assert found["saving"]["baseline_rounds"] == 4
    assert [event["round"] for event in found["events"]][-2:] == [75, 76]
    assert found["events"][-1]["kind"] == "leave"
    assert found["events"][-1]["query"] == found["centre"]
    rows = list(csv.DictReader(shell(tmp_path, "trimtab show demo --csv").splitlines()))
    assert len(rows) == 82
    assert float(rows[-2]["value"]) == found["value"]
    assert shell(tmp_path, "trimtab show demo --plot demo.png") == "drawn: demo.png\n"
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    (listed,) = json.loads(shell(tmp_path, "trimtab list --json"))
    assert listed["name"] == "demo"
    assert listed["value"] == found["value"]
    assert listed["holder"] is None
    assert 0 <= listed["age"] < 600
    shell(tmp_path, "trimtab show demo --html demo.html")
    page = (tmp_path / "demo.html").read_text()
    assert "Plotly.newPlot" in page
    assert not re.findall(r"<(?:script|link)[^>]+(?:src|href)=", page)  # it needs no network


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
    with Study.open_unlocked(tmp_path / "other.db", "moved") as study:
        assert [event.kind for event in study.events()][-3:] == ["import", "undo", "reset"]


@pytest.mark.usefixtures("example")
def test_a_second_process_is_refused(tmp_path):
    with start("tune", "study.toml", cwd=tmp_path) as first:
        first.stdout.readline()
        told = shell(tmp_path, "trimtab tune study.toml", 2)
        assert "study 'demo' is in use by" in told
        assert f"process {first.pid}, since" in told
        assert json.loads(shell(tmp_path, "trimtab list --json"))[0]["holder"]  # reading goes on
        first.send_signal(signal.SIGTERM)
        first.stdout.read()
    assert first.returncode == 0


@pytest.mark.usefixtures("example")
def test_approve(tmp_path):
    with open(tmp_path / "study.toml", "a") as file:
        file.write("approval = true\n")
    with start("tune", "study.toml", "--rounds", "2", cwd=tmp_path) as tuning:
        proposed = tuning.stdout.readline()
        assert "proposed: waiting for trimtab approve demo" in proposed
        assert "round 0 approved: valve" in shell(tmp_path, "trimtab approve demo")
        assert "tell" in tuning.stdout.readline()
        assert "proposed" in tuning.stdout.readline()
        assert "round 1 rejected" in shell(tmp_path, "trimtab approve --reject")
        assert "rejected" in tuning.stdout.read()


@pytest.mark.usefixtures("example")
def test_dry_run(tmp_path):
    valve, pump, remark, *lines = shell(tmp_path, "trimtab tune study.toml --dry-run --rounds 3").splitlines()
    assert valve == "# probes of valve about 20: 15 to 25"
    assert pump == "# probes of pump about 250: 210 to 297"
    assert remark.startswith("# example rounds")
    assert [line.partition("  # ")[2] for line in lines] == ["round 0", "round 1", "round 2"]
    assert len({line.partition("  # ")[0] for line in lines}) == 3  # each sets something else
    rounds = shell(tmp_path, "trimtab tune study.toml --dry-run --rounds 18").splitlines()
    assert [line.partition("  # ")[2] for line in rounds if "baseline" in line] == ["round 16, baseline"]
    assert not (tmp_path / "trimtab.db").exists()
    assert all("KNOB_VALVE=" in line and " KNOB_PUMP=" in line for line in lines)  # though they go by the environment
    values = shell(tmp_path, "trimtab tune study.toml --dry-run --rounds 2 | sh -e").split()  # as they are
    assert [float(value) > 0 for value in values] == [True, True]
    with open(tmp_path / "study.toml", "a") as file:
        file.write('[knobs.codec]\nchoices = ["gzip", "zstd"]\nstart = "zstd"\n')
    lines = shell(tmp_path, "trimtab tune study.toml --dry-run").splitlines()
    assert "# probes of codec about zstd: one of gzip, zstd" in lines


@pytest.mark.usefixtures("example")
def test_a_guard_rail_ends_with_status_3(tmp_path):
    line = "sed -i 's/stop_above = 100/stop_above = 1/' study.toml; trimtab tune study.toml 2>&1; test $? = 3"
    assert "above guard.stop_above=1: the run has ended" in shell(tmp_path, line)


@pytest.mark.usefixtures("example")
def test_the_display(tmp_path):
    """In a terminal: value, trend, knobs in their ranges, signal, failures."""
    line = f"script -qc '{PROGRAM} tune study.toml --rounds 3' /dev/null"
    shown = shell(tmp_path, f"command -v script > /dev/null || exit 0; {line}")
    if not shown:
        pytest.skip("no script(1) here to make a terminal with")
    for word in (
        "no saving shown yet: 0 of 8 baseline rounds",
        "3/3",
        "left:",
        "probes: valve ±",
        "trend",
        "valve",
        "●",
        "signal",
        "moves",
        "failures in a row",
    ):
        assert word in shown


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("trimtab show", "does not exist: give its path (--store), or begin: trimtab init && trimtab tune study.toml"),
        ("trimtab list", "does not exist: give its path (--store), or begin: trimtab init && trimtab tune study.toml"),
        ("mkdir d; trimtab list --store d", "d is a folder: give the file of a store"),
        ("trimtab tune none.toml", "none.toml does not exist: `trimtab init` writes an example"),
        ("echo hello > trimtab.db; trimtab list", "file is not a database"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, line, reason):
    assert reason in shell(tmp_path, line, 2)


@pytest.mark.parametrize(
    "name", ["backup", "check", "init", "tune", "approve", "show", "list", "export", "import", "undo", "reset-to"]
)
def test_every_command_has_an_example(name):
    assert f"Example: trimtab {name}" in CliRunner().invoke(app, [name, "--help"]).stdout


def test_a_unit_for_systemd(tmp_path):
    told = shell(tmp_path, "trimtab init --systemd && trimtab init --systemd; true")
    assert told.count("written: ") == 3
    unit = tmp_path / "trimtab-demo.service"
    assert told.splitlines()[-2:] == [
        f"Next: mkdir -p ~/.config/systemd/user && cp {unit} ~/.config/systemd/user/",
        "      systemctl --user daemon-reload && systemctl --user enable --now trimtab-demo",
    ]
    assert f"ExecStart={PROGRAM} tune {tmp_path}/study.toml --log json" in unit.read_text()
    assert "already exists" in shell(tmp_path, "trimtab init --systemd", 2)
    assert "LimitNOFILE=65536" in (tmp_path / unit).read_text().splitlines()
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here to verify the unit with")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=300)
    assert "trimtab-demo" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("example")
def test_systemd_hears_that_it_is_ready_and_lives(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hears:
        hears.bind(str(tmp_path / "notify"))
        hears.settimeout(30)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
        words = [PROGRAM, "tune", "study.toml", "--rounds", "20", "--log", "json"]
        heard = []
        with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as running:
            while not heard or "STOPPING=1" not in heard[-1]:
                heard.append(hears.recv(4096).decode())
        assert running.returncode == 0
    assert heard[0].startswith("READY=1\nSTATUS=tuning demo from round 0")
    assert "WATCHDOG=1" in heard
    assert any(text.startswith("STATUS=round 7: tell ") for text in heard)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_study_as_a_frame(tmp_path, library, monkeypatch):
    wanted = pytest.importorskip(library)
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    knobs = [
        {"name": "x", "low": 0, "high": 10, "start": 4},
        {"name": "n", "low": 1, "high": 9, "start": 4, "type": "integer"},
    ]
    with Study.open(tmp_path / "t.db", "a", knobs, seed=0) as study:
        for value in (3.0, None, 2.5):
            study.tell(study.ask(), value)
        frame = study.to_frame()
        assert isinstance(frame, wanted.DataFrame)
        assert list(frame.columns) == [
            "seq",
            "time",
            "round",
            "kind",
            "value",
            "x",
            "n",
            "centre_x",
            "centre_n",
            "note",
        ]
        assert list(frame["kind"]) == ["start", "tell", "skip", "tell"]
        assert list(frame["value"])[1::2] == [3.0, 2.5]
        assert frame["time"][0].year >= 2024
        figure = study.figure()
    traces = {"spread", "measured", "running mean", "baseline", "no value", "setting", "centre", "move"}
    assert {trace.name for trace in figure.data} == traces


LIGHT = """
import sys
import trimtab
heavy = {name for name in sys.modules if "." not in name}
from trimtab.cli import main
sys.argv = ["trimtab", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print({name for name in sys.modules if "." not in name} - heavy, file=sys.stderr)
"""


@pytest.mark.parametrize("words", [["--help"], ["list"]])
def test_help_and_list_import_little(tmp_path, words):
    """NumPy, the laboratory and pictures cost more than all the rest: they are imported by who needs them."""
    Study.open(tmp_path / "trimtab.db", "a", [{"name": "x", "low": 0, "high": 1, "start": 0.5}]).close()
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    loaded = done.stderr.splitlines()[-1]
    assert "typer" in loaded
    for heavy in (
        "numpy",
        "numba",
        "scipy",
        "matplotlib",
        "joblib",
        "plotly",
        "pandas",
        "sqlalchemy",
        "psycopg",
        "jinja2",
    ):
        assert f"'{heavy}'" not in loaded


BARE = """
import sys
for name in ("typer", "rich"):
    sys.modules[name] = None
from trimtab.cli import main
main()
"""


def small(folder, rounds=3):
    (folder / "study.toml").write_text(
        'name = "a"\ncommand = ["echo", "{x}"]\nseed = 1\n[knobs.x]\nlow = 0\nhigh = 10\nstart = 8\n'
    )
    run("tune", "study.toml", "--rounds", str(rounds), cwd=folder)


def test_a_full_disk_for_what_is_printed_does_not_end_the_tuning(tmp_path):
    small(tmp_path)
    warned = shell(tmp_path, "trimtab tune study.toml --rounds 20 2>&1 >/dev/full")
    assert warned.count("warning: output stops, tuning continues: No space left on device") == 1
    assert "20 rounds run" in warned
    printed = shell(tmp_path, "trimtab tune study.toml --rounds 20 2>/dev/full")
    assert len([line for line in printed.splitlines() if " tell " in line or " baseline " in line]) == 20
    with Study.open_unlocked(tmp_path / "trimtab.db", "a") as study:
        assert study.baseline.slot == 43


def test_when_nobody_reads_the_tuning_ends_and_says_where_it_is(tmp_path):
    small(tmp_path)
    line = "{ trimtab tune study.toml 2>&3 | head -n 1; } 3>said"
    assert "round" in shell(tmp_path, line)
    assert "rounds run; " in (tmp_path / "said").read_text()


@pytest.mark.parametrize("words", ["show", "show --json", "show --csv", "list", "--help", "show --help"])
def test_whoever_reads_may_stop_to(tmp_path, words):
    small(tmp_path)
    assert (
        shell(tmp_path, f"{{ sleep 0.2; trimtab {words}; echo $? >status; }} 2>said | true; cat status said") == "0\n"
    )


@pytest.mark.parametrize("words", ["show", "show --json", "list"])
def test_what_cannot_be_printed_is_an_error_in_one_line(tmp_path, words):
    small(tmp_path)
    assert "No space left on device" in shell(tmp_path, f"trimtab {words} >/dev/full", 2)


def test_streams_that_are_closed(tmp_path):
    small(tmp_path)
    assert shell(tmp_path, "trimtab show >&- 2>said; echo $?; cat said") == "0\n"
    assert shell(tmp_path, "trimtab show nobody 2>&-; echo $?") == "2\n"
    assert shell(tmp_path, "trimtab list >&- 2>&-; echo $?") == "0\n"


def test_a_terminal_that_lacks_letters(tmp_path):
    small(tmp_path)
    said = shell(tmp_path, "PYTHONIOENCODING=ascii trimtab set a radius=0.02")
    assert said == "a: set: radius 0.05 \\u2192 0.02\n"


def test_what_takes_long_says_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("trimtab.cli.console.PROGRESS_INTERVAL", -1.0)
    store = str(tmp_path / "t.db")
    with Study.open(store, "a", [{"name": "x", "low": 0, "high": 1, "start": 0.5}], seed=1) as study:
        for value in range(250):
            study.tell(study.ask(), value)
        (tmp_path / "a.json").write_text(study.export())
    done = CliRunner().invoke(app, ["check", "--store", store])
    assert "checking: a, 75% after" in done.stderr
    done = CliRunner().invoke(app, ["import", str(tmp_path / "a.json"), "--as", "b", "--store", store])
    assert done.stdout == "imported: b\n"
    assert "importing: states, 50% after" in done.stderr


def test_without_extras_it_ends_in_one_line_that_helps(tmp_path):
    done = subprocess.run([sys.executable, "-c", BARE], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line == f"error: the program trimtab needs typer: {pip_install('cli', 'lab', 'live')}"


@pytest.mark.parametrize("words", [["compare", "quadratic-v1", "--rounds", "200000"], ["paper", "--quick"]])
def test_ctrl_c_says_what_was_kept(tmp_path, words, until):
    environment = {**os.environ, "TRIMTAB_CACHE": str(tmp_path / "cache")}
    with start(*words, cwd=tmp_path, env=environment) as running:
        until(lambda: list((tmp_path / "cache").rglob("cells")))  # it is about to begin
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=300)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("interrupted: ")
    assert "kept in" in last
    assert str(tmp_path / "cache") in last


def test_a_second_example_beside_the_first(tmp_path):
    shell(tmp_path, "trimtab init && trimtab init second.toml && trimtab tune second.toml --rounds 1")
    (tmp_path / "simulator.py").write_text("print(1)\n")
    told = shell(tmp_path, "trimtab init third.toml", 2)
    assert "simulator.py already exists: move it away, or name a file in another folder" in told
    assert (tmp_path / "simulator.py").read_text() == "print(1)\n"


def test_a_list_leaves_out_columns_that_a_terminal_has_no_room_for():
    rows = [list(COLUMNS), ["demo", "saves 58 % (52 % to 63 %) against the start", *["0123456789"] * 9]]
    assert table_lines(rows, None)[0].split() == list(COLUMNS)
    short, long = table_lines(rows, 90)
    assert short.split() == ["study", "saving", "last", "mean", "pending"]
    assert len(long) <= 90
    assert len(table_lines(rows, 10)[0].split()) == 4  # the study, its saving, its age and what it waits for stay


def test_an_empty_store_says_how_to_begin(tmp_path):
    with Store(tmp_path / "trimtab.db", "create"):
        pass
    told = shell(tmp_path, "trimtab list")
    assert told.startswith("No studies in ")
    assert "trimtab init && trimtab tune study.toml" in told
    assert json.loads(shell(tmp_path, "trimtab list --json")) == []


@pytest.mark.usefixtures("example")
def test_times_have_a_zone(tmp_path):
    shell(tmp_path, "trimtab tune study.toml --rounds 1")
    assert re.search(r"\d\d:\d\d:\d\d JST", shell(tmp_path, "TZ=JST-9 trimtab show demo"))
