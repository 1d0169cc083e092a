"""The program `trimtab`. Each command is a module that registers itself with the application.

Slow imports (NumPy, the laboratory, plotting) are left to the commands that need them.
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
    """Run the program; if an extra is missing, print how to install it."""
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # escape characters that the terminal cannot show
        with contextlib.suppress(OSError):  # standard output may be a pipe that replaced an open file
            sys.stdout.reconfigure(errors="backslashreplace")
    try:
        console = _console()
    except ImportError as error:
        print(f"error: the program trimtab needs {error.name}: {pip_install('cli', 'lab', 'live')}", file=sys.stderr)
        sys.exit(2)
    console.main()


def _console() -> Any:
    """Import the console and all commands."""
    for name in COMMANDS:
        importlib.import_module(f"trimtab.cli.{name}")
    return importlib.import_module("trimtab.cli.console")


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'trimtab.cli' has no attribute {name!r}")
    return _console().app
