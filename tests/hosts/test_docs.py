"""The pages of the hosts: the versions they name are those that are tested."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "adapters"
HOSTS = {
    "PyTorch": ("torch", "torch"),
    "Optax": ("optax", "optax"),
    "Bluesky": ("bluesky", "bluesky"),
    "EPICS": ("bluesky", "softioc"),
    "Xopt": ("xopt", "xopt"),
    "Badger": ("xopt", "badger-opt"),
    "blop": ("xopt", "blop"),
    "libEnsemble": ("xopt", "libensemble"),
}


@pytest.mark.parametrize("host", HOSTS)
def test_the_table_names_the_version_that_is_tested(host):
    page, package = HOSTS[host]
    row = re.search(rf"^\| \[{host}\]\({page}\.md\) \|.*$", (DOCS / "index.md").read_text(), flags=re.M)
    assert row is not None
    told = row[0].split("|")[3].split()[-1]
    assert f"{package}=={told}" in (ROOT / "constraints-hosts.txt").read_text().lower().splitlines()
    assert version(package).partition("+")[0] == told


@pytest.mark.parametrize("page", sorted({page for page, _ in HOSTS.values()}))
def test_every_page_says_what_is_kept_and_what_is_not(page):
    text = (DOCS / f"{page}.md").read_text()
    for heading in ("## What is kept of the promises", "## What the host"):
        assert heading in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the hosts warn of each other
def test_the_page_of_xopt_and_its_kin_runs(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = example("xopt")
    setting = names["X"].generator.setting
    assert abs(setting["x"] - 0.5) < 0.1
    assert abs(setting["y"] - 1.4) < 0.1
    assert names["problem"].optimizer.tuner.round == 30
    assert names["flag"] == 0
