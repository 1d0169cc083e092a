"""
Prices under drifting demand
============================

Three products, whose demand and cross effects change; every round brings the profit of one price list. The best
prices are known here, because the problem was made so: ``trimtab.problems`` has seventeen of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab import lab
from trimtab.plotting import BLUE, GREY

records = {
    name: lab.run("pricing-v1", method, rounds=1000, trials=20, seed=0)
    for name, method in {"auto": tt.auto(radius=0.05), "standing still": tt.still(radius=0.05)}.items()
}

for (name, record), colour in zip(records.items(), (BLUE, GREY), strict=True):
    plt.plot(np.median(record.regret(of="played"), axis=0), color=colour, label=name)
plt.xlabel("round")
plt.ylabel("profit that was missed, accumulated (median)")
plt.legend()
