"""The table [context] of a study.toml: the numbers that are read before each round, and the program or file with them.

[context]
command = ["./load"]       # or file = "load.txt"
load = {}
hour = {period = 24}
"""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.context import Context, contexts_of
from trimtab.spec.guard import LONGEST, number
from trimtab.tune.parse_value import read_value
from trimtab.types import Fields
from trimtab.util.durations import WANTED, seconds
from trimtab.validation import choose

OWN = ("command", "file", "timeout")
"""Fields of the table that are not names."""
Known = dict[str, float | None]
"""A context by name; None in place of a number that could not be read."""


@dataclass(frozen=True)
class ContextSource:
    """The contexts of a study.toml, and the program or file that they are read from."""

    contexts: tuple[Context, ...]
    command: tuple[str, ...] = ()
    file: str | None = None
    timeout: float = 10.0

    @property
    def sentence(self) -> str:
        """The names, and the source that they are read from.

        >>> ContextSource.of({"file": "load.txt", "load": {}, "hour": {"period": 24}}).sentence
        'load, hour (period 24), read from load.txt'
        """
        names = [c.name if c.period is None else f"{c.name} (period {c.period:g})" for c in self.contexts]
        where = f"from {self.file}" if self.file else f"by {' '.join(self.command)}"
        return f"{', '.join(names)}, read {where}"

    @property
    def nothing(self) -> Known:
        """The context of which no number is known."""
        return {context.name: None for context in self.contexts}

    def parse(self, text: str) -> tuple[Known, str | None]:
        """Read the numbers in the output of the command or in the file, and the reasons for those that are missing.

        >>> source = ContextSource.of({"file": "load.txt", "load": {}, "hour": {"period": 24}})
        >>> source.parse("load=0.7 hour=13")
        ({'load': 0.7, 'hour': 13.0}, None)
        >>> source.parse('{"load": 0.7}')
        ({'load': 0.7, 'hour': None}, 'no number under \\'hour\\' in the output: \\'{"load": 0.7}\\'')
        """
        found, reasons = self.nothing, list[str]()
        for name in found:
            found[name], why = read_value(text, name)
            if found[name] is None and len(found) == 1:
                found[name] = read_value(text)[0]
                why = why if found[name] is None else None
            reasons += [] if why is None else [why]
        return found, "; ".join(reasons) or None

    @classmethod
    def of(cls, given: object) -> ContextSource:
        """Read the table."""
        if not isinstance(given, dict):
            raise ValueError(
                f"context={given!r} must be a table: write [context] with command and load = {{}} below it"
            )
        own = {name: given[name] for name in OWN if name in given}
        contexts = contexts_of(_context(name, table) for name, table in given.items() if name not in OWN)
        if not contexts:
            raise ValueError("[context] names no number: write for example load = {} below it")
        if ("command" in own) == ("file" in own):
            what = "both command and file" if "file" in own else "neither command nor file"
            raise ValueError(f'[context] has {what}: write command = ["./load"], or file = "load.txt"')
        command, file = own.get("command", []), own.get("file")
        if "command" in own and not (isinstance(command, list) and command and all(map(_is_text, command))):
            raise ValueError(f'context.command={command!r} must be a list of strings: write ["./load"]')
        if "file" in own and not _is_text(file):
            raise ValueError(f'context.file={file!r} must be a path: write for example "load.txt"')
        timeout = seconds(own.get("timeout", 10.0))
        number("context.timeout", timeout, 0, LONGEST, WANTED)
        return cls(contexts, tuple(command), file, timeout)

    def to_table(self) -> Fields:
        """Return the fields of the table that say where the numbers are read."""
        return {"command": list(self.command)} if self.file is None else {"file": self.file}


def missing_words(found: Known, why: str | None) -> str | None:
    """Say which numbers are missing, why, and what happens; None if none is.

    >>> missing_words({"load": None, "hour": 3.0}, "no answer within 10 s")
    'context: load is not known (no answer within 10 s): its mean is assumed'
    """
    missing = [name for name, value in found.items() if value is None]
    if not missing:
        return None
    are, mean = ("is", "its mean is") if len(missing) == 1 else ("are", "their means are")
    return f"context: {', '.join(missing)} {are} not known ({why}): {mean} assumed"


def _context(name: str, table: object) -> Context:
    if not isinstance(table, dict):
        raise ValueError(f"unknown field context.{name}: {choose(name, OWN)} (a number of that name: {name} = {{}})")
    for field in table:
        if field != "period":
            raise ValueError(f"unknown field context.{name}.{field}: {choose(field, ['period'])}")
    return Context(name, table.get("period"))


def _is_text(given: object) -> bool:
    return isinstance(given, str) and bool(given) and "\0" not in given
