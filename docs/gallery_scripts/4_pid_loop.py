"""
A PI loop that keeps up
=======================

A heater with a delay, whose gain grows fourfold while it runs, as a valve wears or a tank empties. Two gains of its PI
controller are tuned on the go: one step of the set point a round, and the mean squared error as the one number.
"""

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab.plotting import BLUE, GREEN, GREY, VERMILION

ROUNDS = 600
rng = np.random.default_rng(2)


def step_response(proportional, integral, gain):
    """The error after a step of the set point: a lag of ten samples, a delay of three."""
    heat, total, commands, errors = 0.0, 0.0, [0.0] * 3, []
    for _ in range(120):
        error = 1.0 - heat + 0.01 * rng.standard_normal()
        total += error
        commands.append(np.clip(proportional * error + integral * total, -5, 5))
        heat += 0.1 * (gain * commands[-4] - heat)
        errors.append(1.0 - heat)
    return np.array(errors)


knobs = [
    tt.Knob(name="proportional", low=0.05, high=5, start=1.5, scale="log"),
    tt.Knob(name="integral", low=0.005, high=0.5, start=0.1, scale="log"),
]
tuner = tt.Tuner(knobs=knobs, seed=0)
tuned, still, settings = [], [], []
for gain in np.geomspace(0.5, 2.0, ROUNDS):
    trial = tuner.ask()
    cost = np.mean(step_response(**trial.knobs, gain=gain) ** 2)
    tuner.tell(trial, cost)
    tuned.append(cost)
    still.append(np.mean(step_response(1.5, 0.1, gain) ** 2))
    settings.append(tuner.setting)

# %%
# The gains of the first day are right for one state of the plant only; the tuned ones follow it.

figure, (above, below) = plt.subplots(2, 1, sharex=True, layout="constrained")
above.semilogy(still, color=GREY, label="the gains of the first day")
above.semilogy(tuned, color=BLUE, label="tuned, as played")
above.set_ylabel("mean squared error")
above.legend()
for name, colour in (("proportional", VERMILION), ("integral", GREEN)):
    below.semilogy([setting[name] for setting in settings], color=colour, label=name)
below.set(xlabel="round", ylabel="gain")
below.legend()
print(f"mean over the run: {np.mean(tuned):.3f} tuned, {np.mean(still):.3f} with the gains of the first day")
