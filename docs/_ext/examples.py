"""List the public names, and those that no docstring, page or gallery script shows in an example."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import trimtab

ROOT = Path(__file__).parents[2]
MODULES = ("checks", "lab", "live", "problems", "theory")
REFERENCE = ROOT / "docs" / "reference"
ELSEWHERE = {"trimtab.live.Knob", "trimtab.live.Knobs", "trimtab.problems.CheckError", "trimtab.problems.check_problem"}
"""Documented once, where they are made."""


def public() -> set[str]:
    """Return every name that a user may rely on, whatever else has been imported.

    `dir(trimtab)` also lists the parts and methods that an adapter, or a user's own file, registers once it is
    imported. Those are documented where they are defined.
    """
    names = {f"trimtab.{name}" for name in dir(trimtab) if name not in trimtab.MODULES and _ours(name)}
    for module in MODULES:
        names |= {f"trimtab.{module}.{name}" for name in importlib.import_module(f"trimtab.{module}").__all__}
    return names


def _ours(name: str) -> bool:
    if name in trimtab.__all__:
        return True
    module = getattr(trimtab, name).__module__
    return module.startswith("trimtab.") and not module.startswith("trimtab.adapters.")


def undocumented(folder: Path = REFERENCE) -> list[str]:
    """Names that no page of the reference has a directive for; `make docs` sees whether it finds what they name."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in folder.glob("*.rst"))
    named = set(re.findall(r"^\.\. (?:auto|py:)\w+:: *([\w.]+)", text, flags=re.M))
    whole = re.findall(r"^\.\. automodule:: *([\w.]+)\n   :members:(?:\n   :exclude-members: *(.*))?", text, flags=re.M)
    for module, without in whole:
        left_out = set(without.replace(",", " ").split())
        named |= {name for name in public() if name.rpartition(".")[0] == module} - {f"{module}.{n}" for n in left_out}
    return sorted(name for name in public() - ELSEWHERE if not {name, name.rpartition(".")[2]} & named)


def without_example() -> list[str]:
    """Names that stand in no example, and have none in their own docstring."""
    typed = {name: _typed(name) for name in public()}
    words = set(re.findall(r"\w+", "\n".join([*_blocks(), *_scripts(), *typed.values()])))
    return [name for name in sorted(typed) if not typed[name] and name.rpartition(".")[2] not in words]


def _blocks() -> list[str]:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return [
        block
        for page in pages
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    ]


def _scripts() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in ROOT.glob("docs/gallery_scripts/*.py")]


def _typed(name: str) -> str:
    """What is typed in the examples of a docstring and, of a class, of those of its members."""
    home, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(home), last)
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return ""
    members = [member for _, member in inspect.getmembers(thing) if inspect.isroutine(member)]
    texts = [inspect.getdoc(each) or "" for each in (thing, *members)]
    return "\n".join(line for text in texts for line in re.findall(r"^(?:>>>|\.\.\.) (.*)$", text, flags=re.M))
