"""`{commands}`: a section for every command of the program, with what its --help prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}


class Commands(Directive):
    """In the order of `trimtab --help`."""

    def run(self) -> list[nodes.Node]:
        """The sections; an error in a command's help is an error of the build."""
        import typer
        from typer.testing import CliRunner

        from trimtab.cli import app

        found: list[nodes.Node] = []
        for words in names(typer.main.get_group(app)):
            shown = CliRunner().invoke(app, [*words, "--help"], prog_name="trimtab", catch_exceptions=False)
            name = " ".join(("trimtab", *words))
            if shown.exit_code:
                raise self.error(f"{name} --help ended with status {shown.exit_code}")
            section = nodes.section(ids=[name.replace(" ", "-")], names=[name])
            text = "\n".join(line.rstrip() for line in shown.output.strip("\n").splitlines())
            section += nodes.title(text=name)
            section += nodes.literal_block(text, text, language="text")
            found.append(section)
        return found


def names(group: Any) -> Iterator[tuple[str, ...]]:
    """The words of every command; those of a group come after it."""
    for name, command in group.commands.items():
        yield (name,)
        if hasattr(command, "commands"):
            yield from ((name, *more) for more in names(command))
