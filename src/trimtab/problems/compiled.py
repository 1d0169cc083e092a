"""Compile the kernels before they are needed: `python -m trimtab.problems.compiled`, a part of the installation.

Numba keeps what it compiled beside the sources, or, where that folder cannot be written, in a folder of the user; and
compiles anew what has changed or was moved. Without this the first run of a problem waits: for LQR eight seconds or so.
"""

from __future__ import annotations

import numpy as np

from trimtab.problems.allocation import Allocation
from trimtab.problems.kernels.compiling import threads
from trimtab.problems.lqr import NoisyLQR


def lqr() -> None:
    """Costs, rollouts and optima; gradients are left to those who need them."""
    problem = NoisyLQR()
    world, point = problem.world(0, 1), np.zeros((1, 1, problem.dim))
    world.cost(0, point), world.measure(0, point), world.optimum(0)


def lqr_slopes() -> None:
    """Gradients."""
    problem = NoisyLQR()
    problem.world(0, 1).gradient(0, np.zeros((1, 1, problem.dim)))


def allocation() -> None:
    """Costs and gradients."""
    problem = Allocation(draws=2)
    world, point = problem.world(0, 1), np.zeros((1, 1, problem.dim))
    world.cost(0, point), world.gradient(0, point)


if __name__ == "__main__":
    with threads(1):  # as in the processes that share the cores of a machine
        lqr()
        lqr_slopes()
        allocation()
