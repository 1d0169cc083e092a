"""examples/sixteen_agents.py: blocks of one estimate, from the common value alone."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from sixteen_agents import RADIUS, STEP, Agent, run


def test_an_agent_moves_by_its_own_block_of_the_estimate():
    agents = [Agent(slice(0, 2), 2, 0), Agent(slice(2, 5), 3, 1)]
    before = None
    for value in (4.0, 3.5, 5.0):
        theta = np.concatenate([agent.propose() for agent in agents])
        centre = np.concatenate([agent.tuner.centre for agent in agents])
        for agent in agents:
            agent.hear(value)
        moved = np.concatenate([agent.tuner.centre for agent in agents]) - centre
        expected = 0.0 if before is None else -STEP * (value - before) / RADIUS * (theta - centre) / RADIUS
        np.testing.assert_allclose(moved, expected, rtol=1e-9, atol=1e-15)
        before = value


def test_they_learn_together():
    found = run(400)
    assert found[-10:, 0].mean() < 0.95 * found[:, 1].mean()
