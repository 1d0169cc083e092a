"""Refuse wording that English does not have: `python tests/lint/wording.py [FILE …]`, all of `src` by default.

Docstrings, comments and messages are searched for a few patterns; each hit is printed with a remedy.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

CLAUSE = re.compile(
    r"(What|Who|Whose|Whom|Whoever|Where|That|Those|Of|As it|As they"
    r"|(?:By how|How) (?:far|many|much|long|often|wide|late|sure|well))\b"
)
OPENING = "begin with a verb or a noun phrase"
FINE = r"longer|more|less|fewer|better|worse|different|other|reason|need|way|use|proof|\w+er than"
PHRASES = {
    re.compile(
        rf"(?<!there )(?<!There )\b(?:is|are|was|were|be) (?:no (?!{FINE})[a-z{{'\"]|none of)[\w}}]*"
    ): "write 'is not a …', 'must be …' or 'unknown …'",
    re.compile(r"\bso many (?!that\b|as\b)\w+"): "name the number, or write 'this many'",
    re.compile(r"\b(?:[Nn]obody|[Ss]omebody)\b(?!$)"): "name the actor",
    re.compile(r"\b(?:[Ww]hoever|[Ss]o far as|in times of|all of whom|those of whom)\b"): "name who or what it is",
    re.compile(r"\b(?:herein|hereof|therein|thereof|hitherto|uses to|belongs? into|[Aa]way with|for want of)\b"): (
        "use a word of today"
    ),
}


class Hit(NamedTuple):
    """One place to rewrite."""

    line: int
    text: str
    remedy: str


def texts(source: str) -> Iterator[tuple[int, str, bool]]:
    """Each docstring, comment and message: its line, its text, and False for messages."""
    tree = ast.parse(source)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(getattr(part, "value", "") if _is_text(part) else "{" for part in node.values),
                False,
            )
        elif _is_text(node) and id(node) not in parts:
            yield node.lineno, node.value, id(node) in documented
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), True


def hits(source: str) -> list[Hit]:
    """All places of a file, in order."""
    found = []
    for line, text, is_prose in texts(source):
        if is_prose and (match := CLAUSE.match(text.lstrip())):
            found.append(Hit(line, match[0] + " …", OPENING))
        for phrase, remedy in PHRASES.items():
            for match in phrase.finditer(" ".join(text.split())):
                found.append(Hit(line, match[0], remedy))
    return sorted(found)


def main(words: list[str]) -> int:
    """The exit status: 1 if something is to be rewritten."""
    files = [Path(word) for word in words] or sorted((ROOT / "src").rglob("*.py"))
    found = {file: hits(file.read_text(encoding="utf-8")) for file in files}
    names = {
        file: str(file.resolve().relative_to(ROOT)) if file.resolve().is_relative_to(ROOT) else "" for file in files
    }
    for file in files:
        for hit in found[file]:
            print(f"{names[file] or file}:{hit.line}: {hit.text!r}: {hit.remedy}")
    return int(any(found.values()))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
