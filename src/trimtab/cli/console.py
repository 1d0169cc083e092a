"""Shared by all commands: the application, consoles, progress bars and error handling."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
import typer.core
from rich.console import Console
from rich.text import Text
from typer.models import CommandFunctionType

from trimtab import __version__
from trimtab.util.files import REMEDIES, reason
from trimtab.util.text import clean

if TYPE_CHECKING:
    from rich.table import Table

Report = Callable[[int, float], None]

WIDE = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120  # a pipe has no width to fit
PROGRESS_INTERVAL = 10.0  # seconds between progress lines, without a bar

# The exit statuses; the table is in docs/live.md.
DAMAGED, BAD_INPUT, STOPPED, ALL_FAILED, NO_STORE, INTERRUPTED = 1, 2, 3, 4, 5, 130


class BareFlags:
    """A command whose help shows no type for flags: they take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with an empty placeholder for the value of a flag."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class Command(BareFlags, typer.core.TyperCommand):
    """A command of the program."""


class Group(BareFlags, typer.core.TyperGroup):
    """A group of commands."""


class Program(typer.Typer):
    """A Typer application that rewraps help texts to the width of the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=Group, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Add a command; unlike Typer, drop the line breaks within paragraphs of its docstring."""

        def add(function: CommandFunctionType) -> CommandFunctionType:
            paragraphs = (inspect.getdoc(function) or "").split("\n\n")
            text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
            return typer.Typer.command(self, name, cls=Command, help=text, **options)(function)

        return add


app = Program(
    help="Keep a live, drifting system at its best operating point, from one measurement per time step.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out, err = Console(width=WIDE), Console(stderr=True)


def main() -> None:
    """Run the program; report bad input in one line, with exit status 2."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError as error:  # the reader closed the pipe, as `head` does
        discard(sys.stdout)
        sys.exit(error.__context__.code if isinstance(error.__context__, SystemExit) else 0)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Typer and Rich exit with status 1 then
            sys.exit(0)
        raise
    except (ValueError, TypeError, ImportError, OSError) as error:
        try:
            sys.stdout.flush()
        except OSError:  # the disk is full; Python would flush again at exit
            discard(sys.stdout)
        say("error:", _explained(error))
        sys.exit(BAD_INPUT)
    except ArithmeticError:
        say(
            "error:",
            "the result is too large or too small for floating point: give values closer to 1",
        )
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(INTERRUPTED)


def _explained(error: Exception) -> str:
    """Explain an error in one line; for OS errors, with the file."""
    if not isinstance(error, OSError) or error.filename is None or error.strerror is None:
        return reason(error)
    return f"{error.filename} cannot be used ({error.strerror}): {REMEDIES.get(error.errno or 0, 'use another path')}"


def say(head: str, text: str = "") -> None:
    """Print one line to stderr, with control characters removed."""
    line = Text.assemble((head, "bold red" if text else ""), f" {clean(text, 2000)}" if text else "")
    err.print(line, highlight=False, soft_wrap=True)


def discard(stream: TextIO) -> None:
    """Redirect a stream to /dev/null, including what it still buffers."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def cell(text: str | None) -> Text:
    """Return a table cell for foreign text, without markup or escape sequences."""
    return Text(clean(text or ""))


def new_table(*columns: str, **options: Any) -> Table:
    """Create a table; Rich's tables are imported only when one is drawn."""
    from rich.table import Table

    return Table(*columns, **options)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"trimtab {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@contextmanager
def whole_bar(title: str, *, show: bool) -> Iterator[Callable[[str, float], None] | None]:
    """Show one progress bar with the remaining time: report(description, share done).

    Without a terminal, print a line now and then instead.
    """
    if not show:
        yield None
        return
    if not err.is_terminal:
        yield _lines(title)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda what, share: bar.update(task, completed=share, description=what)


def working(title: str) -> AbstractContextManager[object]:
    """Show a spinner in a terminal, for work of unknown length."""
    return err.status(title) if err.is_terminal else nullcontext()


def _lines(title: str) -> Callable[[str, float], None]:
    start = last = time.monotonic()

    def report(what: str, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_INTERVAL:
            last = now
            err.print(f"{title}: {what}, {share:.0%} after {now - start:.0f} s", highlight=False, soft_wrap=True)

    return report


@contextmanager
def progress_bar(names: list[str], *, show: bool) -> Iterator[Report | None]:
    """Show one progress bar for pieces of equal size: report(n, share done of piece n)."""
    shares = [0.0] * len(names)
    with whole_bar("comparing", show=show) as report_all:

        def report(n: int, share: float) -> None:
            shares[n] = share
            if report_all:
                report_all(names[n], sum(shares) / len(names))

        yield report if report_all else None
