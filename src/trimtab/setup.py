"""Configuration: method, shape, domain and bounds, validated; derived quantities are computed once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.context import Context, contexts_of
from trimtab.directions import Gaussian, Rademacher, Streams
from trimtab.domains import Box, Domain, Everywhere
from trimtab.inputs import LARGEST as LARGEST
from trimtab.inputs import locked, pairs, reader, shortly
from trimtab.limit import Limit, limits_of, measured, sides
from trimtab.protocols import Directions, Frame, Rule
from trimtab.recipes import BaseMethod
from trimtab.types import Array, Integers, Value
from trimtab.validation import whole
from trimtab.xp import Lanes, Single

FARTHEST = 1e6  # longest move, in outer radii of the domain: a projection from farther away has no correct digits
FARTHEST_FREE = 1e12  # longest move on an unbounded domain, in probe lengths
SHORT = 1e-6  # below this probe length, values are clipped more tightly


class ProbesTooWide(ValueError):
    """The radius leaves no room for centres; its arguments are the problem and the reason."""

    def __str__(self) -> str:
        return ": ".join(self.args)


def fitting(domain: object, dim: int | None) -> Domain:
    """Check that `domain` is a domain of dimension `dim`; None accepts any dimension."""
    if not isinstance(domain, Domain):
        raise TypeError(f"domain={domain!r} is not a domain: give for example tt.Ball(5.0), or bounds=")
    if dim is not None and domain.dim not in (None, dim):
        raise ValueError(f"the domain has dimension {domain.dim}, but x0 has {dim} coordinates")
    return domain


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything that stays fixed during a run; many states may share one setup.

    With `bounds`, coordinates are scaled to the range and the domain is the unit box. A coordinate with low == high is
    fixed and left out of centres, whose shape is `inner`.

    >>> import trimtab as tt
    >>> setup = Setup(tt.residual(radius=0.1, step=0.01), (3,))
    >>> state = tt.init(setup, [0.0, 0.0, 0.0], seed=1)
    >>> tt.tell(setup, state, 4.2).round
    1
    """

    method: BaseMethod
    shape: tuple[int, ...]
    domain: Domain = field(default_factory=Everywhere)
    bounds: ArrayLike | None = None
    maximise: bool = False
    max_pending: int = 1
    contexts: tuple[Context, ...] = ()
    limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 2) or min(self.shape) < 1:
            raise ValueError(f"shape={self.shape} is neither (d,) nor (lanes, d) with at least one of each")
        object.__setattr__(self, "max_pending", whole("max_pending", self.max_pending, 1, 2**20))
        if not isinstance(self.method, BaseMethod):
            raise TypeError(
                f"method={self.method!r} is not a Method: use for example tt.auto(radius=0.05), or"
                " tt.residual(radius=0.05, step=3e-3)"
            )
        fitting(self.domain, self.shape[-1] if self.bounds is None else None)
        if not isinstance(self.maximise, bool | np.bool_):
            raise TypeError(f"maximise={self.maximise!r} is neither True nor False")
        steps = self.method.constant
        if isinstance(steps, tuple) and len(steps) != self.lanes:
            raise ValueError(f"{len(steps)} steps do not fit {self.lanes or 1} lanes: give one number, or one per lane")
        if self.bounds is not None:
            if not (isinstance(self.domain, Everywhere) or self.domain == Box(0.0, 1.0)):
                raise ValueError("give either bounds or a domain; for both, use Intersection(Box(low, high), domain)")
            object.__setattr__(self, "bounds", pairs(self.bounds, self.shape[-1]))
            object.__setattr__(self, "domain", Box(0.0, 1.0))
        object.__setattr__(self, "contexts", contexts_of(self.contexts))
        if self.contexts and not self.method.takes_context:
            raise ValueError(
                f"{self.method} takes no context: use tt.belief(radius={self.method.radius:g}), or no context"
            )
        object.__setattr__(self, "limits", limits_of(self.limits))
        if self.limits and not self.method.takes_limits:
            raise ValueError(
                f"{self.method} keeps no limits: use tt.belief(radius={self.method.radius:g}), or leave out limits="
            )
        _ = self.home  # raises if the probes do not fit

    def __getstate__(self) -> dict[str, object]:
        """Pickle the arguments only; cached properties are recomputed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def free(self) -> NDArray[np.bool_] | None:
        """Mask of the coordinates that may move; None if all may."""
        if self.bounds is None:
            return None
        low, high = np.transpose(self.bounds)
        return None if np.all(low < high) else np.asarray(low < high)

    @property
    def dim(self) -> int:
        """d, the number of coordinates that may move."""
        return self.inner[-1]

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The shape of centres: that of x0 without the fixed coordinates."""
        return self.shape if self.free is None else (*self.shape[:-1], int(self.free.sum()))

    @property
    def lanes(self) -> int | None:
        """The number of systems side by side; None for a single one."""
        return self.shape[0] if len(self.shape) == 2 else None

    @property
    def keeps_one(self) -> bool:
        """Whether a trial that was asked for need not be kept: the state alone says which it was."""
        return self.max_pending == 1 and not self.contexts

    @property
    def queries(self) -> int:
        """The number of measurements per round."""
        return self.method.queries

    @property
    def told(self) -> int:
        """The number of values per measurement: 1, plus one for each measured limit."""
        return self.method.told + len(measured(self.limits))

    @cached_property
    def directions(self) -> Directions:
        """The law of u: the method's, or Gaussian on `Everywhere` and Rademacher on any other domain."""
        return self.method.directions or (Gaussian() if isinstance(self.domain, Everywhere) else Rademacher())

    @cached_property
    def probe_length(self) -> float:
        """The length of a probe of width 1: δ·rms‖u‖."""
        return self.method.radius * math.sqrt(self.dim / self.directions.scale(self.dim))

    @cached_property
    def longest(self) -> float:
        """The longest move: `max_move` probe lengths, and within the range of an accurate projection."""
        around = self.domain.outer_radius(self.dim)
        farthest = FARTHEST * around if math.isfinite(around) else FARTHEST_FREE * self.probe_length
        most = self.method.max_move
        return farthest if most is None else min(farthest, most * self.probe_length)

    @cached_property
    def frame(self) -> Frame:
        """The part of the setup that estimators and steps are bound to."""
        law = self.directions
        streams = Streams(law, self.inner)
        whole = type(self.domain).flatten is Domain.flatten
        return Frame(
            xp=Single if self.lanes is None else Lanes,
            dim=self.dim,
            radius=self.method.radius,
            probe_length=self.probe_length,
            scale=law.scale(self.dim),
            longest=min(law.reach(self.dim)[1], 14.0 * math.sqrt(self.dim)),
            tallest=min(law.reach(self.dim)[0], math.sqrt(2.0)),
            direction=streams if whole else lambda key, trial: self.domain.flatten(streams(key, trial)),
            partner=law.partner,
            zero=0.0 if self.lanes is None else locked(np.zeros(self.lanes)),
            project=self.home.project,
            free=isinstance(self.domain, Everywhere),
            longest_move=self.longest,
            periods=tuple(context.period or 0.0 for context in self.contexts),
            flatten=None if whole else self.domain.flatten,
            limits=sides(self.limits, self.maximise),
        )

    @cached_property
    def rule(self) -> Rule:
        """The method, bound to this setup."""
        return self.method.bind(self.frame)

    @cached_property
    def home(self) -> Domain:
        """The set of allowed centres, chosen so that queries stay in the domain."""
        law, margin, radius = self.directions, self.method.margin, self.method.radius * self.method.widest
        if margin == "none" or isinstance(self.domain, Everywhere):
            return self.domain
        if margin == "project":
            return self.domain.erode(self.dim, 0.0, 0.0)
        each, length = self.domain.reach(self.dim, *(radius * r for r in law.reach(self.dim)))
        if math.isinf(each):
            if margin == "scale":
                raise ValueError(
                    "margin='scale' needs bounded directions: use Sphere() or Rademacher(), not Gaussian()"
                )
            return self.domain  # the paper's first variant: queries may leave
        if margin == "erode":
            try:
                return self.domain.erode(self.dim, each, length)
            except ValueError as error:
                unit = " (with bounds, a share of each range)" if self.bounds is not None else ""
                raise ProbesTooWide(f"radius={self.method.radius}{unit} is too large", str(error)) from None
        inner = self.domain.inner_radius(self.dim)
        if math.isinf(inner):
            raise ValueError("margin='scale' needs a bounded domain: use margin='erode'")
        xi = min(length, each * math.sqrt(self.dim)) / inner if inner > 0 else math.inf
        return self.domain.scale(self.dim, xi + 1e-12)  # ξ = δ/r (Lemma H.3)

    def outward(self, z: Array) -> Array:
        """Convert scaled coordinates to the user's; points inside stay inside despite rounding."""
        if self.bounds is None:
            return z
        low, high = np.transpose(self.bounds)
        if self.free is not None:
            z, moving = np.zeros((*z.shape[:-1], low.size)), z
            z[..., self.free] = moving
        x: Array = z * (high - low)
        x += low
        np.minimum(x, high, out=x, where=z <= 1)
        np.maximum(x, low, out=x, where=z >= 0)
        return x

    def inward(self, x: Array) -> Array:
        """Convert the user's coordinates to scaled ones."""
        if self.bounds is None:
            return x
        low, high = np.transpose(self.bounds)
        if self.free is not None:
            x, low, high = x[..., self.free], low[self.free], high[self.free]
        return np.asarray((x - low) / (high - low))

    def admits(self, x: Array) -> bool:
        """Whether x is a valid start: inside the domain, with fixed coordinates at their value."""
        if self.free is not None and np.any(x[..., ~self.free] != np.asarray(self.bounds)[~self.free, 0]):
            return False
        return bool(np.all(self.domain.contains(self.inward(x))))

    def count(self, number: int) -> int | Integers:
        """Convert an integer to the shape of a value: one number, or one per lane."""
        return number if self.lanes is None else locked(np.full(self.lanes, number, dtype=np.int64))

    @property
    def largest(self) -> float:
        """The magnitude that values are clipped to, so that their squares and those of slopes stay finite."""
        return LARGEST * min(1.0, self.probe_length / SHORT)

    @cached_property
    def read(self) -> Callable[[object], tuple[Value, ...] | None]:
        """The function that converts told values to those of a round's queries, to be minimised."""
        return reader(self.lanes, self.queries, self.told, self.maximise, self.largest, bool(self.limits))

    def outside(self, x: Array) -> NoReturn:
        """Raise the error for a start outside the domain."""
        point, limits = shortly(x), shortly(self.domain)
        if self.bounds is not None:
            low, high = np.transpose(self.bounds)
            place = np.argwhere(~((x >= low) & (x <= high)))[0]
            bound = tuple(np.asarray(self.bounds)[place[-1]].tolist())
            point, limits = str(x[tuple(place)]), f"bounds[{place[-1]}]={bound}"
        raise ValueError(f"x0={point} is outside {limits}: start inside, or widen the limits")
