"""Draw docs/pictures/theory-bounds.png: what the theorems promise, and what happens.

Usage: python docs/make_theory_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from trimtab import theory
from trimtab.lab import run
from trimtab.problems import make

OUT = Path(__file__).parent / "pictures"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"  # Okabe & Ito
HORIZONS = [250, 1000, 4000, 16000]


def main() -> None:
    """Two theorems, one panel each: the bound as printed, with the right factors, what happens, and standing still."""
    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    _, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
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
            still.append(run(problem, None, rounds=horizon, trials=50, seed=1).regret()[:, -1].mean())
        ax.loglog(HORIZONS, printed, "o-", color=ORANGE, label="bound, as printed")
        ax.loglog(HORIZONS, tight, "o--", color=ORANGE, label="bound, tight")
        ax.loglog(HORIZONS, still, ":", color=GREY, label="standing still")
        ax.loglog(HORIZONS, happens, "s-", color=BLUE, label="what happens (mean of 50 trials)")
        ax.set_title(f"{plan.theorem}: {id}, d = 2, V_f = 0.2")
        ax.set_xlabel("horizon T")
        ax.grid(color="#e5e5e5")
    axes[0].set_ylabel("static regret over the horizon")
    axes[0].legend(frameon=False, loc="lower right")
    plt.savefig(OUT / "theory-bounds.png", dpi=100)


if __name__ == "__main__":
    main()
