"""The paper's methods, those it compares them with, and `still`, which never moves."""

from __future__ import annotations

from functools import partial
from typing import Literal, Unpack

from trimtab.estimators import HighPass, ModifiedTwoPoint, OnePoint, Residual, Still, TwoPoint
from trimtab.recipes.method import Method, Options, register
from trimtab.steps import Normalised, StepLike


@register("residual")
def residual(*, radius: float, step: StepLike, **more: Unpack[Options]) -> Method:
    """Residual feedback (Eq. 3): one query per round, contrasted with the value of the round before.

    more: directions, max_move, margin, as in `Method`; likewise for the methods below.

    >>> residual(radius=0.05, step=3e-3).estimator
    Residual()
    """
    return Method(estimator=Residual(), radius=radius, step=step, **more)


@register("one-point")
def one_point(*, radius: float, step: StepLike, **more: Unpack[Options]) -> Method:
    """Conventional one-point feedback (Eq. 2).

    >>> one_point(radius=0.05, step=3e-3).estimator
    OnePoint()
    """
    return Method(estimator=OnePoint(), radius=radius, step=step, **more)


@register("two-point")
def two_point(
    *, radius: float, step: StepLike, form: Literal["symmetric", "forward"] = "symmetric", **more: Unpack[Options]
) -> Method:
    """Two-point feedback, two queries of the same objective: a benchmark for simulations (Eq. 1; Bach & Perchet).

    >>> two_point(radius=0.05, step=3e-3, form="forward").queries
    2
    """
    return Method(estimator=TwoPoint(form), radius=radius, step=step, **more)


register("two-point-forward")(partial(two_point, form="forward"))


@register("modified-two-point")
def modified_two_point(*, radius: float, step: StepLike, **more: Unpack[Options]) -> Method:
    """The biased modification of two-point feedback in Remark 2.5, for demonstrating its bias.

    >>> modified_two_point(radius=0.05, step=3e-3).queries
    2
    """
    return Method(estimator=ModifiedTwoPoint(), radius=radius, step=step, **more)


@register("high-pass")
def high_pass(*, radius: float, step: StepLike, beta: float = 0.5, **more: Unpack[Options]) -> Method:
    """One query per round, contrasted with a running mean of the values before.

    >>> high_pass(radius=0.05, step=3e-3, beta=0.5).estimator
    HighPass(beta=0.5)
    """
    return Method(estimator=HighPass(beta), radius=radius, step=step, **more)


@register("still")
def still(*, radius: float = 1.0) -> Method:
    """Measure at the start and stay there; the radius is not used.

    >>> still().estimator
    Still()
    """
    return Method(estimator=Still(), radius=radius, step=Normalised(), margin="none")
