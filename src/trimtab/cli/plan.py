"""`trimtab plan`: what a theorem of the paper says to do, and what it promises."""

from __future__ import annotations

import inspect
import json
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from trimtab.cli.console import app, err, out

if TYPE_CHECKING:
    from trimtab.theory import Bound, Plan

THEOREMS = "convex-lipschitz, convex-smooth, nonconvex-lipschitz, nonconvex-smooth, convex-lipschitz-feasible"
MEANING = {
    "dim": "the number of parameters, d",
    "horizon": "the number of rounds, T",
    "lipschitz": "L₀, how much the cost changes at most per unit of distance",
    "smoothness": "L₁, how much the slope changes at most per unit of distance",
    "accuracy": "ε_f, how far the smoothed cost may be from the cost",
    "inner_radius": "r, of a ball inside the domain",
    "outer_radius": "r̄, of a ball around the domain",
    "distance": "R, how far the best fixed point may be from the start",
    "exponent": "q of Remark 3.3: δ is divided by L₀^q",
    "variation": "V_f, the rms change of the value at a fixed point from one round to the next",
    "gap": "the cost at the start minus the lowest at the end",
    "accumulated": "W_T, by how much the cost may rise in all at the point where we are",
    "squared": "W̃_T, the sum of the squared changes (instead of V_f)",
}


def _option(name: str, **limits: Any) -> Any:
    return typer.Option(f"--{name.replace('_', '-')}", help=MEANING[name] + ".", **limits)


@app.command(
    "plan",
    epilog="Example: trimtab plan convex-lipschitz --dim 36 --horizon 1000 --lipschitz 2 --distance 1 --variation 0.1",
)
def plan_run(
    theorem: Annotated[str, typer.Argument(help=f"One of {THEOREMS}.")],
    dim: Annotated[int | None, _option("dim")] = None,
    horizon: Annotated[int | None, _option("horizon")] = None,
    lipschitz: Annotated[float | None, _option("lipschitz")] = None,
    smoothness: Annotated[float | None, _option("smoothness")] = None,
    distance: Annotated[float | None, _option("distance")] = None,
    exponent: Annotated[float | None, _option("exponent")] = None,
    accuracy: Annotated[float | None, _option("accuracy")] = None,
    inner_radius: Annotated[float | None, _option("inner_radius")] = None,
    outer_radius: Annotated[float | None, _option("outer_radius")] = None,
    variation: Annotated[float | None, _option("variation")] = None,
    gap: Annotated[float | None, _option("gap")] = None,
    accumulated: Annotated[float | None, _option("accumulated")] = None,
    squared: Annotated[float | None, _option("squared")] = None,
    setting: Annotated[
        str, typer.Option(help="deterministic, stochastic (V_f then includes the noise) or adversarial.")
    ] = "deterministic",
    tight: Annotated[
        bool, typer.Option("--tight", help="With the actual α and the right factors, not those printed in the paper.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Choose step and radius by a theorem of the paper, and see what it guarantees, term by term.

    Give what the theorem needs (an error says what is missing), and for the guarantee also --variation; the nonconvex
    theorems need --gap with it. If you know none of these constants, use the tuning-free method: trimtab.auto.
    """
    from trimtab.theory import theorems

    if theorem not in theorems:
        raise ValueError(f"there is no theorem {theorem!r}: choose one of {', '.join(theorems)}")
    given: dict[str, Any] = {
        name: value
        for name, value in {
            "dim": dim,
            "horizon": horizon,
            "lipschitz": lipschitz,
            "smoothness": smoothness,
            "distance": distance,
            "exponent": exponent,
            "accuracy": accuracy,
            "inner_radius": inner_radius,
            "outer_radius": outer_radius,
        }.items()
        if value is not None
    }
    _fits(theorem, given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = theorems[theorem](**given, setting=setting)
    extra: dict[str, Any] = {"variation": variation, "gap": gap, "accumulated": accumulated, "squared": squared}
    extra = {name: value for name, value in extra.items() if value is not None}
    needed = ["variation"] if plan.convex else ["gap"]
    if plan.convex and (unused := [name for name in extra if name != "variation"]):
        raise ValueError(f"{theorem} does not use --{unused[0]}: it is for the nonconvex theorems")
    bound = None
    if plan.holds and all(name in extra for name in needed):
        if plan.convex and plan.distance is None and not plan.feasible:
            needed = ["distance"]
        else:
            bound = plan.bound(**extra, tight=tight)
    notes = [str(w.message) for w in caught]
    if bound is None and plan.holds:
        missing = [name for name in needed if name not in extra]
        notes.append(
            "for the guarantee, give also " + " and ".join(f"--{m.replace('_', '-')} ({MEANING[m]})" for m in missing)
        )
    if as_json:
        print(json.dumps(_document(plan, bound, notes), indent=1, ensure_ascii=False))
        return
    _show(plan, bound)
    for note in notes:
        err.print(f"[yellow]note:[/] {note}", highlight=False, soft_wrap=True)


def _fits(theorem: str, given: dict[str, Any]) -> None:
    """Everything that the theorem needs is there, and nothing that it has no use for."""
    from trimtab.theory import theorems

    parameters = inspect.signature(theorems[theorem]).parameters
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in given]
    if missing:
        wanted = "; ".join(f"--{name.replace('_', '-')} ({MEANING[name]})" for name in missing)
        raise ValueError(
            f"{theorem} needs {wanted}. If you do not know it, trimtab.auto needs no constants;"
            " trimtab.theory.measure estimates them from a simulation"
        )
    for name in given:
        if name not in parameters:
            users = [t for t, make in theorems.items() if name in inspect.signature(make).parameters]
            raise ValueError(
                f"{theorem} does not use --{name.replace('_', '-')}: leave it out, or choose {' or '.join(users)}"
            )


def _document(plan: Plan, bound: Bound | None, notes: list[str]) -> dict[str, Any]:
    from trimtab.lab.record import plain

    found: dict[str, Any] = {**asdict(plan), "holds": plan.holds, "notes": notes, "bound": None}
    if bound is not None:
        terms = {name: plain(term) for name, term in bound.terms.items()}
        found["bound"] = {"terms": terms, "total": plain(bound.total), "per_step": plain(bound.per_step)}
    return found


def _show(plan: Plan, bound: Bound | None) -> None:
    table = Table(title=f"{plan.theorem}: d = {plan.dim}, T = {plan.horizon}", show_header=False, title_justify="left")
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
            "An upper limit in the worst case, usually far above what happens; compare it with doing nothing.",
            highlight=False,
            soft_wrap=True,
        )
