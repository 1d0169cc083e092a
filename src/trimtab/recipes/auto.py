"""The default method."""

from __future__ import annotations

from trimtab.directions import Orthogonal
from trimtab.estimators import Plane
from trimtab.protocols import Directions
from trimtab.recipes.base import BaseMethod
from trimtab.recipes.belief import belief
from trimtab.recipes.belief.model import Constants
from trimtab.recipes.method import Method, register
from trimtab.steps import Adaptive

SHARE = 0.05  # default radius, as a share of the range
FEW = 10  # up to this many knobs, probes wider than the default cost more than they gain (benchmarks/few_knobs.py)


@register("auto")
def auto(*, radius: float, narrowest: float = 0.03, widest: float = 4.0) -> Method:
    """The default method: follows a drifting optimum at low cost, without tuning of step or radius.

    radius: the initial probe size. Probes then become narrower where they can, and wider where noise hides their
    effect, between `narrowest` and `widest` times the radius. At the edge of the domain they are projected back inside.
    The path is the same for a·f + b, a > 0, as long as values change by 1e-140 to 1e140, whose squares are finite.
    That is `plane`, explained in docs/auto.md. A `Tuner` with contexts or limits uses `belief` of this radius instead.

    >>> auto(radius=0.05) == plane(radius=0.05)
    True
    """
    method = plane(radius=radius, narrowest=narrowest, widest=widest)
    object.__setattr__(method, "default", True)
    return method


def plane(
    *, radius: float, narrowest: float = 0.03, widest: float = 4.0, directions: Directions | None = None
) -> Method:
    """A method that keeps a plane through recent values, and follows its slope: what `auto` is without contexts.

    directions: the law of the probes; None: orthogonal blocks.

    >>> plane(radius=0.05).scale_free
    True
    """
    return Method(
        estimator=Plane(settings=True),
        radius=radius,
        step=Adaptive(narrowest=narrowest, widest=widest),
        directions=Orthogonal() if directions is None else directions,
        margin="project",
    )


def informed(method: BaseMethod) -> BaseMethod:
    """Convert `auto` to the belief of the same radius, for a tuner with contexts or limits; other methods stay.

    >>> informed(auto(radius=0.05, widest=2.0)).widest
    2.0
    >>> informed(plane(radius=0.05)) == plane(radius=0.05)
    True
    """
    if not (isinstance(method, Method) and method.default):
        return method
    narrowest = max(method.narrowest, Constants.narrowest)
    return belief(radius=method.radius, narrowest=narrowest, widest=method.widest, max_move=method.max_move)


def between_limits(count: int) -> Method:
    """Build the default method for `count` bounded knobs without a given radius.

    >>> between_limits(3).step.widest, between_limits(30).step.widest
    (1.0, 4.0)
    """
    return auto(radius=SHARE, widest=1.0) if count <= FEW else auto(radius=SHARE)
