"""The suggested command installs extras from the source of trimtab."""

import json
import shlex
from importlib import metadata

import pytest

from trimtab.util import extras


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Simulate a package elsewhere with this direct_url.json; None: not installed."""

    def pretend(direct_url):
        monkeypatch.setattr(extras, "__file__", str(tmp_path / "site-packages" / "trimtab" / "util" / "extras.py"))

        class Distribution:
            def read_text(self, name):
                assert name == "direct_url.json"
                return direct_url

        def find(name):
            if direct_url is None:
                raise metadata.PackageNotFoundError(name)
            return Distribution()

        monkeypatch.setattr(metadata, "distribution", find)

    return pretend


def test_an_editable_clone_stays_editable(monkeypatch, tmp_path):
    clone = tmp_path / "my clone"
    monkeypatch.setattr(extras, "__file__", str(clone / "src" / "trimtab" / "util" / "extras.py"))
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    assert shlex.split(extras.pip_install("live", "lab")) == ["pip", "install", "-e", f"{clone}[live,lab]"]


def test_a_folder_or_a_wheel_is_installed_from_its_path(installed, tmp_path):
    place = tmp_path / "a folder" / "trimtab-1.0-py3-none-any.whl"
    place.parent.mkdir()
    installed(json.dumps({"url": place.as_uri(), "archive_info": {}}))
    assert extras.pip_install("live") == 'pip install "trimtab[live]"'  # the path no longer exists
    place.touch()
    assert shlex.split(extras.pip_install("live")) == ["pip", "install", f"{place}[live]"]


@pytest.mark.parametrize("direct_url", [None, "", "{}", "not json", '{"url": "https://somewhere/trimtab.zip"}'])
def test_any_other_installation_uses_the_index(installed, direct_url):
    installed(direct_url)
    assert extras.pip_install("live") == 'pip install "trimtab[live]"'
