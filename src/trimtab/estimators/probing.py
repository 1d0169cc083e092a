"""Slope, curvature and cost of probing, estimated from the memory of `Plane`."""

from __future__ import annotations

import numpy as np

from trimtab.estimators.plane import Fit
from trimtab.types import Array, Memory, Value


def downhill(memory: Memory) -> tuple[Array, Value] | None:
    """The direction of descent −g, and the loss of slope per unit length due to curvature; None without a plane.

    For one system, or for lanes.
    """
    return (np.asarray(-memory.fade)[..., None] * memory.slope, memory.bent) if isinstance(memory, Fit) else None


def probing_cost(memory: Memory, cut: Array, square: float) -> float | None:
    """Estimate the mean excess cost of a query over its centre: ½·L·l² + ⟨g, p − x − δu⟩, since ⟨g, δu⟩ averages to 0.

    cut: p − x − δu, the shift by projection into the domain. square: l², the squared length of the probe.
    None if the curvature L is not significant (its certainty is 0), and for estimators without a plane.
    """
    if not isinstance(memory, Fit):
        return None
    if not memory.certainty > 0:
        return None
    return float(0.5 * (memory.bent / memory.certainty) * square + memory.fade * np.dot(memory.slope, cut))
