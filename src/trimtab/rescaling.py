"""Convert a memory to rescaled coordinates x′_j = a_j·x_j, keeping what was learnt.

Each number in a memory has a dimension, length^p: p = 1 for positions and moves, −1 for slopes, −2 for curvatures and
squared slopes, 0 for values, counts and shares. It is multiplied by a^p. A number common to all coordinates is
multiplied by ā^p with 1/ā² = mean 1/a_j², which is exact if all a_j are equal, and for the mean curvature of a round
bowl.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trimtab.types import Array, Memory

POWERS: dict[type, dict[str, int]] = {}
"""Exponent p of each field of a memory, if not 0; a part adds its own memory here, next to its class."""
REPAIRS: dict[type, Callable[[Any, Any, float], Memory]] = {}
"""(before, after, ā) → the rescaled memory, for memories in which some numbers follow from others."""
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
            found.append(value * one**power if power else value)
    new = type(memory)(*found)
    repair = REPAIRS.get(type(memory))
    return new if repair is None else repair(memory, new, one)
