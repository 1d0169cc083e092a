"""Commands that fail, hang or print nonsense; guard settings; signals. With real processes."""

import datetime
import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

import trimtab as tt
from trimtab.live import Guard, Runner, Stopped, Study, read_config
from trimtab.tune.dry_run import rehearsal, spans
from trimtab.tune.parse_value import read_value

from ..program import start

STUDY = """
name = "a"
command = {command}
seed = 1
timeout = 600
[knobs.x]
low = 0
high = 10
start = 5
[knobs.n]
type = "integer"
low = 1
high = 9
start = 5
"""


@pytest.fixture
def config(tmp_path):
    def write(*command, more=""):
        file = tmp_path / "study.toml"
        file.write_text(STUDY.format(command=json.dumps(command)) + more)
        return read_config(file)

    return write


def run(config, rounds):
    """Return the reports of this many rounds, and the kinds of all events."""
    with config.open() as study:
        reports = [report for report in Runner(config, study).rounds(rounds) if report.kind != "leave"]
        return reports, [event.kind for event in study.events() if event.kind != "leave"]


@pytest.mark.parametrize(
    ("script", "value", "note"),
    [
        ("echo 12.5", 12.5, None),
        ("echo 1; echo 2", 2.0, None),
        ("echo 3 4", None, "not exactly one number in the last line: '3 4'; to name the value, print JSON or name="),
        ("echo 9; echo $TRIMTAB_ROUND", 0.0, None),
        ("echo 'rate=7.5e-1,'", 0.75, None),
        ("echo p99 is good", None, "no number in the last line: 'p99 is good'; to name the value, print JSON"),
        ("true", None, "the command printed nothing: its last line must hold the value"),
        (r"printf '\377\376\000 \331\241 \302\262 1_0 caf\351'", None, "not exactly one number in the last line"),
        ("echo 1; echo nan", None, "the value is nan"),
        ("echo -inf", None, "the value is -inf"),
        ("echo 3; echo broken >&2; exit 4", None, "exit status 4: broken"),
        ("echo 3; kill -9 $$", None, "exit status -9: no error message"),
        ("echo 3; sleep 60", None, "no answer within 0.5 s"),
        ("trap '' TERM; echo 3; sleep 60 & wait; sleep 60", None, "no answer within 0.5 s"),
    ],
)
def test_values_and_reasons_of_commands(config, script, value, note, monkeypatch):
    monkeypatch.setattr("trimtab.tune.command.GRACE", 0.2)
    study = config("sh", "-c", script)
    hangs = note is not None and note.startswith("no answer")
    (report,), kinds = run(replace(study, timeout=0.5) if hangs else study, 1)
    assert report.value == value
    assert report.note == note or (note and report.note.startswith(note))
    assert kinds == ["start", "skip" if value is None else "tell"]


def test_a_script_without_its_interpreter(config, tmp_path):
    script = tmp_path / "m.py"
    script.write_text("print(3)\n")
    script.chmod(0o755)
    (report,), _ = run(config(str(script)), 1)
    assert report.note == (
        "the command cannot be run: Exec format error: begin the file with a line such as #!/usr/bin/env python3"
    )


def test_a_hanging_command_leaves_no_process_behind(config, tmp_path, until):
    study = config("sh", "-c", "sleep 61.5 & echo $! > child; wait")
    for seconds in (1, 4, 16, 64):  # until it has had time to start
        run(replace(study, timeout=seconds), 1)
        if (tmp_path / "child").exists():
            break
    child = (tmp_path / "child").read_text().strip()

    def gone():
        state = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True).stdout
        return not state.strip() or state.startswith("Z")

    until(gone)


def test_knobs_reach_the_command(config):
    script = 'test "$1" = "$KNOB_X" && test "$2" = "$KNOB_N" && echo $KNOB_N'
    reports, _ = run(config("sh", "-c", script, "-", "{x}", "{n}"), 20)
    assert [report.value for report in reports] == [report.setting["n"] for report in reports]
    assert {type(report.setting["n"]) for report in reports} == {int}


