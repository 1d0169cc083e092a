"""Mutated and malicious exports are refused with one line, in little memory and time."""

import json
import os
import random
import subprocess
import sys

import pytest

from trimtab.live import Store, Study
from trimtab.util.checksums import canonical, checksum

from ..program import run

WIDE = {**os.environ, "COLUMNS": "200"}
KNOBS = [{"name": "x", "low": 0.0, "high": 1.0, "start": 0.5}, {"name": "y", "low": 1, "high": 9, "start": 5}]


@pytest.fixture
def exported(tmp_path):
    with Study.open(tmp_path / "t.db", "a", KNOBS, seed=1) as study:
        for value in range(20):
            study.tell(study.ask(), float(value) if value % 5 else None)
        study.reset()
        return study.export()


def sealed(text, change):
    """Apply a change and recompute the checksum, as an attacker would."""
    document = json.loads(text)
    document.pop("checksum")
    change(document)
    return canonical({**document, "checksum": checksum(document)})


def test_any_mutation_is_refused(exported, tmp_path):
    chance = random.Random(0)
    refused = 0
    for _ in range(300):
        place = chance.randrange(len(exported))
        text = exported[:place] + chance.choice('0123456789,.:[]{}"aex-') + exported[place + 1 :]
        if _same(text, exported):  # a digit beyond the precision of a float changes nothing
            continue
        with pytest.raises(ValueError, match="not an exported study, or is damaged"):
            Study.import_text(tmp_path / "u.db", text)
        refused += 1
    assert refused > 250
    assert not (tmp_path / "u.db").exists()
    Study.import_text(tmp_path / "u.db", exported)


def _same(text, other):
    try:
        return json.loads(text) == json.loads(other)
    except ValueError:
        return False


def _event(n, **fields):
    return lambda document: document["events"][n].update(fields)


def _state(change):
    def apply(document):
        for snapshot in document["snapshots"]:
            snapshot["state"] = change(snapshot["state"])

    return apply


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_event(3, value="7"), "is not a finite number"),
        (_event(3, value=None), "a tell with value=None"),
        (_event(1, value=3.0), "a skip with value=3.0"),
        (_event(3, query=[0.5]), "1 settings for 2 knobs"),
        (_event(3, query=[0.5, 99.0]), "y=99.0 is outside 1 to 9"),
        (_event(3, query=None), "a tell with query=None"),
        (_event(3, centre=[-1.0, 5.0]), "x=-1.0 is outside 0.0 to 1.0"),
        (_event(3, kind="tail"), "kind='tail' is unknown"),
        (_event(3, seq=2), "event 2 comes after event 2"),
        (_event(3, seq="3"), "must be a whole number ≥ 0"),
        (_event(3, round=-1), "must be a whole number ≥ 0"),
        (_event(3, time="now"), "is not a finite number"),
        (_event(3, value=10**400), "is not a finite number"),
        (_event(3, note=7), "must be text"),
        (_event(3, extra=7), "unexpected keyword"),
        (lambda d: d["events"].pop(), "is missing, but the state after it is there"),
        (lambda d: d["snapshots"].pop(), "the state after the last event is missing"),
        (lambda d: d["snapshots"].clear(), ""),
        (lambda d: d["setup"]["knobs"].pop(), ""),
        (lambda d: d["setup"]["knobs"][0].update(high=-1.0), "low=0.0 is not below high=-1.0"),
        (lambda d: d.update(version=99), "version 99"),
        (_state(lambda text: "[" * 100_000), ""),
        (_state(lambda text: text.replace('"shape"', '"shap"')), ""),
    ],
)
def test_every_event_and_state_is_validated(exported, tmp_path, change, reason):
    with pytest.raises(ValueError, match="not an exported study, or is damaged") as error:
        Study.import_text(tmp_path / "u.db", sealed(exported, change))
    assert reason in str(error.value)
    assert len(str(error.value)) < 400
    assert not (tmp_path / "u.db").exists()


def test_control_characters_in_notes_are_escaped(exported, tmp_path):
    note = "\x1b[2J\x1b]0;owned\x07[/x][bold]\0"
    Study.import_text(tmp_path / "trimtab.db", sealed(exported, _event(3, note=note)))
    done = run("show", "--last", "99", cwd=tmp_path, env=WIDE)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "[/x]" in done.stdout


LIMITED = """
import resource, sys
from trimtab.live import Study
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
try:
    Study.import_text(sys.argv[1], sys.stdin.read())
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("text", ["[" * 10**6, '{"a":' * 10**5, "1" * 10**6, '"' + "x" * 10**7, "{}", "", "NaN"])
def test_malicious_texts_are_refused_in_little_memory(tmp_path, text):
    words = [sys.executable, "-c", LIMITED, tmp_path / "u.db"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
    assert "not an exported study" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert len(done.stdout) < 500


def test_a_thousand_studies_are_listed_in_linear_time_despite_a_damaged_one(tmp_path):
    """Every file and row is read once: the number of statements is linear."""
    with Study.open(tmp_path / "trimtab.db", "s0", KNOBS, seed=1) as study:
        study.tell(study.ask(), 1.5)
    with Store(tmp_path / "trimtab.db") as store:
        found = store.load("s0")
        events, snapshots = store.events(found), store.snapshots(found)
        store._db.execute("PRAGMA synchronous=OFF")  # for speed
        store._db.settle = lambda: None
        for n in range(1, 1000):
            store.add(f"s{n}", found.setup, found.status, events, snapshots)
        store._db.execute("UPDATE trimtab_studies SET status = '{}' WHERE name = 's500'")
    done = run("list", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert len(listed) == 1000
    assert [study["name"] for study in listed if "error" in study] == ["s500"]
    assert all(study["rounds"] == 1 and study["age"] >= 0 for study in listed if "error" not in study)
    with Store(tmp_path / "trimtab.db", "read") as store:
        asked = []
        store._db._db.set_trace_callback(asked.append)
        store.all()
    assert len(asked) == 1
    done = run("list", cwd=tmp_path, env=WIDE)
    assert "damaged" in done.stdout
