"""What the parts of auto do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import trimtab as tt
from trimtab import lab, problems
from trimtab.lab.sim.record import quantiles
from trimtab.plotting import AMBER as ORANGE
from trimtab.plotting import BLUE, GREEN, GREY, WIDTH
from trimtab.plotting import VERMILION as RED

TRIALS, SEED = 40, 3


def draw(path: Path) -> None:
    """All panels."""
    figure, axes = plt.subplots(3, 2, figsize=(WIDTH, 9.5), layout="constrained")
    panels: tuple[Callable[[Axes], None], ...] = (directions, width, radius, curvature, surprises, wall)
    for axis, fill in zip(axes.flat, panels, strict=True):
        fill(axis)
    figure.savefig(path, dpi=110)


def curves(axis: Axes, problem: problems.Problem, methods: dict[str, tt.Method], colours: str, rounds: int) -> None:
    """Median accumulated regret of what is played, with quartiles."""
    records = lab.simulate(problem, methods, rounds=rounds, trials=TRIALS, seed=SEED)
    for (name, record), colour in zip(records.items(), colours.split(), strict=False):
        low, middle, high = quantiles(record.regret(of="played"))
        axis.plot(middle, color=colour, label=name)
        axis.fill_between(np.arange(rounds), low, high, color=colour, alpha=0.15, lw=0)
    axis.set(xlabel="round", ylabel="accumulated regret, played")
    axis.legend()


def directions(axis: Axes) -> None:
    """Regret with three laws of direction."""
    auto = tt.auto(radius=0.03)
    laws = {"Gaussian": tt.Gaussian(), "Rademacher": tt.Rademacher(), "Orthogonal": tt.Orthogonal()}
    problem = problems.make("quadratic-v1", dim=40, speed=0.003, offset=0.002, radius=0.03)
    methods = {name: replace(auto, directions=law) for name, law in laws.items()}
    curves(axis, problem, methods, f"{GREY} {ORANGE} {RED}", 800)
    axis.set_title("directions: orthogonal blocks waste no probe\n(d = 40, all else as in auto)")


def width(axis: Axes) -> None:
    """How wide it looks, and how far the optimum is."""
    rng, dim, rounds = np.random.default_rng(1), 5, 900
    steps = 0.01 / math.sqrt(dim) * rng.standard_normal((rounds, dim))
    steps[500] += 1.5
    walk = np.cumsum(steps, axis=0)
    tuner = tt.Tuner(np.full(dim, 0.5), tt.auto(radius=0.1), seed=0)
    probes, distances = [], []
    for t in range(rounds):
        trial = tuner.ask()
        probes.append(np.linalg.norm(trial.x - tuner.centre))
        distances.append(np.linalg.norm(tuner.centre - walk[t]))
        tuner.tell(trial, float(0.5 * np.square(trial.x - walk[t]).sum() + 0.003 * rng.standard_normal()))
    axis.semilogy(distances, color=BLUE, lw=1, label="distance to the optimum")
    axis.semilogy(probes, color=RED, lw=0.8, alpha=0.8, label="length of the probe")
    axis.axhline(0.1 * math.sqrt(dim), color=GREY, lw=0.8, ls="--", label="the radius given")
    axis.set(xlabel="round", ylim=(0.01, 10), title="radius: as far as the optimum is away\n(it walks, and jumps once)")
    axis.legend()


def radius(axis: Axes) -> None:
    """What is played, with a radius that is wrong."""
    problem = problems.make("quadratic-v1", dim=10, speed=0.01, noise=0.01, offset=0.002)
    named = {f"radius × {times:g}": tt.auto(radius=times * problem.radius) for times in (0.25, 1.0, 4.0)}
    named["× 4, not following"] = replace(named["radius × 4"], step=tt.Adaptive(narrowest=1.0, widest=1.0))
    curves(axis, problem, named, f"{GREEN} {BLUE} {RED} {GREY}", 800)
    axis.set(yscale="log", title="a radius that is wrong by four costs little\n(d = 10)")


def curvature(axis: Axes) -> None:
    """The first rounds: centre, probe, mirror image, echo."""
    tuner = tt.Tuner(np.array([0.9]), tt.auto(radius=0.2), seed=0)
    x = np.linspace(-0.3, 1.3, 200)
    axis.plot(x, 0.5 * x**2, color=GREY, lw=1)
    for t, name in enumerate(("centre", "probe", "mirror image", "echo", "", "", "")):
        trial = tuner.ask()
        at = float(trial.x[0])
        axis.plot([at], [0.5 * at**2], "o", color=BLUE if name else RED, ms=5)
        axis.annotate(f"{t} {name}", (at, 0.5 * at**2), (4, -12 - 8 * (t == 3)), textcoords="offset points", fontsize=8)
        tuner.tell(trial, 0.5 * at**2)
    axis.set(xlabel="x", ylabel="f", title="curvature: known after three rounds\n(then Newton's steps)")


def surprises(axis: Axes) -> None:
    """An outlier and a jump."""
    path, shift = [], 0.0
    tuner = tt.Tuner(np.full(3, 0.5), tt.auto(radius=0.1), seed=0)
    for t in range(160):
        shift = 2.0 if t >= 100 else 0.0
        trial = tuner.ask()
        path.append(np.linalg.norm(tuner.centre - shift))
        tuner.tell(trial, float(0.5 * np.square(trial.x - shift).sum()) + 1e3 * (t == 50))
    axis.semilogy(path, color=BLUE)
    axis.axvline(50, color=ORANGE, lw=0.8, ls="--", label="one value of 1000")
    axis.axvline(100, color=RED, lw=0.8, ls="--", label="the optimum jumps")
    axis.set(xlabel="round", ylabel="distance of the centre", title="surprises are asked again:\nan outlier is alone")
    axis.legend()


def wall(axis: Axes) -> None:
    """An optimum that comes near a limit."""
    rounds = 1200
    optimum = 0.06 + 0.05 * np.cos(np.arange(rounds) / 150)
    tuner = tt.Tuner([0.4], tt.auto(radius=0.05), bounds=[(0.0, 1.0)], seed=0)
    rng, centres, queries = np.random.default_rng(0), [], []
    for t in range(rounds):
        trial = tuner.ask()
        centres.append(tuner.centre[0])
        queries.append(trial.x[0])
        tuner.tell(trial, float((trial.x[0] - optimum[t]) ** 2 + 2e-5 * rng.standard_normal()))
    axis.plot(queries, ".", color=GREY, ms=2, label="queries")
    axis.plot(optimum, color=GREEN, lw=1, label="optimum")
    axis.plot(centres, color=BLUE, lw=1, label="centre")
    axis.axhline(0.0, color=RED, lw=1)
    axis.set(xlabel="round", ylim=(-0.02, 0.25), title="near the limit, narrow probes\n(radius 0.05)")
    axis.legend()
