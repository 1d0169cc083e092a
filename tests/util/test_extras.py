"""The command that an error names installs from where trimtab came from."""

import json
import shlex
from importlib import metadata

import pytest

from trimtab.util import extras


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """As if the package lay elsewhere, and pip had written this about it; None: it was not installed at all."""

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


def test_a_clone_that_is_used_in_place_stays_so(monkeypatch, tmp_path):
    clone = tmp_path / "my clone"
    monkeypatch.setattr(extras, "__file__", str(clone / "src" / "trimtab" / "util" / "extras.py"))
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    assert shlex.split(extras.pip_install("live", "lab")) == ["pip", "install", "-e", f"{clone}[live,lab]"]


def test_a_copy_of_a_folder_or_a_wheel_is_installed_from_there(installed, tmp_path):
    place = tmp_path / "a folder" / "trimtab-1.0-py3-none-any.whl"
    place.parent.mkdir()
    installed(json.dumps({"url": place.as_uri(), "archive_info": {}}))
    assert extras.pip_install("live") == 'pip install "trimtab[live]"'  # it is gone
    place.touch()
    assert shlex.split(extras.pip_install("live")) == ["pip", "install", f"{place}[live]"]


@pytest.mark.parametrize("direct_url", [None, "", "{}", "not json", '{"url": "https://somewhere/trimtab.zip"}'])
def test_otherwise_from_the_index(installed, direct_url):
    installed(direct_url)
    assert extras.pip_install("live") == 'pip install "trimtab[live]"'
