"""Commands never outlive their run, and no output does harm. With real processes."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.live import Study, read_config
from trimtab.tune.command import run
from trimtab.tune.parse_value import read_value

from ..program import run as trimtab
from ..program import start

PROGRAM = Path(sys.executable).with_name("trimtab")
STUDY = """
name = "a"
command = ["sh", "-c", {script}]
seed = 1
timeout = {timeout}
[knobs.x]
low = 0
high = 1
start = 0.5
"""


def write(folder, script, timeout=300, more=""):
    text = STUDY.format(script=json.dumps(script), timeout=timeout) + more
    (folder / "study.toml").write_text(text)


def tune(folder, *words):
    return start("tune", "study.toml", *words, cwd=folder)


def alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def numbers(file):
    """Return the process ids that a command wrote, once both are there."""
    found = file.read_text().split() if file.exists() else []
    return [int(word) for word in found] if len(found) >= 2 else None


# A command and a child in its group that both ignore signals.
STUBBORN = "trap '' TERM HUP INT; (trap '' TERM HUP INT; while :; do sleep 1; done) & echo $$ $! > pids; wait"


def test_a_timeout_ends_the_whole_group(tmp_path, until):
    write(tmp_path, STUBBORN, timeout=1)
    with tune(tmp_path, "--rounds", "1") as running:
        pids = until(lambda: numbers(tmp_path / "pids"))
        out, _ = running.communicate(timeout=300)
    assert "no answer within 1 s" in out
    assert running.returncode == 4
    until(lambda: not any(map(alive, pids)))


@pytest.mark.parametrize("sign", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)])
def test_the_second_signal_ends_the_whole_group(tmp_path, until, sign):
    write(tmp_path, f"test -e pids && echo 1 && exit; {STUBBORN}")
    with tune(tmp_path) as running:
        pids = until(lambda: numbers(tmp_path / "pids"))
        running.send_signal(sign)
        assert f"{sign.name}: finishing this round" in running.stderr.readline()
        running.send_signal(sign)
        out, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert f"{sign.name}: interrupting this round" in err
    assert " leave 1 " in out  # and the system was set to its centre
    until(lambda: not any(map(alive, pids)))


def test_a_closed_terminal_finishes_the_round(tmp_path, until):
    """SIGHUP without a reader: the round is stored, the system is left at its centre, and no process remains."""
    write(tmp_path, "echo $$ $$ > pids; until test -e go; do sleep 0.02; done; echo 1")
    with tune(tmp_path) as running:
        until(lambda: numbers(tmp_path / "pids"))
        running.stdout.close()
        running.stderr.close()
        running.send_signal(signal.SIGHUP)
        (tmp_path / "go").touch()  # whether the signal arrives in this round or in the next
        assert running.wait(300) == 0
    with Study.open_unlocked(tmp_path / "trimtab.db", "a") as study:
        kinds = [event.kind for event in study.events()]
    assert kinds[-2:] == ["tell", "leave"]


def test_nohup_is_respected(tmp_path):
    write(tmp_path, "test $TRIMTAB_ROUND = 0 || until test -e go; do sleep 0.02; done; echo 1")
    words = ["nohup", PROGRAM, "tune", "study.toml", "--rounds", "5"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        running.stdout.readline()
        running.send_signal(signal.SIGHUP)
        (tmp_path / "go").touch()
        out, _ = running.communicate(timeout=300)
    assert out.count("tell") == 4


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_the_next_start_ends_what_kill_9_left_behind(tmp_path, until):
    """The kernel ends the command; its child is ended later, and servers of finished rounds are not."""
    server = "setsid sleep 4321 >/dev/null 2>&1 & echo $! > server"
    script = f"test -e go && echo 1 && exit; test $TRIMTAB_ROUND = 0 && {{ {server}; echo 1; exit; }}; {STUBBORN}"
    write(tmp_path, script)
    with tune(tmp_path) as running:
        leader, child = until(lambda: numbers(tmp_path / "pids"))
        os.kill(running.pid, signal.SIGKILL)
        running.wait(300)
        running.stdout.close()
        running.stderr.close()
    served = int((tmp_path / "server").read_text())
    try:
        until(lambda: not alive(leader))
        assert alive(child)  # the kernel ends only the command itself
        (tmp_path / "go").touch()
        with tune(tmp_path, "--rounds", "1") as running:
            out, err = running.communicate(timeout=300)
        assert f"ended the command that an earlier run left behind: process {child}" in out, err
        assert not alive(child)
        assert alive(served)
    finally:
        for process in (child, served):
            if alive(process):
                os.kill(process, signal.SIGKILL)


def test_the_sequence_number_only_increases(tmp_path):
    write(tmp_path, "echo $TRIMTAB_SEQ >> seen; echo {x}")
    for _ in range(3):
        with tune(tmp_path, "--rounds", "4") as running:
            running.communicate(timeout=300)
        with Study.open(tmp_path / "trimtab.db", "a") as study:
            study.undo(2)
    seen = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert len(seen) == 15
    assert seen == sorted(set(seen))


def test_fifty_megabytes_of_output_need_little_memory(tmp_path):
    write(tmp_path, "head -c 50000000 /dev/zero | tr '\\0' 'x'; head -c 5000000 /dev/zero >&2; echo; echo 12.5")
    watch = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
    watch += (
        "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"  # of the processes of this run only
    )
    command = [sys.executable, "-c", watch, PROGRAM, "tune", "study.toml", "--rounds", "2"]
    out = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert out.count("tell 12.5") == 2
    assert int(out.split("peak")[1]) < 300_000  # kB


def test_a_daemon_that_keeps_the_output_open_is_not_waited_for(tmp_path):
    write(tmp_path, "sleep 600.25 & echo $! > daemon; echo 7", timeout=500)
    with tune(tmp_path, "--rounds", "1") as running:
        out, _ = running.communicate(timeout=300)
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)
    assert "tell 7 " in out


@pytest.mark.parametrize(
    "script",
    [
        r"printf '[/x] [bold]5 6\n'",
        r"printf '\033[2J\033]0;owned\007 5 6\n'",
        r"printf '\0\0 5 6\n'",
        r"printf '%0400d 6\n' 7",
        "head -c 100000 /dev/zero | tr '\\0' '['",
        r"printf '\033[2J[/x]' >&2; exit 3",
        "head -c 100000 /dev/zero | tr '\\0' '{' >&2; exit 3",
    ],
)
@pytest.mark.parametrize("key", ["", 'value = "a.b"\n'])
def test_malicious_output_is_a_skipped_round_and_does_not_reach_the_terminal(tmp_path, script, key):
    write(tmp_path, script)
    (tmp_path / "study.toml").write_text(key + (tmp_path / "study.toml").read_text())
    with tune(tmp_path, "--rounds", "1") as running:
        out, err = running.communicate(timeout=300)
    assert running.returncode == 4, err
    assert "Traceback" not in err
    for command in (["show"], ["list"], ["show", "--csv"], ["show", "--json"]):
        done = trimtab(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        out += done.stdout
    assert "\x1b" not in out
    assert "\0" not in out
    assert "skip" in out


@pytest.mark.parametrize(
    ("out", "value"),
    [
        ("12.5", 12.5),
        ("latency: 12.5", 12.5),
        ("12.5ms", 12.5),
        ("12.5 ms", 12.5),
        ("p99 = 12.5 ms", 12.5),
        ("load 80%", 80.0),
        ("5.5 MB/s\n\n", 5.5),
        ("-1e-3", -0.001),
        ("+.5", 0.5),
        ("7.", 7.0),
        ("done: 3 of 4\nresult 9", 9.0),
        ("1,234.5", None),
        ("1 234.5", None),
        ("1.234,5", None),
        ("3.2.1", None),
        ("0x1F", None),
        ("1_000", None),
        ("2026-11-17", None),
        ("12:30", None),
        ("5-3", None),
        ("3/4", None),
        ("12.5 ± 0.5", None),
        ("latency=12.5 reads=3", None),
        ("12.5\nbye", None),
        ("٣", None),
        ("²", None),
        ("nan", None),
        ("latency: -inf", None),
        ("1e999", None),
        ("9" * 400, None),
        ("INFO latency 12.5", 12.5),
        ("12.5 nanoseconds", 12.5),
        ("nanoseconds: 12", 12.0),
        ("5µs", 5.0),
        ("5\u03bcs", 5.0),  # the Greek letter, not the micro sign
        ("5/s", 5.0),
        ("5m/s", 5.0),
        ("5°C", 5.0),
        ("300 K", 300.0),
        ("5k", None),
        ("5M", None),
        ("5Gi", None),
        ("nans", None),
        ("12.5\n\x1b[0m\n", 12.5),
        ("12.5\r\x1b[2J", None),  # nothing is left on the screen
        ("\x1b[H\x1b[2J\x1b[3J12.5", 12.5),
        ("99\n\x1b[H\x1b[J12.5", 12.5),
        ("\x1b[1;38;5;8m12.5\x1b[m", 12.5),
        ("\x1b[8m12.5\x1b[m", None),  # concealed
        ("\x1b]0;99\x07\x1b]8;;http://a/7\x1b\\12.5\x1b]8;;\x1b\\", 12.5),
        ("12.5\n\x1b]0;99", None),
        ("\x1bP1$r0m\x1b\\12.5\x1b(B", 12.5),
        (" 10%\r 99%\r100%\n12.5\r\n", 12.5),
        ("1000\r12.5\n", 12.5),
        ("10000\r12.5\n", None),
        ("10000\r\x1b[K12.5", 12.5),
        ("10000\r\x1b[2K12.5", 12.5),
        ("5 x 9999\r5 load=\n", None),
        ("12.6\b5", 12.5),
        ("12.56\b \b", 12.5),
        ("12.5\x1c3", None),
        ("7\n\x1b[A12.5\n\n", None),
        ("\x1b[?1049h99\x1b[?1049l12.5\x1b[?25h", 12.5),
        ("7\x85", None),
        ("\u202e 5.21", None),
        ("例 99\r12.5 ", None),
    ],
)
def test_exactly_one_number(out, value):
    found, why = read_value(out)
    assert found == value
    assert (why is None) == (value is not None)


@pytest.mark.parametrize(
    ("out", "key", "value"),
    [
        ("latency=12.5 reads=3", "latency", 12.5),
        ("latency=12.5 reads=3", "reads", 3.0),
        ("latency: 12.5ms, reads 3", "latency", 12.5),
        ("xlatency=1 latency=2", "latency", 2.0),
        ("latency=1,234.5", "latency", None),
        ('{"latency": 3}', "latency", 3.0),
        ('{"latency": 3}\nlatency 4', "latency", 4.0),
        ("latency", "latency", None),
        ("latency=fast", "latency", None),
        ('{"latency": ' + "9" * 400 + "}", "latency", None),
        ('{"latency": ' + "9" * 5000 + "}", "latency", None),
        ("[" * 100_000, "latency", None),
        ("[\n" * 1000, "latency", None),
        ('latency=3 (warm-up)\n{"latency": null}', "latency", None),
        ('latency=3 (warm-up)\n{\n "latency": null\n}', "latency", None),
        ('{\n "latency": 9,\n "runs": [\n  {\n   "latency": 3\n  }\n ]\n}\nbye', "latency", 9.0),
        ('{"latency": 3}\n{"reads": 4}', "latency", 3.0),
        ("latency=5\nlatency=error", "latency", None),
        ("latency=5\nlatency=1,234", "latency", None),
        ("latency=5\nlatency=", "latency", None),
        ("latency=5\nlatency=2k", "latency", None),
        ("latency=5\nreads=3", "latency", 5.0),
        ("idle-latency=3 latency=5", "latency", 5.0),
        ("latency2 = 9 latency=7", "latency", 7.0),
        ("latency 99 requests, latency=7", "latency", 7.0),
        ("latency 99 requests", "latency", None),
        ("latency_max=9 latency=5", "latency", 5.0),
        ("latency=5 latency.max=9", "latency", 5.0),
        ("latency=12.5,errors=3", "latency", 12.5),
        ("latency=3 latency=4", "latency", 4.0),
        ("(latency = 4ms)", "latency", 4.0),
        ("latency.p99: 4", "latency.p99", 4.0),
        ("latency 12.5", "latency", 12.5),
        ('\x1b[32m{"latency": 12.5}\x1b[0m\n\x1b[0m', "latency", 12.5),
        ("latency=9\rlatency=5", "latency", 5.0),
        ("latency=3\nxxtency=9\rla", "latency", None),
    ],
)
def test_a_value_by_name(out, key, value):
    assert read_value(out, key)[0] == value


def test_the_reason_quotes_the_text_in_place_of_a_number():
    assert read_value("latency=error", "latency")[1] == "no number under 'latency', but 'error'"
    assert read_value('{"latency": null}', "latency")[1] == "no number under 'latency', but 'null'"
    assert "2k may mean more than 2: print the number in full" in read_value("latency=2k", "latency")[1]
    assert "5M may mean more than 5: print the number in full" in read_value("took 5M")[1]


def test_a_truncated_line_is_not_read(tmp_path):
    ended = run(["sh", "-c", "printf '12.5%065534d' 0 | tr 0 ' '"], folder=tmp_path, environment={}, timeout=300)
    assert read_value(ended.out)[0] is None


def test_the_reason_of_a_failure_is_its_last_visible_line(tmp_path):
    write(tmp_path, r"printf 'no such host\n\033[0m\n' >&2; exit 3")
    with tune(tmp_path, "--rounds", "1") as running:
        out, _ = running.communicate(timeout=300)
    assert "exit status 3: no such host" in out


def test_input_to_a_program_that_does_not_read(tmp_path):
    ended = run(["true"], folder=tmp_path, environment={}, timeout=300, given="x" * 10**6)
    assert ended.status == 0
    ended = run(["cat"], folder=tmp_path, environment={}, timeout=300, given="x" * 10**6 + "\nend")
    assert ended.out == "end"


def test_consecutive_failures_slow_down_with_a_message(tmp_path):
    """Each consecutive failure doubles the wait: 0.1 + 0.2 + 0.4 + 0.8 s after the second to the fifth."""
    write(tmp_path, "date +%s.%N >> times; exit 1")
    with tune(tmp_path, "--rounds", "6") as running:
        _, err = running.communicate(timeout=300)
    assert running.returncode == 4
    assert "no round gave a value: run the command by hand" in err
    times = [float(line) for line in (tmp_path / "times").read_text().split()]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert all(gap >= least for gap, least in zip(gaps, (0.0, 0.1, 0.2, 0.4, 0.8), strict=False))


@pytest.mark.parametrize("way", ["rounds", "signal", "two signals", "guard", "store"])
def test_the_system_is_left_at_its_centre_on_every_exit(tmp_path, until, way):
    held = "until test -e go; do sleep 0.02; done"  # the fourth round waits; the command that leaves does not
    script = f"echo $KNOB_X >> set; test $(wc -l < set) != 4 || {held}; echo $TRIMTAB_ROUND"
    write(tmp_path, script, more="[guard]\nstop_above = 2\n" if way == "guard" else "")
    with tune(tmp_path, *(["--rounds", "3"] if way == "rounds" else [])) as running:
        if way not in ("rounds", "guard"):
            until(lambda: (tmp_path / "set").exists() and len((tmp_path / "set").read_text().split()) > 3)
        if way == "store":
            (tmp_path / "trimtab.db").unlink()
        if "signal" in way:
            running.send_signal(signal.SIGTERM)
            assert "SIGTERM: finishing this round" in running.stderr.readline()
        if way == "two signals":
            running.send_signal(signal.SIGTERM)
        else:
            (tmp_path / "go").touch()
        out, err = running.communicate(timeout=300)
    assert running.returncode == {"rounds": 0, "signal": 0, "two signals": 130, "guard": 3, "store": 5}[way], err
    assert "leave" in out.splitlines()[-1].split()
    centre = float(err.rpartition("centre: x ")[2].split()[0])
    assert float((tmp_path / "set").read_text().split()[-1]) == pytest.approx(centre, rel=1e-4)


def test_on_round_and_callbacks_receive_every_round(tmp_path):
    write(tmp_path, "echo {x}", more="")
    text = (tmp_path / "study.toml").read_text()
    hook = 'on_round = ["sh", "-c", "cat >> heard; echo >> heard; test $TRIMTAB_SEQ != 4"]\n'
    (tmp_path / "study.toml").write_text(hook + text)
    with tune(tmp_path, "--rounds", "4") as running:
        _, err = running.communicate(timeout=300)
    assert running.returncode == 0
    heard = [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]
    assert [event["kind"] for event in heard] == ["tell"] * 4 + ["leave"]
    assert heard[2]["query"]["x"] == heard[2]["value"]
    assert {event["saving"] for event in heard} == {"no saving shown yet: 0 of 8 baseline rounds"}
    assert err.count("on_round failed: exit status 1") == 1
    seen = []

    def broken(study, event):
        seen.append((study.name, event.seq))
        raise RuntimeError("as a careless callback does")

    with read_config(tmp_path / "study.toml").open(callbacks=[broken]) as study:
        study.tell(study.ask(), 1.0)
        assert study.round == 5
    assert seen == [("a", 6)]
