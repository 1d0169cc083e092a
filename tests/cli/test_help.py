"""The help texts of every command, as a terminal of 80 columns shows them."""

import re
from itertools import pairwise

import pytest
import typer
from typer.testing import CliRunner

from trimtab.cli import app

WIDTH = 80


def commands(group=None, path=()):
    """Every command and group, as the words that call it."""
    group = group or typer.main.get_command(app)
    yield path
    for name, command in group.commands.items():
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else [(*path, name)]


def lines_of(path):
    """The lines that --help prints."""
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": str(WIDTH), "TERM": "dumb"})
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def entries(lines):
    """The entries of every panel: its title, and the lines of one entry without defaults and the like."""
    title = ""
    found = []
    for line in lines:
        if head := re.match(r"╭─ (.*?) ─+╮$", line):
            title = head[1]
        elif row := re.match(r"│ (.*) │$", line):
            indent = len(row[1]) - len(row[1].lstrip())
            if indent <= 4:
                found.append((title, []))
            if not row[1].lstrip().startswith("["):
                found[-1][1].append(row[1].strip())
    return found


@pytest.mark.parametrize("path", list(commands()), ids=lambda path: " ".join(path) or "trimtab")
def test_an_option_takes_two_lines_and_a_summary_one(path):
    found = entries(lines_of(path))
    assert any("--help" in entry[0] for _, entry in found)
    for title, entry in found:
        if entry[0].startswith("--show-completion"):
            continue  # in Typer's own words
        assert len(entry) <= (1 if title == "Commands" else 2), entry
        assert not any("…" in line[-1:] for line in entry), entry


@pytest.mark.parametrize("path", list(commands()), ids=lambda path: " ".join(path) or "trimtab")
def test_paragraphs_fill_the_width(path):
    lines = [line.strip() for line in lines_of(path) if line[:1] not in "│╭╰"]
    for line, following in pairwise(lines):
        if line and following:  # else a paragraph ends here
            assert len(f" {line} {following.split()[0]} ") > WIDTH, line


@pytest.mark.parametrize("path", list(commands()), ids=lambda path: " ".join(path) or "trimtab")
def test_a_flag_takes_no_value(path):
    assert not [line for line in lines_of(path) if "<bool>" in line]


def test_every_command_is_rendered():
    assert {("tune",), ("token",), ("token", "create")} < set(commands())
