"""A method is one choice in each place: directions, estimator, step, and how centres keep their distance from the edge.

`methods` names the ready-made ones. To add a method: write a constructor here (or a new part in its own file) and add
one line to the registry; the contract tests then run over it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Literal

from trimtab.directions import Directions, Echoed, Orthogonal
from trimtab.estimators import HighPass, ModifiedTwoPoint, OnePoint, Plane, Residual, Still, TwoPoint
from trimtab.steps import Adaptive, Normalised, Step, as_step


@dataclass(frozen=True, kw_only=True)
class Method:
    """x_{t+1} = Π(x_t − η_t·ĝ_t), ĝ_t = (scale/δ)·a_t·u_t, queried at x_t + δu_t (Eq. 4).

    estimator: one of `trimtab.estimators`, an `Estimator` or a `Learner`.
    radius: δ, the size of a probe: per coordinate for Gaussian and Rademacher directions, its length for `Sphere`.
    step: η, a number, a function of the round, or one of `trimtab.steps`.
    directions: the law of u; None chooses Gaussian on `Everywhere` and Rademacher on any other domain.
    max_move: c, shortens a move to ‖Δx‖ ≤ c·(length of a probe); None leaves it as it is.
    margin: how queries stay inside the domain: centres keep clear of the edge by as little as the law of u allows
    ("erode"), or by the paper's (1−ξ)X, ξ = δ/r ("scale"); or centres go to the very edge and a probe that would leave
    is projected back ("project", for estimators that learn from where they measured). With "none" they may leave.

    >>> Method(estimator=Residual(), radius=0.05, step=3e-3).queries
    1
    """

    estimator: Any
    radius: float
    step: Any
    directions: Directions | None = None
    max_move: float | None = None
    margin: Literal["erode", "scale", "project", "none"] = "erode"

    def __post_init__(self) -> None:
        for part in (self.estimator, self.directions, self.step):
            if isinstance(part, type):
                raise TypeError(f"{part.__name__} is a class: write {part.__name__}(...) for one of its kind")
        object.__setattr__(self, "step", as_step(self.step))
        if not _positive(self.radius):
            raise ValueError(f"radius={self.radius!r} is not a radius: it must be a finite number > 0")
        object.__setattr__(self, "radius", float(self.radius))
        if self.max_move is not None and not _positive(self.max_move):
            raise ValueError(f"max_move={self.max_move!r} allows no move: give a number > 0, or None for no limit")
        if self.margin not in ("erode", "scale", "project", "none"):
            raise ValueError(f"margin={self.margin!r} is unknown: choose 'erode', 'scale', 'project' or 'none'")
        if self.margin == "project" and not hasattr(self.estimator, "learn"):
            raise ValueError(
                f"margin='project' moves queries, but {self.estimator} takes them to be at x + δu: use margin='erode',"
                " or an estimator that learns from where it measured, Plane() or Covariance()"
            )

    @property
    def queries(self) -> int:
        """Measurements per round: 1, or 2 for the forms that only a simulation can serve."""
        return len(self.estimator.offsets)

    @property
    def scale_free(self) -> bool:
        """Whether a·f + b, a > 0, has the same path as f."""
        step: Step = self.step
        return step.scale_free and not isinstance(self.estimator, OnePoint)


def _positive(number: Any) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool) and 0 < float(number) < math.inf


def residual(*, radius: float, step: Any, directions: Directions | None = None, **more: Any) -> Method:
    """Residual feedback (Eq. 3): one query per round, contrasted with the value of the round before.

    >>> residual(radius=0.05, step=3e-3).estimator
    Residual()
    """
    return Method(estimator=Residual(), radius=radius, step=step, directions=directions, **more)


def one_point(*, radius: float, step: Any, directions: Directions | None = None, **more: Any) -> Method:
    """Conventional one-point feedback (Eq. 2).

    >>> one_point(radius=0.05, step=3e-3).estimator
    OnePoint()
    """
    return Method(estimator=OnePoint(), radius=radius, step=step, directions=directions, **more)


def two_point(
    *,
    radius: float,
    step: Any,
    form: Literal["symmetric", "forward"] = "symmetric",
    directions: Directions | None = None,
    **more: Any,
) -> Method:
    """Two-point feedback, two queries of the same objective: a benchmark for simulations (Eq. 1; Bach & Perchet).

    >>> two_point(radius=0.05, step=3e-3, form="forward").queries
    2
    """
    return Method(estimator=TwoPoint(form), radius=radius, step=step, directions=directions, **more)


def modified_two_point(*, radius: float, step: Any, directions: Directions | None = None, **more: Any) -> Method:
    """The biased modification of two-point feedback in Remark 2.5: to show its bias, not to be used.

    >>> modified_two_point(radius=0.05, step=3e-3).queries
    2
    """
    return Method(estimator=ModifiedTwoPoint(), radius=radius, step=step, directions=directions, **more)


def high_pass(
    *, radius: float, step: Any, beta: float = 0.5, directions: Directions | None = None, **more: Any
) -> Method:
    """One query per round, contrasted with a running mean of the values before.

    >>> high_pass(radius=0.05, step=3e-3, beta=0.5).estimator
    HighPass(beta=0.5)
    """
    return Method(estimator=HighPass(beta), radius=radius, step=step, directions=directions, **more)


def auto(*, radius: float) -> Method:
    """No step size: a plane through orthogonal probes, a pace that finds itself, no move longer than a probe.

    radius: the smallest probe; it widens up to three times while the optimum runs away, or while noise hides what it
    changes. At the edge of the domain a probe is projected back inside. The path is the same for a·f + b, a > 0.
    docs/auto.md says what each part is for, and how it compares.

    >>> auto(radius=0.05).scale_free
    True
    """
    law = Echoed(Orthogonal())
    return Method(estimator=Plane(), radius=radius, step=Adaptive(), directions=law, max_move=1.0, margin="project")


def still(*, radius: float = 1.0) -> Method:
    """Doing nothing: plays the centre, and never moves it. The radius is of no consequence.

    >>> still().queries
    1
    """
    return Method(estimator=Still(), radius=radius, step=Normalised(), margin="none")


methods: dict[str, Callable[..., Method]] = {
    "residual": residual,
    "one-point": one_point,
    "two-point": two_point,
    "two-point-forward": partial(two_point, form="forward"),
    "modified-two-point": modified_two_point,
    "high-pass": high_pass,
    "auto": auto,
    "still": still,
}
