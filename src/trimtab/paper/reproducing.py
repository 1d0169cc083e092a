"""All of it, from nothing to a page: compute the cells, judge the claims, draw the figures, write the report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trimtab.files import write_atomically
from trimtab.lab.sweeping import sweep
from trimtab.paper.cells import FREE, Runs, Table, cells, compute, load, preparations
from trimtab.paper.claims import claims
from trimtab.paper.document import Results
from trimtab.paper.experiments import MODES, Experiment, experiments
from trimtab.paper.figures import draw
from trimtab.paper.report import write_report
from trimtab.paper.results import gather

Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Reproduction:
    """What came of it; without results if it was interrupted."""

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
    """Both experiments, the four figures and more, and a verdict on each claim, in `folder`.

    mode: "quick", "default" or "full". jobs: processes (all cores). cache: where finished cells are kept.
    report: called with the name of what was finished last, and the share of the whole that is done.
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is unknown: choose from {', '.join(MODES)}")
    jobs = jobs or os.cpu_count() or 1
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    chosen = MODES[mode]
    planned = experiments(chosen)
    work = cells(chosen, planned, seed)
    names, weights = list(work), [cell["weight"] for cell in work.values()]
    shares = [0.0] * len(names)

    def progress(n: int, share: float) -> None:
        shares[n] = share
        if report:
            report(names[n], sum(s * w for s, w in zip(shares, weights, strict=True)) / sum(weights))

    # Kernels are compiled once, not in every process at the same time: meanwhile, what needs none of them.
    ready = preparations(chosen)
    order = sorted(range(len(names)), key=lambda n: work[names[n]]["kind"] not in FREE)
    if report:
        report("compiling, and the best policies offline", 0.0)
    computed = sweep(
        compute,
        [*ready, *(work[names[n]] for n in order)],
        jobs=jobs,
        folder=cache,
        report=lambda k, share: progress(order[k - len(ready)], share) if k >= len(ready) else None,
        load=load,
    )
    found = dict(zip(order, computed[len(ready) :], strict=True))
    finished = {name: found[n] for n, name in enumerate(names) if found.get(n) is not None}
    if len(finished) < len(names):
        return Reproduction(folder, len(finished), len(names))
    cells_of = {name: result for name, result in finished.items() if isinstance(result, Runs)}

    def of(e: Experiment, name: str) -> Runs:
        own = cells_of.get(f"{e.id}/{name}")
        return own or cells_of[f"{e.begins}/{name}"].until(e.rounds)

    runs = {e.id: {name: of(e, name) for name in e.methods} for e in planned.values()}
    tables = {name: result.data for name, result in finished.items() if isinstance(result, Table)}
    results = gather(chosen, seed, planned, runs, tables)
    results["claims"] = claims(results)
    if report:
        report("drawing", 1.0)
    figures = draw(folder, planned, runs, results, jobs)
    results["figures"] = {name: [file.name for file in files] for name, files in figures.items()}
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(folder / "results.json", text.encode())
    write_report(folder, results, figures)
    return Reproduction(folder, len(names), len(names), results)