def test_json_values():
    assert read_value('log line 3\n{"a": {"b": 4.5}}\nbye 7', "a.b") == (4.5, None)
    assert read_value('{\n "a": 2\n}', "a") == (2.0, None)
    for out in ("", "7", '{"a": null}', '{"a": true}', '{"b": 1}', '{"a": {"a": 1}}'):
        assert read_value(out, "a")[0] is None
    assert read_value('{"a": NaN}', "a") == (None, "the value is nan")


def test_failures_hold_at_the_centre_until_a_round_succeeds(config):
    script = "test -e good && echo 1"
    more = "[guard]\nfailures = 3\n"
    study = config("sh", "-c", script, more=more)
    reports, _ = run(study, 5)
    assert [report.kind for report in reports] == ["skip", "skip", "skip", "hold", "hold"]
    assert reports[3].setting == {"x": 5.0, "n": 5}
    (study.folder / "good").touch()
    reports, kinds = run(study, 3)  # also after a restart
    assert [report.kind for report in reports] == ["hold", "tell", "tell"]
    assert kinds.count("hold") == 3


def test_failures_return_to_the_start(config):
    more = '[guard]\nfailures = 2\non_failures = "start"\n[baseline]\nevery = 0\n'
    study = config("sh", "-c", 'test $TRIMTAB_ROUND -lt 30 && echo "{x}"', more=more)
    reports, kinds = run(study, 34)
    assert reports[29].setting["x"] < 4
    assert [report.kind for report in reports[30:]] == ["skip", "skip", "hold", "hold"]
    assert reports[-1].setting == {"x": 5.0, "n": 5}
    assert kinds[-3:] == ["reset", "hold", "hold"]


def test_failures_return_to_the_start_only_once_even_after_a_lowered_limit(config):
    more = '[guard]\nfailures = 6\non_failures = "start"\n[baseline]\nevery = 0\n'
    study = config("sh", "-c", 'test $TRIMTAB_ROUND -lt 30 && echo "{x}"', more=more)
    run(study, 34)  # the last four failed
    with Study.open(study.where, "a") as opened:
        assert opened.centre["x"] < 4
        opened.set({"guard.failures": 3})
    _, kinds = run(study, 1)
    assert kinds[-3:] == ["set", "reset", "hold"]
    reports, kinds = run(study, 2)  # also after a restart
    assert kinds.count("reset") == 1
    with Study.open_unlocked(study.where, "a") as opened:
        assert opened.centre == reports[-1].setting == {"x": 5.0, "n": 5}


def test_a_value_beyond_stop_above_ends_the_run(config):
    study = config("sh", "-c", "echo $TRIMTAB_ROUND", more='[guard]\nstop_above = 3\nleave_at = "start"\n')
    with study.open() as opened:
        with pytest.raises(Stopped, match=r"the value 4 is above guard\.stop_above=3"):
            list(Runner(study, opened).rounds())
        assert opened.round == 5  # the value that ended it was told
    assert Guard(stop_below=0.5).beyond(0.4) is not None


def test_leave_at_sets_the_system_at_the_end(config, tmp_path):
    study = config("sh", "-c", "echo $KNOB_N >> set; echo {x}")
    run(study, 30)
    with Study.open_unlocked(study.where, "a") as opened:
        assert (tmp_path / "set").read_text().split()[-1] == str(opened.centre["n"])
        assert opened.baseline.slot == 30
        *_, last = opened.events()
        assert last.kind == "leave"
        assert last.query == list(opened.centre.values())


def test_the_largest_move(config):
    more = "[guard]\nlargest_move = 0.01\n"
    study = config("sh", "-c", "echo $(( KNOB_N * (TRIMTAB_ROUND % 5) ))", more=more)
    run(study, 60)
    with Study.open_unlocked(study.where, "a") as opened:
        centres = [event.centre for event in opened.events()]
    moves = [((a[0] - b[0]) / 10) ** 2 + ((a[1] - b[1]) / 8) ** 2 for a, b in itertools.pairwise(centres)]
    assert 0.003 < max(moves) ** 0.5 <= 0.01 + 1e-12


