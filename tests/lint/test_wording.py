"""Wording that is refused, and wording that only looks like it."""

import pytest

from . import wording

REFUSED = {
    '"""What a part has to say."""': "What …",
    'def f():\n    """Where to start."""': "Where …",
    'class A:\n    """Some class."""\n    x: int = 0\n    """Of a study, its number."""': "Of …",
    'raise ValueError("the file is no study")': "is no study",
    'raise ValueError(f"{name!r} is no field of {kind}")': "is no field",
    'raise ValueError(f"x is no {kind}")': "is no {",
    'raise ValueError("one that is"\n" none of the choices")': "is none of",
    "x = 1  # waits so many seconds": "so many seconds",
    '"""Stop for whoever asks."""': "whoever",
    'why = "it belongs into the file"': "belongs into",
    '"""How far the centre moves."""': "How far …",
    '"""By how much the value changed."""': "By how much …",
    "x = 1  # What the round costs": "What …",
    '"""Arrays that nobody can change."""': "nobody",
}
FINE = (
    '"""Whether the lock is held."""',
    '"""Read-only view of a study."""',
    '"""Reads what a part has to say."""',
    'raise ValueError("there is no study of that name: it is no longer there")',
    'raise ValueError("it is no larger than the radius, and there is no need")',
    'why = "so many that it overflows"',
    "whoever = so_many_rounds  # names are not text",
    'name = "nobody"',
    'text = "What is in a message may begin as it likes"',
)


@pytest.mark.parametrize(("source", "text"), REFUSED.items())
def test_it_is_refused(source, text):
    assert [hit.text for hit in wording.hits(source)] == [text]


@pytest.mark.parametrize("source", FINE)
def test_it_is_fine(source):
    assert wording.hits(source) == []


def test_the_line_and_what_to_write_are_printed(tmp_path, capsys):
    file = tmp_path / "module.py"
    file.write_text('"""Fine."""\n\nx = "a rock is no egg"\n')
    assert wording.main([str(file)]) == 1
    assert capsys.readouterr().out == f"{file}:3: 'is no egg': write 'is not a …', 'must be …' or 'unknown …'\n"


def test_all_files_are_searched_unless_some_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(wording, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text('"""What it is."""\n')
    (tmp_path / "src" / "b.py").write_text('"""A module."""\n')
    assert wording.main([str(tmp_path / "src" / "b.py")]) == 0
    assert wording.main([]) == 1
    assert capsys.readouterr().out.startswith("src/a.py:1: 'What …'")


def test_the_source_has_none():
    assert wording.main([]) == 0
