"""
An adversary
============

An opponent raises or lowers the whole cost in every round, by up to 0.05, to mislead the estimate of the slope. If it
has to choose before the direction of the probe is drawn, it can only add variance. If it sees the query first, the
estimate is biased (the paper's Appendix I, which does not tell the two apart).
"""

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab import lab, problems
from trimtab.plotting import BLUE, VERMILION

for order, colour in (("before", BLUE), ("after", VERMILION)):
    problem = problems.make("adversary-v1", order=order)
    record = lab.run(problem, tt.residual(radius=problem.radius, step=0.01), rounds=2000, trials=20, seed=0)
    plt.plot(np.median(record.regret(), axis=0), color=colour, label=f"chooses {order} seeing the query")
plt.xlabel("round")
plt.ylabel("accumulated regret at the centre (median)")
plt.legend()
