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
    """Configuration of a method, and the rule that it is bound to: all that setups, tuners, files and studies use.

    A method of your own is a frozen dataclass with this base, with `bind`, and with `trimtab.part` above it, so that it
    can be saved. Where it differs from what the properties below say, it has a class variable of that name, or a field
    with a default.

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
        """The rule by which it asks and learns."""

    @property
    def offsets(self) -> tuple[float, ...]:
        """The queries of a round: x + offset·δ_t·u."""
        return (1.0,)

    @property
    def lags(self) -> tuple[int, ...]:
        """Which objective each is measured on; 1: that of the round before, which only a simulation can do."""
        return (0,)

    @property
    def told(self) -> int:
        """How many numbers a query brings: 1, the value, or more, where limits are measured beside it."""
        return 1

    @property
    def anchored(self) -> bool:
        """Whether values are compared with earlier ones, so that the first moves nothing."""
        return True

    @property
    def unbiased(self) -> bool:
        """Whether a move is −η·∇f in the mean, for a quadratic that stands still."""
        return False

    @property
    def located(self) -> bool:
        """Whether it learns from where it measured, so that queries may be projected back into the domain."""
        return False

    @property
    def scale_free(self) -> bool:
        """Whether a·f + b, a > 0, has the same path as f."""
        return False

    @property
    def finds_width(self) -> bool:
        """Whether it chooses how wide its probes are, between its `narrowest` and `widest`."""
        return False

    @property
    def narrowest(self) -> float:
        """The least width of a probe, as a multiple of the radius."""
        return 1.0

    @property
    def widest(self) -> float:
        """The largest width of a probe, as a multiple of the radius: margin="erode" keeps room for it."""
        return 1.0

    @property
    def constant(self) -> float | tuple[float, ...] | None:
        """The step size η, where it is the same in every round; in lanes, one for all or one for each."""
        return None

    @property
    def kind(self) -> type:
        """The class by which methods are told apart."""
        return type(self)

    @property
    def parts(self) -> Mapping[str, object]:
        """Its parts by name, as a record describes them."""
        return {"method": self}

    @property
    def queries(self) -> int:
        """Measurements per round: 1, or 2 for methods that only work in simulation."""
        return len(self.offsets)

    def changed(self, **fields: Any) -> Self:
        """The method with other values of these fields; `narrowest` and `widest` only where it finds the width."""
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
