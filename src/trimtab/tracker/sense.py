"""Statistics that the plane passes to the pace."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.types import Value


class Sense(NamedTuple):
    """Innovation, scale, noise and curvature after a value."""

    surprise: Value
    """The innovation: the contrast divided by its running rms."""
    steepness: Value
    """s: the running rms of the slope along a probe."""
    size: Value
    """‖ĝ‖²."""
    signal_share: Value
    """h: the estimated share of signal in the contrast, 0 to 1."""
    certainty: Value
    """Confidence in the mean curvature L, given the noise: 0 (unknown) to 1."""
    bent: Value
    """certainty·L."""
    distance: Value
    """The estimated distance to the optimum; huge while the curvature is unknown."""
    evenness: Value
    """The mean square of negative innovations over that of positive ones, at most 1; small near a cliff."""
    jumped: Value
    """Whether a jump of the objective was just detected."""
