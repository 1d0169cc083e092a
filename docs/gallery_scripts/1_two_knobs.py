"""
Two knobs that drift
====================

A valve and a pump. Where the system runs best turns slowly, and jumps at round 2000; a measurement is one noisy
number, and then the system has moved on. Nothing is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab.plotting import BLUE, GREY, VERMILION

t = np.arange(3000)
jump = np.where(t < 2000, 0.0, 0.2)
best = np.stack([0.5 + 0.3 * np.cos(t / 400) - jump, 50 + 30 * np.sin(t / 400) + 100 * jump], axis=1)

tuner = tt.Tuner([0.2, 20.0], bounds=[(0, 1), (1, 100)], seed=0)
noise = np.random.default_rng(1)
centres, played = [], []
for now in best:
    trial = tuner.ask()
    miss = (trial.x - now) / [1, 99]
    tuner.tell(trial, 3 + 10 * miss @ miss + 0.02 * noise.standard_normal())
    centres.append(tuner.centre)
    played.append(trial.x)

# %%
# Grey dots are what was played, the probes; the line is the operating point between them.

figure, axes = plt.subplots(2, 1, sharex=True, layout="constrained")
for k, (axis, name) in enumerate(zip(axes, ("valve", "pump (Hz)"), strict=True)):
    axis.plot(t, np.array(played)[:, k], ".", color=GREY, ms=1, label="played")
    axis.plot(t, np.array(centres)[:, k], color=BLUE, label="operating point")
    axis.plot(t, best[:, k], "--", color=VERMILION, label="the optimum")
    axis.set_ylabel(name)
axes[0].legend(ncols=3)
axes[1].set_xlabel("round")
