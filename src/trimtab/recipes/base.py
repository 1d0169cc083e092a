"""Base class of all methods, whether made of an estimator and a step or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from trimtab.protocols import Directions, Frame, Rule
from trimtab.validation import real

Margin = Literal["erode", "scale", "project", "none"]
RADII = 1e-30, 1e70  # allowed radii: squares of lengths and of slopes stay finite and positive


@dataclass(frozen=True, kw_only=True)
class BaseMethod(ABC):
    """Configuration of a method: the interface used by setups, tuners, files and studies.

    To write your own, derive a frozen dataclass that defines `bind`, decorated with `trimtab.part` so that it can be
    saved. Override properties below by a class variable of the same name, or a field with a default.

    >>> import trimtab as tt
    >>> isinstance(tt.residual(radius=0.05, step=3e-3), BaseMethod)
    True
    """

    radius: float
    directions: Directions | None = None
    max_move: float | None = None
    margin: Margin = "erode"

    @abstractmethod
    def bind(self, frame: Frame) -> Rule:
        """Bind the method to a setup."""

    @property
    def offsets(self) -> tuple[float, ...]:
        """The queries of a round: x + offset·δ_t·u."""
        return (1.0,)

    @property
    def lags(self) -> tuple[int, ...]:
        """The age in rounds of the objective that each query measures; not 0 in simulations only."""
        return (0,)

    @property
    def told(self) -> int:
        """The number of values per query: 1, plus one for each measured limit."""
        return 1

    @property
    def anchored(self) -> bool:
        """Whether values are compared with earlier ones, so that the first does not move the centre."""
        return True

    @property
    def unbiased(self) -> bool:
        """Whether the expected move on a static quadratic is −η·∇f."""
        return False

    @property
    def located(self) -> bool:
        """Whether it uses the actual query, so that queries may be projected back into the domain."""
        return False

    @property
    def learns_settings(self) -> bool:
        """Whether it learns from the setting drawn for a discrete knob, instead of from the query."""
        return False

    @property
    def takes_context(self) -> bool:
        """Whether its rule's `query` takes a context, and its `learn` finds it in the look."""
        return False

    @property
    def takes_limits(self) -> bool:
        """Whether its rule keeps the limits of its frame; a number that was not measured is NaN."""
        return False

    @property
    def scale_free(self) -> bool:
        """Whether a·f + b, a > 0, has the same path as f."""
        return False

    @property
    def finds_width(self) -> bool:
        """Whether it adapts the width of probes, between its `narrowest` and `widest`."""
        return False

    @property
    def narrowest(self) -> float:
        """The smallest width of a probe, as a multiple of the radius."""
        return 1.0

    @property
    def widest(self) -> float:
        """The largest width of a probe, as a multiple of the radius: margin="erode" keeps room for it."""
        return 1.0

    @property
    def constant(self) -> float | tuple[float, ...] | None:
        """The step size η, if constant; one number for all lanes or one per lane."""
        return None

    @property
    def kind(self) -> type:
        """The class that identifies the method."""
        return type(self)

    @property
    def parts(self) -> Mapping[str, object]:
        """The parts of the method by name, for records."""
        return {"method": self}

    @property
    def queries(self) -> int:
        """Measurements per round: 1, or 2 for methods that only work in simulation."""
        return len(self.offsets)

    def changed(self, **fields: Any) -> Self:
        """The method with some fields replaced; `narrowest` and `widest` only if it adapts the width."""
        return replace(self, **fields)

    def __post_init__(self) -> None:
        if isinstance(self.directions, type):
            name = self.directions.__name__
            raise TypeError(f"{name} is a class: write {name}(...) to create an instance")
        if self.directions is not None and not hasattr(self.directions, "locate"):
            raise TypeError(f"directions={self.directions!r} is not a law of directions: give for example tt.Sphere()")
        object.__setattr__(self, "radius", real("radius", self.radius, *RADII, why=": rescale the coordinates"))
        if self.max_move is not None:
            real("max_move", self.max_move, 0, above=True, why=", or None for no limit")
        if self.margin not in ("erode", "scale", "project", "none"):
            raise ValueError(f"margin={self.margin!r} is unknown: choose 'erode', 'scale', 'project' or 'none'")
