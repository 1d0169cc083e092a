"""A decision belongs to one proposal: the first one is final, and only approved settings ever run."""

import json
import threading

import pytest

from trimtab.live import Study

from ..program import start, trimtab

STUDY = """
name = "a"
command = ["sh", "-c", "echo $KNOB_X >> ran; test ! -e broken && echo {x}"]
seed = 1
[knobs.x]
low = 0
high = 1
start = 0.5
[guard]
approval = true
failures = 2
"""


@pytest.fixture
def tune(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)

    return lambda *words: start("tune", "study.toml", *words, cwd=tmp_path)


def test_the_first_decision_is_final(tmp_path, tune):
    with tune("--rounds", "1") as running:
        assert "waiting for trimtab approve a --round 0" in running.stdout.readline()
        (listed,) = json.loads(trimtab(tmp_path, "list", "--json"))
        assert listed["waits"]["round"] == 0
        assert set(listed["waits"]["setting"]) == {"x"}
        assert "proposes round 0, not 7" in trimtab(tmp_path, "approve", "--round", "7", status=2)
        found = []

        def decide(approve):
            with Study.open_unlocked(tmp_path / "trimtab.db", "a", mode="write") as study:
                try:
                    found.append((approve, study.decide(approve=approve).setting))
                except ValueError as error:
                    found.append((approve, str(error)))

        threads = [threading.Thread(target=decide, args=(n % 2 == 0,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [found_one for found_one in found if not isinstance(found_one[1], str)]
        out, _ = running.communicate(timeout=300)
    assert len(winners) == 1
    assert ("tell" in out) == winners[0][0]
    word = "approved" if winners[0][0] else "rejected"
    refused = [text for _, text in found if isinstance(text, str)]
    assert len(refused) == 5
    assert all(f"already {word} by " in text or "has no proposal" in text for text in refused)
    ran = (tmp_path / "ran").read_text().split() if (tmp_path / "ran").exists() else []
    assert [float(x) for x in ran] == ([listed["waits"]["setting"]["x"]] if winners[0][0] else [])


def test_only_the_approved_setting_runs_even_after_a_kill(tmp_path, tune):
    """Killed while it waits, and approved meanwhile; then the file changes the setting, which is proposed again."""
    with tune() as running:
        running.stdout.readline()
        running.kill()
        running.communicate()
    (listed,) = json.loads(trimtab(tmp_path, "list", "--json"))
    trimtab(tmp_path, "approve", "a", "--round", "0")
    (after,) = json.loads(trimtab(tmp_path, "list", "--json"))
    assert after["waits"] is None
    with Study.open(tmp_path / "trimtab.db", "a") as study:
        assert study.decision(study.ask().knobs).approved
        assert study.decision({"x": 0.123}) is None  # a different setting was not approved
        study.propose({"x": 0.123})
        assert study.decision({"x": 0.123}) is None
        assert study.decision(study.ask().knobs) is None  # and that one has been replaced
        study.propose(study.ask().knobs)
    with tune("--rounds", "1") as running:
        assert "waiting for trimtab approve" in running.stdout.readline()
        assert not (tmp_path / "ran").exists()
        trimtab(tmp_path, "approve")
        running.communicate(timeout=300)
    assert (tmp_path / "ran").read_text().split() == [repr(listed["waits"]["setting"]["x"])]


def test_a_hold_after_failures_is_proposed_too(tmp_path, tune):
    (tmp_path / "broken").touch()
    proposed = []
    with tune("--rounds", "3") as running:
        for _ in range(3):
            while "waiting for trimtab approve" not in running.stdout.readline():
                pass
            (listed,) = json.loads(trimtab(tmp_path, "list", "--json"))
            proposed.append(listed["waits"]["setting"]["x"])
            trimtab(tmp_path, "approve")
        running.communicate(timeout=300)
    assert running.returncode == 4
    assert [float(x) for x in (tmp_path / "ran").read_text().split()] == proposed  # and nothing at the end
    assert proposed[-1] == 0.5
