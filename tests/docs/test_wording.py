"""The pages keep to the rules that `tests/lint/wording.py` has for docstrings and messages."""

import sys

import pytest
from pages import NAMES, ROOT, without_code

sys.path.insert(0, str(ROOT / "tests" / "lint"))

import wording

OLDER = {"CHANGELOG.md"}  # not gone over yet


@pytest.mark.parametrize("page", [page for page in NAMES if page not in OLDER])
def test_a_page_keeps_to_the_rules(page):
    prose = " ".join(without_code(page).split())
    assert [match[0] for phrase in wording.PHRASES for match in phrase.finditer(prose)] == []
