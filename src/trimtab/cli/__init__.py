"""The program `trimtab`: arguments in, calls out. A command is a module that adds itself to the application.

What takes long to import (NumPy, the laboratory, pictures) is imported by the command that needs it.
"""

import contextlib
import importlib
import io
import os
import sys
from typing import Any

from trimtab.util.extras import pip_install

COMMANDS = ("tune", "studies", "stores", "serve", "compare", "plan", "paper")


def main() -> None:
    """Run the program, or say what it needs."""
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # what the terminal cannot show is no reason to fail
        with contextlib.suppress(OSError):  # a pipe in the place of a file that was open before it
            sys.stdout.reconfigure(errors="backslashreplace")
    try:
        console = _console()
    except ImportError as error:
        print(f"error: the program trimtab needs {error.name}: {pip_install('cli', 'lab', 'live')}", file=sys.stderr)
        sys.exit(2)
    console.main()


def _console() -> Any:
    """The console, with every command added."""
    for name in COMMANDS:
        importlib.import_module(f"trimtab.cli.{name}")
    return importlib.import_module("trimtab.cli.console")


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'trimtab.cli' has no attribute {name!r}")
    return _console().app
