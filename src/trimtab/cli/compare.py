"""`trimtab compare`: methods side by side on a drifting problem, or over a suite of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from trimtab.cli.console import INTERRUPTED, app, err, out, progress_bar

if TYPE_CHECKING:
    from trimtab.lab import Comparison, Verdict


@app.command("compare", epilog="Example: trimtab compare lqr-v1 --methods residual,one-point,two-point --rounds 50")
def compare_methods(
    problem: Annotated[
        str | None, typer.Argument(help="The id of a problem, for example lqr-v1 or quadratic-v1.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="Instead of a problem, a suite of cells: drift. Steps are tuned in hindsight.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One of six cells of the suite.")] = False,
    methods: Annotated[
        str, typer.Option(help='Names, separated by commas; "still" is doing nothing.')
    ] = "residual,one-point,two-point,auto,still",
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds per trial (default: the problem's own).")] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials that are reported (default: 50; of a suite, 20).")
    ] = None,
    tuning_trials: Annotated[int, typer.Option(min=1, help="Other trials, to choose the step sizes on.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of drift, noise and directions.")] = 0,
    radius: Annotated[float | None, typer.Option(help="Exploration radius (default: the problem's own).")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", help="A parameter of the problem, as name=value; repeatable.")
    ] = None,
    noise: Annotated[str, typer.Option(help="Of a second query: independent or common.")] = "independent",
    static: Annotated[
        bool, typer.Option("--static", help="Also the static regret (finds the best fixed point).")
    ] = False,
    gradients: Annotated[bool, typer.Option("--gradients", help="Also the gradient-norm regret.")] = False,
    folder: Annotated[Path | None, typer.Option("--out", help="Where to write (default: out/compare-PROBLEM).")] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes to spread the methods over; 1 uses all cores in one.")
    ] = 1,
    backend: Annotated[str, typer.Option(help="loky, dask or ray.")] = "loky",
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute again what is finished already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Tune methods on a drifting problem, run them side by side, and show the regret of each.

    Step sizes are chosen on other trials than those reported: fewest diverged first, then the best median. All
    methods meet the same drift and noise. Prints a table, draws regret and variance, writes the summary.

    With --suite drift, over a fixed list of cells, half of them held out from any choice of constants; steps are then
    tuned in hindsight, cell by cell, and all is shown as ratios to tuned residual feedback. Takes about ten minutes
    on two cores (--jobs 2).
    """
    from trimtab.lab import compare
    from trimtab.lab.drawing import draw_comparison
    from trimtab.storage import cache_folder

    names = [name.strip() for name in methods.split(",") if name.strip()]
    if (problem is None) == (suite is None):
        raise ValueError("give either a problem, for example lqr-v1, or --suite drift")
    if suite is not None:
        kept = None if fresh else cache_folder()
        _suite(suite, names, trials or 20, seed, 6 if quick else 1, folder, jobs, backend, kept, as_json)
        return
    assert problem is not None
    target = folder or Path("out") / f"compare-{problem}"
    with progress_bar(names, show=not as_json or err.is_terminal) as report:
        found = compare(
            problem,
            names,
            parameters=dict(_parameter(p) for p in param or []),
            rounds=rounds,
            trials=trials or 50,
            seed=seed,
            radius=radius,
            noise=noise,
            tuning_trials=tuning_trials,
            static=static,
            gradients=gradients,
            jobs=jobs,
            backend=backend,
            folder=None if fresh else cache_folder(),
            report=report,
        )
    if not found.records:
        _interrupted("no method is finished, and nothing was written", kept=not fresh)
    target.mkdir(parents=True, exist_ok=True)
    for old in (*target.glob("*.png"), *target.glob("*.svg"), *target.glob("records/*.*")):
        old.unlink()
    (target / "summary.json").write_text(json.dumps(found.summary(), indent=1) + "\n")
    for name, record in found.records.items():
        record.save(target / "records" / name)
    files = draw_comparison(found, target)
    if as_json:
        print(json.dumps(found.summary(), indent=1))
    else:
        out.print(_table(found))
        drawn = ", ".join(f.name for f in files if f.suffix == ".png")
        out.print(
            f"In {escape(str(target))}: {drawn} (and .svg), summary.json, records/", highlight=False, soft_wrap=True
        )
    if not found.complete:
        left = ", ".join(name for name in names if name not in found.records)
        _interrupted(f"{', '.join(found.records)} finished and in {target}; {left} not", kept=not fresh)


