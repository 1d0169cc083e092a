"""Load user files that register problems and methods, here and in every worker process."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from trimtab.problems import registry
from trimtab.recipes import methods
from trimtab.util.checksums import digest
from trimtab.util.files import read_file


class UserFile(NamedTuple):
    """A file with its text, since workers on other machines may not have the file."""

    path: str
    text: str


class Registered(NamedTuple):
    """The names registered by a file."""

    problems: list[str]
    methods: list[str]


_loaded: dict[str, Registered] = {}


def read_user_file(path: str) -> UserFile:
    """Read a file."""
    try:
        return UserFile(path, read_file(Path(path)).decode())
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text: give a file of Python") from None


def load_user_file(own: UserFile) -> Registered:
    """Execute the file, once per process, and return the problems and methods it registers."""
    name = f"own_{digest(own.text.encode())}"
    if name not in _loaded:
        problems, known = {*registry}, {*methods}
        module = ModuleType(name)
        module.__file__ = own.path
        sys.modules[name] = module  # dataclasses resolve annotations there
        folder = str(Path(own.path).resolve().parent)
        if folder not in sys.path:  # lets the file import its neighbours
            sys.path.append(folder)
        try:
            exec(compile(own.text, own.path, "exec"), module.__dict__)
        except Exception as error:
            del sys.modules[name]
            raise ValueError(f"{own.path} cannot be loaded: {_where(own.path, error)}") from error
        _loaded[name] = Registered([p for p in registry if p not in problems], [m for m in methods if m not in known])
    return _loaded[name]


def _where(path: str, error: Exception) -> str:
    """Describe an error, with the line of the file."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"line {lines[-1] if lines else '?'}: {type(error).__name__}: {error}"
