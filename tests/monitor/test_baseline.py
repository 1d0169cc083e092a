"""Baseline rounds: their schedule, their independence of the tuner, and persistence."""

import itertools
import json
import math

import numpy as np
import pytest

import trimtab as tt
from trimtab.live import Runner, Study, read_config
from trimtab.monitor.anytime import AnytimeSums
from trimtab.monitor.baseline import Baseline, read_baseline
from trimtab.spec.knob_encoding import Knobs
from trimtab.study import core_calls
from trimtab.study.packed_state import SHAPES
from trimtab.study.verify import check_study

from .. import factories, program
from ..factories import KNOBS
from ..program import trimtab


def cost(knobs):
    return 5 + factories.cost(knobs)


def run(study, rounds):
    """Return the kinds of this many rounds."""
    return [trial.kind for trial in factories.run(study, rounds, cost)]


def test_every_block_has_one_baseline_round_at_a_random_place():
    seeds = []
    for seed in range(50):
        baseline, found = Baseline().planned(20, None, seed), []
        for slot in range(2000):
            if baseline.is_due:
                found.append(slot)
            baseline = baseline.after("baseline" if baseline.is_due else "tell", False, seed)
        assert [slot // 20 for slot in found] == list(range(100))
        seeds.append([slot % 20 for slot in found])
    counts = np.bincount(np.ravel(seeds), minlength=20)  # 5000 draws: 250 ± 15.4 of each place
    assert np.abs(counts - 250).max() < 5.5 * 15.4
    assert len({tuple(places) for places in seeds}) == 50


SHARE = (0.02, 0.125)


def test_the_distances_of_a_share_are_spread_around_their_mean():
    """Without a proved saving, one round in eight is a baseline round; the distances are independent of the values."""
    gaps, firsts = [], []
    for seed in range(50):
        baseline, found = Baseline().planned(20, None, seed, SHARE), []
        for slot in range(1000):
            if baseline.is_due:
                found.append(slot)
            baseline = baseline.after("baseline" if baseline.is_due else "tell", False, seed)
        gaps += np.diff(found).tolist()
        firsts.append(found[0])
    counts = np.bincount(gaps)
    assert np.flatnonzero(counts).tolist() == [5, 6, 7, 8, 9, 10, 11]
    assert np.abs(counts[5:] - len(gaps) / 7).max() < 5.5 * math.sqrt(len(gaps) * 6 / 49)
    assert set(firsts) == set(range(3, 11))


def test_the_distance_follows_the_proof():
    baseline, sums = Baseline().planned(20, None, 1, SHARE), AnytimeSums()
    seen = [baseline.distance]
    for slot in range(3000):
        base, before = baseline.is_due, sums.whole.differences
        value = 10.0 + 0.1 * (slot % 3) - (0 if base else 3 if slot < 1500 else -9)
        sums = (sums.reference if base else sums.tuned)(slot, value, baseline.spacing)
        baseline = baseline.after("baseline" if base else "tell", False, 1)
        if sums.whole.differences > before:
            baseline = baseline.paced(sums)
            seen.append(baseline.distance)
    assert seen[0] == seen[-1] == 8  # nothing is proved at first; at the end, the saving is disproved
    assert 30 < max(seen) <= 50
    assert all(b <= math.ceil(1.25 * a) for a, b in itertools.pairwise(seen))


def test_a_share_survives_storage_and_change(tmp_path):
    with Study.open(tmp_path / "a.db", "a", KNOBS, seed=3, baseline={"share": [0.02, 0.125]}) as study:
        kinds = run(study, 300)
        assert study.fields()["baseline.share"] == [0.02, 0.125]
        before, distance = study._position, study.baseline.distance
        assert distance > 8  # a saving is proved
        assert 300 / 50 < kinds.count("baseline") < 300 / 8
        assert check_study(study._store, study._saved) == []
    with Study.open(tmp_path / "a.db", "a", KNOBS, baseline={"share": [0.02, 0.125]}) as study:
        assert study._position.snapshot(0) == before.snapshot(0)
        shape = SHAPES.of(study._position)
        assert shape.position(3, shape.numbers(study._position)).baseline == study.baseline
        seq = study.seq
    with Study.open(tmp_path / "a.db", "a", KNOBS, baseline=20) as study:  # removed from the definition
        assert (study.seq, study.baseline.share) == (seq + 1, None)
        assert run(study, 100).count("baseline") in (4, 5, 6)
        study.set({"baseline.share": [0.1, 0.25], "baseline.every": 0})
        assert run(study, 50).count("baseline") == 0
        study.set({"baseline.every": 20})
        assert run(study, 100).count("baseline") >= 8
        study.undo(study.round - 20)
        assert study.baseline.share == (0.1, 0.25)
        text = study.export()
    Study.import_text(tmp_path / "b.db", text)
    with Study.open(tmp_path / "b.db", "a") as study:
        assert study.baseline.share == (0.1, 0.25)


def test_the_baseline_waits_after_a_failure():
    baseline = Baseline().planned(4, None, 1)
    for _ in range(30):
        baseline = baseline.after("skip", True, 1)
        assert not baseline.is_due
    baseline = baseline.after("tell", False, 1)
    assert baseline.is_due
    block = baseline.slot // 4
    assert baseline.after("baseline", True, 1).due // 4 == block + 1  # a failed one counts


def test_the_tuner_is_not_affected(tmp_path):
    with (
        Study.open(tmp_path / "a.db", "a", KNOBS, seed=3, baseline=7) as study,
        Study.open(tmp_path / "b.db", "a", KNOBS, seed=3, baseline=0) as other,
    ):
        kinds = run(study, 140)
        assert kinds.count("baseline") == 20
        run(other, 120)
        assert core_calls.pack(study.setup, study.state) == core_calls.pack(other.setup, other.state)
        events = list(study.events())
        settings = [event.query for event in events if event.kind == "baseline"]
        assert settings == [list(study.start.values())] * 20
        probed = [(event.round, event.value, event.centre) for event in events if event.kind == "tell"]
        assert probed == [(event.round, event.value, event.centre) for event in other.events() if event.kind == "tell"]
        paid, there = study.saving.paid, cost(study.start)
        assert study.saving.low < there - paid < study.saving.high
        assert study.saving.saved == pytest.approx(study.saving.baseline - paid)
        assert study.saving.low > 0
        assert other.saving.saved is None


def test_asking_again_undo_and_export(tmp_path):
    with Study.open(tmp_path / "a.db", "a", KNOBS, seed=3, baseline=5) as study:
        while (trial := study.ask()).kind != "baseline":
            study.tell(trial, 1.0)
        before = study.seq
    with Study.open(tmp_path / "a.db", "a") as study:
        assert study.ask() == trial
        for wrong, error in ((math.inf, ValueError), ("x", TypeError)):
            with pytest.raises(error):
                study.tell(trial, wrong)
        assert study.seq == before
        study.tell(trial, 2.5)
        with pytest.raises(ValueError, match="is not open: it was told, skipped or undone before"):
            study.tell(trial, 2.5)
        run(study, 200)
        there = study._position
        round = study.round
        run(study, 30)
        study.undo(round)
        assert study._position.ledger == there.ledger
        assert study.baseline == there.baseline
        run(study, 30)
        study.undo(trial.round)
        again = study.ask()
        assert again[1:] == trial[1:]  # the same except for its id
        run(study, 60)
        text, saving, position = study.export(), study.saving, study._position
    Study.import_text(tmp_path / "b.db", text)
    with Study.open(tmp_path / "b.db", "a") as moved:
        assert moved.saving == saving
        assert (moved.baseline, moved._position.ledger) == (position.baseline, position.ledger)
        assert check_study(moved._store, moved._saved) == []
        assert {event.kind for event in moved.events()} >= {"tell", "baseline", "undo", "import"}
    with Study.open(tmp_path / "a.db", "a") as study:  # from the snapshot and the values since
        assert study.saving == saving
        study.reset()
        assert study.saving == saving  # past costs remain


def test_a_skipped_baseline_round_does_not_reach_the_tuner(tmp_path):
    with Study.open(tmp_path / "a.db", "a", KNOBS, seed=3, baseline=5) as study:
        while (trial := study.ask()).kind != "baseline":
            study.tell(trial, 1.0)
        state, told = study.state, study.saving.baseline_rounds
        study.skip(trial, "no answer")
        assert study.state is state
        assert study.saving.baseline_rounds == told
        assert study.diagnostics.failures == 1
        assert study.ask().kind == "probe"
        *_, last = study.events()
        assert (last.kind, last.value, last.note) == ("baseline", None, "no answer")


def test_reference_and_frequency_can_change(tmp_path):
    with Study.open(tmp_path / "a.db", "a", KNOBS, seed=3, baseline={"every": 5, "knobs": {"gain": 4}}) as study:
        run(study, 60)
        assert {tuple(event.query) for event in study.events() if event.kind == "baseline"} == {(4.0, 8)}
        assert "against the reference" in study.saving.sentence
        told = study.saving.baseline_rounds
    with Study.open(tmp_path / "a.db", "a", KNOBS, baseline={"every": 10, "knobs": {"gain": 4.0}}) as study:
        assert study.saving.baseline_rounds == told
        assert run(study, 60).count("baseline") in (5, 6, 7)
        seq = study.seq
    with Study.open(tmp_path / "a.db", "a", KNOBS) as study:  # unchanged
        assert study.seq == seq
        assert study.baseline.every == 10
    with Study.open(tmp_path / "a.db", "a", baseline=0) as study:
        assert study.saving.baseline_rounds == 0  # those of the start do not count
        assert run(study, 60) == ["probe"] * 60
        study.undo(20)
        assert study.baseline.every == 0
    with Study.open_unlocked(tmp_path / "a.db", "a") as study:
        notes = [event.note for event in study.events() if event.kind == "set"]
    assert notes[0].startswith("baseline.every 5 → 10 (")
    assert notes[1].startswith("baseline.every 10 → 0, baseline.knobs {'gain': 4")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (1, "baseline.every=1 leaves no round to tune"),
        ({"share": 0.1}, "baseline.share=0.1 must be the smallest and the largest share"),
        ({"share": [0.1]}, "must be the smallest and the largest share"),
        ({"share": [0.1, 0.3]}, "baseline.share=0.3"),
        ({"share": [0.0, 0.1]}, "baseline.share=0.0"),
        ({"share": [0.125, 0.02]}, "has its limits reversed: write [0.02, 0.125]"),
        (-1, "baseline.every=-1 must be a whole number"),
        ({"often": 3}, "unknown field baseline.often: write every = 20"),
        ({"knobs": {"size": 999}}, "'size': 999 is not in 1 to 256"),
        ({"knobs": {"width": 1}}, "baseline.knobs.width is not a knob of the study: choose from gain, size"),
        ({"knobs": 3}, "baseline.knobs=3 must be a table"),
    ],
)
def test_invalid_baselines_are_refused(given, why):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read_baseline(given, Knobs.of(KNOBS))
    assert why in str(error.value)


