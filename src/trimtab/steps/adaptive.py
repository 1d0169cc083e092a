"""Configuration of the default method's step; `trimtab.tracker` implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trimtab.protocols import Frame
from trimtab.registry import part
from trimtab.tracker import pace
from trimtab.types import Array, Memory
from trimtab.validation import real


@part
@dataclass(frozen=True)
class Adaptive:
    """A step that adapts its pace until innovations are white, and the width of probes to the length of moves.

    The pace a is relative to the given radius, or to Newton's step once the curvature is known. It is too large if
    values are higher than predicted along the heading, and too small if lower. Every eighth trial probes along the
    heading, where one value is as informative about the pace as d others. If the optimum moves steadily, the centre
    moves with it (`trimtab.tracker.following`). Widths alternate in the order of Thue and Morse, whose averages
    cancel drift, so that an estimator can determine the curvature.

    narrowest, widest: the smallest and the largest width of a probe, in units of the radius.
    """

    narrowest: float = 0.03
    widest: float = 4.0
    scale_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("narrowest", self.narrowest, 0, 1, above=True, why=", in units of the radius")
        real("widest", self.widest, 1, why=", in units of the radius")

    @property
    def constant(self) -> None:
        """None: the rate changes over time."""
        return None

    def start(self, frame: Frame, centre: Array) -> Memory:
        """A memory without contrasts; wider probes have the given radius."""
        return pace.start(frame, centre)

    def pacing(self, frame: Frame) -> pace.Pacing:
        """Bind the adaptation of pace and width, which needs the statistics of `Plane`."""
        return pace.bind(frame, self.narrowest, self.widest)
