"""The table [context]: how it is read, the numbers before each round, and rounds in which they are missing."""

import io
import json

import pytest

import trimtab as tt
from trimtab.live import Runner, Study, read_config
from trimtab.tune.context_source import ContextSource
from trimtab.tune.init_from import write_successor

STUDY = """
name = "a"
command = ["sh", "-c", "echo {{x}}"]
seed = 1
{more}
[knobs.x]
low = 0
high = 10
start = 5
[baseline]
every = 0
"""


@pytest.fixture
def config(tmp_path):
    def write(table, more=""):
        file = tmp_path / "study.toml"
        file.write_text(STUDY.format(more=more) + table)
        return read_config(file)

    return write


def load_script(tmp_path, text):
    script = tmp_path / "load"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)


def run(config, rounds):
    with config.open() as study:
        reports = list(Runner(config, study).rounds(rounds))
        return [r for r in reports if r.kind in ("tell", "skip", "hold")], [r.note for r in reports if r.kind == "note"]


def test_the_numbers_are_read_before_each_round_and_kept(config, tmp_path):
    load_script(tmp_path, 'echo "hour=$((TRIMTAB_ROUND % 24)) load=0.$TRIMTAB_ROUND"')
    study = config('[context]\ncommand = ["./load"]\nload = {}\nhour = {period = 24}\n')
    study.check_program()
    reports, notes = run(study, 4)
    assert [r.context for r in reports] == [{"load": n / 10, "hour": float(n)} for n in range(4)]
    assert notes == []
    with Study.open_unlocked(study.where, "a") as opened:
        kept = [event.context for event in opened.events() if event.kind == "tell"]
        assert opened.contexts == (tt.Context("load"), tt.Context("hour", period=24))
    assert kept == [[n / 10, float(n)] for n in range(4)]


def test_a_file_may_have_the_only_number(config, tmp_path):
    (tmp_path / "load.txt").write_text("0.7\n")
    reports, _ = run(config('[context]\nfile = "load.txt"\nload = {}\n'), 1)
    assert reports[0].context == {"load": 0.7}


@pytest.mark.parametrize(
    ("script", "known", "why"),
    [
        ("echo broken >&2; exit 3", None, "exit status 3: broken"),
        ("sleep 60", None, "no answer within 0.5 s"),
        ("echo hour=3 lode=4", None, "no number under 'load' in the output"),
        ("echo load=high", None, "no number under 'load', but 'high'"),
        ("true", None, "the command printed nothing"),
        ("echo load=nan", None, "the value is nan"),
        ("echo starting 3 of 4; echo load: 0.25", 0.25, None),
        ("""echo '{"load": 0.5, "more": [1, 2]}'""", 0.5, None),
    ],
)
def test_a_missing_context_is_said_and_the_round_goes_on(config, tmp_path, monkeypatch, caplog, script, known, why):
    monkeypatch.setattr("trimtab.tune.command.GRACE", 0.2)
    load_script(tmp_path, script)
    (report,), notes = run(config('[context]\ncommand = ["./load"]\ntimeout = 0.5\nload = {}\n'), 1)
    assert (report.kind, report.context) == ("tell", {"load": known})
    if why is None:
        assert notes == []
        return
    (note,) = notes
    assert note.startswith("context: load is not known (")
    assert why in note
    assert note.endswith("its mean is assumed")
    assert [record.message for record in caplog.records if "context" in record.message] == [note]


def test_a_missing_context_is_reported_when_it_changes(config, tmp_path):
    load_script(tmp_path, 'case $TRIMTAB_ROUND in 1|2) exit 1;; esac; echo "load=1"')
    reports, notes = run(config('[context]\ncommand = ["./load"]\nload = {}\n'), 5)
    assert [r.context["load"] for r in reports] == [1.0, None, None, 1.0, 1.0]
    assert [note.partition(" (")[0] for note in notes] == [
        "context: load is not known",
        "context: all of it is known again",
    ]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[context]\nload = {}\n", r'neither command nor file: write command = \["./load"\]'),
        ('[context]\ncommand = ["a"]\nfile = "b"\nload = {}\n', "both command and file"),
        ('[context]\ncommand = ["a"]\n', r"names no number: write for example load = \{\}"),
        ('[context]\ncomand = ["a"]\nload = {}\n', 'unknown field context.comand: did you mean "command"?'),
        ('[context]\ncommand = "a"\nload = {}\n', r"context.command='a' must be a list of strings"),
        ("[context]\nfile = 3\nload = {}\n", "context.file=3 must be a path"),
        ('[context]\nfile = "a"\nhour = {perod = 24}\n', 'context.hour.perod: did you mean "period"?'),
        ('[context]\nfile = "a"\nhour = {period = -1}\n', "period=-1 of 'hour' must be positive"),
        ('[context]\nfile = "a"\ntimeout = 0\nhour = {}\n', "context.timeout"),
        ('[context]\nfile = "a"\na = {}\nb = {}\nc = {}\nd = {}\n', "4 contexts are too many"),
        ('[contxt]\nfile = "a"\n', 'unknown field contxt: did you mean "context"?'),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(config, table, words):
    with pytest.raises(ValueError, match=words) as error:
        config(table)
    assert "\n" not in str(error.value)