def test_quiet_hours(config):
    guard = Guard(quiet_hours=["22:00-06:00", "12:00-13:00"])
    quiet = [hour for hour in range(24) if guard.quiet(datetime.time(hour, 30))]
    assert quiet == [0, 1, 2, 3, 4, 5, 12, 22, 23]
    study = config("echo", "1", more='[guard]\nquiet_hours = ["00:00-23:59:59.999999"]\n')
    with study.open() as opened:
        runner = Runner(study, opened)
        notes = []
        for report in runner.rounds(3):
            notes.append(report.note)
            runner.stop.set()
        assert notes == ["quiet hours: waiting"]
        assert opened.round == 0


def test_approval_waits_for_a_person(config, until):
    study = config("echo", "1", more="[guard]\napproval = true\n")
    with study.open() as opened:
        runner, seen = Runner(study, opened), []
        thread = threading.Thread(target=lambda: [seen.append(report) for report in runner.rounds(2)])
        thread.start()
        until(lambda: seen)
        assert opened.round == 0
        for approve in (True, False):
            with Study.open_unlocked(study.where, "a", mode="write") as other:
                proposed, round = other.decide(approve=approve), opened.round
            until(lambda: opened.round > round and (len(seen) >= 3 or not approve))  # noqa: B023
            assert proposed.round == round
        thread.join()
        with (
            Study.open_unlocked(study.where, "a", mode="write") as other,
            pytest.raises(ValueError, match="has no proposal"),
        ):
            other.decide(approve=True)
    assert [report.kind for report in seen] == ["note", "tell", "note", "skip"]
    assert seen[0].setting == seen[1].setting
    assert seen[-1].note.startswith("rejected by ")


def test_dry_run_runs_and_stores_nothing(config, tmp_path):
    study = config("sh", "-c", "touch ran; echo {x}")
    with rehearsal(study) as opened:
        before = list(opened.ahead(3))
    assert not (tmp_path / "trimtab.db").exists()
    reports, _ = run(study, 3)
    assert before[0].knobs == reports[0].setting
    (tmp_path / "ran").unlink()
    with rehearsal(study) as opened:
        assert [trial.round for trial in opened.ahead(2)] == [3, 4]
    assert not (tmp_path / "ran").exists()
    with Study.open_unlocked(study.where, "a") as opened:
        assert opened.round == 3


def test_previewed_rounds_differ_even_with_limits():
    knobs, method = [{"name": "x", "low": 0, "high": 10, "start": 5}], tt.primal_dual(radius=0.05, step=0.01, limits=1)
    with Study.open(":memory:", "a", knobs, method, seed=0, baseline=4, limits={"heat": {"max": 3}}) as study:
        seen, again = list(study.ahead(9)), list(study.ahead(9))
        assert seen == again
        assert {trial.kind for trial in seen} == {"probe", "baseline"}
        assert len({trial.knobs["x"] for trial in seen if trial.kind == "probe"}) > 1
        study.tell(study.ask(), 2.0, limits={"heat": 4.0})
        assert seen[1].round == next(study.ahead(1)).round == 1


def test_advice_is_reported_once(config):
    with config("sh", "-c", "echo 1").open() as study:
        seen = [report for report in Runner(config("echo", "1"), study).rounds(55) if report.kind == "advice"]
    assert len(seen) == 1
    assert "has been the same in all 50 rounds" in seen[0].note


def test_setting_dry_run_ends_the_run_before_the_next_command(config, tmp_path):
    study = config("sh", "-c", "echo set >> ran; echo {x}")
    with study.open() as opened:
        rounds = Runner(study, opened).rounds(9)
        next(rounds)
        with Study.open_unlocked(study.where, "a", mode="write") as other:
            other.set({"guard.dry_run": True})
        with pytest.raises(Stopped, match=r"guard\.dry_run is set: .* `trimtab set a guard\.dry_run=false`"):
            list(rounds)
        assert (tmp_path / "ran").read_text() == "set\n"  # it does not run at the end either


def test_a_change_during_planning_applies_to_the_round(config, tmp_path, monkeypatch):
    study = config("sh", "-c", "touch ran; echo {x}")
    with study.open() as opened:
        ask = opened.ask

        def late(_):
            opened.set({"guard.dry_run": True})
            return ask()

        monkeypatch.setattr(opened, "ask", late)
        with pytest.raises(Stopped, match=r"guard\.dry_run is set"):
            list(Runner(study, opened).rounds(1))
    assert not (tmp_path / "ran").exists()


