"""The four figures of the paper, and what it lacks: as SVG and PNG, colour-blind safe, readable in print."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from trimtab.lab import Record
from trimtab.lab.drawing import band, colour_of, panels, save
from trimtab.lab.record import quantiles
from trimtab.paper.cells import MAPPED, MAPS
from trimtab.paper.experiments import PAPER_TRIALS, Experiment
from trimtab.paper.results import over_zeta, zetas

Records = dict[str, dict[str, Record]]
Tables = dict[str, dict[str, Any]]


def draw(
    folder: Path, seed: int, experiments: dict[str, Experiment], records: Records, tables: Tables
) -> dict[str, list[Path]]:
    """All figures: name → files."""
    figures = {
        "idea": _idea(seed),
        "figure-1a": _regret(records["lqr-r1"], experiments["lqr-r1"]),
        "figure-1b": _variance(records["lqr-r1"], "Variance of the gradient estimates"),
        "figure-2a": _allocation(records["allocation"], experiments["allocation"], seed),
        "figure-2b": _variance(records["allocation"], "Variance at agent 1"),
        "lqr-r2": _regret(records["lqr-r2"], experiments["lqr-r2"]),
        "incurred": _incurred(records, experiments),
        "sensitivity": _sensitivity(tables),
        "limits": _limits(records, experiments, tables),
        "toy": _toy(tables["toy"]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    return {name: save(figure, folder / name) for name, figure in figures.items()}


def _idea(seed: int) -> Any:
    """Two rounds of a cost whose level drifts, and what the two estimates make of many such rounds."""
    figure, (left, right) = panels(2, (9, 3.4))
    x = np.linspace(-1.6, 1.6, 200)
    low, high = 0.5 * x**2 + 1.0, 0.5 * (x - 0.15) ** 2 + 1.25
    left.plot(x, low, color="#999999", lw=1.5)
    left.plot(x, high, color="#222222", lw=1.8)
    places = [(0.55, low), (1.15, high)]
    values = [float(np.interp(p, x, f)) for p, f in places]
    for (p, _), y, label, colour in zip(places, values, (r"$y_{t-1}$", r"$y_t$"), ("#999999", "#222222"), strict=True):
        left.plot(p, y, "o", color=colour, ms=7)
        left.annotate(label, (p, y), textcoords="offset points", xytext=(8, -12) if p < 1 else (-20, 6), fontsize=11)
    left.annotate(
        "", (1.3, values[1]), (1.3, values[0]), arrowprops={"arrowstyle": "<->", "color": "#0072B2", "lw": 1.6}
    )
    left.text(1.34, float(np.mean(values)), "residual", color="#0072B2", va="center")
    left.annotate("", (1.15, values[1]), (1.15, 0), arrowprops={"arrowstyle": "<->", "color": "#009E73", "lw": 1.2})
    left.text(1.11, 0.5, "one-point", color="#009E73", ha="right", va="center")
    left.set(
        xlim=(-1.6, 2.0),
        ylim=(0, 2.4),
        xlabel="knob",
        ylabel="cost",
        title="The cost in two rounds, measured once each",
    )
    rng = np.random.default_rng(seed)
    u, before, level = rng.standard_normal((2, 40_000, 1)), 0.6, 1.25
    f_old, f_new = (0.5 * (before + 0.1 * u[0]) ** 2 + 1.0, 0.5 * (before - 0.15 + 0.1 * u[1]) ** 2 + level)
    span = (-40.0, 40.0)
    for name, estimate in (
        ("one-point", u[1] / 0.1 * f_new),
        ("residual", u[1] / 0.1 * (f_new - f_old)),
    ):
        right.hist(
            estimate[:, 0], bins=120, range=span, density=True, color=colour_of(name), alpha=0.6,
            label=f"{name}: rms {math.sqrt(np.mean(np.square(estimate))):.3g}",
        )  # fmt: skip
    right.axvline(before - 0.15, color="#222222", lw=1, ls="--", label=f"true slope {before - 0.15:.2g}")
    right.set(xlabel="estimate of the slope", yticks=[], title="What they say of the slope, over many rounds")
    right.legend(frameon=False)
    return figure


def _regret(records: dict[str, Record], e: Experiment) -> Any:
    """Figure 1(a): accumulated regret, ten trials as in the paper, and all of them."""
    figure, axes = panels(2, (10, 4), sharey=True)
    for axis, count in zip(axes, (PAPER_TRIALS, e.trials), strict=True):
        for name, record in records.items():
            some = record.select(slice(0, count))
            band(axis, np.arange(1, e.rounds + 1), np.maximum(some.regret(), 1e-12), some, name)
        low = min(np.nanmin(quantiles(r.regret()[:, max(1, e.rounds // 50)], (0.5,))) for r in records.values())
        high = max(_top(r.regret()[:, -1]) for r in records.values())
        title = "ten trials, as in the paper" if count == PAPER_TRIALS else f"{count} trials"
        axis.set(xlabel="episode", yscale="log", ylim=(low / 3, high * 4), title=f"{e.title}: {title}")
        axis.legend(frameon=False, fontsize=8, loc="upper left")
    axes[0].set_ylabel("accumulated regret, median and quartiles")
    return figure


def _top(values: Any) -> float:
    """The upper quartile, or the largest number below it that is finite."""
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, 0.75)) if finite.size else 1.0


def _variance(records: dict[str, Record], title: str) -> Any:
    """Figures 1(b) and 2(b): trace of the covariance, at each method's own iterate, and at one common to all."""
    figure, axes = panels(2, (10, 4), sharey=True)
    for axis, kind in zip(axes, ("variance", "common_variance"), strict=True):
        for name, record in records.items():
            values = getattr(record, kind)
            if name != "still" and values.size and not np.isnan(values).all():
                band(axis, record.variance_rounds, np.maximum(values, 1e-12), record, name)
        where = "at each method's own iterate" if kind == "variance" else "at one point for all: the optimum"
        axis.set(xlabel="episode", yscale="log", title=f"{title}, {where}")
        axis.title.set_fontsize(10)
    axes[0].set_ylabel("variance (trace), median and quartiles")
    axes[1].legend(frameon=False, fontsize=8)
    return figure


