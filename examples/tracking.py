"""The README's example: one measurement per round, an optimum that moves, no step size. Draws a picture.

python examples/tracking.py --out out/tracking.png
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab import plotting

ROUNDS = 3000
BOUNDS = [(0, 1), (1, 100)]  # say, a valve position and a pump speed in Hz


def optimum(t):
    """The best operating point at time t, hidden from the tuner: a slow turn, and a jump at two thirds."""
    angle = 2 * np.pi * t / 2500
    jump = np.where(np.asarray(t) < 2000, 0.0, 0.2)
    return np.stack([0.5 + 0.3 * np.cos(angle) - jump, 50 + 30 * np.sin(angle) + 100 * jump], axis=-1)


def measure(t, x, rng):
    """The cost of running at x at time t: one noisy number, and then the system has moved on."""
    miss = (x - optimum(t)) / [1, 99]
    return 3 + np.sin(t / 300) + 10 * miss @ miss + 0.02 * rng.standard_normal()


def run(method=None):
    """The operating points over time."""
    tuner = tt.Tuner([0.2, 20.0], method, bounds=BOUNDS, seed=0)
    rng = np.random.default_rng(1)
    path = []
    for t in range(ROUNDS):
        trial = tuner.ask()
        tuner.tell(trial, measure(t, trial.x, rng))
        path.append(tuner.centre)
    return np.array(path)


def draw(path, out):
    """Draw both knobs against their moving optimum, and the cost with fixed knobs."""
    t = np.arange(ROUNDS)
    best = optimum(t)
    blue, orange, grey = plotting.BLUE, plotting.VERMILION, plotting.GREY
    plt.rcParams.update(plotting.STYLE)
    figure, axes = plt.subplots(3, 1, figsize=(plotting.WIDTH, 6.2), sharex=True, layout="constrained")
    for k, (axis, name) in enumerate(zip(axes, ("valve position", "pump speed (Hz)"), strict=False)):
        axis.plot(t, path[:, k], color=blue, lw=1.2, label="trimtab's operating point")
        axis.plot(t, best[:, k], "--", color=orange, lw=1.8, label="the optimum, which moves")
        axis.set(ylabel=name, ylim=BOUNDS[k])
    axes[0].legend(loc="upper right", ncols=2)

    def excess(x):
        return 10 * (((x - best) / [1, 99]) ** 2).sum(axis=1)

    axes[2].semilogy(t, excess(np.array([0.2, 20.0])), color=grey, lw=1.2, label="fixed knobs")
    axes[2].semilogy(t, excess(path), color=blue, lw=1.0, label="trimtab")
    axes[2].set(xlabel="round (one measurement each)", ylabel="cost above the best", ylim=(1e-5, 20))
    axes[2].legend(loc="lower right", ncols=2)
    figure.suptitle("A drifting system, tracked from one noisy measurement per round")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    tracked, still = excess(path).mean(), excess(np.array([0.2, 20.0])).mean()
    print(f"mean excess cost: {tracked:.3f} with trimtab, {still:.3f} with fixed knobs")
    print(f"drawn: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("out/tracking.png"), help="where to draw (default: %(default)s)"
    )
    draw(run(), parser.parse_args().out)
