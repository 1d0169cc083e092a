"""The theory of the paper: plan step, radius and guarantee from constants; check the assumptions on a run.

>>> from trimtab import theory
>>> plan = theory.convex_lipschitz(dim=36, horizon=1000, lipschitz=2.0, distance=1.0)
>>> f"step {plan.step:.3g}, radius {plan.radius:.3g}, contraction {plan.contraction:.2g}"
'step 0.000166, radius 0.178, contraction 0.0005'
>>> round(plan.bound(variation=0.1).per_step, 1)
41.2
"""

from trimtab.theory.evidence import (
    Constants,
    Diagnosis,
    Estimate,
    Finding,
    diagnose,
    estimate,
    measure,
    second_moments,
)
from trimtab.theory.guarantees import Bound, Plan
from trimtab.theory.moments import (
    contraction,
    gradient_gap,
    one_point_order,
    perturbation,
    second_moment,
    smoothing_gap,
    variation_to_beat,
)
from trimtab.theory.plans import (
    convex_lipschitz,
    convex_lipschitz_ball,
    convex_lipschitz_feasible,
    convex_smooth,
    nonconvex_lipschitz,
    nonconvex_smooth,
    theorems,
)

__all__ = [
    "Bound",
    "Constants",
    "Diagnosis",
    "Estimate",
    "Finding",
    "Plan",
    "contraction",
    "convex_lipschitz",
    "convex_lipschitz_ball",
    "convex_lipschitz_feasible",
    "convex_smooth",
    "diagnose",
    "estimate",
    "gradient_gap",
    "measure",
    "nonconvex_lipschitz",
    "nonconvex_smooth",
    "one_point_order",
    "perturbation",
    "second_moment",
    "second_moments",
    "smoothing_gap",
    "theorems",
    "variation_to_beat",
]
