"""`trimtab plan`: parameters and guarantee by a theorem of the paper."""

from __future__ import annotations

import inspect
import json
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trimtab.cli.console import app, err, new_table, out
from trimtab.types import Document

if TYPE_CHECKING:
    from trimtab.theory import Bound, Plan

MEANING = {
    "dim": "number of parameters, d",
    "horizon": "number of rounds, T",
    "lipschitz": "largest change of the cost per unit of distance, L₀",
    "smoothness": "largest change of the slope per unit of distance, L₁",
    "accuracy": "largest error allowed in the smoothed cost, ε_f",
    "inner_radius": "radius of a ball inside the domain, r",
    "outer_radius": "radius of a ball around the domain, r̄",
    "distance": "largest distance from the start to the best fixed point, R",
    "exponent": "exponent q of Remark 3.3, which divides δ by L₀^q",
    "variation": "RMS change of the cost at a fixed point per round, V_f",
    "gap": "cost at the start minus the lowest cost at the end",
    "accumulated": "largest total rise of the cost at the current point, W_T",
    "squared": "sum of the squared changes (instead of V_f), W̃_T",
}


PROBLEM, DRIFT = "Constants of the problem", "Constants of the drift, for the guarantee"


def _option(name: str, panel: str = PROBLEM) -> Any:
    return typer.Option(_flag(name), help=f"{MEANING[name][0].upper()}{MEANING[name][1:]}.", rich_help_panel=panel)


