"""Every kind of knob under `trimtab tune`: choices, switches, grids, fixed knobs, and individual radii."""

import csv
import io
import itertools
import json
import os

import pytest

from trimtab.live import Study, read_config
from trimtab.recipes import residual
from trimtab.recipes.primal_dual import primal_dual
from trimtab.store.errors import Damaged
from trimtab.study.plots.matplotlib_figures import draw_study
from trimtab.study.position import follow

from .. import program

COST = """
case $KNOB_CODEC in "gzip 9") a=3;; zstd) a=1;; 7) a=2;; *) exit 1;; esac
case $KNOB_CACHE in true) b=0;; false) b=2;; *) exit 1;; esac
test "$KNOB_CODEC $KNOB_CACHE $KNOB_GRID $KNOB_FIXED $KNOB_ONLY" = "$1" || exit 1
echo $((a+b))
"""
MIXED = f"""
name = "mixed"
command = ["sh", "-c", {json.dumps(COST)}, "sh", "{{codec}} {{cache}} {{grid}} {{fixed}} {{only}}"]
seed = 1
radius = 0.2
[knobs.codec]
choices = ["gzip 9", "zstd", 7]
start = "gzip 9"
[knobs.cache]
type = "bool"
start = false
[knobs.grid]
low = 0
high = 1
step = 0.25
start = 0.5
[knobs.fixed]
type = "integer"
low = 3
high = 3
start = 3
[knobs.only]
choices = ["{{codec}}"]
start = "{{codec}}"
[guard]
leave_at = "query"
"""
RADII = """
name = "radii"
command = ["echo", "{x}"]
method = "residual"
radius = 0.1
step = 0.001
seed = 1
[knobs.x]
low = 0
high = 1
start = 0.5
radius = 0.01
[knobs.y]
low = 0
high = 100
start = 50
radius = 0.3
[knobs.z]
low = 0
high = 1
start = 0.5
[guard]
leave_at = "query"
"""


