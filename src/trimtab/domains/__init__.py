"""Where may we be?  Convex sets to project onto; see `trimtab.domains.sets`."""

from trimtab.domains.combined import Intersection, Product
from trimtab.domains.polytope import Polytope
from trimtab.domains.sets import Ball, Box, Domain, Everywhere, Halfspace, Simplex

__all__ = ["Ball", "Box", "Domain", "Everywhere", "Halfspace", "Intersection", "Polytope", "Product", "Simplex"]
