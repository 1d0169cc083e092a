"""Docstrings here are plain text with Markdown's backticks; Sphinx wants reStructuredText. This says the same in it."""

from __future__ import annotations

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")
FIELD = re.compile(r"(\w+)(?: \(or \w+\))?: ")
CODE = re.compile(r"(``.+?``|`[^`]+`)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite every docstring that autodoc finds."""
    app.connect("autodoc-process-docstring", _rewrite)
    app.connect("autodoc-process-signature", _shorten)
    return {"parallel_read_safe": True}


def _rewrite(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = translate(lines, _parameters(obj))


def _shorten(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str | None, result: str | None
) -> Any:
    """The names of types, where Sphinx shows how it keeps them."""
    alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return tuple(text and alias.sub(r"\1", text) for text in (arguments, result))


def _parameters(obj: Any) -> set[str]:
    try:
        return set(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return set()


def translate(lines: list[str], parameters: set[str]) -> list[str]:
    """What is indented or an example is literal, what begins with a parameter is a field, the rest is escaped."""
    found: list[str] = []
    kind, indent = "blank", ""
    for line in lines:
        before, kind = kind, _kind(line, kind, parameters)
        if kind == "code" and before != "code":
            found += ["", "::", ""]
        elif kind != before and "blank" not in (kind, before) and not (kind == "text" and before in ("item", "field")):
            found.append("")
        if kind in ("code", "example", "blank"):
            found.append(line)
        elif kind == "field":
            parameter, rest = line.split(": ", 1)
            found.append(f":param {parameter.split()[0]}: {_prose(rest)}")
        elif kind == "item":
            found.append(f"{line[:2]}{_prose(line[2:])}")
        else:
            if before not in ("item", "field", "text"):
                indent = ""
            found.append(indent + _prose(line.strip()))
        if kind in ("item", "field"):
            indent = "  "
        if kind == "text" and before in ("item", "field"):
            kind = before  # the item goes on
    return [*found, ""]


def _kind(line: str, before: str, parameters: set[str]) -> str:
    if not line.strip():
        return "code" if before == "code" else "blank"
    if line.startswith(">>>") or (before == "example" and line.strip()):
        return "example"
    if line.startswith("    ") and before in ("blank", "code"):
        return "code"
    if line.startswith(("* ", "- ")):
        return "item"
    field = FIELD.match(line)
    return "field" if field and field[1] in parameters else "text"


def _prose(text: str) -> str:
    pieces = CODE.split(text)
    return "".join(_code(piece) if n % 2 else re.sub(r"([\\*|_<>])", r"\\\1", piece) for n, piece in enumerate(pieces))


def _code(piece: str) -> str:
    inner = piece.strip("`").strip()
    # Nothing may touch the end of a literal but a blank or punctuation: "\ " is nothing, to reStructuredText.
    return rf"\ :py:obj:`{inner}`\ " if NAME.fullmatch(inner) else rf"\ ``{inner}``\ "