def test_the_cost_and_length_of_probes(tmp_path):
    """For f = 50|x|² in shares and a known width, the plane finds ½·100·l², l² = 2·(0.05·width)²."""
    knobs = [{"name": n, "low": 0.0, "high": 10.0, "start": 5.0} for n in "ab"]
    method = tt.auto(radius=0.05, narrowest=0.999, widest=1.0)
    with Study.open(tmp_path / "a.db", "a", knobs, method, seed=0, baseline=0) as study:
        for _ in range(400):
            trial = study.ask()
            study.tell(trial, sum((value / 10 - 0.4) ** 2 for value in trial.knobs.values()) * 50)
        assert study.probes == pytest.approx({"a": 0.5, "b": 0.5}, rel=0.01)
        assert study.saving.probing == pytest.approx(50 * 2 * 0.05**2, rel=0.1)
    with Study.open(tmp_path / "b.db", "a", knobs, tt.residual(radius=0.05, step=1e-3), seed=0, baseline=0) as study:
        for _ in range(50):
            study.tell(study.ask(), 1.0)
        assert study.saving.probing is None
        assert study.probes == pytest.approx({"a": 0.5, "b": 0.5})


STUDY = """
name = "a"
command = ["sh", "-c", {script}]
seed = 1
[knobs.x]
type = "integer"
low = 0
high = 100
start = 10
[knobs.y]
type = "integer"
low = 0
high = 100
start = 20
"""
BOWL = "echo $(( 2000 + (KNOB_X - 60) * (KNOB_X - 60) + (KNOB_Y - 50) * (KNOB_Y - 50) + TRIMTAB_ROUND % 5 ))"


