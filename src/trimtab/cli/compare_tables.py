"""Tables of `trimtab compare`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich import box

from trimtab.cli.console import new_table
from trimtab.util.text import plural

if TYPE_CHECKING:
    from rich.table import Table

    from trimtab.lab import Comparison, Ratio, SuiteResult


def comparison_table(found: Comparison) -> Table:
    """Build the table of medians and quartiles on one problem."""
    summary = found.summary()
    extent = f"{plural(summary['rounds'], 'round')}, {plural(summary['trials'], 'trial')}"
    table = new_table(
        title=f"{summary['problem']}: {extent}, seed {summary['seed']}",
        caption="median (quartiles) over trials; regret: total cost above the optimum",
    )
    regret = any("regret" in m for m in summary["methods"].values())
    columns = (
        [("regret", "regret, centre"), ("played", "regret, evaluated")]
        if regret
        else [("cost", "mean cost, centre"), ("played_cost", "mean cost, evaluated")]
    )
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


def _spread(values: Mapping[str, float | str | None] | None) -> str:
    if values is None:
        return "-"
    median, q25, q75 = ("-" if v is None else v if isinstance(v, str) else f"{v:.3g}" for v in values.values())
    return f"{median} ({q25}–{q75})"


def ratio_table(found: SuiteResult) -> Table:
    """Build the table of ratios to the references over a suite."""
    from trimtab.lab.suites.scores import SCORES

    kind = "held out" if found.held_out else "for development"
    first = {"context": "belief", "limits": "still"}.get(found.suite, "residual")
    of = {
        "context": "the belief that is not told of the load; below: also to the best fixed setting",
        "limits": "the start (what a forbidden setting saves counts as 0); below: where the limit never binds, to the"
        " belief that is not told of it",
    }.get(
        found.suite,
        "residual feedback tuned in hindsight for the same score (total costs where no optimum is known:"
        " allocation-per-agent-v1)",
    )
    table = new_table(
        title=f"suite {found.suite}: {plural(len(found.places), 'cell')} {kind}, {plural(found.trials, 'trial')}",
        caption=f"median regret, centre/evaluated, divided by that of {of}; geometric means; below them, the middle"
        " 95 % of resampled trials",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    names = found.methods
    table.add_column("cells", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    if first in names:
        for group in found.groups:
            means = ([found.mean(name, first, score, group).value for score in SCORES] for name in names)
            table.add_row(group, *(f"{_short(centre)}/{_short(played)}" for centre, played in means))
        table.add_section()
    for reference in found.references:
        for score in SCORES:
            ratios = (found.mean(name, reference, score) for name in names)
            table.add_row(f"{score} to {reference}", *map(_with_interval, ratios))
        counts = ([found.entered(name, reference, score) for score in SCORES] for name in names)
        table.add_row(f"in cells, to {reference}", *(f"{c}" if c == p else f"{c}/{p}" for c, p in counts))
        if reference == first:
            for score in SCORES:
                worst = (found.worst(name, reference, score) for name in names)
                table.add_row(f"worst cell, {score}", *map(_with_interval, worst))
    table.add_row("diverged trials", *("/".join(str(found.diverged(n, score)) for score in SCORES) for n in names))
    return table


def beyond_table(found: SuiteResult) -> Table:
    """Build the table of queries beyond a limit, for the suite `limits`."""
    table = new_table(
        title="queries beyond a limit in truth",
        caption="per cent of the first 30 rounds / of those after / longest run of all trials, in rounds",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("cells", no_wrap=True)
    for name in found.methods:
        table.add_column(name, justify="right", no_wrap=True)
    for group in found.groups:
        shares = (found.beyond(name, group) for name in found.methods)
        table.add_row(group, *(f"{_percent(s.first)} / {_percent(s.after)} / {s.longest:.0f}" for s in shares))
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"


def _short(value: float) -> str:
    """Format in two or three digits, without a leading zero, as the table is wide."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 2 else f"{value:.2f}".removeprefix("0")


def _with_interval(ratio: Ratio) -> str:
    if math.isnan(ratio.value):
        return "-"
    certain = ratio.low == ratio.value == ratio.high == 1.0  # a reference, compared with itself
    return "1" if certain else f"{_short(ratio.value)}\n{_short(ratio.low)}–{_short(ratio.high)}"