@pytest.fixture
def trimtab(tmp_path):
    """Run the program in its own folder."""

    def run(*words, text=None):
        if text is not None:
            (tmp_path / "study.toml").write_text(text)
        environment = {**os.environ, "COLUMNS": "200"}
        done = program.run(*words, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_choices_and_switches_are_tuned(tmp_path, trimtab):
    trimtab("tune", "study.toml", "--rounds", "90", text=MIXED)
    trimtab("tune", "study.toml", "--rounds", "60")
    with Study.open_unlocked(tmp_path / "trimtab.db", "mixed") as study:
        told = [event for event in study.events() if event.kind == "tell"]
        assert len(told) == 150 - study.saving.baseline_rounds > 130
        for knob, seen in zip(study.knobs.all, zip(*(event.query for event in told), strict=True), strict=True):
            could = {"codec": {"gzip 9", "zstd", 7}, "cache": {True, False}, "grid": {0.0, 0.25, 0.5, 0.75, 1.0}}
            assert set(seen) <= could.get(knob.name, {3, "{codec}"})
        assert study.centre["codec"] == "zstd"
        assert study.centre["cache"] is True
        assert study.centre["only"] == "{codec}"
        assert sum(event.value for event in told[-30:]) < sum(event.value for event in told[:30])
        ran = [event for event in study.events() if event.kind in ("tell", "baseline")]
    whole = read_config(tmp_path / "study.toml").open  # the same path without interruption
    (tmp_path / "trimtab.db").rename(tmp_path / "first.db")
    with whole() as again:
        for event in ran:
            trial = again.ask()
            assert list(trial.knobs.values()) == event.query
            again.tell(trial, event.value)


def test_all_kinds_of_knobs_are_shown_drawn_and_exported(tmp_path, trimtab):
    pytest.importorskip("plotly")
    trimtab("tune", "study.toml", "--rounds", "20", text=MIXED)
    shown = trimtab("show", "mixed")
    assert "one of" in shown
    assert "gzip 9, zstd, 7" in shown
    assert "mixed" in trimtab("list")
    found = json.loads(trimtab("show", "mixed", "--json"))
    assert found["events"][-1]["query"]["cache"] in (True, False)
    assert {type(event["query"]["codec"]) for event in found["events"] if event["query"]} == {str, int}
    rows = list(csv.DictReader(io.StringIO(trimtab("show", "mixed", "--csv"))))
    assert {row["codec"] for row in rows} <= {"", "gzip 9", "zstd", "7"}
    with Study.open_unlocked(tmp_path / "trimtab.db", "mixed") as study:
        assert study.figure().layout.yaxis2.ticktext == ("gzip 9", "zstd", "7")
        draw_study(study, tmp_path / "mixed.svg")
        assert Study.import_text(tmp_path / "trimtab.db", study.export(), "copy") == "copy"
    with Study.open(tmp_path / "trimtab.db", "mixed") as one, Study.open(tmp_path / "trimtab.db", "copy") as two:
        assert one.ask().knobs == two.ask().knobs
        one.undo(7)
        assert one.round == 7
    assert "no damage found" in trimtab("check")
    assert "KNOB_CODEC='gzip 9'" in trimtab("tune", "study.toml", "--dry-run", "--rounds", "40")


def test_a_knob_with_its_own_radius(tmp_path, trimtab):
    trimtab("tune", "study.toml", "--rounds", "30", text=RADII)
    with Study.open_unlocked(tmp_path / "trimtab.db", "radii") as study:
        events = list(study.events())
        assert {event.kind for event in events} == {"start", "tell", "baseline"}
        for before, event in itertools.pairwise(events):
            away = [abs(asked - there) for asked, there in zip(event.query, before.centre, strict=True)]
            assert event.kind == "baseline" or away == pytest.approx([0.01, 30.0, 0.1])
    (tmp_path / "study.toml").write_text(RADII.replace("radius = 0.3", "radius = 0.2"))
    with read_config(tmp_path / "study.toml").open() as study:  # a change of settings
        away = [abs(study.ask().knobs[name] - centre) for name, centre in study.centre.items()]
        assert away == pytest.approx([0.01, 20.0, 0.1])


def test_the_largest_move_bounds_the_knob_that_moves_most(tmp_path):
    steep = RADII.replace("step = 0.001", "step = 1e6").replace('leave_at = "query"', "largest_move = 0.02")
    (tmp_path / "study.toml").write_text(steep)
    with read_config(tmp_path / "study.toml").open() as study:
        share = None
        longest = 0.0
        for n in range(40):
            trial = study.ask()
            study.tell(trial, float(n % 3))
            event = list(study.events(study.seq - 1))[-1]
            now = [knob.share(value) for knob, value in zip(study.knobs.all, event.centre, strict=True)]
            if share is not None:
                longest = max(longest, sum((a - b) ** 2 for a, b in zip(now, share, strict=True)) ** 0.5)
            share = now
        assert 0.005 < longest <= 0.02 * (1 + 1e-12)


def test_a_limit_is_named_by_its_knob(tmp_path):
    knobs = [
        {"name": "codec", "choices": ["a", "b", "c"], "start": "a"},
        {"name": "x", "low": 0, "high": 10, "start": 5, "radius": 0.1},
        {"name": "y", "low": 0, "high": 1, "start": 0.5},
        {"name": "z", "type": "bool", "start": False},
    ]
    with Study.open(tmp_path / "a.db", "a", knobs[:1] + knobs[2:], seed=0) as study:
        for _ in range(60):
            study.tell(study.ask(), 1.0)
        assert study.diagnostics.at_edge == 0  # the first and last choice are not limits
    with Study.open(tmp_path / "b.db", "b", knobs, seed=0) as study:
        for _ in range(300):
            trial = study.ask()
            study.tell(trial, -trial.knobs["x"] + (trial.knobs["y"] - 0.5) ** 2)
        assert study.findings()["edge"].advice == (
            "x is at its high limit, and the value improves towards it: if the system allows, widen it with"
            " trimtab set b knobs.x.high=15.0."
        )


def test_a_different_path_of_a_choice_is_damage(tmp_path):
    knobs = [{"name": "codec", "choices": ["a", "b"], "start": "a"}, {"name": "x", "low": 0, "high": 1, "start": 0.5}]
    with Study.open(tmp_path / "a.db", "a", knobs, seed=0) as study:
        for _ in range(5):
            study.tell(study.ask(), 1.0)
        snapshot = study._store.last_snapshot(study._saved, study.seq)
        events = study._store.events(study._saved, snapshot.seq, study.seq)
        follow(snapshot, events, "it")
        events[-1] = events[-1]._replace(centre=[1.0, events[-1].centre[1]])
        with pytest.raises(Damaged, match="does not give the recorded state"):
            follow(snapshot, events, "it")


def test_invalid_knobs_are_refused_in_one_line(tmp_path):
    fixed = [{"name": "x", "low": 1, "high": 1, "start": 1}]
    with pytest.raises(ValueError, match="every knob is fixed: give at least one of them low < high"):
        Study.open(tmp_path / "a.db", "a", fixed)
    many = [{"name": "x", "choices": list("abcdefgh"), "start": "a"}]
    with pytest.raises(ValueError, match="8 choices need one below 1/14 of a weight"):
        Study.open(tmp_path / "a.db", "a", many, residual(radius=0.2, step=0.1))
    with pytest.raises(ValueError, match="a study tells one number a round"):
        Study.open(tmp_path / "a.db", "a", many, primal_dual(radius=0.01, step=0.1))
