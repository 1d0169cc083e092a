"""The default method."""

from __future__ import annotations

from trimtab.directions import Orthogonal
from trimtab.estimators import Plane
from trimtab.recipes.method import Method, register
from trimtab.steps import Adaptive

SHARE = 0.05  # the default radius, as a share of the range
FEW = 10  # knobs: with so few, probes wider than the default radius cost more than they tell (benchmarks/few_knobs.py)


@register("auto")
def auto(*, radius: float, narrowest: float = 0.03, widest: float = 4.0) -> Method:
    """No step size and no radius to be guessed well: what is played is kept cheap, and followed from one query a round.

    radius: how far it probes at first. From then on the probes narrow where little is needed and widen where noise
    hides what they change, between `narrowest` and `widest` times the radius. At the edge of the domain a probe is
    projected back inside. The path is the same for a·f + b, a > 0, as long as changes of the value are between 1e-140
    and 1e140 in size, whose squares are still numbers. docs/auto.md says what each part is for.

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
    """Build the default method for `count` knobs between limits, where nobody gave a radius.

    >>> between_limits(3).step.widest, between_limits(30).step.widest
    (1.0, 4.0)
    """
    return auto(radius=SHARE, widest=1.0) if count <= FEW else auto(radius=SHARE)
