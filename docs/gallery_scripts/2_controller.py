"""
A controller on a drifting plant
================================

The paper's first experiment: the 36 gains of a linear controller, while the plant drifts until the gains of the first
day no longer hold it. One episode a round brings one number. Twenty trials, in lanes.
"""

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab import lab, problems
from trimtab.plotting import BLUE, GREEN, GREY

problem = problems.make("lqr-v1")
methods = {
    "auto": tt.auto(radius=problem.radius),
    "residual feedback, step tuned": lab.tune(problem, "residual", rounds=50).method,
    "standing still": tt.still(radius=problem.radius),
}
for (name, method), colour in zip(methods.items(), (BLUE, GREEN, GREY), strict=True):
    record = lab.run(problem, method, rounds=50, trials=20, seed=0)
    regret = record.regret(of="played")
    plt.semilogy(np.median(regret, axis=0), color=colour, label=name)

plt.xlabel("round")
plt.ylabel("accumulated regret of what was played (median)")
plt.legend()