@app.command(
    "plan",
    epilog="Example: trimtab plan convex-lipschitz --dim 36 --horizon 1000 --lipschitz 2 --distance 1 --variation 0.1",
)
def plan_run(
    theorem: Annotated[str, typer.Argument(help="Name of the theorem; see the list above.")],
    dim: Annotated[int | None, _option("dim")] = None,
    horizon: Annotated[int | None, _option("horizon")] = None,
    lipschitz: Annotated[float | None, _option("lipschitz")] = None,
    smoothness: Annotated[float | None, _option("smoothness")] = None,
    distance: Annotated[float | None, _option("distance")] = None,
    exponent: Annotated[float | None, _option("exponent")] = None,
    accuracy: Annotated[float | None, _option("accuracy")] = None,
    inner_radius: Annotated[float | None, _option("inner_radius")] = None,
    outer_radius: Annotated[float | None, _option("outer_radius")] = None,
    variation: Annotated[float | None, _option("variation", DRIFT)] = None,
    gap: Annotated[float | None, _option("gap", DRIFT)] = None,
    accumulated: Annotated[float | None, _option("accumulated", DRIFT)] = None,
    squared: Annotated[float | None, _option("squared", DRIFT)] = None,
    setting: Annotated[
        str, typer.Option(help="deterministic, stochastic (V_f includes the noise) or adversarial.")
    ] = "deterministic",
    tight: Annotated[
        bool, typer.Option("--tight", help="Use the actual α and corrected factors, not the paper's.")
    ] = False,
    played: Annotated[
        bool, typer.Option("--played", help="Bound the evaluated cost, probes included, not the cost at the centre.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Choose step and radius by a theorem, and show its guarantee.

    The theorems are convex-lipschitz, convex-smooth, nonconvex-lipschitz, nonconvex-smooth, convex-lipschitz-feasible
    and convex-lipschitz-ball.

    Give the constants that the theorem needs; an error names those that are missing. The guarantee also needs
    --variation, and with a nonconvex theorem --gap. If you know none of these constants, use trimtab.auto, which needs
    none.
    """
    from trimtab.theory import theorems

    if theorem not in theorems:
        raise ValueError(f"there is no theorem {theorem!r}: choose one of {', '.join(theorems)}")
    problem = _given(
        dim=dim,
        horizon=horizon,
        lipschitz=lipschitz,
        smoothness=smoothness,
        distance=distance,
        exponent=exponent,
        accuracy=accuracy,
        inner_radius=inner_radius,
        outer_radius=outer_radius,
    )
    drift = _given(variation=variation, gap=gap, accumulated=accumulated, squared=squared)
    if "variation" in inspect.signature(theorems[theorem]).parameters:
        problem |= _given(variation=variation)
    _check_constants(theorem, problem)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = theorems[theorem](**problem, setting=setting)
    notes = [str(warning.message) for warning in caught]
    if plan.convex and (unused := [name for name in drift if name != "variation"]):
        raise ValueError(f"{theorem} does not use --{unused[0]}: it is for the nonconvex theorems")
    missing = _missing(plan, drift)
    bound = plan.bound(**drift, tight=tight, played=played) if plan.holds and not missing else None
    if plan.holds and missing:
        notes.append(f"for the guarantee, also give {_flag(missing)} ({MEANING[missing]})")
    if as_json:
        print(json.dumps(_document(plan, bound, notes), indent=1, ensure_ascii=False))
        return
    _show(plan, bound)
    for note in notes:
        err.print(f"[yellow]note:[/] {note}", highlight=False, soft_wrap=True)


def _given(**options: float | None) -> Document:
    return {name: value for name, value in options.items() if value is not None}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _missing(plan: Plan, drift: Document) -> str | None:
    """Return the name of a constant that the guarantee still needs."""
    if not plan.convex:
        return "gap" if "gap" not in drift else None if drift.keys() & {"variation", "squared"} else "variation"
    if "variation" not in drift:
        return "variation"
    return "distance" if plan.distance is None and not plan.feasible else None


def _check_constants(theorem: str, given: Document) -> None:
    """Check that a theorem gets all the constants it needs, and no others."""
    from trimtab.theory import theorems

    parameters = inspect.signature(theorems[theorem]).parameters
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in given]
    if missing:
        wanted = "; ".join(f"{_flag(name)} ({MEANING[name]})" for name in missing)
        raise ValueError(
            f"{theorem} needs {wanted}. If you do not know it, trimtab.auto needs no constants;"
            " trimtab.theory.measure estimates them from a simulation"
        )
    for name in given:
        if name not in parameters:
            users = [t for t, make in theorems.items() if name in inspect.signature(make).parameters]
            raise ValueError(f"{theorem} does not use {_flag(name)}: leave it out, or choose {' or '.join(users)}")


def _document(plan: Plan, bound: Bound | None, notes: list[str]) -> Document:
    from trimtab.lab.sim.provenance import plain

    found: Document = {**asdict(plan), "holds": plan.holds, "notes": notes, "bound": None}
    if bound is not None:
        terms = {name: plain(term) for name, term in bound.terms.items()}
        found["bound"] = {"terms": terms, "total": plain(bound.total), "per_step": plain(bound.per_step)}
    return found


def _show(plan: Plan, bound: Bound | None) -> None:
    table = new_table(
        title=f"{plan.theorem}: d = {plan.dim}, T = {plan.horizon}", show_header=False, title_justify="left"
    )
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_row("step η", f"{plan.step:.4g}")
    table.add_row("radius δ", f"{plan.radius:.4g}")
    if plan.feasible:
        table.add_row("shrinkage ξ", f"{plan.shrinkage:.4g}")
    table.add_row("contraction α (needs ≤ ½)", f"{plan.contraction:.3g}")
    verdict = "" if plan.holds else " [red](too short)[/]"
    table.add_row("smallest horizon", f"{plan.least_horizon}{verdict}")
    if bound is not None:
        table.add_section()
        for name, term in bound.terms.items():
            table.add_row(f"bound: {name}", f"{term:.4g}")
        table.add_section()
        table.add_row("bound, total", f"{bound.total:.4g}")
        table.add_row("bound, average per step", f"[bold]{bound.per_step:.4g}[/]")
    out.print(table)
    out.print(f"bounded: {plan.regret}\ngrowth:  {plan.order}\nassumed:", highlight=False, soft_wrap=True)
    for words in plan.assumptions:
        out.print(f"  - {words}", highlight=False, soft_wrap=True)
    if bound is not None:
        out.print(
            "A worst-case bound, usually far above the actual cost; compare it with fixed parameters.",
            highlight=False,
            soft_wrap=True,
        )