def test_only_the_belief_takes_a_context(config):
    table = '[context]\nfile = "a"\nload = {}\n'
    assert config(table).build_method() == tt.belief(radius=0.05)
    with pytest.raises(ValueError, match='"residual" takes no context: remove'):
        config(table, 'method = "residual"\nstep = 0.1\n')


def test_a_program_that_is_not_there_is_refused_before_the_first_round(config):
    with pytest.raises(ValueError, match=r"context\.command\[0\]='./load' cannot be run"):
        config('[context]\ncommand = ["./load"]\nload = {}\n').check_program()


def test_a_study_without_its_table_is_refused_and_a_new_source_is_not(config, tmp_path):
    (tmp_path / "load.txt").write_text("0.7\n")
    run(config('[context]\nfile = "load.txt"\nload = {}\n'), 1)
    with pytest.raises(ValueError, match="its context is load, but its definition says none"):
        config("").open()
    load_script(tmp_path, "echo 0.9")
    (report,), _ = run(config('[context]\ncommand = ["./load"]\nload = {}\n'), 1)
    assert report.context == {"load": 0.9}
    why = r"context\.command is read from study\.toml at the start of a run"
    with Study.open_unlocked(tmp_path / "trimtab.db", "a") as study, pytest.raises(ValueError, match=why):
        study.set({"context.command": ["./other"]})


def test_a_round_held_after_failures_is_held_for_the_present_load(config, tmp_path):
    load_script(tmp_path, "cat load.txt")
    study = config('[context]\ncommand = ["./load"]\nload = {}\n[guard]\nfailures = 1\n')
    with study.open() as opened:
        for k in range(120):
            load = (k % 20) / 10 - 1
            trial = opened.ask({"load": load})
            opened.tell(trial, (trial.knobs["x"] - 5 - 2 * load) ** 2)
        opened.skip(opened.ask({"load": 0.0}))
        (tmp_path / "load.txt").write_text("0.9\n")
        report = next(r for r in Runner(study, opened).rounds(1) if r.kind != "note")
        assert report.kind == "hold"
        assert report.setting == opened.at({"load": 0.9}) != opened.centre


def test_a_successor_has_the_same_table(config, tmp_path):
    table = '[context]\nfile = "load.txt"\nload = {}\nhour = {period = 24}\n'
    (tmp_path / "load.txt").write_text("load=1 hour=2\n")
    before = config(table)
    run(before, 2)
    after = read_config(write_successor(tmp_path / "next.toml", before.where, "a"))
    assert after.context == ContextSource.of({"file": "load.txt", "load": {}, "hour": {"period": 24}}) == before.context
    assert after.method == "belief"


def test_the_output_is_that_of_the_command_or_json():
    source = ContextSource.of(json.loads('{"file": "a", "load": {}}'))
    assert source.parse("the load is 0.7 now") == ({"load": 0.7}, None)
    assert source.parse("load 0.7")[0] == {"load": 0.7}


def test_the_display_and_the_dry_run_say_the_context(config, tmp_path):
    from collections import deque

    from rich.console import Console
    from typer.testing import CliRunner

    from trimtab.cli import app
    from trimtab.cli.tune_display import line, picture

    load_script(tmp_path, "touch ran; echo load=0.7")
    study = config('[context]\ncommand = ["./load"]\nload = {}\nhour = {period = 24}\n')
    answer = CliRunner().invoke(app, ["tune", str(tmp_path / "study.toml"), "--dry-run", "--rounds", "2"])
    assert "# context: load, hour (period 24), read by ./load; the rounds below are for its mean" in answer.stdout
    assert not (tmp_path / "ran").exists()
    with study.open() as opened:
        report = next(r for r in Runner(study, opened).rounds(1) if r.kind == "tell")
        assert "  load 0.7, hour -  " in line(opened, report)
        console = Console(width=120, record=True, file=io.StringIO())
        console.print(picture(opened, report, deque([1.0])))
        assert "context: load 0.7, hour -" in console.export_text()
