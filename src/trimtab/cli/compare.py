"""`trimtab compare`: methods side by side on a drifting problem or a suite."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from trimtab.cli.compare_tables import beyond_table, comparison_table, ratio_table
from trimtab.cli.console import INTERRUPTED, app, err, out, progress_bar, whole_bar
from trimtab.util.files import cache_folder

if TYPE_CHECKING:
    from trimtab.lab import SuiteResult
    from trimtab.lab.sim.provenance import Plain

DEFAULT_PROBLEM = "quadratic-v1"
"""Problem for a file that registers only methods."""
PICTURES = "regret", "played", "variance"  # written as .png and .svg


@app.command("compare", epilog="Example: trimtab compare lqr-v1 --methods residual,one-point,two-point --rounds 50")
def compare_methods(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[problem] [file]", help="Id of a problem (lqr-v1), or your own Python file (mine.py)."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(help="Run a suite instead of a problem: drift, late, context or limits."),
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="Run the unseen cells of the suite, for a final report.",
        ),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run one in nine cells of the suite, with 6 trials.")] = False,
    methods: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Methods to compare, separated by commas.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Rounds per trial (default: set by the problem).")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Trials to report (default: 50; for a suite, 20).")
    ] = None,
    tuning_trials: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Separate trials to choose step sizes on (default: 20).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of drift, noise and directions.")] = 0,
    radius: Annotated[float | None, typer.Option(help="Exploration radius (default: set by the problem).")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="Parameter of the problem; repeatable."),
    ] = None,
    noise: Annotated[str | None, typer.Option(help="Noise of a second query: independent (default) or common.")] = None,
    static: Annotated[bool, typer.Option("--static", help="Also compute the static regret.")] = False,
    gradients: Annotated[bool, typer.Option("--gradients", help="Also compute the gradient-norm regret.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder to write to (default: out/compare-PROBLEM).")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of processes (default: 1; for a suite, one per core)."),
    ] = None,
    backend: Annotated[str, typer.Option(help="Where processes run: loky (this machine), dask or ray.")] = "loky",
    cluster: Annotated[
        str | None, typer.Option(metavar="URL", help="Running cluster: tcp://… for Dask, ray://… for Ray.")
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Cache of finished cells: folder or fsspec URL (s3://…)."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore cached results and cache none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON only.")] = False,
) -> None:
    """Compare methods on a drifting problem, or on a suite of them.

    All methods face the same drift and noise. The step size of each is chosen on trials that are not reported: fewest
    diverged first, then the lowest median regret. The command prints a table, draws regret and variance, and writes a
    summary. The default methods are residual, one-point, two-point, auto and still; "still" keeps the start.

    With --suite drift, the methods run on a fixed list of cells, and --suite late does the same with values that arrive
    late. Step sizes are then tuned in hindsight, for each cell and score. The table shows ratios to tuned residual
    feedback, with intervals, for the centre and for the evaluated cost. With --suite context, a measured load moves the
    optimum: "context" is told of it, "belief" is not, and "fixed" is the best fixed setting; the ratios are to belief.
    With --suite limits, "limits" is the belief that is told of them, and a second table shows the queries beyond.
    A suite has default methods of its own, and drift also knows "oracle", which is told the drift. A suite takes some
    minutes on two cores, and with --quick less than one. Run --held-out once, when every choice is made, and report the
    result.

    A Python file registers a problem, a method or both by decorators (docs/laboratory.md); the default problem for a
    method of your own is quadratic-v1.

    Runs that share --cells use each other's finished cells. --backend dask or ray starts a cluster of --jobs processes
    unless --cluster names one.
    """
    from trimtab.lab import compare, judge
    from trimtab.lab.plots import draw_comparison

    if bool(what) == (suite is not None):
        raise ValueError("give either a problem, for example lqr-v1, a file of your own, or --suite drift")
    if cells is not None and fresh:
        raise ValueError("--fresh contradicts --cells: give one of them")
    place = None if fresh else cells or cache_folder()
    given = None if methods is None else _names(methods)
    # Ray prints about its workers on standard output, which is for the result: hence `redirect_stdout`.
    if suite is not None:
        options = {"rounds": rounds, "tuning-trials": tuning_trials, "radius": radius, "param": param, "noise": noise}
        options |= {"static": static or None, "gradients": gradients or None}
        if unused := [name for name, value in options.items() if value is not None]:
            raise ValueError(f"--{unused[0]} applies to a problem, not to a suite: leave it out")
        target = folder or Path("out") / f"suite-{suite}{'-held-out' if held_out else ''}"
        _check_writable(target)
        with redirect_stdout(sys.stderr), whole_bar(f"suite {suite}", show=True) as bar:
            result = judge(
                suite,
                given,
                held_out=held_out,
                trials=trials or (6 if quick else 20),
                seed=seed,
                every=9 if quick else 1,
                jobs=jobs or (1 if cluster else os.cpu_count() or 1),
                backend=backend,
                cluster=cluster,
                folder=place,
                report=(lambda share: bar("cells", share)) if bar else None,
            )
        _show(result, target, as_json=as_json, place=place)
        return
    if held_out or quick:
        raise ValueError("--held-out and --quick go with --suite drift")
    problem, own, mine = _problem(what or [])
    names = given or [*mine, "residual", "one-point", "two-point", "auto", "still"]
    target = folder or Path("out") / f"compare-{problem}"
    _check_writable(target)
    with redirect_stdout(sys.stderr), progress_bar(names, show=not as_json or err.is_terminal) as report:
        found = compare(
            problem,
            names,
            parameters=dict(_parameter(p) for p in param or []),
            rounds=rounds,
            trials=trials or 50,
            seed=seed,
            radius=radius,
            noise=noise or "independent",
            tuning_trials=tuning_trials or 20,
            static=static,
            gradients=gradients,
            jobs=jobs or 1,
            backend=backend,
            cluster=cluster,
            folder=place,
            files=own,
            report=report,
        )
    if not found.records:
        _interrupted("no method has finished, and nothing was written", place=place)
    target.mkdir(parents=True, exist_ok=True)
    _clear(target)
    (target / "summary.json").write_text(json.dumps(found.summary(), indent=1) + "\n")
    for name, record in found.records.items():
        record.save(target / "records" / name)
    files = draw_comparison(found, target)
    if as_json:
        print(json.dumps(found.summary(), indent=1))
    else:
        out.print(comparison_table(found))
        drawn = ", ".join(f.name for f in files if f.suffix == ".png")
        out.print(
            f"In {escape(str(target))}: {drawn} (and .svg), summary.json, records/", highlight=False, soft_wrap=True
        )
    if not found.complete:
        left = ", ".join(name for name in names if name not in found.records)
        _interrupted(f"{', '.join(found.records)} finished and in {target}; {left} did not", place=place)


def _problem(what: list[str]) -> tuple[str, list[str], list[str]]:
    """Parse the arguments: problem, user files, and the methods they register."""
    from trimtab.lab.user_files import load_user_file, read_user_file

    files = [word for word in what if word.endswith(".py")]
    ids = [word for word in what if word not in files]
    found = [load_user_file(read_user_file(file)) for file in files]
    problems = [name for one in found for name in one.problems]
    methods = [name for one in found for name in one.methods]
    if files and not problems and not methods:
        raise ValueError(
            f"{files[0]} registers neither a problem nor a method: put"
            ' @trimtab.problems.register("mine-v1") above the one, @trimtab.register("mine") above the other'
        )
    if len(ids) > 1 or (len(problems) > 1 and not ids):
        raise ValueError(f"one problem at a time: choose from {', '.join(ids or problems)}")
    return (ids or problems or [DEFAULT_PROBLEM])[0], files, methods


def _names(methods: str) -> list[str]:
    found = [name.strip() for name in methods.split(",") if name.strip()]
    if not found:
        raise ValueError(f"--methods {methods!r} names no method: name at least one, for example residual,auto")
    return found


def _check_writable(target: Path) -> None:
    """Check before the work that the folder can be written; remove folders created for the test."""
    new = [folder for folder in (target, *target.parents) if not folder.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=target):
            pass
    except OSError as error:
        raise ValueError(f"--out {target} cannot be written ({error.strerror}): name another folder") from error
    finally:
        for folder in new:
            with suppress(OSError):
                folder.rmdir()


def _clear(target: Path) -> None:
    """Delete pictures and records of an earlier run, as listed in its summary; keep the user's files."""
    try:
        names = list(json.loads((target / "summary.json").read_text())["methods"])
    except (OSError, ValueError, KeyError, TypeError):  # missing, or not the summary of a comparison
        return
    for name in (name for name in names if name == Path(name).name):
        for suffix in (".npz", ".json"):
            (target / "records" / (name + suffix)).unlink(missing_ok=True)
    for picture in PICTURES:
        for suffix in (".png", ".svg"):
            (target / (picture + suffix)).unlink(missing_ok=True)


def _interrupted(what: str, *, place: str | Path | None) -> None:
    """Report what is kept, and exit."""
    rest = f"finished parts are kept in {place}" if place else "with --fresh nothing is kept"
    text = f"interrupted: {what}; {rest}; run the same command again to continue"
    err.print(escape(text), highlight=False, soft_wrap=True)
    raise typer.Exit(INTERRUPTED)


def _show(found: SuiteResult, target: Path, *, as_json: bool, place: str | Path | None) -> None:
    from trimtab.lab.plots import draw_standings

    target.mkdir(parents=True, exist_ok=True)
    summary = json.dumps(found.summary(), indent=1)
    (target / "summary.json").write_text(summary + "\n")
    files = draw_standings(found, target)
    if as_json:
        print(summary)
    else:
        out.print(ratio_table(found))
        if found.suite == "limits":
            out.print(beyond_table(found))
        drawn = "".join(f"{f.name} (and .svg), " for f in files if f.suffix == ".png")
        out.print(f"In {escape(str(target))}: {drawn}summary.json", highlight=False, soft_wrap=True)
    if not found.complete:
        _interrupted("some cells are missing", place=place)


def _parameter(text: str) -> tuple[str, Plain]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"--param {text!r} is not name=value, for example --param dim=10")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
