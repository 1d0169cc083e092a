"""`trimtab why`."""

import json

import pytest
from typer.testing import CliRunner

from trimtab.cli import app
from trimtab.live import Study

from ..factories import ONE_KNOB, run


@pytest.fixture
def store(tmp_path):
    file = tmp_path / "t.db"
    with Study.open(file, "a", ONE_KNOB, seed=1, baseline=0) as study:
        run(study, 60, lambda x: (x["x"] - 0.3) ** 2)
    Study.open(file, "young", ONE_KNOB, seed=1).close()
    return str(file)


def why(store, *words):
    return CliRunner().invoke(app, ["why", *words, "--store", store], env={"COLUMNS": "80", "TERM": "dumb"})


def test_the_text_is_that_of_the_study(store):
    with Study.open_unlocked(store, "a") as study:
        now, then = str(study.explain()), str(study.explain(40))
    assert why(store, "a").stdout == now + "\n"
    assert why(store, "a", "--round", "40").stdout == then + "\n"
    assert "a: round 40, method auto; explained by a belief that listened to 40 rounds" in then


def test_json(store):
    done = why(store, "a", "--json")
    document = json.loads(done.stdout)
    assert (document["study"], document["listened"], document["belief"]["values"]) == ("a", 60, 60)
    assert document["effects"][0]["name"] == "x"
    assert document["move"]["round"] == 59


def test_errors_are_one_line(store):
    for words, reason in [
        (("young",), "study 'young' cannot be explained yet: it has no values"),
        (("a", "--round", "61"), "round 61 of study 'a' has not been run"),
        (("b",), "b"),
    ]:
        done = why(store, *words)
        assert done.exit_code != 0
        assert reason in str(done.exception), done.output
        assert len(str(done.exception).splitlines()) == 1
