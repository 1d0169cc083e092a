"""`Method`: one choice each of directions, estimator, step and margin; and the registry of methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar

from trimtab import family
from trimtab.estimators import Plane
from trimtab.protocols import Directions, Estimator, Frame, Rule, Step
from trimtab.recipes.base import BaseMethod, Margin
from trimtab.registry import part
from trimtab.steps import Adaptive, StepLike, as_step
from trimtab.tracker import rule


class Options(TypedDict, total=False):
    """Options of `Method` that every recipe with a step accepts."""

    directions: Directions | None
    max_move: float | None
    margin: Margin


@part
@dataclass(frozen=True, kw_only=True)
class Method(BaseMethod):
    """x_{t+1} = Π(x_t − η_t·ĝ_t), queried at x_t + δ_t·u_t (Eq. 4).

    estimator: one of `trimtab.estimators`, or your own.
    radius: δ, the probe size: per coordinate for Gaussian and Rademacher directions, its length for `Sphere`.
    step: η, a number, a function of the round, or one of `trimtab.steps`.
    directions: the law of u; None chooses Gaussian on `Everywhere` and Rademacher on any other domain.
    max_move: c, limits moves to ‖Δx‖ ≤ c·(length of a probe of the given radius); None for no limit.
    margin: how queries stay inside the domain. "erode" keeps centres as far from the edge as the law of u requires,
    "scale" in the paper's (1−ξ)X, ξ = δ/r. With "project", centres may reach the edge and probes are projected back
    (for estimators that use the actual query). With "none", queries may leave the domain.

    >>> import trimtab as tt
    >>> Method(estimator=tt.Residual(), radius=0.05, step=3e-3).queries
    1
    """

    estimator: Estimator
    step: Step | Adaptive
    default: bool = field(init=False, default=False, compare=False, repr=False)
    """Whether it was chosen as the default, by `auto`; not saved."""

    if TYPE_CHECKING:  # `step` also accepts a number or a function

        def __init__(
            self,
            *,
            estimator: Estimator,
            radius: float,
            step: StepLike,
            directions: Directions | None = None,
            max_move: float | None = None,
            margin: Margin = "erode",
        ) -> None: ...

    def __post_init__(self) -> None:
        for given in (self.estimator, self.step):
            if isinstance(given, type):
                raise TypeError(f"{given.__name__} is a class: write {given.__name__}(...) to create an instance")
        if not hasattr(self.estimator, "offsets"):
            raise TypeError(f"estimator={self.estimator!r} is not an estimator: give for example tt.Residual()")
        object.__setattr__(self, "step", as_step(self.step))
        super().__post_init__()
        if self.margin == "project" and not self.located:
            raise ValueError(
                f"margin='project' moves queries, but {self.estimator} assumes them at x + δu: use margin='erode',"
                " or an estimator that learns from where it measured, Plane() or Covariance()"
            )
        if isinstance(self.step, Adaptive) and not isinstance(self.estimator, Plane):
            raise ValueError(
                f"{self.step} needs an estimator that tracks its own scale: use Plane(), not {self.estimator}"
            )

    def bind(self, frame: Frame) -> Rule:
        """Bind the method to a setup."""
        if isinstance(self.step, Adaptive):
            assert isinstance(self.estimator, Plane)
            return rule.bind(self.estimator, self.step, frame)
        return family.bind(self.estimator, self.step, frame)

    offsets = property(lambda self: self.estimator.offsets)
    lags = property(lambda self: self.estimator.lags)
    told = property(lambda self: self.estimator.told)
    anchored = property(lambda self: self.estimator.anchored)
    unbiased = property(lambda self: self.estimator.unbiased)
    located = property(lambda self: self.estimator.located)
    learns_settings = property(lambda self: isinstance(self.estimator, Plane) and self.estimator.settings)
    finds_width = property(lambda self: isinstance(self.step, Adaptive))
    narrowest = property(lambda self: self.step.narrowest)
    widest = property(lambda self: self.step.widest)
    constant = property(lambda self: self.step.constant)
    kind = property(lambda self: type(self.estimator))
    parts = property(lambda self: {"estimator": self.estimator, "step": self.step})

    @property
    def scale_free(self) -> bool:
        """Whether a·f + b, a > 0, has the same path as f; never the case with limits, whose scale matters."""
        return self.step.scale_free and (self.anchored or self.queries > 1) and self.told == 1

    def changed(self, **fields: Any) -> Self:
        """The method with some fields replaced; widths are fields of its step."""
        step: Any = self.step
        if widths := {name: fields.pop(name) for name in ("narrowest", "widest") if name in fields}:
            fields["step"] = replace(step, **widths)
        return super().changed(**fields)


Constructor = TypeVar("Constructor", bound=Callable[..., BaseMethod])
methods: dict[str, Callable[..., BaseMethod]] = {}
"""Name → constructor, with `radius=` and, if it needs one, `step=`."""


def register(name: str) -> Callable[[Constructor], Constructor]:
    """Register a constructor as `trimtab.methods[name]`.

    >>> import trimtab as tt
    >>> @tt.register("careful")
    ... def careful(radius: float) -> Method:
    ...     return tt.residual(radius=radius, step=radius / 100)
    >>> tt.methods.pop("careful")(radius=0.1).radius
    0.1
    """

    def add(constructor: Constructor) -> Constructor:
        methods[name] = constructor
        return constructor

    return add


def exported(name: str) -> Callable[..., BaseMethod] | None:
    """The registered constructor whose name, with _ for -, is `name`."""
    return methods.get(name.replace("_", "-"))


def name_of(method: BaseMethod) -> str | None:
    """The registered name of methods of the same kind; None if there is none.

    >>> name_of(methods["primal-dual"](radius=0.1, step=0.1, limits=2))
    'primal-dual'
    """
    for name, constructor in methods.items():
        needed = [p for p in signature(constructor).parameters.values() if p.default is p.empty]
        made = constructor(**{p.name: 1 for p in needed if p.kind is not p.VAR_KEYWORD})
        if made.kind is method.kind:
            return name
    return None
