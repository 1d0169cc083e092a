"""`trimtab paper --quick`, end to end through a real shell: files, schema, links, and a second run."""

import base64
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from typer.testing import CliRunner

from trimtab.cli import app
from trimtab.paper import pipeline
from trimtab.paper.cells import compute

PROGRAM = Path(sys.executable).with_name("trimtab")


class Page(HTMLParser):
    """The ids, links and pictures of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.pictures, self.others = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if tag == "a":
            self.links.append(found["href"])
        elif tag == "img":
            self.pictures.append(found)
        elif tag in ("script", "link", "iframe"):
            self.others.append(tag)


def test_the_quick_mode_end_to_end(quick):
    assert "report.html" in (quick.place / "said").read_text()
    folder = quick.place / "out" / "paper"
    results = json.loads((folder / "results.json").read_text())
    schema = json.loads((files("trimtab.paper") / "results.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(results, schema)
    allocation = results["experiments"]["allocation"]
    assert "cost_over_zeta" in allocation["methods"]["residual"]
    assert [one["network"] for one in allocation["networks"]] == [0, 12]
    for name in ("reszo", "hlf-szo", "pbgd"):  # related methods are tuned like the others
        assert results["experiments"]["lqr-r1"]["methods"][name]["tuning"]
    for names in results["figures"].values():
        for name in names:
            assert (folder / name).stat().st_size > 5000
    for name in ("figure-1a", "figure-1b", "figure-2a", "figure-2b", "figure-1a-noisy", "figure-1b-noisy", "limits"):
        assert {Path(f).suffix for f in results["figures"][name]} == {".svg"}

    still = results["experiments"]["lqr-r3-redrawn"]["methods"]["still"]
    assert still["played"] == still["regret"]  # who stands still plays the centre, and noise is not played
    text = (folder / "report.html").read_text()
    for name, one in results["experiments"]["lqr-r1"]["methods"].items():
        both = f"{one['diverged']} / {one['shared']['diverged']} of 16"
        assert re.search(f"{name}</span></td>.*{both}</td></tr>", text)
    assert "R2, zero-mean drift, played, δ shared" in text
    page = Page(text)
    assert page.others == []  # nothing is loaded from elsewhere
    assert len(page.pictures) == sum(len(names) for names in results["figures"].values())
    for picture in page.pictures:
        kind, _, data = picture["src"].partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert ElementTree.fromstring(base64.b64decode(data)).tag.endswith("svg")
        assert len(picture["alt"]) > 20
    for link in page.links:
        assert link == "https://arxiv.org/abs/2010.07378" or link.removeprefix("#") in page.ids
    for claim in results["claims"]:
        assert claim["verdict"] in text
        assert claim["figure"] in page.ids  # where it can be seen
    assert text.count("<math") >= 8
    assert "url(http" not in text
    assert text.count("http") == text.count("https://arxiv.org")
    assert str(quick.place) not in text


def test_a_second_run_goes_on_from_what_is_finished(quick, work, monkeypatch):
    """Nothing is computed again, and nothing changes; the pictures, which were looked at above, are not drawn again."""
    folder = quick.place / "out" / "paper"
    results = json.loads((folder / "results.json").read_text())
    pictures = {name: [folder / file for file in some] for name, some in results["figures"].items()}
    monkeypatch.setenv("TRIMTAB_CACHE", str(quick.place / "cache"))
    monkeypatch.setattr(pipeline, "compute", pytest.fail)
    monkeypatch.setattr(pipeline, "planned_pictures", lambda *_: {name: name for name in pictures})
    monkeypatch.setattr(pipeline, "paint", lambda name, *_: SimpleNamespace(files=pictures[name]))
    words = ["paper", "--quick", "--seed", str(results["seed"]), "--jobs", "1", "--json", "--out", str(folder)]
    again = CliRunner().invoke(app, words, catch_exceptions=False)
    assert json.loads(again.stdout) == results["claims"]
    assert json.loads((folder / "results.json").read_text()) == results
    assert len(list((quick.place / "cache" / "cells").glob("*"))) >= len(work)


def test_numbers_do_not_depend_on_the_number_of_processes(quick, work):
    """In this process, and in the two of that run."""
    for name in ("lqr-r1/residual", "lqr-r3-redrawn/two-point-common", "lemmas", "feasible"):
        here, there = compute(work[name]), quick.cell(name)
        if hasattr(here, "data"):
            assert here.data == there.data
        else:
            for convention in ("own", "shared"):
                first, second = getattr(here, convention), getattr(there, convention)
                assert first.about == second.about
                assert (first.cost == second.cost).all()
                assert (first.variance == second.variance).all()


def test_contradicting_words_are_one_clear_line(tmp_path):
    done = subprocess.run(
        [PROGRAM, "paper", "--quick", "--full"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "--quick and --full contradict each other: choose one" in done.stderr
    assert not list(tmp_path.iterdir())
