import dataclasses
import math
import subprocess
import sys
import threading

import numpy as np
import pytest

import trimtab as tt
from trimtab.live import StoreError, Study
from trimtab.store.tables import ROUTINE
from trimtab.study import core_calls
from trimtab.study.plots.matplotlib_figures import draw_study

from ..factories import KNOBS, cost, run


def path(where, name="a"):
    with Study.open_unlocked(where, name) as study:
        return [event._replace(time=0.0) for event in study.events()]


def test_a_study_tunes_and_resumes(tmp_path):
    with Study.open(tmp_path / "one.db", "a", KNOBS, seed=1) as study:
        run(study, 300)
        assert abs(study.centre["gain"] - 6) < 1
        assert 32 < study.centre["size"] < 128
    for _ in range(10):
        with Study.open(tmp_path / "two.db", "a", KNOBS, seed=1) as study:
            study.ask()  # open, and returned again next time
            run(study, 30)
    assert path(tmp_path / "one.db") == path(tmp_path / "two.db")


def test_a_study_equals_a_tuner_with_named_knobs(tmp_path):
    tuner = tt.Tuner([0.2], bounds=[(0, 1)], seed=4)
    with tt.live.Study.open(
        tmp_path / "t.db", "a", [{"name": "x", "low": 0, "high": 1, "start": 0.2}], seed=4
    ) as study:
        for value in [3.0, 1.0, None, math.nan, -2.0, 5.0, np.float32(1.5), 2]:
            assert list(study.ask().knobs.values()) == tuner.ask().x.tolist()
            study.tell(study.ask(), value)
            tuner.tell(tuner.ask(), value)
        assert study.round == 8
        assert [event.kind for event in study.events()] == ["start", *["tell"] * 2, *["skip"] * 2, *["tell"] * 4]


