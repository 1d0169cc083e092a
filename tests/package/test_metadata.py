"""Package metadata are correct: versions, extras, Pythons, and the usual files of a project."""

import re
import tomllib
from pathlib import Path

import trimtab

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
APART = {"bluesky", "optax", "ray", "torch"}  # hosts of some hundred megabytes, each for those who have it already
OURS = {"bench", "dev", "docs", "hosts", "peers"}  # for work on trimtab itself


def members(extra):
    """The extras that an extra brings, itself included."""
    found = {extra}
    for line in EXTRAS[extra]:
        if inner := re.fullmatch(r"trimtab\[(.*)\]", line):
            for name in inner[1].split(","):
                found |= members(name)
    return found


def test_all_brings_all_but_the_heavy_hosts():
    assert members("all") == set(EXTRAS) - APART - OURS


def test_every_extra_that_is_named_exists():
    named = {}
    for file in [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("docs/**/*.rst"),
    ]:
        text = file.read_text(encoding="utf-8")
        groups = re.findall(r"trimtab\[([a-z,]+)\]", text)
        groups += [
            re.sub(r"[^a-z,]", "", words) for words in re.findall(r"pip_install\(((?:['\"][a-z]+['\"],? ?)+)\)", text)
        ]
        named |= {name: file for group in groups for name in group.split(",")}
    assert {"cli", "lab", "live", "postgres", "serve", "torch"} <= set(named)
    assert {name: file for name, file in named.items() if name not in EXTRAS} == {}


def test_one_version():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    assert cited[1] == trimtab.__version__
    assert "version" in PROJECT["dynamic"]


def test_the_pythons_are_those_that_are_tried():
    listed = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    tried = re.search(r"^PYTHONS \?= (.*)$", (ROOT / "Makefile").read_text(), flags=re.M)[1]
    assert [f"python{version}" for version in listed] == tried.split()
    assert PROJECT["requires-python"] == f">={listed[0]}"


def test_it_is_typed_and_licensed():
    assert (Path(trimtab.__file__).parent / "py.typed").exists()
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert PROJECT["license"] in (ROOT / "CITATION.cff").read_text()
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_files_that_a_source_distribution_holds_are_there():
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert [name for name in included["include"] if not list(ROOT.glob(name))] == []
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        assert (ROOT / name).exists()
