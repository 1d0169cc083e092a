"""What an estimator's memory says of the cost about the centre: the price of probing, the slope, the curvature."""

from __future__ import annotations

import numpy as np

from trimtab.estimators.plane import Fit
from trimtab.types import Array, Memory, Value


def downhill(memory: Memory) -> tuple[Array, Value] | None:
    """−g, and how much of it the curvature takes back per unit of length; None for estimators without a plane.

    One system's, or those of lanes.
    """
    return (np.asarray(-memory.fade)[..., None] * memory.slope, memory.bent) if isinstance(memory, Fit) else None


def probing_cost(memory: Memory, cut: Array, square: float) -> float | None:
    """By how much a query is above its centre in the mean over u, as the plane has it: ½·L·l² + ⟨g, p − x − δu⟩.

    cut: p − x − δu, what the edge of the domain took off. square: l², of the probe's length. ⟨g, δu⟩ has the mean 0.
    None where the curvature L does not stand out of the noise (its certainty is 0), and for estimators without a plane.
    """
    if not isinstance(memory, Fit):
        return None
    if not memory.certainty > 0:
        return None
    return float(0.5 * (memory.bent / memory.certainty) * square + memory.fade * np.dot(memory.slope, cut))
