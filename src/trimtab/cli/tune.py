"""`trimtab init`, `tune`: tune a running system from the shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.cli.completion import studies
from trimtab.cli.console import ALL_FAILED, INTERRUPTED, NO_STORE, STOPPED, app, out, say
from trimtab.cli.options import StoreOption, ends, short
from trimtab.store.errors import StoreError, Unavailable
from trimtab.util.text import clean, word

if TYPE_CHECKING:
    from trimtab.cli.tune_display import Display
    from trimtab.study.study import Study
    from trimtab.tune.config import Config
    from trimtab.tune.loop import Runner

ALL_ROUNDS_FAILED = (
    "no round gave a value: run the command by hand with the knobs that --dry-run prints, and check its last line"
)


@app.command("init", epilog="Example: trimtab init && trimtab tune study.toml --rounds 300")
def init_study(
    file: Annotated[Path, typer.Argument(help="File to write; simulator.py goes in the same folder.")] = Path(
        "study.toml"
    ),
    systemd: Annotated[
        bool, typer.Option("--systemd", help="Also write a systemd unit; an existing study file is kept.")
    ] = False,
    study: Annotated[
        str | None,
        typer.Option(
            "--from", help="Write a successor of this study, starting at its current centre.", autocompletion=studies
        ),
    ] = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Write a commented example study and a simulator to try it on.

    With --from, write a study.toml that has the knobs, limits and guard of an existing study and starts at its current
    centre. Edit what a running study cannot change (add or remove knobs, change the goal or the method), then run it
    under its new name.
    """
    from trimtab.tune.config import read_config
    from trimtab.tune.systemd import install_lines, write_unit
    from trimtab.tune.template import write_example

    if study is not None:
        from trimtab.tune.init_from import write_successor

        written = [write_successor(file, store, study)]
    else:
        written = [] if systemd and file.exists() else write_example(file)
    now = [f"trimtab tune {shlex.quote(str(file))}"]
    if systemd:
        config = read_config(file)
        unit = write_unit(file, config.name, config.timeout)
        written.append(unit)
        now = install_lines(unit)
    for path in written:
        print(f"written: {path}")
    print("Next: " + "\n      ".join(now))


@app.command("tune", epilog="Example: trimtab tune study.toml --rounds 300")
def tune(
    file: Annotated[Path, typer.Argument(help="File that describes the study; trimtab init writes one.")],
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after this many rounds (default: never).")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print one line per round, even in a terminal.")] = False,
    log: Annotated[str | None, typer.Option(help="Log to stderr instead of the display: text or json.")] = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Print the next commands (5, or --rounds) without running them.")
    ] = False,
) -> None:
    """Tune a running system: run a study until stopped.

    A study continues from its last round. Ctrl-C or SIGTERM finishes the current round and leaves the system at the
    setting where it should stay. After a kill, the next run repeats the interrupted round with the same setting.

    Exit status: 0 ended as asked; 2 bad input; 3 stopped by the guard; 4 every round failed; 5 the store is unavailable
    or was lost; 130 interrupted within a round.
    """
    from trimtab.tune.config import read_config
    from trimtab.tune.dry_run import rehearsal

    config = read_config(file)
    if log not in (None, "text", "json"):
        raise ValueError(f"--log {log} is unknown: choose text or json")
    try:
        if dry or config.guard.dry_run:
            with rehearsal(config) as study:
                _rehearse(config, study, rounds)
            return
        status = _tune(config, rounds, log, live=out.is_terminal and not plain and log is None)
    except Unavailable as error:  # for example a server that is not up yet: a later attempt may succeed
        say("error:", str(error))
        status = NO_STORE
    if status:
        raise typer.Exit(status)


def _tune(config: Config, rounds: int | None, log: str | None, *, live: bool) -> int:
    """Run the rounds and return the exit status; with guard.dry_run, only print them."""
    from trimtab.cli.tune_display import display
    from trimtab.tune.loop import Runner

    config.check_program()
    with config.open() as study:
        if study.settings["guard.dry_run"]:
            for text in study.news():
                print(f"# {clean(text, 2000)}")
            _rehearse(config, study, rounds)
            return 0
        runner = Runner(config, study)
        with display(study, runner, log, live=live, most=rounds) as shown:
            return _run(runner, rounds, shown)


def _rehearse(config: Config, study: Study, rounds: int | None) -> None:
    """Print the next commands, as lines that a shell can run."""
    from trimtab.tune.dry_run import spans

    found = spans(study)
    for knob in (knob for knob in study.knobs.all if knob.size):
        where = " ".join(ends(knob))
        if knob.name in found:
            now, widest = (f"{short(least)} to {short(largest)}" for least, largest in found[knob.name])
            where = now if now == widest else f"{now} now, {widest} at the widest"
        print(f"# probes of {knob.name} about {short(study.centre[knob.name])}: {where}")
    if config.context is not None:
        print(f"# context: {config.context.sentence}; the rounds below are for its mean")
    print("# example rounds, assuming equal values:")
    for trial in study.ahead(rounds or 5):
        knobs = " ".join(f"KNOB_{name.upper()}={shlex.quote(word(value))}" for name, value in trial.knobs.items())
        kind = "" if trial.kind == "probe" else f", {trial.kind}"
        print(f"{knobs} {shlex.join(config.words(trial.knobs))}  # round {trial.round}{kind}")


def _say_in_handler(text: str) -> None:
    """Write a line by means that are safe in a signal handler, even without a terminal."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


def _run(runner: Runner, rounds: int | None, shown: Display) -> int:
    """Run the rounds, leave the system at its final setting, and return the exit status."""
    from trimtab.tune.command import Interrupted
    from trimtab.tune.loop import Stopped, stops_on_signals
    from trimtab.tune.systemd import notify

    study, began, status = runner.study, runner.study.baseline.slot, 0
    with stops_on_signals(runner, _say_in_handler):
        notify(READY=1, STATUS=f"tuning {study.name} from round {began}")
        try:
            for report in runner.rounds(rounds):
                shown.show(report)
        except Stopped as why:
            shown.say("stopped:", str(why))
            status = STOPPED
        except StoreError as error:
            shown.say("error:", f"{error} (round {study.round} has no value in the store)")
            status = NO_STORE
        except (Interrupted, KeyboardInterrupt):
            shown.say(f"interrupted within round {study.round}: the next run repeats it")
            status = INTERRUPTED
        finally:
            notify(STOPPING=1)
            with contextlib.suppress(KeyboardInterrupt):
                for report in runner.leave():
                    shown.show(report)
    shown.sum_up()
    if status == 0 and runner.failed and not runner.told:
        shown.say("failed:", ALL_ROUNDS_FAILED)
        status = ALL_FAILED
    sys.stdout.flush()
    return status