def test_the_reach_of_probes_is_known_in_advance(config):
    fixed = '[knobs.codec]\nchoices = ["gzip"]\nstart = "gzip"\n'
    study = config("echo", "1", more=fixed + '[knobs.log]\nscale = "log"\nlow = 1\nhigh = 100\nstart = 10\n')
    with rehearsal(study) as opened:
        found = spans(opened)
        assert list(found) == ["x", "n", "log"]  # a choice has no span
        far = 0.05 * 2**0.5  # share of each range: √2 times the radius along one of three coordinates
        assert found["x"].now == found["x"].widest == pytest.approx((5 - 10 * far, 5 + 10 * far))
        assert found["n"] == ((3, 7), (3, 7))  # one step, rounded down and up
        assert found["log"].now == pytest.approx((10 * 100**-far, 10 * 100**far))
    one = config("echo", "1", more='[knobs.cache]\ntype = "bool"\nstart = true\n')
    with rehearsal(replace(one, method="residual", step=0.1)) as opened:
        found = spans(opened)
        assert all(span.now == span.widest for span in found.values())
        assert found["cache"].now == (False, True)


def test_no_probe_exceeds_the_reach_around_the_last_two_centres(config):
    with config("echo", "1").open() as study:
        before = spans(study)
        for n in range(150):  # some rounds, such as 63, repeat the previous query
            found, trial = spans(study), study.ask()
            if trial.kind != "baseline":
                for name, value in trial.knobs.items():
                    ranges = [known[name].widest for known in (before, found)]
                    assert any(low - 1e-9 <= value <= high + 1e-9 for low, high in ranges)
                before = found
            study.tell(trial, float(n % 7))


def test_a_pause_does_not_depend_on_the_wall_clock(config, monkeypatch):
    clock = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    now, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr("trimtab.tune.loop.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    study = replace(config("echo", "1"), pause=0.2)
    reports, _ = run(study, 3)
    assert len(reports) == 3
    assert sum(slept) == pytest.approx(0.4)


BACKWARDS = """
import itertools, runpy, sys, time
clock = itertools.count(2_000_000_000, -86400)
time.time = lambda: float(next(clock))
sys.argv = ["trimtab", "tune", "study.toml", "--rounds", "4"]
from trimtab.cli import main
main()
"""


def test_the_program_with_a_clock_set_back(config, tmp_path):
    config("echo", "{x}")
    done = subprocess.run([sys.executable, "-c", BACKWARDS], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with Study.open_unlocked(tmp_path / "trimtab.db", "a") as study:
        assert [event.round for event in study.events()] == [0, *range(4), 4]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_signals_finish_the_round(config, tmp_path, sign, until):
    config("sh", "-c", "echo began >> began; until test -e go; do sleep 0.02; done; echo {x}")
    with start("tune", "study.toml", cwd=tmp_path) as running:
        until((tmp_path / "began").exists)
        running.send_signal(sign)
        assert f"{sign.name}: finishing this round" in running.stderr.readline()
        (tmp_path / "go").touch()
        out, _ = running.communicate(timeout=300)
    assert running.returncode == 0
    assert out.count("tell") == 1
    with Study.open_unlocked(tmp_path / "trimtab.db", "a") as study:
        assert study.round == 1


def test_a_second_signal_interrupts_the_round(config, tmp_path, until):
    config("sh", "-c", "echo began >> began; exec sleep 600")
    with start("tune", "study.toml", cwd=tmp_path) as running:
        until((tmp_path / "began").exists)
        running.send_signal(signal.SIGINT)
        assert "SIGINT: finishing this round" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        until(lambda: len((tmp_path / "began").read_text().split()) == 2)  # leave_at = "centre"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert "interrupted within round 0: the next run repeats it" in err
    assert "SIGINT: leaving the system as it is" in err
    with Study.open_unlocked(tmp_path / "trimtab.db", "a") as study:
        assert study.round == 0
