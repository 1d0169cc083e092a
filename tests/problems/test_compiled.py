"""The installation compiles all kernels for the argument types of runs: none is compiled again."""

import numpy as np

from trimtab.problems import compiled, make
from trimtab.problems.kernels import allocation, lqr, riccati
from trimtab.problems.kernels.compiling import threads

KERNELS = {
    "lqr": (lqr.lqr_values, lqr.lqr_rollouts, riccati.riccati),
    "lqr_slopes": (lqr.lqr_gradients,),
    "allocation": (allocation.per_edge, allocation.allocation_rollouts, allocation.allocation_gradients),
}


def test_one_signature_does_for_all():
    with threads(1):
        for name, kernels in KERNELS.items():
            getattr(compiled, name)()
            assert all(kernel.alone.signatures for kernel in kernels)
        for id in ("lqr-v1", "lqr-zero-mean-v1", "lqr-noisy-v1", "allocation-v1", "allocation-per-agent-v1"):
            problem = make(id)
            world, x = problem.world(3, 2), np.zeros((2, 3, problem.dim))
            for point in (x, x[:, ::2], np.broadcast_to(x[:, :1], x.shape)):
                world.cost(1, point)
                world.measure(1, point)
                world.gradient(1, point)
            if "lqr" in id:
                world.optimum(1)
    for kernels in KERNELS.values():
        assert [len(kernel.alone.signatures) for kernel in kernels] == [1] * len(kernels)
