"""Console blocks of README and docs parse, use existing commands, and are run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pages import NAMES, ROOT, SERVED, blocks, typed

from trimtab.cli import app

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
LONG = bool(os.environ.get("TRIMTAB_LONG"))
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


@pytest.mark.parametrize("name", [name for name in NAMES if blocks(name, "sh") and name not in SERVED])
def test_every_line_for_a_cluster_or_another_machine_parses(name):
    """Commands that cannot be run here: they name other machines, or need root."""
    for line in "".join(blocks(name, "sh")).splitlines():
        for program, *arguments in words(re.sub(r"\s+# .*|sudo -u trimtab ", "", line)):
            if Path(program).name == "trimtab":
                command = COMMANDS[arguments[0]]
                command.make_parser(typer.Context(command)).parse_args(arguments[1:])
            else:
                assert Path(program).name in ("curl", "pip", "python3", "systemctl", "useradd"), line


@pytest.mark.parametrize(
    "name", [name for name in NAMES if any("trimtab" in line for line in typed(name)) and name not in SERVED]
)
def test_they_run(name, tmp_path):
    """In a fresh folder, in the order of the page, in the environment that README makes, or that the page installs.

    With TRIMTAB_LONG=1 (`make long`) as they stand; else for fewer rounds than a reader would wait for, and without
    what takes minutes. The environment itself is made by `make package`, which installs what the pages say.
    """
    environment = {**os.environ, "PATH": f"{tmp_path / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    program = tmp_path / ".venv" / "bin" / "trimtab"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c 'import trimtab.cli; trimtab.cli.main()' \"$@\"\n"
    )
    program.chmod(0o755)
    for line in typed(name):
        if any(Path(command[0]).name in ("make", "pip") or slow(command) for command in words(line)):
            continue
        if not LONG:
            line = re.sub(r"--rounds \d+", "--rounds 8", line)
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"


def slow(command):
    """Minutes at least: the suites take them even for those who have time."""
    return len(command) > 1 and command[1] == "compare" and (not LONG or "--suite" in command)