def test_the_program_ends_with_the_saving(tmp_path):
    more = "[baseline]\nevery = 10\n"
    (tmp_path / "study.toml").write_text(STUDY.format(script=json.dumps(BOWL)) + more)
    done = program.run("tune", "study.toml", "--rounds", "120", cwd=tmp_path)
    assert done.stdout.count(" baseline 5400") + done.stdout.count(" baseline 5401") > 2
    first, second = done.stderr.splitlines()[:2]
    assert first.startswith("saves ")
    assert " %) against the start" in first
    assert second.startswith("120 rounds run; 108 rounds and 12 baseline rounds in total; centre: ")
    shown = trimtab(tmp_path, "show")
    assert shown.startswith(f"a: {first}\n")
    assert shown.splitlines()[1].startswith("a saving shows with 80 % after: 5 %: ")
    assert "probe" in shown.splitlines()[4]
    plans = json.loads(trimtab(tmp_path, "plan-baseline", "--json"))
    assert [plan["share"] for plan in plans] == [0.05, 0.1, 0.2]
    assert plans[0]["rounds"] >= plans[2]["rounds"] >= 60
    rarer = trimtab(tmp_path, "plan-baseline", "a", "--every", "40")
    assert rarer.startswith("a: with one baseline round in 40, a saving shows with 80 % after: 5 %: about ")
    assert first.partition("; ")[0] in trimtab(tmp_path, "list")
    about = json.loads(trimtab(tmp_path, "show", "--json"))
    listed = json.loads(trimtab(tmp_path, "list", "--json"))
    assert about["saving"]["sentence"] == listed[0]["saving"]["sentence"] == first
    assert about["saving"]["low"] > 0
    assert about["saving"]["low"] < 5402 - about["saving"]["paid"] < about["saving"]["high"]
    assert set(about["probes"]) == {"x", "y"}
    assert about["baseline"]["every"] == 10
    assert list(about)[:2] == ["name", "saving"]
    rows = trimtab(tmp_path, "show", "--csv").splitlines()
    assert sum(row.split(",")[3] == "baseline" for row in rows) == 12


