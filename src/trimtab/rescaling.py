"""Convert a memory to rescaled coordinates x′_j = a_j·x_j, keeping what was learnt.

Each number in a memory has a dimension, length^p: p = 1 for positions and moves, −1 for slopes, −2 for curvatures and
squared slopes, 0 for values, counts and shares. It is multiplied by a^p. A number common to all coordinates is
multiplied by ā^p with 1/ā² = mean 1/a_j², which is exact if all a_j are equal, and for the mean curvature of a round
bowl.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trimtab.estimators.covariance import Window
from trimtab.estimators.doubts import Doubts
from trimtab.estimators.high_pass import Mean
from trimtab.estimators.plane import Fit
from trimtab.steps.adaptive import Pace
from trimtab.steps.following import Following
from trimtab.steps.normalised import Rms
from trimtab.types import Array, Memory
from trimtab.xp import Lanes, Single

POWERS: dict[type, dict[str, int]] = {
    Fit: {
        "anchor": 1,
        "slope": -1,
        "spread": 2,
        "square": -2,
        "usual": -1,
        "rise_square": -2,
        "drop_square": -2,
        "calm": -2,
        "size": -2,
        "bent": -2,
        "weight": 4,
        "bend": 2,
    },
    Doubts: {"curvature": -2, "weight": 4},
    Pace: {"trail": 1, "course": 1, "reach": 1, "move": 1},
    Following: {"velocity": 1},
    Window: {"queries": 1},
    Mean: {},
    Rms: {},
}
"""Exponent p of each field of a memory, if not 0; add the memory of a part of your own here."""
VECTORS = ("anchor", "slope", "trail", "course", "velocity", "queries", "filtered")
"""Fields with one number per coordinate."""


def rescaled(memory: Memory, factors: Array) -> Memory:
    """The memory in the coordinates x′ = factors·x."""
    if memory == ():
        return memory
    powers = POWERS.get(type(memory))
    if powers is None:
        raise ValueError(
            f"the memory of {type(memory).__name__} has no scaling rule: add it to trimtab.rescaling.POWERS"
        )
    one = float(np.mean(factors**-2.0)) ** -0.5
    found: list[object] = []
    for name, value in zip(memory._fields, memory, strict=True):
        power = float(powers.get(name, 0))
        if isinstance(value, tuple):
            found.append(rescaled(value, factors))
        elif name in VECTORS:
            found.append(value * factors**power)
        else:
            found.append(_where(name == "calm" and value < 0, value, value * one**power) if power else value)
    new = type(memory)(*found)
    if isinstance(new, Fit):  # ‖g‖² follows exactly from g
        before, after = (np.sum(np.square(fit.slope), axis=-1) for fit in (memory, new))
        size = memory.size * np.where(before > 0, after / np.where(before > 0, before, 1.0), one**-2.0)
        new = new._replace(size=size if np.ndim(size) else float(size))
    if isinstance(new, Following):
        new = new._replace(speed=(Single if new.velocity.ndim == 1 else Lanes).norm(new.velocity))
    return new


def _where(mark: Any, value: object, scaled: Any) -> Any:
    """Keep values where `mark` is true: they are flags, not sizes."""
    return np.where(mark, value, scaled) if isinstance(value, np.ndarray) else value if mark else scaled