def _allocation(records: dict[str, Record], e: Experiment, seed: int) -> Any:
    """Figure 2(a): J_t(θ_t), and J_t/ζ_t, without the swing that all methods share."""
    figure, axes = panels(2, (10, 4.2))
    zeta = zetas(e, seed)
    width = max(1, e.rounds // 100)
    at = np.arange(width, e.rounds + 1, width)
    for axis, divided in zip(axes, (False, True), strict=True):
        for name, record in records.items():
            if name == "still":
                continue
            values = over_zeta(record, zeta) if divided else record.cost
            band(axis, at, _means(values, at, width), record, name)
        if divided:
            uniform = float(np.median(over_zeta(records["still"], zeta)))
            best = float(np.median(next(iter(records.values())).optimum / zeta))
            axis.axhline(uniform, color="#666666", ls=":", lw=1.5)
            axis.text(e.rounds, uniform, "uniform policy", ha="right", va="bottom", fontsize=8, color="#444444")
            axis.axhline(best, color="#000000", ls=":", lw=1.5)
            axis.text(e.rounds, best, "offline optimum", ha="right", va="bottom", fontsize=8)
        else:
            band(axis, at, _means(records["still"].cost, at, width), records["still"], "still")
        axis.set(xlabel="episode", ylabel=r"$J_t(\theta_t)/\zeta_t$" if divided else r"$J_t(\theta_t)$", ylim=(0, None))
        axis.set_title(f"Cost{', divided by its sensitivity' if divided else ''} ({e.trials} trials)", fontsize=10)
    axes[0].legend(frameon=False, fontsize=8, ncols=2)
    return figure


def _means(values: Any, at: Any, width: int) -> Any:
    return values[:, : len(at) * width].reshape(len(values), len(at), width).mean(2)


def _incurred(records: Records, experiments: dict[str, Experiment]) -> Any:
    """Regret of what was played, probes included, beside that of the centre."""
    ids = ("lqr-r1-t40", "lqr-r2", "allocation")
    figure, axes = panels(len(ids), (11, 3.8))
    for axis, id in zip(axes, ids, strict=True):
        names = list(records[id])
        for kind, offset, alpha in (("centre", -0.19, 1.0), ("incurred", 0.19, 0.45)):
            spreads = [quantiles(records[id][name].regret(of=kind)[:, -1]) for name in names]
            middle = np.array([s[1] for s in spreads])
            errors = np.abs(np.array([[s[1] - s[0], s[2] - s[1]] for s in spreads]).T)
            middle, errors = (np.where(np.isfinite(v), v, np.nan) for v in (middle, errors))
            axis.bar(
                np.arange(len(names)) + offset, middle, 0.36, yerr=errors, alpha=alpha,
                color=[colour_of(n) for n in names], error_kw={"lw": 0.8},
            )  # fmt: skip
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=7)
        axis.set_title(experiments[id].title, fontsize=9)
        axis.set_yscale("log")
    axes[0].set_ylabel("regret: centre (full), played (light)")
    return figure


