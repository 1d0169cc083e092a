"""Steps normalised by the contrast: moves in units of the probe, independent of the units of the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from trimtab.protocols import Frame
from trimtab.registry import part
from trimtab.rescaling import POWERS
from trimtab.state import Look, State
from trimtab.steps.base import FixedWidth, Rate
from trimtab.types import Array, Memory, Value
from trimtab.validation import real
from trimtab.xp import TINY


class Rms(NamedTuple):
    """Memory of `Normalised`: the number of contrasts and their running mean square."""

    contrasts: Value
    square: Value


POWERS[Rms] = {}


@part
@dataclass(frozen=True)
class Normalised(FixedWidth):
    """η_t = gain·ρ²/(d^{3/2}·s_t): the estimate in units of the running rms s_t of its own contrast.

    ρ is the length of a probe. s² ← s² + (a² − s²)·max(1/k, 1/window) over the k contrasts so far, including the
    current one, so a single outlier moves the centre by at most √window typical moves. A typical move has the length
    gain·ρ/√d in any units of the objective: a·f has the same path as f.
    """

    gain: float = 1.0
    window: float = 100.0
    scale_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("gain", self.gain, 0, above=True)
        real("window", self.window, 1, why=" of rounds")

    def start(self, frame: Frame, centre: Array) -> Memory:
        """A memory without contrasts."""
        return Rms(frame.zero, frame.zero)

    def rate(self, frame: Frame) -> Rate:
        """gain·ρ²/(d^{3/2}·s_t)."""
        xp, unit, gain, least = frame.xp, frame.probe_length, self.gain / frame.dim**1.5, 1.0 / self.window

        def rate(state: State, look: Look, contrast: Value) -> tuple[Value, Memory]:
            contrasts, square = state.pace
            contrasts, length = contrasts + 1.0, unit * look.width
            square = square + (contrast * contrast - square) * xp.maximum(1.0 / contrasts, least)
            return gain * length * length / xp.sqrt(xp.maximum(square, TINY)), Rms(contrasts, square)

        return rate
