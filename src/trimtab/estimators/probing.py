"""What an estimator's memory says of the price of probing."""

from __future__ import annotations

import numpy as np

from trimtab.estimators.plane import Fit
from trimtab.types import Array, Memory


def probing_cost(memory: Memory, offset: Array, square: float) -> float | None:
    """By how much a query is above its centre, as the plane has it: ⟨g, p − x⟩ + ½·c·L·l².

    offset: p − x. square: l², of the probe's length. None where the curvature L is not known (its certainty c is 0),
    and for estimators that have no plane.
    """
    if not isinstance(memory, Fit):
        return None
    bend = float(memory.certainty * memory.curvature)
    return None if bend == 0 else float(np.dot(memory.slope, offset)) + 0.5 * bend * square
