"""What README and docs tell a reader to type: it parses, its commands exist, and what is quick is run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pages import NAMES, ROOT, SERVED, typed

from trimtab.cli import app

TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
SLOW = {"compare", "paper"}
COMMANDS = typer.main.get_group(app).commands


def words(line):
    """The simple commands of a line, as lists of words."""
    return [shlex.split(part) for part in line.split("&&")]


@pytest.mark.parametrize("name", [name for name in NAMES if typed(name) and name not in SERVED])
def test_every_command_exists(name):
    for program, *arguments in (command for line in typed(name) for command in words(line)):
        match Path(program).name:
            case "trimtab":
                command = COMMANDS[arguments[0]]
                command.make_parser(typer.Context(command)).parse_args(arguments[1:])  # refuses unknown options
            case "make":
                assert set(arguments) <= TARGETS
            case other:
                assert other in ("mkdir", "pip", "python"), name


@pytest.mark.parametrize(
    "name", [name for name in NAMES if any("trimtab" in line for line in typed(name)) and name not in SERVED]
)
def test_the_quick_ones_run(name, tmp_path):
    """In a fresh folder, in the order of the page; rounds are fewer than a reader would wait for."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "trimtab"
    program.write_text(
        f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c 'import trimtab.cli; trimtab.cli.main()' \"$@\"\n"
    )
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for line in typed(name):
        if any(
            Path(command[0]).name in ("make", "pip") or (len(command) > 1 and command[1] in SLOW)
            for command in words(line)
        ):
            continue
        line = re.sub(r"--rounds \d+", "--rounds 8", line.replace(".venv/bin/trimtab", "trimtab"))
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"
