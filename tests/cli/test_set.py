"""`trimtab set`, `undo` and `init --from` in processes of their own; also while `trimtab tune` runs the study."""

import json

import pytest

from trimtab.live import Study, read_config

from ..program import run, start, trimtab

STUDY = """
name = "a"
command = ["sh", "-c", "echo $KNOB_X >> ran; echo {x}"]
seed = 1
pause = 0.05
[knobs.x]
low = 0
high = 10
start = 5.0
unit = "mm"
[knobs.codec]
choices = ["gzip", "zstd"]
start = "zstd"
[knobs.n]
type = "integer"
scale = "log"
low = 1
high = 64
start = 8
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def started(folder, *words):
    return start("tune", "study.toml", "--plain", *words, cwd=folder)


def test_set_and_undo(folder):
    trimtab(folder, "tune", "study.toml", "--rounds", "5")
    words = (
        "set",
        "a",
        "radius=0.02",
        "knobs.x.high=8",
        "guard.leave_at=start",
        "--why",
        "it rattles",
        "--who",
        "anna",
    )
    out = trimtab(folder, *words)
    assert out == "a: set: radius 0.05 → 0.02, knobs.x.high 10 → 8, guard.leave_at centre → start\n"
    assert "nothing to change" in trimtab(folder, *words)
    assert "(anna: it rattles)" in trimtab(folder, "show", "--json").encode().decode("unicode_escape")
    assert json.loads(trimtab(folder, "set", "a", "pause=0.01", "--json")) == {"pause": [0.05, 0.01]}
    assert "undo: pause 0.01 → 0.05" in trimtab(folder, "undo")
    assert "undo: radius 0.02 → 0.05, knobs.x.high 8 → 10, guard.leave_at start → centre" in trimtab(folder, "undo")
    assert "has no change to undo: give a round" in trimtab(folder, "undo", status=2)
    assert "no damage found" in trimtab(folder, "check")


def test_what_cannot_be_set(folder):
    trimtab(folder, "tune", "study.toml", "--rounds", "2")
    for change, why in [
        ("radius", "'radius' is not field=value, for example radius=0.02"),
        ("radius=", "is not field=value"),
        ("goal=maximise", "goal cannot change once the study has begun"),
        ("knobs.y.high=3", "there is no knob 'y'"),
        ("knobs.codec.choices=[1]", "of a knob only radius can change once the study has begun"),
        ("guard.failures=some", "guard.failures='some' is not a valid number of rounds"),
    ]:
        found = trimtab(folder, "set", "a", change, status=2)
        assert why in found
        assert "is not field=value" in found or "guard" in found or "trimtab init --from a" in found
    assert "there is no study 'b'" in trimtab(folder, "set", "b", "radius=0.1", status=2)


def test_a_study_that_runs_is_corrected_without_a_restart(folder):
    with started(folder) as running:
        try:
            assert "round 0" in running.stdout.readline()
            out = trimtab(folder, "set", "a", "knobs.x.high=5.01", "pause=0.02", "--why", "now")
            assert out == "a: set: knobs.x.high 10 → 5.01, pause 0.05 → 0.02\n"
            line = running.stdout.readline()
            while "note" not in line:
                assert line
                line = running.stdout.readline()
            assert "set: knobs.x.high 10 → 5.01, pause 0.05 → 0.02 (" in line
            after = [running.stdout.readline() for _ in range(10)]
        finally:
            running.terminate()
            running.communicate(timeout=300)
    assert running.returncode == 0
    assert all(float(line.split(" x ")[1].split()[0]) <= 5.01 for line in after)
    with Study.open_unlocked(folder / "trimtab.db", "a") as study:
        assert study.settings["pause"] == 0.02
    text = STUDY.replace("high = 10", "high = 10\nradius = 0.2")
    (folder / "study.toml").write_text(text)
    out = trimtab(folder, "tune", "study.toml", "--rounds", "2")
    assert "set: knobs.x.radius none → 0.2 (" in out
    assert "knobs.x.high stays 5.01, as it was last changed; study.toml says 10" in out
    assert "pause stays 0.02, as it was last changed; study.toml says 0.05" in out


def test_a_proposal_that_waits_is_made_anew(folder):
    (folder / "study.toml").write_text(STUDY + "[guard]\napproval = true\n")
    with started(folder, "--rounds", "1") as running:
        try:
            assert "waiting for trimtab approve a --round 0" in running.stdout.readline()
            trimtab(folder, "set", "a", "knobs.x.high=4.5")
            lines = [running.stdout.readline() for _ in range(2)]
            assert "set: knobs.x.high 10 → 4.5" in lines[0]
            assert "x 4.5 mm" in lines[1]
            assert "waiting for trimtab approve a --round 0" in lines[1]
            trimtab(folder, "set", "a", "guard.approval=false")  # and this one runs at once
            out, _ = running.communicate(timeout=300)
        finally:
            running.kill()
    assert "set: guard.approval true → false" in out
    assert "round 0  tell 4.5" in out
    assert (folder / "ran").read_text().split() == ["4.5", "4.5"]  # the round, and where the system stays


def test_a_new_study_that_starts_where_this_one_is(folder):
    trimtab(folder, "tune", "study.toml", "--rounds", "30")
    changes = ("knobs.x.high=20", "knobs.n.radius=0.2", "guard.failures=3", "widest=2", "timeout=5")
    trimtab(folder, "set", "a", *changes)
    assert "written: next.toml" in trimtab(folder, "init", "next.toml", "--from", "a")
    assert "already exists" in trimtab(folder, "init", "next.toml", "--from", "a", status=2)
    with Study.open_unlocked(folder / "trimtab.db", "a") as study, read_config(folder / "next.toml").open() as other:
        assert other.name == "a-2"
        assert other.start == pytest.approx(study.centre)
        assert (other.settings["guard.failures"], other.settings["timeout"]) == (3, 5)
        assert other.setup.method.step.widest == 2
        assert [knob.high for knob in other.knobs.all if knob.choices is None] == [20, 64]
        assert [knob.radius for knob in other.knobs.all] == [0.025, pytest.approx(1 / 3), 0.2]  # as before
        assert (other.knobs.all[0].unit, other.knobs.all[1].choices) == ("mm", ("gzip", "zstd"))
        assert (other.round, other.ask().knobs["x"]) == (0, pytest.approx(study.centre["x"]))
    config = read_config(folder / "next.toml")
    assert config.command == read_config(folder / "study.toml").command
    out = trimtab(folder, "tune", "next.toml", "--rounds", "2")
    assert "round 0" in out
    text = (folder / "next.toml").read_text().replace('goal = "minimise"', 'goal = "maximize"')
    (folder / "next.toml").write_text(text.replace('name = "a-2"', 'name = "b"'))
    assert "2 rounds run" in trimtab(folder, "tune", "next.toml", "--rounds", "2")
    (folder / "study.toml").unlink()
    (folder / "next.toml").unlink()
    trimtab(folder, "init", "more.toml", "--from", "b")
    assert read_config(folder / "more.toml").command == ["./measure"]
    assert "Put your own command here" in (folder / "more.toml").read_text()


def test_dry_run_can_be_set_and_taken_back(folder):
    trimtab(folder, "tune", "study.toml", "--rounds", "2")
    (folder / "ran").unlink()
    trimtab(folder, "set", "a", "guard.dry_run=true")
    out = trimtab(folder, "tune", "study.toml", "--rounds", "3")
    assert "# guard.dry_run stays True, as it was last changed; study.toml says False" in out
    assert [line.rpartition("# ")[2] for line in out.splitlines()[-3:]] == ["round 2", "round 3", "round 4"]
    assert not (folder / "ran").exists()
    trimtab(folder, "set", "a", "guard.dry_run=false")
    assert "2 rounds run; 4 rounds in total" in trimtab(folder, "tune", "study.toml", "--rounds", "2")


def test_dry_run_set_while_it_runs_ends_it(folder):
    (folder / "study.toml").write_text(STUDY.replace("pause = 0.05", "pause = 600"))
    with started(folder, "--rounds", "2") as running:
        running.stdout.readline()
        trimtab(folder, "set", "a", "guard.dry_run=true", "pause=0")
        out, err = running.communicate(timeout=300)
    assert running.returncode == 3
    assert "stopped: guard.dry_run is set: " in err
    assert " leave " not in out


def test_rounds_that_only_held_were_run_too(folder):
    text = STUDY.replace("echo {x}", "false") + "[guard]\nfailures = 2\n"
    (folder / "study.toml").write_text(text)
    for _ in range(2):
        done = run("tune", "study.toml", "--rounds", "2", cwd=folder)
        assert done.returncode == 4
        assert "2 rounds run; 2 rounds in total" in done.stderr
    assert done.stdout.count(" hold ") == 2


def test_undo_takes_a_name_a_round_or_both(folder):
    trimtab(folder, "tune", "study.toml", "--rounds", "3")
    trimtab(folder, "set", "a", "pause=0.02")
    assert "undo: pause 0.02 → 0.05" in trimtab(folder, "undo", "a")
    assert "the next round is 2" in trimtab(folder, "undo", "a", "2")
    assert "the next round is 1" in trimtab(folder, "undo", "1")
    assert "is unclear" in trimtab(folder, "undo", "a", "other", status=2)


def test_the_new_study_has_the_baseline_and_the_limits_of_the_old_one(folder):
    text = (
        STUDY.split("[knobs.codec]")[0]
        .replace("echo {x}", "echo x={x} heat=3 latency.p99=2")
        .replace("pause = 0.05", "step = 0.1")
    )
    text += '[baseline]\nevery = 7\nknobs = {x = 4}\n[limits]\nheat = {max = 5, scale = 2}\n"latency.p99" = {min = 1}\n'
    text = text.replace("seed = 1", 'seed = 1\nvalue = "x"\ndual_step = 0.02')
    (folder / "study.toml").write_text(text)
    trimtab(folder, "tune", "study.toml", "--rounds", "3")
    trimtab(folder, "init", "--from", "a", "next.toml")
    found = read_config(folder / "next.toml")
    assert found.baseline == {"every": 7, "knobs": {"x": 4.0}}
    assert found.limits == {"heat": {"max": 5.0, "scale": 2.0}, "latency.p99": {"min": 1.0, "scale": 1.0}}
    assert (found.method, found.step, found.dual_step) == ("primal-dual", 0.1, 0.02)
    trimtab(folder, "tune", "next.toml", "--rounds", "2")
