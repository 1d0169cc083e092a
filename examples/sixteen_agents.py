"""Sixteen agents, one number: distributed residual feedback on the paper's resource allocation problem.

Each agent tunes its own part of the policy with a tuner of its own. Nobody knows what the others try; all that is
shared is the cost of the episode, which everybody is told. Residual feedback needs no more: the estimate of agent i,
(u_i/δ)·(y_t − y_{t−1}), is its block of the estimate that one tuner of all 576 parameters would make, and what the
others do is, to agent i, noise without bias.

python examples/sixteen_agents.py --rounds 2000
"""

import argparse

import numpy as np

import trimtab as tt

RADIUS, STEP = 0.03, 3e-5


class Agent:
    """Knows its own coordinates, and nothing else."""

    def __init__(self, place, dim, number):
        self.place = place
        self.tuner = tt.Tuner(np.zeros(dim), tt.residual(radius=RADIUS, step=STEP), seed=number)

    def propose(self):
        self.trial = self.tuner.ask()
        return self.trial.x

    def hear(self, value):
        self.tuner.tell(self.trial, value)


def run(rounds, network=12, seed=0):
    """J_t/ζ_t at the agents' joint operating point, once in ten rounds; and of the uniform policy, where they begin."""
    problem = tt.problems.make("allocation-v1", network=network)
    world = problem.world(seed, 1)
    places = [problem.coordinates(i) for i in range(problem.agents)]
    agents = [Agent(place, place.stop - place.start, i) for i, place in enumerate(places)]
    found = []
    for t in range(rounds):
        theta = np.concatenate([agent.propose() for agent in agents])  # each acts by its own part
        value = float(world.measure(t, theta[None, None])[0, 0])  # one episode, one noisy number
        for agent in agents:
            agent.hear(value)
        if t % 10 == 0:
            centre = np.concatenate([agent.tuner.centre for agent in agents])
            both = world.cost(t, np.stack([centre, np.zeros(problem.dim)])[None])[0] / world.zeta(t)[0, 0]
            found.append(both)
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--network", type=int, default=12)
    options = parser.parse_args()
    found = run(options.rounds, options.network)
    tenth = max(1, len(found) // 10)
    print(f"uniform policy, where all begin:   J/ζ = {found[:, 1].mean():.2f}")
    print(f"sixteen agents, first tenth:       J/ζ = {found[:tenth, 0].mean():.2f}")
    print(f"sixteen agents, last tenth:        J/ζ = {found[-tenth:, 0].mean():.2f}")


if __name__ == "__main__":
    main()