def test_invalid_tells_change_nothing(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        run(study, 3)
        before = study.state
        for trial, value, error in [
            (4, math.inf, ValueError),
            (4, "x", TypeError),
            (3, 1.0, ValueError),
            (9, 1.0, ValueError),
            ("4", 1.0, TypeError),
            (True, 1.0, TypeError),
        ]:
            with pytest.raises(error):
                study.tell(trial, value)
        assert study.state is before
        assert study.seq == 3


def test_several_threads(tmp_path):
    """All threads ask and tell: every round is told exactly once, and other values are refused."""
    refused = []
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:

        def work():
            for _ in range(50):
                trial = study.ask()
                try:
                    study.tell(trial, cost(trial.knobs))
                except ValueError as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rounds = study.baseline.slot  # including baseline rounds
        assert study.saving.baseline_rounds > 3
    assert rounds + len(refused) == 200
    with Study.open(tmp_path / "u.db", "a", KNOBS, seed=1) as study:
        run(study, rounds)
    assert path(tmp_path / "t.db") == path(tmp_path / "u.db")


def test_undo_is_exact_and_recorded(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        run(study, 20)
        there, query = study.state, study.ask()
        run(study, 20)
        study.undo(there.round)
        assert study.round == there.round == 19
        assert core_calls.pack(study.setup, study.state) == core_calls.pack(study.setup, there)
        again = study.ask()
        assert (again.knobs, again.round) == (query.knobs, query.round)
        assert again.id == 42 > query.id  # ids are never reused
        with pytest.raises(ValueError, match="trial 21 is not open: it was told, skipped or undone before; the open"):
            study.tell(query, 1.0)
        run(study, 5)
        study.undo(0)
        assert study.centre == study.start
        study.undo(25)  # an undo can be undone
        assert study.round == 25
        assert [e.kind for e in study.events() if e.kind not in ROUTINE] == ["start", "undo", "undo", "undo"]
        with pytest.raises(ValueError, match="round 99 has not been run, or is no longer kept: the next round is 25"):
            study.undo(99)


def test_reset(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        run(study, 40)
        study.reset()
        assert study.centre == study.start == {"gain": 2.0, "size": 8}
        assert study.baseline.slot == 40
        assert study.round == 38
        run(study, 2)
    assert path(tmp_path / "t.db")[41].kind == "reset"


def test_export_and_import(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        run(study, 30)
        text = study.export()
    assert Study.import_text(tmp_path / "u.db", text) == "a"
    assert Study.import_text(tmp_path / "u.db", text, "b") == "b"
    for where, name in ((tmp_path / "t.db", "a"), (tmp_path / "u.db", "b")):
        with Study.open(where, name) as study:
            run(study, 10)
    mine, moved = path(tmp_path / "t.db"), path(tmp_path / "u.db", "b")
    assert moved[31].kind == "import"
    assert [e._replace(seq=0) for e in mine] == [e._replace(seq=0) for e in moved if e.kind != "import"]
    with pytest.raises(ValueError, match="import it under another name with --as"):
        Study.import_text(tmp_path / "u.db", text)
    with pytest.raises(ValueError, match="not a valid study name"):
        Study.import_text(tmp_path / "u.db", text, "../b")
    for broken in ("", "{}", "[]", text.replace('"centre"', '"center"'), text.replace("trimtab.study", "other")):
        with pytest.raises(ValueError, match="not an exported study"):
            Study.import_text(tmp_path / "v.db", broken)


def test_export_of_a_running_study(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        run(study, 10)
        with Study.open_unlocked(tmp_path / "t.db", "a") as other:
            run(study, 10)
            Study.import_text(tmp_path / "u.db", other.export())
    with Study.open(tmp_path / "u.db", "a") as moved:
        assert moved.round == 10
        run(moved, 10)
    mine, theirs = path(tmp_path / "t.db"), path(tmp_path / "u.db")
    assert [e._replace(seq=0) for e in mine] == [e._replace(seq=0) for e in theirs if e.kind != "import"]


def test_another_setup_is_refused(tmp_path):
    method = tt.auto(radius=0.05)
    Study.open(tmp_path / "t.db", "a", KNOBS, method, seed=1, maximise=False).close()
    for options, what in [
        ({"knobs": KNOBS[:1]}, "knob 'size' is missing"),
        ({"knobs": [*KNOBS, {"name": "x", "low": 0, "high": 1, "start": 0}]}, "knob 'x' is not one of its knobs"),
        ({"knobs": KNOBS[::-1]}, "its knobs must keep their order: gain, size"),
        ({"knobs": [{**KNOBS[0], "step": 0.5}, KNOBS[1]]}, "knob 'gain' has step none, but its definition says 0.5"),
        (
            {"knobs": [{**KNOBS[0], "type": "int"}, KNOBS[1]]},
            "knob 'gain' has type float, but its definition says integer",
        ),
        ({"knobs": [{**KNOBS[0], "high": 0.0, "start": 0}, KNOBS[1]]}, "knob 'gain' moves, but would be fixed"),
        ({"method": tt.residual(radius=0.05, step=0.1)}, "its method is auto, but its definition says residual"),
        ({"maximise": True}, "its goal is to minimise, but its definition says maximise"),
        ({"seed": 2}, "its seed is 1, but its definition says 2"),
    ]:
        with pytest.raises(ValueError, match=f"'a' does not match its definition: {what}.*: trimtab init --from a"):
            Study.open(tmp_path / "t.db", "a", **{"knobs": KNOBS, **options})
    tighter = dataclasses.replace(method, max_move=0.1)
    with Study.open(tmp_path / "t.db", "a", KNOBS, tighter) as study:
        assert study.setup.method == tighter
        Study.import_text(tmp_path / "u.db", study.export())
    with Study.open(tmp_path / "u.db", "a") as study:
        assert study.setup.method == tighter
    with Study.open(tmp_path / "t.db", "a") as study:
        assert study.setup.method == tighter
        assert [event.kind for event in study.events()] == ["start", "set"]


def test_invalid_studies_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not a valid study name"):
        Study.open(tmp_path / "t.db", "../a", KNOBS)
    with pytest.raises(ValueError, match="two-point methods"):
        Study.open(tmp_path / "t.db", "a", KNOBS, tt.two_point(radius=0.05, step=1e-3))
    with pytest.raises(ValueError, match="could not be saved"):
        Study.open(tmp_path / "t.db", "a", KNOBS, tt.residual(radius=0.05, step=lambda t: 1 / (1 + t)))
    with pytest.raises(ValueError, match="keep=5 is not a valid number of rounds"):
        Study.open(tmp_path / "t.db", "a", KNOBS, keep=5)
    Study.open(tmp_path / "t.db", "good", KNOBS).close()
    with pytest.raises(ValueError, match=r"there is no study 'b' in .*: choose from good"):
        Study.open(tmp_path / "t.db", "b")
    with Study.open_unlocked(tmp_path / "t.db", "good") as study, pytest.raises(ValueError, match="opened read-only"):
        study.tell(study.ask(), 1.0)


def test_a_second_process_is_refused_and_told_the_holder(tmp_path):
    code = f"""
import sys, time
from trimtab.live import Study
with Study.open(sys.argv[1], "a", {KNOBS}):
    print("ready", flush=True)
    time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", code, tmp_path / "t.db"], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(StoreError, match=f"'a' is in use by .*@.*, process {other.pid}, since"):
            Study.open(tmp_path / "t.db", "a")
        with Study.open(tmp_path / "t.db", "b", KNOBS) as study:  # another study in the same store
            run(study, 3)
        with Study.open_unlocked(tmp_path / "t.db", "a") as study:
            assert study.round == 0
    finally:
        other.kill()
        other.communicate()
    with Study.open(tmp_path / "t.db", "a") as study:  # a kill leaves nothing to clean up
        run(study, 1)


def test_old_history_is_thinned_by_the_rule(tmp_path):
    with Study.open(tmp_path / "t.db", "a", [KNOBS[0]], seed=1, keep=1000, baseline=0) as study:
        study._store._db.execute("PRAGMA synchronous=OFF")  # for speed
        for t in range(2600):
            study.tell(study.ask(), float(t % 13))
            if t == 700:
                study.reset()
        events = {event.seq: event for event in study.events()}
        state = study.state
        assert study.seq == 2601
        assert all(seq in events for seq in range(1601, 2602))
        old = sorted(seq for seq in events if seq <= 1600)
        assert old == sorted({0, 702, *range(100, 1601, 100)})
        study.undo(1199)  # the event 1200 told round 1198
        assert study.round == 1199
        with pytest.raises(ValueError, match="the state before round 1155 is no longer kept"):
            study.undo(1155)
        study.undo(701)  # the reset
        study.undo(2555)  # between two snapshots
        assert study.round == 2555
        study.undo(2600)
        assert core_calls.pack(study.setup, study.state) == core_calls.pack(study.setup, state)


def test_clock_going_backwards(tmp_path, monkeypatch):
    clock = iter(range(10**6, 0, -1000))
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        run(study, 20)
        times = [event.time for event in study.events()]
        assert times == sorted(times, reverse=True)
        assert [event.seq for event in study.events()] == list(range(21))
        study.undo(7)
        assert study.round == 7


def test_figures_of_short_and_eventful_studies(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        for name in ("empty.png", "all.svg"):
            draw_study(study, tmp_path / name)
            assert (tmp_path / name).stat().st_size > 5000
            study.skip(study.ask(), "no answer")
            run(study, 1)
            study.reset()
        with pytest.raises(ValueError, match="cannot be drawn"):
            draw_study(study, tmp_path / "a.xyz")


def test_former_names_still_work(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        study.held(study.centre, 2.0)
        text = study.export()
    assert Study.adopt(tmp_path / "u.db", text) == "a"
    with Study.look(tmp_path / "u.db", "a") as copied:
        assert "hold" in [event.kind for event in copied.events()]
