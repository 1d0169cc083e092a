"""A controller that keeps up with its plant: Gymnasium's pendulum, held upright while wind and mass drift.

One episode of 100 steps a round; its return is the one number that is learnt from. The gains start where they are good
for the plant of the first day. Draws a picture, against the same gains, fixed.

python examples/drifting_pendulum.py --out out/drifting_pendulum.png
"""

import argparse
from pathlib import Path

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab import plotting
from trimtab.adapters.gymnasium import Policy

EPISODES = 2000
START = np.array([0.0, -8.0, -2.0, 0.0])  # of cos θ, sin θ, the speed, and 1: good at first, without wind
BOUNDS = [(-3, 3), (-20, 0), (-6, 0), (-3, 3)]


def wind(episode):
    """A steady torque, which turns with the season."""
    return 0.6 * np.sin(2 * np.pi * episode / 1500)


def mass(episode):
    """It is loaded more and more, and unloaded at two thirds."""
    return np.where(np.asarray(episode) < 2 * EPISODES / 3, 1.0 + 0.4 * np.asarray(episode) / EPISODES, 1.0)


class Windy(gymnasium.Wrapper):
    """Near the top, in the wind, one episode after the other."""

    episode = -1

    def reset(self, **options):
        self.episode += 1
        self.unwrapped.m = float(mass(self.episode))
        return self.env.reset(**options, options={"x_init": 0.1, "y_init": 0.1})

    def step(self, action):
        return self.env.step(action + wind(self.episode))


def run(method=None):
    """The cost of each episode, as played, and the gains over time."""
    env = Windy(gymnasium.make("Pendulum-v1", max_episode_steps=100))
    policy = Policy(env, x0=START, bounds=BOUNDS, radius=0.02, method=method, seed=0)
    env.np_random = np.random.default_rng(1)  # the starts of episodes, the same for all
    costs, gains = [], []
    for _ in range(EPISODES):
        costs += [-value for value in policy.learn()]
        gains.append(policy.parameters)
    return np.array(costs), np.array(gains)


def smooth(costs, over=40):
    """The mean of the last episodes."""
    sums = np.cumsum(np.concatenate([[0.0], costs]))
    first = np.maximum(np.arange(1, len(sums)) - over, 0)
    return (sums[1:] - sums[first]) / (np.arange(1, len(sums)) - first)


def draw(out):
    """Draw the cost against fixed gains, and the offset learnt for the wind."""
    (tuned, gains), (still, _) = run(), run(tt.still(radius=0.02))
    t = np.arange(EPISODES)
    blue, orange, grey = plotting.BLUE, plotting.VERMILION, plotting.GREY
    plt.rcParams.update(plotting.STYLE)
    figure, axes = plt.subplots(2, 1, figsize=(plotting.WIDTH, 5.2), sharex=True, layout="constrained")
    axes[0].semilogy(t, smooth(still), color=grey, lw=1.2, label="the gains of the first day")
    axes[0].semilogy(t, smooth(tuned), color=blue, lw=1.2, label="trimtab, as played")
    axes[0].set(ylabel="cost of an episode\n(mean of 40)", ylim=(3e-3, None))
    axes[0].legend(loc="lower right", ncols=2)
    axes[1].plot(t, gains[:, 0] + gains[:, 3], color=blue, lw=1.2, label="steady torque of the policy")
    axes[1].plot(t, -wind(t), "--", color=orange, lw=1.8, label="−wind, which nobody measures")
    axes[1].set(xlabel="episode (one value each)", ylabel="torque")
    axes[1].legend(loc="lower center")
    figure.suptitle("A pendulum held upright while wind and mass drift")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    for name, costs in (("with trimtab", tuned), ("fixed gains", still)):
        print(f"{name}: median cost of an episode {np.median(costs):.2f}, mean {costs.mean():.2f}", end="")
        print(f", {(costs > 100).sum()} of {EPISODES} fell")
    print(f"drawn: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("out/drifting_pendulum.png"), help="where to draw (default: %(default)s)"
    )
    draw(parser.parse_args().out)
