"""The words of README and docs are in a dictionary, or in docs/words.txt; and they are spelt as the British do."""

import re

import pytest
from pages import NAMES, ROOT, text
from spellchecker import SpellChecker

CODE = re.compile(r"^(```|:::).*?^\1|^    .*?$|`[^`]*`|<[^>]*>|\$[^$\n]*\$", flags=re.S | re.M)
LINKS = re.compile(r"\]\([^)]*\)|https?://\S+|^\[[^]]*\]: \S+|\(\S+\)=", flags=re.M)
WORD = re.compile(r"(?<![\w./@-])[A-Za-z]+(?:'[a-z]+)?(?![\w@/])")
AMERICAN = re.compile(r"\w*(?:color|favor|behavior|center|flavor|neighbor|[aeiou][lmnrst]iz(?:e|i|a))\w*", flags=re.I)
NAMES_OF_OTHERS = {"MAXIMIZE", "MINIMIZE", "Optimization", "optimizer"}
"""The words of a host, the title of the paper."""
OWN = set((ROOT / "docs" / "words.txt").read_text(encoding="utf-8").split())
KNOWN = SpellChecker(distance=1)


def prose(name):
    """Without code and addresses."""
    return LINKS.sub("] ", CODE.sub(" ", text(name)))


def words(name):
    """Every word once; a name in capitals counts as one."""
    return {word.removesuffix("'s") for word in WORD.findall(prose(name)) if len(word) > 2 and not word.isupper()}


@pytest.mark.parametrize("name", NAMES)
def test_every_word_is_known(name):
    assert sorted(KNOWN.unknown(word for word in words(name) if not {word, word.lower()} & OWN)) == []


def test_the_list_has_nothing_that_is_not_needed():
    """A word that is in the dictionary, or is used no more, would hide a misspelling one day."""
    used = {form for name in NAMES for word in words(name) for form in (word, word.lower())}
    assert sorted(OWN - used) == []
    assert sorted(word for word in OWN if KNOWN.known([word])) == []


@pytest.mark.parametrize("name", NAMES)
def test_british_spelling(name):
    found = {word for word in AMERICAN.findall(prose(name)) if not re.fullmatch("(?i)(re)?siz(e|es|ed|ing)", word)}
    assert found <= NAMES_OF_OTHERS
