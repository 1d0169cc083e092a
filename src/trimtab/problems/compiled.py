"""Compile the kernels ahead of time: `python -m trimtab.problems.compiled`, run during installation.

Numba caches compiled code next to the sources, or in a user folder if that is read-only, and recompiles changed or
moved files. Without this the first run of a problem has to wait, about eight seconds for LQR.
"""

from __future__ import annotations

import numpy as np

from trimtab.problems.allocation import Allocation
from trimtab.problems.kernels.compiling import threads
from trimtab.problems.lqr import NoisyLQR


def lqr() -> None:
    """Compile costs, rollouts and optima of LQR."""
    problem = NoisyLQR()
    world, point = problem.world(0, 1), np.zeros((1, 1, problem.dim))
    world.cost(0, point), world.measure(0, point), world.optimum(0)


def lqr_slopes() -> None:
    """Compile gradients of LQR."""
    problem = NoisyLQR()
    problem.world(0, 1).gradient(0, np.zeros((1, 1, problem.dim)))


def allocation() -> None:
    """Compile costs and gradients of the allocation problem."""
    problem = Allocation(draws=2)
    world, point = problem.world(0, 1), np.zeros((1, 1, problem.dim))
    world.cost(0, point), world.gradient(0, point)


if __name__ == "__main__":
    with threads(1):  # the variant for one thread, which worker processes use
        lqr()
        lqr_slopes()
        allocation()
