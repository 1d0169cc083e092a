"""What the theorems promise, and what happens."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

import trimtab as tt
from trimtab import theory
from trimtab.lab import run
from trimtab.plotting import BLUE, GREY, VERMILION, WIDTH
from trimtab.problems import make

HORIZONS = [250, 1000, 4000, 16000]


def draw(path: Path) -> None:
    """Two theorems, one panel each: the bound as printed, with the right factors, what happens, and standing still."""
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 3), layout="constrained", sharey=True)
    for ax, id in zip(axes, ("absolute-v1", "logcosh-v1"), strict=True):
        problem = make(id, dim=2, drift="none", offset=0.2)
        printed, tight, happens, still = [], [], [], []
        for horizon in HORIZONS:
            some = {"dim": 2, "horizon": horizon, "lipschitz": 1.0, "distance": 1.0}
            if id == "logcosh-v1":
                plan = theory.convex_smooth(**some, smoothness=problem.smoothness)
            else:
                plan = theory.convex_lipschitz(**some)
            printed.append(plan.bound(variation=0.2).total)
            tight.append(plan.bound(variation=0.2, tight=True).total)
            happens.append(run(problem, plan.method(), rounds=horizon, trials=50, seed=1).regret()[:, -1].mean())
            still.append(run(problem, tt.still(), rounds=horizon, trials=50, seed=1).regret()[:, -1].mean())
        ax.loglog(HORIZONS, printed, "o-", color=VERMILION, label="bound, as printed")
        ax.loglog(HORIZONS, tight, "o--", color=VERMILION, label="bound, tight")
        ax.loglog(HORIZONS, still, ":", color=GREY, label="standing still")
        ax.loglog(HORIZONS, happens, "s-", color=BLUE, label="what happens (mean of 50 trials)")
        ax.set_title(f"{plan.theorem}: {id}, d = 2, V_f = 0.2")
        ax.set_xlabel("horizon T")
    axes[0].set_ylabel("static regret over the horizon")
    axes[0].legend(loc="lower right")
    figure.savefig(path)
