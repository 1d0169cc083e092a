"""The default method."""

from __future__ import annotations

from trimtab.directions import Orthogonal
from trimtab.estimators import Plane
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
    docs/auto.md explains each part.

    >>> auto(radius=0.05).scale_free
    True
    """
    return Method(
        estimator=Plane(),
        radius=radius,
        step=Adaptive(narrowest=narrowest, widest=widest),
        directions=Orthogonal(),
        margin="project",
    )


def between_limits(count: int) -> Method:
    """Build the default method for `count` bounded knobs without a given radius.

    >>> between_limits(3).step.widest, between_limits(30).step.widest
    (1.0, 4.0)
    """
    return auto(radius=SHARE, widest=1.0) if count <= FEW else auto(radius=SHARE)
