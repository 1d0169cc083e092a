"""The picture of docs/auto.md, what each part of auto does: `python docs/make_auto_pictures.py [FOLDER]`."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab import lab, problems
from trimtab.lab.record import quantiles

TRIALS, SEED = 40, 3
BLUE, ORANGE, RED, GREEN, GREY = "#0072B2", "#E69F00", "#D55E00", "#009E73", "#666666"


def main(arguments: list[str]) -> None:
    """Draw all panels."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent / "pictures"
    plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.25, "font.size": 9, "legend.frameon": False})
    figure, axes = plt.subplots(2, 4, figsize=(16, 7), layout="constrained")
    panels = (directions, estimators, scale, pace, cap, echoes, widening, edge)
    for axis, draw in zip(axes.flat, panels, strict=True):
        draw(axis)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "auto-parts.png", dpi=110)


def curves(axis: Any, problem: Any, methods: dict[str, Any], colours: tuple[str, ...], rounds: int) -> None:
    """Median accumulated regret, with quartiles."""
    records = lab.simulate(problem, methods, rounds=rounds, trials=TRIALS, seed=SEED)
    for (name, record), colour in zip(records.items(), colours, strict=False):
        low, middle, high = quantiles(record.regret())
        axis.plot(middle, color=colour, label=name)
        axis.fill_between(np.arange(rounds), low, high, color=colour, alpha=0.15, lw=0)
    axis.set(xlabel="round", ylabel="accumulated regret")
    axis.legend()


def directions(axis: Any) -> None:
    """Regret with three laws of direction."""
    auto = tt.auto(radius=0.03)
    laws = {"Gaussian": tt.Gaussian(), "Rademacher": tt.Rademacher(), "Orthogonal": tt.Orthogonal()}
    problem = problems.make("quadratic-v1", dim=40, speed=0.003, offset=0.002, radius=0.03)
    curves(axis, problem, {n: replace(auto, directions=law) for n, law in laws.items()}, (GREY, ORANGE, RED), 800)
    axis.set_title("directions: orthogonal blocks waste no probe\n(d = 40, all else as in auto)")


def estimators(axis: Any) -> None:
    """Regret of three estimators, each with its best step."""
    problem = problems.make("quadratic-v1", dim=10, speed=0.01, offset=0.02, radius=0.06)
    tuned = {
        f"{name}, best step": lab.tune(problem, make, rounds=800, trials=TRIALS, seed=SEED, hindsight=True).method
        for name, make in {
            "Residual": lambda step: tt.residual(radius=0.06, step=step, directions=tt.Orthogonal()),
            "Covariance(5)": lambda step: tt.Method(
                estimator=tt.Covariance(5), radius=0.06, step=step, directions=tt.Orthogonal()
            ),
            "Plane": lambda step: tt.Method(estimator=tt.Plane(), radius=0.06, step=step, directions=tt.Orthogonal()),
        }.items()
    }
    curves(axis, problem, tuned, (BLUE, GREEN, RED), 800)
    axis.set_title("estimator: what is predicted is no noise\n(same directions, constant steps)")


def scale(axis: Any) -> None:
    """Paths in three units of the objective."""
    for label, method, colour in (
        ("constant step", tt.residual(radius=0.1, step=0.03), BLUE),
        ("normalised", tt.residual(radius=0.1, step=tt.Normalised(1.0)), RED),
    ):
        for times, style in ((1.0, "-"), (0.1, "--"), (3.0, ":")):
            tuner = tt.Tuner([1.0, 1.0], method, seed=SEED)
            path = []
            for _ in range(300):
                path.append(float(np.linalg.norm(tuner.centre)))
                trial = tuner.ask()
                tuner.tell(trial, times * float(trial.x @ trial.x))
            axis.plot(path, style, color=colour, label=f"{label}, {times:g}·f", lw=1)
    axis.set(xlabel="round", ylabel="distance to the optimum", yscale="log")
    axis.legend(fontsize=7, ncols=2)
    axis.set_title("rms scale: the units of f do not matter\n(three paths lie on each other)")