def _sensitivity(tables: Tables) -> Any:
    """Median regret over δ and η, one map per method; hatched where a quarter of the trials or more diverge."""
    from matplotlib.colors import LogNorm

    maps = [(name, tables[f"map/lqr-r1/{name}"]) for name in MAPPED]
    figure, axes = panels(len(maps), (12, 3.6), sharey=True)
    floor = min(np.min(_numbers(t["regret"])) for _, t in maps)
    norm = LogNorm(floor, floor * 1e3)
    for axis, (name, table) in zip(axes, maps, strict=True):
        x, y = np.log10(table["steps"]), np.log10(table["radii"])
        regret = np.clip(_numbers(table["regret"]), floor, floor * 1e3)
        mesh = axis.pcolormesh(x, y, regret, norm=norm, cmap="viridis_r", shading="nearest", rasterized=True)
        lost = np.array(table["diverged"]) >= table["trials"] / 4
        half = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
        for i, j in np.argwhere(lost):
            axis.fill_between(
                [x[j] - half[0], x[j] + half[0]], y[i] - half[1], y[i] + half[1],
                facecolor="none", edgecolor="#D55E00", hatch="////", lw=0,
            )  # fmt: skip
        i, j = np.unravel_index(np.argmin(np.where(lost, np.inf, regret)), regret.shape)
        axis.plot(x[j], y[i], "w*", ms=11, mec="#000000")
        axis.grid(False)
        axis.set(xlabel=r"$\log_{10}$ step $\eta$", title=name)
    axes[0].set_ylabel(r"$\log_{10}$ radius $\delta$")
    figure.colorbar(mesh, ax=axes, label="median regret, T = 50", shrink=0.9)
    return figure


def _numbers(rows: list[list[Any]]) -> Any:
    return np.array([[math.inf if v in ("inf", None) else float(v) for v in row] for row in rows])


def _limits(records: Records, experiments: dict[str, Experiment], tables: Tables) -> Any:
    """Where the claims stop holding: noise, x₀ redrawn, δ too small."""
    figure, axes = panels(4, (13, 4))
    names = ("residual", "one-point", "two-point", "two-point-forward", "auto", "still")
    noisy = {id: e for id, e in experiments.items() if id.startswith("lqr-r3-sigma-")}
    sigmas = [e.parameters["sigma_w"] for e in noisy.values()]
    for name in names:
        middle = [quantiles(records[id][name].regret()[:, -1])[1] for id in noisy]
        places = range(len(sigmas))
        axes[0].plot(places, middle, "o:" if name == "still" else "o-", color=colour_of(name), label=name, ms=4)
    axes[0].set_xticks(range(len(sigmas)), [f"{s:g}" for s in sigmas])
    axes[0].set(xlabel=r"process noise $\sigma_w$", ylabel="median regret, T = 40", yscale="log", title="noise")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names), frameon=False)
    redrawn = records["lqr-r3-redrawn"]
    for k, name in enumerate(redrawn):
        low, middle, high = quantiles(redrawn[name].regret()[:, -1])
        axes[1].barh(-k, middle, color=colour_of(name), alpha=0.5 if name.endswith("-common") else 0.9)
        axes[1].plot([low, high], [-k, -k], color="#222222", lw=1)
    axes[1].set_yticks(-np.arange(len(redrawn)), list(redrawn), fontsize=7)
    axes[1].set(xlabel="median regret, T = 40", title=r"$x_0$ redrawn in every rollout")
    for axis, place, title in zip(axes[2:], MAPS, ("small δ, exact values", "small δ, noise 0.1"), strict=True):
        for name in (*MAPPED, "auto"):
            table = tables[f"map/{place}/{name}"]
            regret = _numbers(table["regret"])
            kept = np.where(np.array(table["diverged"]) < table["trials"] / 4, regret, np.inf).min(axis=1)
            axis.plot(table["radii"], np.where(np.isfinite(kept), kept, np.nan), "o-", color=colour_of(name), ms=4)
        axis.set(xscale="log", yscale="log", xlabel=r"radius $\delta$, each with its best $\eta$", title=title)
    return figure


def _toy(toy: dict[str, Any]) -> Any:
    """Section 3: second moments at a point that stays."""
    figure, (axis,) = panels(1, (6, 3.8))
    for name in ("one-point", "residual"):
        axis.loglog(toy["round"], toy[name], color=colour_of(name), lw=1.8, label=name)
    t = np.array(toy["round"], dtype=float)
    axis.loglog(t, t / 0.01, ":", color="#444444", lw=1, label=r"$t/\delta^2$ and $1/\delta^2$")
    axis.loglog(t, np.full_like(t, 100.0), ":", color="#444444", lw=1)
    axis.set(xlabel="round t", ylabel=r"$E\,\hat g_t^2$", title=r"$f_0 = x^2/2$, $f_t = f_{t-1} + n_t$, δ = 0.1")
    axis.legend(frameon=False)
    return figure