def _interrupted(what: str, *, kept: bool) -> None:
    """Say what was kept, and end."""
    from trimtab.storage import cache_folder

    rest = f"what is finished is kept in {cache_folder()}" if kept else "with --fresh nothing is kept"
    text = f"interrupted: {what}; {rest}; the same command goes on with the rest"
    err.print(escape(text), highlight=False, soft_wrap=True)
    raise typer.Exit(INTERRUPTED)


def _suite(
    suite: str,
    names: list[str],
    trials: int,
    seed: int,
    every: int,
    folder: Path | None,
    jobs: int,
    backend: str,
    kept: Path | None,
    as_json: bool,
) -> None:
    from trimtab.lab import SUITES, judge
    from trimtab.lab.drawing import draw_verdict

    target = folder or Path("out") / f"suite-{suite}"
    with progress_bar([f"suite {suite}"], show=not as_json or err.is_terminal) as bar:
        done: dict[int, float] = {}

        def report(n: int, share: float) -> None:
            done[n] = share
            if bar:
                bar(0, sum(done.values()) / (len(names) * -(-len(SUITES[suite]) // every)))

        found = judge(
            suite,
            names,
            trials=trials,
            seed=seed,
            every=every,
            jobs=jobs,
            backend=backend,
            folder=kept,
            report=report,
        )
    target.mkdir(parents=True, exist_ok=True)
    (target / "summary.json").write_text(json.dumps(found.summary(), indent=1) + "\n")
    files = draw_verdict(found, target)
    if as_json:
        print(json.dumps(found.summary(), indent=1))
    else:
        out.print(_ratios(found))
        drawn = ", ".join(f.name for f in files if f.suffix == ".png")
        out.print(f"In {escape(str(target))}: {drawn} (and .svg), summary.json", highlight=False, soft_wrap=True)
    if not found.complete:
        _interrupted(f"some cells are missing from what is in {target}", kept=kept is not None)


def _ratios(found: Verdict) -> Table:
    summary = found.summary()
    table = Table(
        title=f"suite {found.suite}: {len(found.places)} cells, {summary['trials']} trials",
        caption="median regret at the centre, divided by that of residual tuned in hindsight; geometric means",
    )
    names = list(summary["methods"])
    table.add_column("cells", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right")

    def row(title: str, of: Any) -> None:
        table.add_row(title, *(_figure(of(summary["methods"][name])) for name in names))

    if "residual" in names:
        for group in found.groups:
            row(group, lambda m, g=group: m["to residual"]["groups"][g])
        table.add_section()
        for half in ("for choosing", "held out", "all"):
            row(half, lambda m, h=half: m["to residual"]["mean"][h])
        row("worst, held out", lambda m: m["to residual"]["worst"]["held out"])
        row("worst, all", lambda m: m["to residual"]["worst"]["all"])
        row("held out, what was played", lambda m: m["to residual"]["played"]["held out"])
    if "two-point" in names:
        row("held out, to two-point", lambda m: m["to two-point"]["mean"]["held out"])
    row("diverged trials", lambda m: m["diverged"])
    return table


def _figure(value: Any) -> str:
    return (
        "-"
        if value is None
        else value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, int)
        else f"{value:.2f}"
    )


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"--param {text!r} is not name=value, for example --param dim=10")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _table(found: Comparison) -> Table:
    summary = found.summary()
    table = Table(
        title=f"{summary['problem']}: {summary['rounds']} rounds, {summary['trials']} trials, seed {summary['seed']}",
        caption="median (quartiles) over trials; regret: total cost above the optimum",
    )
    regret = any("regret" in m for m in summary["methods"].values())
    columns = [("regret", "regret, centre"), ("incurred", "regret, played")] if regret else [("cost", "mean cost")]
    columns += [
        (name, title)
        for name, title in (("static_regret", "static regret"), ("gradient_regret", "gradient regret"))
        if any(name in m for m in summary["methods"].values())
    ]
    table.add_column("method", no_wrap=True)
    table.add_column("step", justify="right")
    for _, title in columns:
        table.add_column(title, justify="right")
    table.add_column("diverged", justify="right")
    for name, method in summary["methods"].items():
        step = (
            "-" if method["step"] is None else f"{method['step']:.2g}" + (" (edge)" if method["step_at_edge"] else "")
        )
        diverged = method["diverged"]
        table.add_row(
            name,
            step,
            *(_spread(method.get(column)) for column, _ in columns),
            f"[red]{diverged}[/]" if diverged else "0",
        )
    return table


def _spread(values: dict[str, Any] | None) -> str:
    if values is None:
        return "-"
    median, q25, q75 = ("-" if v is None else v if isinstance(v, str) else f"{v:.3g}" for v in values.values())
    return f"{median} ({q25}–{q75})"