def _run(method: tt.Method, rounds: int, measure: Any, dim: int = 4) -> tuple[Any, Any]:
    """Pace and distance to 0 over time, in lanes."""
    tuner = tt.Tuner(np.full((TRIALS, dim), 1 / math.sqrt(dim)), method, seed=SEED)
    found = []
    for t in range(rounds):
        trial = tuner.ask()
        tuner.tell(trial, measure(t, trial.x))
        found.append((tuner.state.gain[2].copy(), tuner.centre.copy()))
    return np.array([f[0] for f in found]), np.array([f[1] for f in found])


def pace(axis: Any) -> None:
    """The pace from three gains."""
    for gain, colour in ((2.0, BLUE), (8.0, ORANGE), (32.0, RED)):
        method = replace(tt.auto(radius=0.1), step=tt.Adaptive(gain), directions=tt.Orthogonal())
        rng = np.random.default_rng(SEED)
        walk = np.cumsum(0.02 * rng.standard_normal((600, TRIALS, 4)), axis=0)
        paces, _ = _run(method, 600, lambda t, x, walk=walk: np.square(x - walk[t]).sum(-1))
        axis.plot(gain * np.minimum(np.median(paces, axis=1), 1.0), color=colour, label=f"gain = {gain:g}")
    axis.set(xlabel="round", ylabel="gain·min(a, 1), median", yscale="log")
    axis.legend()
    axis.set_title("whiteness: gains too large come down\n(a walking optimum, d = 4)")


def cap(axis: Any) -> None:
    """Regret under jumps, by the longest move that is allowed."""
    problem = problems.make(
        "quadratic-v1", dim=2, drift="jumps", every=100, speed=0.01, noise=0.003, offset=0.002, radius=0.14
    )
    auto = tt.auto(radius=0.14)
    names = {None: "no limit", 1.0: "at most a probe", 0.3: "0.3 of a probe"}
    curves(axis, problem, {n: replace(auto, max_move=limit) for limit, n in names.items()}, (BLUE, RED, GREY), 1000)
    axis.set_title("cap: no throw when all is new\n(the optimum jumps every 100 rounds, d = 2)")


def echoes(axis: Any) -> None:
    """Regret in noise, with and without echoes, and with probes that may not widen."""
    problem = problems.make("quadratic-v1", dim=10, speed=0.005, noise=1.0, radius=0.063, condition=1.0)
    auto = tt.auto(radius=0.063)
    methods = {
        "no echoes": replace(auto, directions=tt.Orthogonal()),
        "echoes, probes of one size": replace(auto, step=tt.Adaptive(widest=1.0)),
        "echoes, wider probes": auto,
        "standing still": tt.methods["still"](),
    }
    curves(axis, problem, methods, (BLUE, ORANGE, RED, GREY), 1000)
    axis.set_title("echoes: go gently in noise, and probe wider\n(noise 16 times the change by a probe)")


def widening(axis: Any) -> None:
    """A runaway, with and without widening."""
    target = np.minimum(np.arange(600) * 0.05, 15.0)[:, None, None] * np.array([1.0, 0.0, 0.0, 0.0])
    for widest, colour in ((1.0, BLUE), (3.0, RED)):
        method = replace(tt.auto(radius=0.03), step=tt.Adaptive(widest=widest))
        paces, path = _run(method, 600, lambda t, x: np.square(x - target[t]).sum(-1))
        axis.plot(np.median(np.linalg.norm(path - target, axis=-1), axis=1), color=colour, label=f"widest = {widest:g}")
        if widest > 1:
            widths = np.median(np.sqrt(np.clip(paces, 1, None)), axis=1)
            axis.plot(widths, ":", color=colour, label="√max(a, 1)")
    axis.set(xlabel="round", ylabel="distance to the optimum", yscale="log")
    axis.legend()
    axis.set_title("widening: a runaway is caught up with\n(it rests from round 300 on)")


def edge(axis: Any) -> None:
    """Regret where the optimum is in a corner, by what is done with probes at the wall."""
    problem = problems.make("corner-v1", dim=10, drift="walk", speed=0.003, condition=10.0, noise=0.003, radius=0.063)
    auto = tt.auto(radius=0.063)
    methods = {"centres keep off the wall": replace(auto, margin="erode"), "probes are projected back": auto}
    curves(axis, problem, methods, (BLUE, RED), 800)
    axis.set(yscale="log")
    axis.set_title("edge: the best point may be at a wall\n(it walks beyond a corner, d = 10)")


if __name__ == "__main__":
    main(sys.argv[1:])
