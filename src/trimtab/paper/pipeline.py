"""The whole reproduction: compute the cells, judge the claims, draw the figures, write the report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trimtab.lab.parallel.executors import CellExecutor, executor_of
from trimtab.lab.parallel.sweep import Cell, sweep
from trimtab.paper.cells import Runs, Table, cells, compute, load, needs, preparations
from trimtab.paper.experiments import MODES, Experiment, Mode, experiments
from trimtab.paper.report.figures import paint, planned_pictures
from trimtab.paper.report.page import write_report
from trimtab.paper.result_types import Results
from trimtab.paper.results import AllRuns, gather
from trimtab.paper.verdicts.claims import claims
from trimtab.util.files import write_atomically, writing

Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Reproduction:
    """The outcome of a reproduction; without results if it was interrupted."""

    folder: Path
    done: int
    of: int
    results: Results | None = None


def reproduce(
    folder: str | Path,
    *,
    mode: str = "default",
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    report: Report | None = None,
) -> Reproduction:
    """Write both experiments, all figures and a verdict on each claim to `folder`.

    mode: "quick", "default" or "full". jobs: number of processes (default: all cores). cache: for finished cells.
    report: called with the name of the cell that was finished last, and the completed share.
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is unknown: choose from {', '.join(MODES)}")
    jobs = jobs or os.cpu_count() or 1
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    chosen = MODES[mode]
    planned = experiments(chosen)
    with executor_of(jobs) as executor:
        work = cells(chosen, planned, seed)
        found = _computed(chosen, work, jobs, executor, cache, report)
        finished = {name: result for name, result in found.items() if result is not None}
        if len(finished) < len(work):
            return Reproduction(folder, len(finished), len(work))
        runs = _runs(planned, finished)
        tables = {name: result.data for name, result in finished.items() if isinstance(result, Table)}
        results = gather(chosen, seed, planned, runs, tables)
        results["claims"] = claims(results)
        if report:
            report("drawing", 1.0)
        pictures = planned_pictures(folder, planned, runs, results)
        drawn = sweep(paint, list(pictures.values()), jobs=jobs, executor=executor)
    figures = {name: one.files for name, one in zip(pictures, drawn, strict=True) if one is not None}
    if len(figures) < len(pictures):
        return Reproduction(folder, len(finished), len(work))
    results["figures"] = {name: [file.name for file in files] for name, files in figures.items()}
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(folder / "results.json", text.encode())
    write_report(folder, results, figures)
    return Reproduction(folder, len(work), len(work), results)


def _computed(
    mode: Mode,
    work: dict[str, Cell],
    jobs: int,
    executor: CellExecutor | None,
    cache: str | Path | None,
    report: Report | None,
) -> dict[str, Runs | Table | None]:
    """Compute all cells; the result is None for those not computed before an interruption."""
    ready = preparations(mode)
    # Compile each kernel once instead of in every process; meanwhile, compute cells that need none.
    names = sorted(work, key=lambda name: needs(work[name]))
    weights = [0.0] * len(ready) + [work[name]["weight"] for name in names]
    shares = [0.0] * len(weights)

    def progress(n: int, share: float) -> None:
        shares[n] = share
        if report and n >= len(ready):
            done = sum(s * w for s, w in zip(shares, weights, strict=True)) / sum(weights)
            report(names[n - len(ready)], done)

    if report:
        report("compiling, and the best policies offline", 0.0)
    some = [*ready, *(work[name] for name in names)]
    computed = sweep(compute, some, jobs=jobs, executor=executor, folder=cache, report=progress, load=load)
    return dict(zip(names, computed[len(ready) :], strict=True))


def _runs(planned: dict[str, Experiment], finished: dict[str, Runs | Table]) -> AllRuns:
    """The runs by experiment and method; those contained in a longer experiment are cut from it."""
    known = {name: result for name, result in finished.items() if isinstance(result, Runs)}

    def of(e: Experiment, name: str) -> Runs:
        own = known.get(f"{e.id}/{name}")
        return own or known[f"{e.begins}/{name}"].until(e.rounds)

    return {e.id: {name: of(e, name) for name in e.methods} for e in planned.values()}
