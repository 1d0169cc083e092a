"""`trimtab paper`: reproduce the paper's experiments, figures and claims."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from trimtab.cli.console import INTERRUPTED, app, err, new_table, out, whole_bar

COLOURS = {"holds": "blue", "partly": "yellow", "fails": "red"}


@app.command("paper", epilog="Example: trimtab paper --quick")
def reproduce_paper(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write to.")] = Path("out/paper"),
    quick: Annotated[bool, typer.Option("--quick", help="Few trials and short runs, for a first impression.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="More trials and networks, and 10 000 rounds of allocation.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of processes (default: one per core).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Random seed; it determines every number.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore cached results and cache none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON only.")] = False,
) -> None:
    """Reproduce the paper's experiments and judge its claims.

    Writes report.html (a self-contained page), results.json and the figures. This takes about 100 seconds of processor
    time, over all cores, when nothing is compiled or cached. Finished parts are cached, so that a second run, or one
    after Ctrl-C, continues from there.
    """
    from trimtab.paper import reproduce
    from trimtab.util.files import cache_folder

    if quick and full:
        raise ValueError("--quick and --full contradict each other: choose one")
    mode = "quick" if quick else "full" if full else "default"
    with whole_bar("reproducing", show=not as_json or err.is_terminal) as report:
        found = reproduce(
            folder,
            mode=mode,
            seed=seed,
            jobs=jobs or os.cpu_count(),
            cache=None if fresh else cache_folder(),
            report=report,
        )
    if found.results is None:
        kept = "with --fresh nothing is kept" if fresh else f"they are kept in {cache_folder()}"
        text = f"interrupted: {found.done} of {found.of} pieces are finished, {kept}"
        err.print(escape(f"{text}; run the same command again to continue"), highlight=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED)
    if as_json:
        print(json.dumps(found.results["claims"], indent=1, ensure_ascii=False))
        return
    table = new_table(title=f"The paper's claims ({mode}, seed {seed})", title_justify="left")
    for column in ("claim", "where", "verdict"):
        table.add_column(column)
    for claim in found.results["claims"]:
        verdict = claim["verdict"]
        table.add_row(escape(claim["claim"]), escape(claim["where"]), f"[{COLOURS[verdict]}]{verdict}[/]")
    out.print(table)
    out.print(f"Open {escape(str(folder / 'report.html'))}; the numbers are in results.json.", soft_wrap=True)