def test_no_baseline_round_during_a_hold_or_without_approval(tmp_path):
    script = "test $TRIMTAB_SEQ -lt 9 || test $TRIMTAB_SEQ -gt 30 && echo 1"
    more = "[guard]\nfailures = 2\n[baseline]\nevery = 3\n"
    (tmp_path / "study.toml").write_text(STUDY.format(script=json.dumps(script)) + more)
    config = read_config(tmp_path / "study.toml")
    with config.open() as study:
        runner = Runner(config, study)
        runner._pause = lambda: 0.0
        kinds = [(report.kind, report.value) for report in runner.rounds(45)]
    failed = [kind for kind, value in kinds if value is None]
    assert failed[2:] == ["hold"] * (len(failed) - 2)
    assert failed.count("baseline") <= 1
    recovered = kinds.index(("hold", 1.0))
    assert [kind for kind, _ in kinds[recovered + 1 :]].count("baseline") >= 4
    (tmp_path / "study.toml").write_text(
        STUDY.format(script=json.dumps("echo 1")).replace('"a"', '"b"')
        + "[guard]\napproval = true\n[baseline]\nevery = 2\n"
    )
    config = read_config(tmp_path / "study.toml")
    with config.open() as study:
        while study.ask().kind != "baseline":
            study.tell(study.ask(), 1.0)
        runner, seq = Runner(config, study), study.seq
        for report in runner.rounds(1):
            assert report.kind == "note"
            assert report.setting == study.start
            runner.stop.set()  # without a decision nothing runs
        assert study.seq == seq
